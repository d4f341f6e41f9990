"""The end of the data: with `until`, time passes only to there."""

from __future__ import annotations

import warnings
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cepheid as cep
from cepheid.algebra.query import Clock
from cepheid.engine.end_of_data import end
from cepheid.engine.needs import tie
from cepheid.engine.rows.order import in_order
from cepheid.errors import OptionError, PlanError, UnsupportedError
from cepheid.options import Options
from cepheid.planner import prepare
from tests.corpus.reader import bound
from tests.engine.harness import INDEX, indexed, match_of, multiset, table
from tests.examples import examples
from tests.oracle.match import matches
from tests.properties.full_strategies import full_cases

LEFT = "PATTERN A a ; !B b WITHIN 10 RETURN a.ts AS a"


def found(events: str, query: str, until: Any, **options: Any) -> tuple[list[int], list[str]]:
    """What is returned, and what is warned of; events are `A1 B2`."""
    times, types = [int(e[1:]) for e in events.split()], [e[0] for e in events.split()]
    rows = pa.table({"ts": times, "type": types})
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        answer = cep.match(rows, query, time="ts", type="type", until=until, **options)
    told = [str(w.message) for w in warned]
    return answer["a"].to_pylist(), [text for text in told if "left out" in text]


ONE = ["1 match was left out: it was undecided at the time until="]


@pytest.mark.parametrize(
    ("events", "until", "expected", "told"),
    [
        ("A1 A5 B7 A9 X12", None, [9], []),
        ("A1 A5 B7 A9 X12", "last event", [], ONE),
        ("A1 A5 B7 A9 X12", 17, [], ONE),
        ("A1 A5 B7 A9 X12", 18, [9], []),  # all events before 9 + 10 are known
        ("A1 A5 B7 A9 X12", 3, [], ONE),  # time has passed to 12 in any case
        ("A1 X11 A12", "last event", [1], ONE),
        ("X1", "last event", [], []),
        (
            "A1 A2 A3",
            "last event",
            [],
            ["3 matches were left out: they were undecided at the time until="],
        ),
    ],
)
def test_a_negation_at_the_end(
    events: str, until: Any, expected: list[int], told: list[str]
) -> None:
    for engine in ("tree", "nfa"):
        assert found(events, LEFT, until, engine=engine) == (expected, told)


def test_a_match_that_is_known_does_not_wait_for_its_turn() -> None:
    """The C is known, although it ends after an A that is undecided."""
    query = "PATTERN (A a ; !B b) | C c WITHIN 10 RETURN coalesce(a.ts, c.ts) AS a"
    assert found("A1 C2", query, "last event") == ([2], ONE)


def test_after_match_may_depend_on_what_is_undecided() -> None:
    query = "PATTERN (A a ; !B b) | C c WITHIN 10 AFTER MATCH SKIP FOR 5 RETURN c.ts AS a"
    told = found("A1 C2", query, "last event")
    assert told == ([], ONE)  # if there is no B, the A is kept, and the C dropped


def test_a_delay_and_a_group_at_the_end() -> None:
    assert found("A1 A4", "PATTERN A a @ 5 RETURN a.ts AS a", 7) == ([1], ONE)
    group = "PATTERN A a ; B+ b WITHIN 5 RETURN a.ts AS a"
    assert found("A1 B2", group, "last event") == ([], ONE)
    assert found("A1 B2", group, 5) == ([1], [])


def test_rules() -> None:
    events = pa.table({"ts": [1, 12, 13], "type": ["A", "X", "A"]})
    rules = cep.RuleSet.of({"left": LEFT, "single": "PATTERN X x"})
    with pytest.warns(UserWarning, match="1 match was left out"):
        rows = rules.match(events, time="ts", type="type", until="last event")
    assert rows["rule"].to_pylist() == ["left", "single"]


@pytest.mark.parametrize(
    "until", [datetime(2026, 1, 2), date(2026, 1, 2), "2026-01-02", "2026-01-02 00:00:00"]
)
def test_moments(until: Any) -> None:
    events = pa.table(
        {"ts": [datetime(2026, 1, 1, 12), datetime(2026, 1, 1, 20)], "type": ["A"] * 2}
    )
    query = "PATTERN A a ; !B b WITHIN 10 hours"
    with pytest.warns(UserWarning, match="1 match was left out"):
        rows = cep.match(events, query, time="ts", type="type", until=until)
    assert rows.num_rows == 1


@pytest.mark.parametrize(
    ("query", "until", "message"),
    [
        (LEFT, "soon", "as in until=1000, or 'last event'; not 'soon'"),
        (LEFT, 1.5, "not 1.5"),
        ("PATTERN A a ; !B b WITHIN 3 EVENTS", 5, "the window of this query counts events"),
    ],
)
def test_refused(query: str, until: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        found("A1", query, until)


@settings(
    max_examples=examples("after match"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(full_cases(), st.integers(0, 30))
def test_what_is_known_holds_whatever_comes(case: Any, until: int) -> None:
    """The events up to a moment, and later the others: no match that was returned is lost, and what
    is returned or counted is all that there would be at the end."""
    query = bound(case)
    assume(query.window is None or query.window.clock is not Clock.EVENTS)
    early = tuple(e for e in case.events if e.time is not None and e.time <= until)
    try:
        prepared = prepare(indexed(query), Options(query.schema.time, jit=False))
    except (PlanError, UnsupportedError):
        assume(False)
    assume(tie(prepared.plan) is None and prepared.query.nothing is None)
    places = pa.array([event.index for event in early], pa.int64())
    data = table(query.schema, early).append_column(INDEX, places)
    ordered = in_order(prepared.plan, data)
    engine = prepared.engine(ordered.schema, False)
    batches = [b for part in ordered.combine_chunks().to_batches() for b in engine.push(part)]
    batches += end(engine, until)
    known = multiset(query, [match_of(query, row) for b in batches for row in b.to_pylist()])
    assert known <= multiset(query, matches(query, case.events))
    every = multiset(query, matches(query, early))
    assert known <= every
    assert known.total() + engine.counts.undecided == every.total()
