"""Rules against columns. What is found must be what binding every single row finds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.rules import Finding
from cepheid.rules.load.validation import count_wrong

COLUMNS = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "type": pa.string(),
        "x": pa.float64(),
        "name": pa.string(),
        "day": pa.date32(),
        "flag": pa.bool_(),
    }
)
NAMED: dict[str, Any] = {"time": "ts", "type": "type"}


def check(query: str, rows: Any, columns: Any = COLUMNS) -> tuple[Finding, ...]:
    return cep.RuleSet.from_template("t", query, rows).check(columns, **NAMED)


def wrong_rows(findings: tuple[Finding, ...], count: int) -> set[int]:
    """A finding without rows is about all of them."""
    return {row for f in findings for row in f.rows or range(1, count + 1)}


def test_right_rules_have_no_findings() -> None:
    query = "PATTERN A a ; B b WHERE b.x > :low AND a.name = :name WITHIN :w minutes"
    rows = {"low": [1, 2], "name": ["x", None], "w": [5, 0.5]}
    assert check(query, rows) == ()


def test_a_column_of_the_wrong_type_is_one_finding() -> None:
    query = "PATTERN A a ; B b WHERE b.x > 1 AND a.name = :code WITHIN :w minutes"
    rows = {"code": list(range(50)), "w": list(range(1, 51))}
    (finding,) = check(query, rows)
    assert finding.rows == ()
    assert finding.render().splitlines() == [
        "CEP210: can't compare `a.name` (string) with `:code` (integer)",
        "  t:1:37",
        "  1 | PATTERN A a ; B b WHERE b.x > 1 AND a.name = :code WITHIN :w minutes",
        "    |                                     ^^^^^^^^^^^^^^ in t `code` is int64",
    ]


def test_a_mistake_of_the_query_is_about_all_rows() -> None:
    (finding,) = check("PATTERN A a WHERE a.xx > :low", {"low": [1, None, 3]})
    assert finding.rows == ()
    assert "did you mean `x`?" in finding.render()


def test_the_query_of_an_empty_table_is_checked() -> None:
    rows = pa.table({"low": pa.array([], pa.int64()), "w": pa.array([], pa.int64())})
    query = "PATTERN A a ; B b WHERE a.x > :low WITHIN :w minutes"
    assert check(query, rows) == ()
    (finding,) = check(query.replace("a.x", "a.xx"), rows)
    assert "did you mean `x`?" in finding.render()


def test_a_null_where_a_value_is_needed() -> None:
    query = "PATTERN A a ; B b WHERE b.x > :low WITHIN :w minutes"
    (finding,) = check(query, {"low": [None, 1, None, 2], "w": [5, None, 6, None]})
    assert finding.rows == (2, 4)
    assert finding.render().endswith("\n  with the values of t, rows 2 and 4")


@pytest.mark.parametrize("more", [0, 1000], ids=["few sizes", "many sizes"])
@pytest.mark.parametrize(
    ("clause", "bad"),
    [
        ("WITHIN :w minutes", [0.0, -3.0, float("nan"), float("inf"), 1e18]),
        ("WITHIN :w EVENTS", [0.0, -3.0, 2.5, float("nan")]),
    ],
)
def test_sizes_that_no_window_has(clause: str, bad: list[float], more: int) -> None:
    sizes = [*bad, *(float(i) for i in range(1, 10 + more))]
    random.Random(3).shuffle(sizes)
    wanted = {i for i, size in enumerate(sizes, 1) if any(size is b for b in bad)}
    rows = pa.table({"w": pa.array(sizes, from_pandas=False)})
    findings = check(f"PATTERN A a ; B b {clause}", rows)
    assert wrong_rows(findings, len(sizes)) == wanted


def test_durations_of_every_kind() -> None:
    rows = pa.table({"w": [timedelta(minutes=5), timedelta(0), None, timedelta(-1)]})
    findings = check("PATTERN A a ; B b WITHIN :w", rows)
    assert wrong_rows(findings, 4) == {2, 3, 4}


def test_texts_that_are_no_moments() -> None:
    query = "PATTERN A a ; B b WHERE a.day >= :since AND b.name = :name WITHIN 5 minutes"
    rows = {
        "since": ["2024-01-01", "soon", None, "2024-02-30", "2024-01-01 12:00:00"],
        "name": ["soon", "never", "x", None, "2024-01-01"],
    }
    findings = check(query, rows)
    assert wrong_rows(findings, 5) == {2, 4}
    assert {f.diagnostic.code for f in findings if f.diagnostic} == {"CEP214"}


def test_a_value_that_no_predicate_can_read() -> None:
    rows = pa.table({"low": [[1], None, [2]]})
    (finding,) = check("PATTERN A a WHERE a.x > :low", rows)
    assert finding.rows == (1, 3)
    assert "`:low` is a list, which no predicate can read" in finding.message


# ── as if every row was bound ────────────────────────────────────────────────

CONDITIONS = [
    "b.x > :p",
    "(:p IS NULL OR a.name = :p)",
    "a.day < :p",
    "a.name IN ('x', :p, :q)",
    "b.x BETWEEN :p AND :q",
    "b.ts - a.ts < :p seconds",
    "coalesce(:p, :q) = a.x",
    "a.flag = :p",
    "a.name LIKE :q",
    "NOT (:q = b.day OR b.x = :p)",
    "sqrt(:q) < a.x",
    "a.x + :p > :q",
]
VALUES: list[list[Any]] = [
    [1, -2, None, 0],
    [0.5, None, float("nan"), -1.0],
    ["x", None, "2024-01-01", "?"],
    [date(2024, 1, 1), None],
    [True, False, None],
    [timedelta(minutes=1), timedelta(0), None],
    [None],
]


def templates(seed: int) -> Iterator[tuple[str, pa.Table]]:
    draw = random.Random(seed)
    for _ in range(40):
        where = " AND ".join(draw.sample(CONDITIONS, draw.randint(1, 4)))
        within = draw.choice(["5 minutes", ":w minutes", ":w EVENTS"])
        count = draw.randint(1, 12)
        columns = {name: draw.choices(draw.choice(VALUES), k=count) for name in "pqw"}
        yield f"PATTERN A a ; B b WHERE {where} WITHIN {within}", pa.table(columns)


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 10))]
)
def test_the_rows_found_wrong_are_those_that_are(seed: int) -> None:
    for query, rows in templates(seed):
        wanted = set()
        for number, values in enumerate(rows.to_pylist(), 1):
            try:
                cep.Query(query).bind(COLUMNS, params=values, **NAMED)
            except cep.QueryError:
                wanted.add(number)
        assert wrong_rows(check(query, rows), rows.num_rows) == wanted, (query, rows.to_pydict())


# ── what is bound, and against what ──────────────────────────────────────────


def test_a_template_is_not_bound_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from cepheid.rules.load import validation

    calls = 0
    bind = validation.bind

    def counted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return bind(*arguments)

    monkeypatch.setattr(validation, "bind", counted)
    names = [f"p{i}" for i in range(12)]
    draw = np.random.default_rng(0)
    columns = {n: pa.array(draw.random(5000), mask=draw.random(5000) < 0.5) for n in names}
    where = " AND ".join(f"(:{n} IS NULL OR a.x > :{n})" for n in names)
    assert check(f"PATTERN A a WHERE {where}", columns) == ()
    assert 2 <= calls <= 2 * len(names)  # and not 5000 rows, nor 4096 patterns of NULLs


def test_without_data_attributes_are_what_they_are_compared_with() -> None:
    query = """
        PATTERN A a ; B b
        WHERE a.country = :country AND b.day >= :since AND a.ok = :ok AND b.x BETWEEN :low AND 9
          AND [city = :city] AND b.kind IN (:kind, :other) AND a.label LIKE :label
        WITHIN :w minutes"""
    rows = {
        "country": ["DE", None],
        "since": [date(2024, 1, 1), None],
        "ok": [True, None],
        "low": [1, 2],
        "city": ["x", "y"],
        "kind": ["k", "l"],
        "other": ["m", None],
        "label": ["%x", "y%"],
        "w": [5, 6],
    }
    rules = cep.RuleSet.from_template("t", query, rows)
    assert rules.check() == ()
    wrong = cep.RuleSet.from_template("t", query, {**rows, "w": ["5", "6"]})
    assert len(wrong.check()) == 2  # each value is reported


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"ts": [1], "type": ["A"], "x": [1]}),
        pa.table({"ts": [1], "type": ["A"], "x": [1]}).to_batches()[0],
        pa.table({"ts": [1], "type": ["A"], "x": [1]}).to_reader(),
        pd.DataFrame({"ts": [1], "type": ["A"], "x": [1]}),
        pl.DataFrame({"ts": [1], "type": ["A"], "x": [1]}),
    ],
    ids=lambda data: type(data).__name__,
)
def test_columns_of_data(data: Any) -> None:
    rules = cep.RuleSet.of({"r": "PATTERN A a ; B b WHERE a.x < b.y WITHIN 5"})
    (finding,) = rules.check(data, **NAMED)
    assert "B has no attribute `y`" in finding.message


def test_several_streams() -> None:
    rules = cep.RuleSet.of({"r": "PATTERN trades t ; news n WHERE t.x < n.x WITHIN 5"})
    trades, news = pa.schema({"ts": pa.int64(), "x": pa.int64()}), pa.schema({"ts": pa.int64()})
    assert rules.check({"trades": trades, "news": trades}, time="ts") == ()
    (finding,) = rules.check({"trades": trades, "news": news}, time="ts")
    assert "news has no attribute `x`" in finding.message


def test_options_that_do_not_fit_the_data_are_no_finding() -> None:
    rules = cep.RuleSet.of({"r": "PATTERN A"})
    with pytest.raises(cep.DataError, match="no column `time`"):
        rules.check(COLUMNS, time="time")
    with pytest.raises(cep.DataError, match="say which column holds the event time"):
        rules.check(COLUMNS)
    with pytest.raises(cep.DataError, match="pass the schema of its batches"):
        rules.check(iter(pa.table({"ts": [1]}).to_batches()), time="ts")


def test_places_are_those_in_the_file(tmp_path: Any) -> None:
    (tmp_path / "a.cep").write_text("-- a rule\nINTO one\nPATTERN A a\nWHERE a.y > 5\n")
    (finding,) = cep.RuleSet.load(tmp_path).check(COLUMNS, **NAMED)
    assert f"{tmp_path}/a.cep:4:7" in finding.render()


def test_counting_wrong_rules() -> None:
    rules = cep.RuleSet.of({"a": "PATTERN A", "b": "PATTERN B"}) | cep.RuleSet.from_template(
        "t", "PATTERN A a WHERE a.x > :low", {"low": [1, 2, 3]}
    )
    found = [
        Finding("t", "one", rows=(1, 2), template="t"),
        Finding("t", "two", rows=(2,), template="t"),
        Finding("b", "three", template="b"),
        Finding("c", "of no template"),
    ]
    assert count_wrong(rules.templates, found) == 3
    assert count_wrong(rules.templates, [Finding("t", "all", template="t")]) == 3
