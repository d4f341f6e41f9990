"""Times at both ends of what is allowed match as those near zero do; times beyond are refused."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.engine.rows.clock import LATEST
from tests.corpus.reader import START, TIME, Case, bound, cases
from tests.engine.harness import Setup, multiset, run
from tests.engine.test_corpus import by_tree
from tests.oracle.events import Event
from tests.oracle.match import matches

# Conditions on times themselves would see others. The ends of times after FOR need a bit more.
CASES = [
    c
    for c in cases()
    if ".ts" not in c.query_text
    and c.schema.unit is None
    and c.events
    and not re.search(r"(?<!SKIP) FOR ", c.query_text)
]


def moved(case: Case, distance: int) -> Case:
    def move(event: Event) -> Event:
        if event.values[TIME] is None:
            return event
        start = None if event.start is None else event.start + distance
        values = {**event.values, TIME: event.time + distance}
        if start is not None:
            values[START] = start
        return replace(event, time=event.time + distance, values=values, start=start)

    return replace(case, events=tuple(map(move, case.events)))


@pytest.mark.parametrize("end", [1, -1], ids=["latest", "earliest"])
@pytest.mark.parametrize("case", CASES[::5], ids=str)
def test_at_the_ends_of_time(case: Case, end: int) -> None:
    query = bound(case)
    known = [e for e in case.events if e.values[TIME] is not None]
    first = min(e.time if e.start is None else e.start for e in known)
    last = max(e.time for e in known)
    far = moved(case, LATEST - last if end > 0 else -LATEST - first)
    expected = multiset(query, matches(query, far.events))
    setups = [Setup(engine="automaton", cuts=(3,)), Setup(engine="auto", cuts=(2,), round_size=1)]
    for setup in [*setups, Setup("right-deep", push=False)] if by_tree(case) else setups:
        assert multiset(query, run(query, far.events, setup)) == expected, setup


BEYOND = [LATEST + 1, -LATEST - 1, (1 << 63) - 1, -(1 << 63)]


@pytest.mark.parametrize("time", BEYOND)
@pytest.mark.parametrize(
    "query",
    [
        "PATTERN A ; B WITHIN 5",
        "PATTERN A -> B",
        "PATTERN A",
        "PATTERN A ; B WITHIN 5 EVENTS",
        "PATTERN A ; B WHERE [k] WITHIN 5 EVENTS",
    ],
)
def test_beyond(query: str, time: int) -> None:
    events = pa.table({"ts": [0, time], "type": ["A", "B"], "k": [1, 1]})
    with pytest.raises(cep.DataError, match=f"`ts` has the time {time}, and times must lie"):
        cep.match(events, query, time="ts", type="type", jit=False)


@pytest.mark.parametrize("time", [LATEST, -LATEST])
def test_times_after_for_must_be_nearer(time: int) -> None:
    events = pa.table({"ts": sorted([0, time]), "type": ["A", "B"]})
    with pytest.raises(cep.DataError, match="times lie too far away to be compared"):
        cep.match(events, "PATTERN A a ; !B b FOR 5", time="ts", type="type", jit=False)


def test_a_start_beyond() -> None:
    events = pa.table({"ts": [0, 1], "begin": [-LATEST - 1, 1], "type": ["A", "B"]})
    with pytest.raises(cep.DataError, match="`begin` has the time"):
        cep.match(events, "PATTERN A ; B WITHIN 5", time="ts", start="begin", type="type")


def test_rule_sets() -> None:
    rules = cep.RuleSet.from_template("far", "PATTERN A a ; B b WITHIN 5", [{"rule": "x"}])
    events = pa.table({"ts": [0, LATEST + 1], "type": ["A", "B"]})
    with pytest.raises(cep.DataError, match="times must lie"):
        rules.match(events, time="ts", type="type", jit=False)
