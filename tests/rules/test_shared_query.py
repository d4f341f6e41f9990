"""Rules that share a query with others return exactly what they return alone, by the oracle."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, reject, settings

from cepheid.algebra.expressions import Varying
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.text import query_text
from cepheid.algebra.types import Schema, Type
from cepheid.errors import QueryError, UnsupportedError
from cepheid.options import Options
from cepheid.query import Query
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules
from cepheid.rules.compile.rule_queries import Alone
from cepheid.rules.compile.shared_query import agreed, window_is_filter
from tests.corpus.reader import table
from tests.examples import examples
from tests.properties.strategies import COLUMNS
from tests.rules.strategies import Set
from tests.rules.templates import templates
from tests.rules.test_batch import expected, found, rule_set

random = settings(
    max_examples=examples("shared queries"), suppress_health_check=list(HealthCheck), deadline=None
)
SCHEMA = table(Schema(COLUMNS, time="ts", type="type"), ()).schema


def options(drawn: Set) -> Options:
    return Options("ts", type="type", tie=drawn.tie, jit=False)


@random
@given(templates())
def test_every_rule_of_a_template_finds_what_it_finds_alone(drawn: Set) -> None:
    schema = drawn.schema
    rules = rule_set(drawn)
    try:
        result = found(rules, table(schema, drawn.events), options(drawn))
    except UnsupportedError:
        reject()
    for name, rule in rules.items():
        assert result[name] == expected(rule, schema, drawn.events), (name, rule.params)


@pytest.mark.slow
def test_a_good_share_of_random_rules_share_a_query() -> None:
    """Else the test above would not test what it is for."""
    counts: Counter[str] = Counter()

    @settings(random, max_examples=150, database=None, derandomize=True)
    @given(templates())
    def count(drawn: Set) -> None:
        try:
            compiled = compile_rules(rule_set(drawn).templates, SCHEMA, options(drawn))
        except UnsupportedError:
            return
        (query, _) = drawn.templates["rule"]
        for one in compiled.alone:
            counts["alone" if one.residual is None else "shared"] += len(one.rules)
            if one.residual is not None:
                counts.update(word for word in ("->", "&", "!", "HAVING", ":w") if word in query)

    count()
    assert 3 * counts["shared"] > counts["alone"] > 0, counts
    assert all(counts[word] for word in ("->", "&", "!", "HAVING", ":w")), counts


# ── the law ──────────────────────────────────────────────────────────────────


def varying(text: str) -> BoundQuery:
    given = {name: Varying(1, Type.INTEGER, name) for name in "pqr"}
    return Query(text).bind(SCHEMA, time="ts", type="type", params=given)


@pytest.mark.parametrize(
    ("query", "same"),
    [
        # single events, and groups as a whole
        ("A a ; B b+ ; C c WHERE a.x > :p AND sum(b.x) > :q AND a.x + :r < c.x WITHIN 5", ""),
        ("A a & B b WHERE a.x > :p AND b.x > a.x + :q WITHIN 5", ""),
        ("A a => B b+ => C c WHERE a.x > :p AND c.x > :q", ""),
        ("A a ; B b+ SUBSETS ; C c WHERE a.x > :p AND count(b) > :q WITHIN 5", ""),
        ("A a ; B b+ ; C c WHERE duration() < :p WITHIN 5", ""),
        ("A a ; B b? ; C c WHERE a.x = :p HAVING b.x = :q WITHIN 5", ""),
        ("A a ; B b+ ; C c WITHIN 5 RETURN :p AS p, sum(b.x) + :q AS q", ""),
        # elements one by one
        ("A a ; B b+ ; C c WHERE b.x > :p AND c.x > :q WITHIN 5", "p"),
        ("A a ; B b+ ; C c WHERE b.x > PREV(b.x) + :p AND c.x > :q WITHIN 5", "p"),
        ("A a ; B b+ ; C c WHERE ALL(b.x) > :p AND c.x > :q WITHIN 5", "p"),
        ("A a ; B b+ ; C c WHERE c.x > :q HAVING b.x > :p WITHIN 5", "p"),
        ("A a ; B b+ ; C c HAVING sum(b.x * :p) > :q WITHIN 5", "pq"),
        ("A a ; B b+ UNTIL (b.x > :p) ; C c WHERE c.x > :q WITHIN 5", "p"),
        ("A a ; B b? ; C c WHERE b.x > :p AND c.x > :q WITHIN 5", "p"),
        # forbidden events
        ("A a ; !B b ; C c+ ; A d WHERE b.x > :p AND a.x > :q AND b.x < d.x + :r WITHIN 5", "pr"),
        # the first that satisfies everything
        ("A a -> B b WHERE a.x > :p AND b.x > :q", "q"),
        ("A a ; C c -> B b WHERE a.x > :p AND c.x < a.x + :q AND b.x > c.x + :r WITHIN 5", "r"),
        ("A a -> B b WHERE duration() < :p HAVING b.x > :q", ""),
        ("A a & (B b -> C c) WHERE a.x > :p AND b.x > :q HAVING c.x > :r WITHIN 5", "pq"),
        ("A a ; B b+ -> C c WHERE a.x > :p AND sum(b.x) > :q WITHIN 5", "q"),
        # branches
        ("A a ; (B b | C c) WHERE a.x > :p AND b.x > :q HAVING c.x > :r WITHIN 5", "qr"),
        # a match that goes makes room for another
        (
            "A a ; B b+ ; C c WHERE a.x > :p HAVING sum(b.x) > :q WITHIN 5 "
            "AFTER MATCH SKIP PAST LAST EVENT RETURN :r AS r",
            "pq",
        ),
    ],
)
def test_parameters_in_which_rules_have_to_agree(query: str, same: str) -> None:
    assert agreed(varying(f"PATTERN {query}")) == set(same)


@pytest.mark.parametrize(
    ("pattern", "longer"),
    [
        ("A a ; B b+ ; C c WITHIN 5", True),
        ("A a & (B b ; C c* ; A d) WITHIN 5", True),
        ("A a -> B b WITHIN 5", True),
        ("A a ; !B b ; C c WITHIN 5", True),
        ("B b+ ; C c WITHIN 5", False),
        ("A a ; B b* WITHIN 5", False),
        ("A a ; B b{2} WITHIN 5", False),
        ("A a ; B b ; !C c WITHIN 5", False),
        ("A a & (B b ; !C c) WITHIN 5", False),
        ("A a | (!B b ; C c) WITHIN 5", False),
        ("A a ; B b WITHIN 5 EVENTS", False),
        ("A a -> B b", False),
        ("A a ; B b WITHIN 5 AFTER MATCH SKIP TO NEXT EVENT", False),
    ],
)
def test_a_longer_window_finds_the_same_and_more(pattern: str, longer: bool) -> None:
    assert window_is_filter(varying(f"PATTERN {pattern}")) is longer


# ── the query for all ────────────────────────────────────────────────────────


def alone(query: str, rows: dict[str, list[Any]]) -> tuple[Alone, ...]:
    rules = RuleSet.from_template("rule", f"PATTERN A a ; B b+ ; C c {query}", rows)
    compiled = compile_rules(rules.templates, SCHEMA, Options("ts", type="type"))
    assert not compiled.groups
    return compiled.alone


@pytest.mark.parametrize(
    ("condition", "rows", "wide"),
    [
        ("a.x > :p", {"p": [3, 1, 2]}, "a.x > 1"),
        (":p >= a.x", {"p": [3, 1, None]}, "a.x <= 3"),
        ("a.x = :p", {"p": [3, 1, 3]}, "a.x IN (1, 3)"),
        ("a.x = :p", {"p": [2, 2, None]}, "a.x = 2"),
        ("a.x = :p", {"p": list(range(40))}, "(a.x >= 0) AND (a.x <= 39)"),
        ("a.s = :p", {"p": ["v", "u"]}, "a.s IN ('u', 'v')"),
        ("a.s = :p", {"p": [str(n) for n in range(40)]}, None),
        ("(:p IS NULL OR a.x = :p)", {"p": [1, 2]}, "a.x IN (1, 2)"),
        ("(:p IS NULL OR a.x = :p)", {"p": [1, None]}, None),
        ("a.x IN (:p, 7)", {"p": [1, 2]}, "(a.x IN (1, 2) OR (a.x = 7))"),
        ("a.y > :p", {"p": [0.5, float("nan")]}, "((a.y > 0.5) OR (a.y > nan))"),
        ("a.x * :p > 2", {"p": [1, 2]}, "(((a.x * 1) > 2) OR ((a.x * 2) > 2))"),
        ("a.x * :p > 2", {"p": list(range(9))}, None),
        ("sum(b.x) > :p", {"p": [5, 4]}, "sum(b.x) > 4"),
        ("a.x - c.x > :p", {"p": [5, 4]}, "(a.x - c.x) > 4"),
        ("a.x + :p > c.x", {"p": [5, 4]}, None),
    ],
)
def test_what_some_rule_takes_is_taken(
    condition: str, rows: dict[str, list[Any]], wide: str | None
) -> None:
    (one,) = alone(f"WHERE {condition} WITHIN 5", rows)
    lines = query_text(one.bound).splitlines()
    assert lines[1:-1] == ([] if wide is None else [f"WHERE {wide}"])
    assert one.rules.tolist() == list(range(len(rows["p"])))


def test_rules_that_agree_share_a_query() -> None:
    """Which elements a group takes is the same for all; the window is the longest."""
    rows = {"p": [1, 2, 1, 3], "q": [5, 6, 7, 8], "w": [4, 4, 9, 2]}
    found = alone("WHERE b.x > :p AND c.x > :q WITHIN :w units", rows)
    shared, *others = sorted(found, key=lambda one: -len(one.rules))
    assert shared.rules.tolist() == [0, 2]
    assert query_text(shared.bound).splitlines()[1:] == [
        "WHERE b.x > 1 AND c.x > 5",
        "WITHIN 9 units",
    ]
    assert shared.tested == ("c.x > :q", "the window")
    assert sorted(one.rules.tolist() for one in others) == [[1], [3]]
    assert all(one.residual is None for one in others)


def test_a_window_that_is_read_elsewhere_is_the_same_for_all() -> None:
    rows = {"p": [1, 2, 3], "w": [4, 4, 9]}
    found = alone("WHERE c.x > :p WITHIN :w units RETURN :w AS w", rows)
    assert sorted(one.rules.tolist() for one in found) == [[0, 1], [2]]


def test_a_row_that_is_wrong_is_told_of() -> None:
    with pytest.raises(QueryError, match="the window is empty"):
        alone("WHERE c.x > :p WITHIN :w units", {"p": [1, 2, 3], "w": [4, 0, 9]})


def test_explain_tells_of_the_query_and_of_what_is_left_to_the_rules() -> None:
    rows = {"p": [1, 2], "q": [3, 4]}
    query = "PATTERN A a ; B b+ ; C c WHERE a.x > :p HAVING sum(b.x) > :q WITHIN 5"
    explanation = RuleSet.from_template("run", query, rows).explain(
        table(Schema(COLUMNS, time="ts", type="type"), ()), time="ts", type="type"
    )
    assert str(explanation).splitlines() == [
        "1 query for 2 rules: run, since closures bind groups",
        "  checked for each rule: a.x > :p AND sum(b.x) > :q",
    ]
    assert explanation.to_dict()["alone"][0]["tested"] == ("a.x > :p", "sum(b.x) > :q")


def test_returned_values_are_of_the_types_that_they_have_alone() -> None:
    rules = RuleSet.from_template(
        "run",
        "PATTERN A a ; B b+ ; C c WHERE c.x > :p WITHIN 1 minute "
        "RETURN a.at AS at, b.x, b, :p AS p, a.at + :later AS later, c.y * :p AS y",
        pa.table(
            {
                "p": [1, 2],
                "later": pa.array([5_000_000, 5_000_000], pa.duration("us")),
            }
        ),
    )
    events = pa.table(
        {
            "at": pa.array([0, 1_000_000, 2_000_000], pa.timestamp("us", "UTC")),
            "type": ["A", "B", "C"],
            "x": [1, 2, 3],
            "y": [0.5, 1.5, 2.5],
        }
    )
    found = rules.match(events, time="at", type="type", jit=False)
    texts = dict(zip(found["rule"].to_pylist(), found["match"].to_pylist(), strict=True))
    for name in rules:
        single = rules.select([name]).match(events, time="at", type="type", jit=False)
        assert texts[name] == single["match"][0].as_py()
    assert '"later":"1970-01-01T00:00:05+00:00"' in texts["run-2"]
    assert '"p":2' in texts["run-2"] and '"y":5' in texts["run-2"]
