"""Columns without any value: Arrow gives them a type of their own, and conditions take any."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid as cep

EVENTS = pa.table(
    {"ts": [1, 2], "type": ["A", "B"], "k": [1, 1], "s": pa.nulls(2), "z": ["x", "y"]}
)
UNKNOWN = [
    "lower({0}) = 'x'",
    "{0} ILIKE 'x%'",
    "{0} LIKE 'x'",
    "{0} RLIKE 'x'",
    "{0} CONTAINS 'x'",
    "{0} = 'x'",
    "{0} > 5",
    "{0} + 1 > 2",
    "abs({0}) >= 0",
    "length(trim({0})) > 0",
    "substring({0}, 1, 2) = 'x'",
    "split_part({0}, ',', 1) = 'x'",
    "concat({0}, 'a') = 'a'",
    "replace({0}, 'a', 'b') <> ''",
    "cidr_contains('10.0.0.0/8', {0})",
    "year({0}) = 2026",
    "extract(hour FROM {0}) = 1",
    "date_trunc('day', {0}) = '2026-01-01'",
    "{0} IN ('x', 'y')",
    "{0} BETWEEN 1 AND 2",
    "CAST({0} AS int) = 1",
]
TRUE = [
    "{0} IS NULL",
    "coalesce({0}, 1) = 1",
    "coalesce({0}, 'x') = 'x'",
    "greatest({0}, 2) = 2",
    "ifnull({0}, 2.5) = 2.5",
    "CASE WHEN {0} = 1 THEN {0} ELSE 3 END = 3",
    "CASE WHEN {0} IS NULL THEN 3 ELSE {0} END = 3",
]
PATTERNS = {
    "PATTERN B e WHERE {condition}": "e.s",
    "PATTERN A a ; B e WHERE ({condition}) AND a.k = e.k WITHIN 9": "e.s",
    "PATTERN A a ; B e WHERE ({condition}) OR a.k > e.k WITHIN 9": "e.s",
    "PATTERN A a -> B e WHERE ({condition}) OR a.k > e.k": "a.s",
    "PATTERN A a ; B+ e WHERE {condition} WITHIN 9": "e.s",
}


@pytest.mark.filterwarnings("ignore:the query matches nothing")
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("condition", UNKNOWN)
def test_a_condition_is_unknown(condition: str, pattern: str) -> None:
    query = pattern.format(condition=condition.format(PATTERNS[pattern]))
    assert cep.match(EVENTS, query, time="ts", type="type").num_rows == 0


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("condition", TRUE)
def test_null_is_replaced(condition: str, pattern: str) -> None:
    query = pattern.format(condition=condition.format(PATTERNS[pattern]))
    assert cep.match(EVENTS, query, time="ts", type="type").num_rows == 1


def test_a_forbidden_event_is_none() -> None:
    query = "PATTERN A a ; !B b FOR 5 WHERE lower(b.s) = 'x'"
    assert cep.match(EVENTS, query, time="ts", type="type").num_rows == 1


@pytest.mark.parametrize(
    ("value", "returned"),
    [
        ("upper(b.s)", None),
        ("b.s", None),
        ("b.s + 1", None),
        ("coalesce(b.s, 'x')", "x"),
        ("CASE WHEN b.k = 1 THEN 3 ELSE b.s END", 3),
    ],
)
def test_values(value: str, returned: object) -> None:
    found = cep.match(EVENTS, f"PATTERN B b RETURN {value} AS r", time="ts", type="type")
    assert found["r"].to_pylist() == [returned]


def test_aggregates() -> None:
    query = "PATTERN A a ; B+ b WITHIN 9 RETURN sum(b.s) AS s, avg(b.s) AS a, count(b.s) AS n"
    found = cep.match(EVENTS, query, time="ts", type="type").select(["s", "a", "n"])
    assert found.to_pylist() == [{"s": None, "a": None, "n": 0}]


def test_rows_of_a_partition() -> None:
    sql = """SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES sum(b.s) AS total, last(b.s) AS s
        PATTERN (a b) DEFINE b AS lower(b.s) = 'x' OR b.s IS NULL)"""
    assert cep.sql(sql, {"t": EVENTS}).to_pylist() == [{"total": None, "s": None}]
