"""Laws that follow from the definition, on small random streams: they check the oracle itself
against statements that are even plainer than it is."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.algebra import bind
from cepheid.algebra.types import Schema, Type
from cepheid.language import parse
from tests.examples import examples
from tests.oracle import Event, Match, matches

SCHEMA = Schema(
    {"ts": Type.INTEGER, "type": Type.STRING, "x": Type.INTEGER}, time="ts", type="type"
)
VALUE = st.one_of(st.none(), st.integers(0, 2))
ROWS = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 8), VALUE), max_size=9)


def events_of(rows: list[tuple[str, int, int | None]]) -> list[Event]:
    return [Event(n, t, {"type": k, "ts": t, "x": x}) for n, (k, t, x) in enumerate(rows)]


def run(text: str, events: list[Event]) -> list[Match]:
    return matches(bind(parse(text), SCHEMA), events)


def bindings(text: str, events: list[Event]) -> set[tuple[object, ...]]:
    found = [tuple(sorted(m.bindings.items())) for m in run(text, events)]
    assert len(set(found)) == len(found)
    return set(found)


def of_type(events: list[Event], kind: str) -> list[Event]:
    return [e for e in events if e.values["type"] == kind]


@given(ROWS)
def test_a_sequence_is_a_filtered_product(rows: list[tuple[str, int, int | None]]) -> None:
    events = events_of(rows)
    expected = {
        (("a", a.index), ("b", b.index), ("c", c.index))
        for a, b, c in product(*(of_type(events, k) for k in "ABC"))
        if a.time < b.time < c.time and c.time - a.time < 5
    }
    assert bindings("PATTERN A a ; B b ; C c WITHIN 5", events) == expected


@given(ROWS)
def test_a_conjunction_is_an_unordered_product(rows: list[tuple[str, int, int | None]]) -> None:
    events = events_of(rows)
    expected = {
        (("a", a.index), ("b", b.index))
        for a, b in product(of_type(events, "A"), of_type(events, "A"))
        if a.index != b.index and abs(a.time - b.time) < 3
    }
    assert bindings("PATTERN A a & A b WITHIN 3", events) == expected


@given(ROWS)
def test_a_negation_removes(rows: list[tuple[str, int, int | None]]) -> None:
    events = events_of(rows)
    expected = {
        (("a", a.index), ("c", c.index))
        for a, c in product(of_type(events, "A"), of_type(events, "C"))
        if a.time < c.time < a.time + 6
        and not any(
            a.time < b.time < c.time
            and b.values["x"] is not None
            and a.values["x"] is not None
            and b.values["x"] >= a.values["x"]
            for b in of_type(events, "B")
        )
    }
    text = "PATTERN A a ; !B b ; C c WHERE b.x >= a.x WITHIN 6"
    assert bindings(text, events) == expected


@given(ROWS)
def test_a_maximal_group_is_all_between(rows: list[tuple[str, int, int | None]]) -> None:
    events = events_of(rows)
    expected = set()
    for a, c in product(of_type(events, "A"), of_type(events, "C")):
        between = [b for b in of_type(events, "B") if a.time < b.time < c.time]
        between.sort(key=lambda b: (b.time, b.index))
        if a.time < c.time < a.time + 6:
            group = tuple(b.index for b in between)
            expected.add((("a", a.index), ("b", group), ("c", c.index)))
    assert bindings("PATTERN A a ; B* b ; C c WITHIN 6", events) == expected


@given(ROWS)
def test_next_is_associative_without_predicates(rows: list[tuple[str, int, int | None]]) -> None:
    events = events_of(rows)
    left = bindings("PATTERN A a -> B b -> C c", events)
    assert left == bindings("PATTERN A a -> (B b -> C c)", events)


@settings(max_examples=examples("laws"))
@given(ROWS)
def test_prefixes_are_subsets_and_runs(rows: list[tuple[str, int, int | None]]) -> None:
    events = events_of(rows)
    prefixes, runs, subsets = (
        bindings(f"PATTERN A a ; B+ b {mode} ; C c WITHIN 6", events)
        for mode in ("PREFIXES", "RUNS", "SUBSETS")
    )
    assert prefixes <= runs <= subsets
    assert bindings("PATTERN A a ; B+ b ; C c WITHIN 6", events) <= prefixes


@given(ROWS)
def test_next_is_one_of_any(rows: list[tuple[str, int, int | None]]) -> None:
    events = events_of(rows)
    every = bindings("PATTERN A a ; B b WHERE a.x <= b.x WITHIN 5", events)
    first = bindings("PATTERN A a -> B b WHERE a.x <= b.x WITHIN 5", events)
    strict = bindings("PATTERN A a => B b WHERE a.x <= b.x WITHIN 5", events)
    assert strict <= first <= every


@given(ROWS)
def test_a_key_is_an_equality(rows: list[tuple[str, int, int | None]]) -> None:
    """Comparing in HAVING makes no key, and without negation means the same."""
    events = events_of(rows)
    keyed = bindings("PATTERN A a ; B b ; C c WHERE [x] WITHIN 6", events)
    text = "PATTERN A a ; B b ; C c HAVING a.x = b.x AND b.x = c.x WITHIN 6"
    assert keyed == bindings(text, events)
