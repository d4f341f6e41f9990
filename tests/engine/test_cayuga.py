"""Cayuga 3.1, table 1, event by event: which edges its automaton (figure 2) traverses when.

An instance that moves to a state is a match of the query up to there: of the start edge (state A),
of the rebind edge, of the forward edges to B and to C. Expected are the rows of the table.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.corpus.reader import Case, bound, cases, show
from tests.engine.harness import Setup, increments
from tests.oracle import Event, matches

TABLE = next(c for c in cases() if c.name == "cayuga/table 1")

START = "PATTERN S a WHERE a.vol > 10000"
REBIND = """PATTERN S a -> S+ b PREFIXES
    WHERE a.vol > 10000 AND a.name = b.name AND b.price < PREV(b.price) WITHIN 60"""
TO_B = """PATTERN S a -> S+ b PREFIXES
    WHERE a.vol > 10000 AND a.name = b.name AND b.price < PREV(b.price)
    AND LAST(b.ts) - a.ts >= 10 WITHIN 60"""
TO_C = TABLE.query_text

ROWS: Mapping[str, Mapping[int, str]] = {
    START: {10: "a10", 17: "a17"},  # I1 and I2 are created
    REBIND: {15: "a10 b15", 21: "a10 b15,21"},  # minP of I1 becomes 85, then 81
    TO_B: {21: "a10 b15,21"},  # the clone I3: the decline has lasted ten minutes
    TO_C: {24: "a10 b15,21 c24"},
}


def quote(name: str, price: float, time: int) -> Event:
    values = {"ts": time, "type": "S", "name": name, "price": price, "vol": 8000}
    return Event(0, time, values)


def with_quotes(*quotes: Event) -> Case:
    """The table's events and others, in order; those of the table are first among equals."""
    ordered = sorted((*TABLE.events, *quotes), key=lambda e: e.time)
    events = tuple(Event(n, e.time, e.values) for n, e in enumerate(ordered))
    return Case(TABLE.name, TABLE.file, TABLE.query_text, TABLE.schema, events)


def shown(case: Case, text: str) -> dict[int, str]:
    """What the engine finds at each time, where it finds something."""
    own = Case(case.name, case.file, text, case.schema, case.events)
    found = increments(bound(own), own.events, Setup(engine="automaton"))
    return {time: show(own, [m.bindings for m in new]) for time, new in found.items() if new}


@pytest.mark.parametrize("text", ROWS, ids=["start", "rebind", "to B", "to C"])
def test_table_1_event_by_event(text: str) -> None:
    assert shown(TABLE, text) == ROWS[text]


@pytest.mark.parametrize("count", range(len(TABLE.events) + 1))
def test_the_oracle_reads_the_table_likewise(count: int) -> None:
    upto = TABLE.events[:count]
    own = Case(TABLE.name, TABLE.file, TO_C, TABLE.schema, upto)
    expected = [text for time, text in ROWS[TO_C].items() if any(e.time == time for e in upto)]
    assert [show(own, [m.bindings]) for m in matches(bound(own), upto)] == expected


def test_a_forward_edge_needs_one_of_the_simultaneous_events() -> None:
    """e6' is at the time of e6 and fails θ5: "forward edges are traversed if there exists a
    satisfying event"."""
    case = with_quotes(quote("IBM", 80, 24))
    assert shown(case, TO_C) == {24: "a10 b15,21 c#5"}


def test_a_filter_edge_needs_all_of_the_simultaneous_events() -> None:
    """An IBM quote at the time of e5 is the next one for I3, though MSFT's is filtered: "a filter
    edge should only be traversed if all simultaneously arriving events satisfy" it."""
    case = with_quotes(quote("IBM", 82, 23))
    assert shown(case, TO_C) == {}
