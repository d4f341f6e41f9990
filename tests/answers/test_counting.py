"""Answers that are counted or enumerated, over drawn queries and events: as the oracle's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cepheid as cep
from cepheid.algebra import Schema, Type, bind
from cepheid.algebra.query import BoundQuery
from cepheid.language import parse
from tests.answers.harness import answered, uncounted
from tests.answers.test_corpus import same
from tests.examples import examples
from tests.oracle import Event, answers

SCHEMA = Schema(
    {"ts": Type.INTEGER, "type": Type.STRING, "id": Type.INTEGER, "x": Type.INTEGER},
    time="ts",
    type="type",
)
PATTERNS = ("A a ; B b", "A a ; B b ; C c", "A a ; A b ; A c", "A a ; ANY(A, B) b ; C c ; B d")
OTHER_PATTERNS = (
    "A a",
    "A a ; !B x ; C c",
    "!B x ; A a ; C c",
    "A a ; !B x ; !D y ; A c",
    "A a ; !A x ; C c",
    "A a & B b",
    "A a & A b",
    "C c ; (A a & B b) ; D d",
    "A a & ANY(A, B) b & B c",
    "A a | B b",
    "A a ; (B b | C c | B d)",
    "(A a | B b) ; C c",
    "A a ; B b? ; C c",
    "A a ; !D x ; B b? ; C c",
    *(
        text.format(quantifier + mode)
        for text in (
            "A a ; B{} b ; C c",
            "B{} b ; A a",
            "A a ; B{} b",
            "A{} b",
            "A a ; !C x ; B{} b ; A c",
        )
        for quantifier in ("+", "*", "{2,}", "{1,2}", "{0,2}")
        for mode in ("", " SUBSETS", " PREFIXES", " RUNS")
    ),
    *(text.format("{2}") for text in ("A a ; B{} b ; C c", "B{} b ; A a", "A a ; B{} b", "A{} b")),
    "A a ; B+ b SUBSETS ; C+ c RUNS ; A d",
)
CONDITIONS = ("a.x > 1", "b.x <> 2", "[id]", "a.x + 1 < 4", "b.x IS NOT NULL")
WINDOWS = ("", "TUMBLE(7)", "HOP(3, 7)", "HOP(5, 2)", "SESSION(3)")
COUNTS = ("count(*)", "approx_count(*)", "count({last}.x)", "min({last}.x)", "max({last}.x)")
OTHERS = (
    "sum(a.x)",
    "avg({last}.x)",
    "stddev(a.x)",
    "count(DISTINCT a.x)",
    "first(a.x)",
    "last({last}.x)",
    "collect(a.x)",
    "max(duration())",
)


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 25),
                st.sampled_from("AABBCD"),
                st.integers(0, 2),
                st.none() | st.integers(0, 4),
            ),
            max_size=16,
        )
    )
    return [
        Event(n, ts, {"ts": ts, "type": type_, "id": id_, "x": x})
        for n, (ts, type_, id_, x) in enumerate(sorted(rows, key=lambda row: row[0]))
    ]


@st.composite
def queries(draw: st.DrawFn, aggregates: tuple[str, ...], windows: tuple[str, ...]) -> BoundQuery:
    pattern = draw(st.sampled_from(PATTERNS))
    last = pattern.split()[-1]
    chosen = draw(st.lists(st.sampled_from(CONDITIONS), max_size=2, unique=True))
    where = f"WHERE {' AND '.join(chosen)}" if chosen else ""
    groups = draw(
        st.lists(st.sampled_from((f"{last}.x", f"{last}.id % 2")), max_size=2, unique=True)
    )
    parts = [*groups, *filter(None, [draw(st.sampled_from(windows))])]
    group_by = f"GROUP BY {', '.join(parts)}" if parts else ""
    found = draw(st.lists(st.sampled_from(aggregates), min_size=1, max_size=3, unique=True))
    columns = [f"{text.format(last=last)} AS m{n}" for n, text in enumerate(found)]
    columns += [f"{text} AS g{n}" for n, text in enumerate(groups)]
    size = draw(st.integers(1, 12))
    text = f"PATTERN {pattern} {where} WITHIN {size} {group_by} RETURN {', '.join(columns)}"
    return bind(parse(text), SCHEMA)


@settings(max_examples=60, deadline=None)
@given(queries(COUNTS, WINDOWS), events())
def test_counted(query: BoundQuery, given_events: list[Event]) -> None:
    assert uncounted(query) is None
    assert same(answered(query, given_events, None), answers(query, given_events))


@settings(max_examples=60, deadline=None)
@given(queries((*COUNTS, *OTHERS), (*WINDOWS, "RANGE(4)")), events(), st.sampled_from([(1,), (3,)]))
def test_enumerated(query: BoundQuery, given_events: list[Event], cuts: Any) -> None:
    assert same(answered(query, given_events, cuts), answers(query, given_events))


def rows(draw: random.Random, n: int) -> list[Event]:
    times = sorted(draw.randint(0, 20) for _ in range(n))
    return [
        Event(
            n,
            ts,
            {
                "ts": ts,
                "type": draw.choice("AABBBCD"),
                "id": draw.randint(0, 1),
                "x": draw.choice([None, 0, 1, 2, 3]),
            },
        )
        for n, ts in enumerate(times)
    ]


def counted(pattern: str, clauses: str) -> BoundQuery | None:
    """None if there is no such query, or its matches have to be found."""
    values = ["count(*)"]
    if " a" in pattern:
        values += [f"{name}(a.x)" for name in ("count", "sum", "avg", "min", "max")]
    parsed = parse(f"PATTERN {pattern} {clauses} RETURN {', '.join(values)}")
    try:
        query = bind(parsed, SCHEMA)
    except cep.QueryError:  # a closure alone may have no edge, or be empty
        return None
    return query if uncounted(query) is None else None


CLAUSES = ("WITHIN 6", "WHERE [id] WITHIN 9 GROUP BY HOP(3, 7)")


@pytest.mark.parametrize("clauses", CLAUSES)
@pytest.mark.parametrize("pattern", OTHER_PATTERNS)
def test_patterns(pattern: str, clauses: str) -> None:
    query = counted(pattern, clauses)
    if query is None:
        return
    for seed in range(examples("counted patterns")):
        draw = random.Random(f"{pattern} {clauses} {seed}")
        stream = rows(draw, draw.randint(2, 11))
        assert same(answered(query, stream, None), answers(query, stream)), (seed, stream)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("PATTERN A a | B b WHERE a.x < b.x WITHIN 5 RETURN count(*)", "only another branch has"),
        (
            "PATTERN A a ; B b ; C c ; A d ; B e WHERE a.x < d.x AND b.x < e.x AND a.x < c.x "
            "AND b.x < d.x AND c.x < e.x WITHIN 5 RETURN count(*)",
            "read too many events at once",
        ),
        ("PATTERN A a -> B b WITHIN 5 RETURN count(*)", "`->` and `=>` choose among events"),
        ("PATTERN A a ; B+ b WITHIN 5 RETURN count(*)", "known only when its window is over"),
        ("PATTERN A a ; !B b WITHIN 5 RETURN count(*)", "not of one event between two others"),
        ("PATTERN A a ; B+ b STRICT ; C c WITHIN 5 RETURN count(*)", "a closure is of several"),
        ("PATTERN (A a ; B b) \\ C c WITHIN 5 RETURN count(*)", "only whole matches decide"),
        ("PATTERN A a ; B b WITHIN 5 EVENTS RETURN count(*)", "window counts events"),
        ("PATTERN A a ; B b WITHIN 5 RETURN collect(b.x)", "needs every match"),
        ("PATTERN A a ; B b WITHIN 5 RETURN max(duration())", "a value is of the whole match"),
        ("PATTERN A a ; B b WITHIN 5 GROUP BY RANGE(3)", "row for every match"),
        ("PATTERN A a ; (A b & B c) HAVING a.x > b.x WITHIN 5 RETURN count(*)", "`&` stands in"),
    ],
)
def test_what_is_enumerated_and_why(query: str, reason: str) -> None:
    assert reason in (uncounted(bind(parse(query), SCHEMA)) or "")


def test_a_part_of_the_key_is_known_from_the_last_event() -> None:
    query = "PATTERN A a ; B b WHERE [id] WITHIN 5 GROUP BY a.id RETURN a.id, count(*)"
    assert uncounted(bind(parse(query), SCHEMA)) is None


def choose(n: int, k: int) -> int:
    found = 1
    for i in range(k):
        found = found * (n - i) // (i + 1)
    return found


def test_counts_beyond_what_could_be_enumerated() -> None:
    """All events of one type in one window: every choice of six is a match."""
    table = pa.table({"ts": np.arange(1500)})
    pattern = "PATTERN a ; b ; c ; d ; e ; f WITHIN 9000"
    found = cep.match(table, f"{pattern} RETURN count(*) AS n", time="ts")
    assert found["n"].to_pylist() == [choose(1500, 6)]
    larger = pa.table({"ts": np.arange(5000)})
    with pytest.raises(cep.DataError, match=r"write `approx_count\(\*\)`"):
        cep.match(larger, f"{pattern} RETURN count(*) AS n", time="ts")
    about = cep.match(larger, f"{pattern} RETURN approx_count(*) AS n", time="ts")
    assert about["n"].to_pylist() == [pytest.approx(choose(5000, 6))]
