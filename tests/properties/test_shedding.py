"""Runs that may forget their oldest events: what they find is right, and what lies among the newest
events is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from cepheid.algebra.patterns import Delay, walk
from cepheid.algebra.query import BoundQuery, Clock
from cepheid.errors import PlanError, QueryError, UnsupportedError
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Source
from cepheid.options import Limit, Options
from cepheid.planner import prepare
from cepheid.planner.bounds import require_bounds, uncut
from tests.corpus.reader import Case, bound
from tests.engine.harness import Setup, indexed, multiset, plan_of, run_plan
from tests.examples import examples
from tests.oracle.events import Event, Match
from tests.oracle.shedding import candidates, certain
from tests.properties.full_strategies import full_cases
from tests.properties.strategies import cases
from tests.properties.test_engine import setups as tree_setups
from tests.properties.test_full import setups as full_setups
from tests.streaming.simulation import Cluster, Weather, matches_of, run
from tests.streaming.test_properties import ENGINES, WEATHER

relaxed = settings(
    max_examples=examples("shedding"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

LIMITS = st.builds(
    Limit,
    per_key=st.none() | st.integers(1, 5),
    total=st.none() | st.integers(1, 10),
    policy=st.just("drop-oldest"),
)


def judge(
    query: BoundQuery,
    events: Sequence[Event],
    limit: Limit,
    known: Sequence[int],
    found: Sequence[Match],
) -> None:
    own = multiset(query, found)
    assert own <= multiset(query, candidates(query, events))
    assert own >= multiset(query, certain(query, events, limit, known))


def known_by(query: BoundQuery, events: Sequence[Event], setup: Setup) -> list[int]:
    """For every time, how many events have come with the batch that first goes beyond it."""
    counted = query.window is not None and query.window.clock is Clock.EVENTS
    delayed = any(isinstance(part, Delay) for part in walk(query.pattern))
    if counted or delayed:  # whole keys, or all there is, may come before anything is decided
        return [len(events)]
    ends, turn = [0], 0
    while ends[-1] < len(events):
        ends.append(min(len(events), ends[-1] + setup.cuts[turn % len(setup.cuts)]))
        turn += 1
    latest = max((e.time for e in events), default=0)
    found = (
        next((n for n in ends[1:] if events[n - 1].time > time), len(events))
        for time in range(latest + 1)
    )
    return [*found, len(events)]


def check(case: Case, setup: Setup, limit: Limit) -> None:
    query = bound(case)
    try:
        plan = replace(plan_of(indexed(query), setup), limit=limit)
        found = run_plan(query, case.events, plan, setup)
    except UnsupportedError:
        reject()
    judge(query, case.events, limit, known_by(query, case.events, setup), found)


@relaxed
@given(full_cases(), full_setups(), LIMITS)
def test_any_query(case: Case, setup: Setup, limit: Limit) -> None:
    check(case, setup, limit)


@settings(relaxed, max_examples=examples("shedding", part=2))
@given(full_cases(lasting=True), full_setups(), LIMITS)
def test_events_with_a_duration(case: Case, setup: Setup, limit: Limit) -> None:
    check(case, setup, limit)


@relaxed
@given(st.data(), LIMITS)
def test_joins_and_stacks(data: st.DataObject, limit: Limit) -> None:
    case = data.draw(cases())
    check(case, data.draw(tree_setups(case)), limit)


def check_stream(case: Case, weather: Weather, engine: str, limit: Limit) -> None:
    """Buckets that are saved, lost and opened again."""
    query = bound(case)
    if query.window is None or (uncut(query) is not None and "strict" in str(uncut(query))):
        reject()
    typed = all(v.types for v in query.variables.values())
    if not typed and query.window.clock is Clock.EVENTS:
        reject()  # nothing could fill its window
    try:
        require_bounds(query, Limit(total=1000), Span(0, 0), Source("", ""))
        options = Options(query.schema.time, engine=engine, limit=limit)
        prepared = prepare(indexed(query), options)
    except (PlanError, QueryError, UnsupportedError):
        reject()
    if prepared.query.nothing is not None:
        reject()
    found = matches_of(query, run(query, prepared, case.events, weather, Cluster))
    judge(query, case.events, limit, [len(case.events)], found)
    if query.selection is None:
        # What is forgotten doesn't depend on what happens to a cluster.
        calm = replace(weather, workers=1, failing=0.0)
        same = matches_of(query, run(query, prepared, case.events, calm, Cluster))
        assert multiset(query, found) == multiset(query, same)


@relaxed
@given(full_cases(), WEATHER, ENGINES, LIMITS)
def test_streams(case: Case, weather: Weather, engine: str, limit: Limit) -> None:
    check_stream(case, weather, engine, limit)


@settings(relaxed, max_examples=examples("shedding", part=2))
@given(full_cases(lasting=True), WEATHER, ENGINES, LIMITS)
def test_streams_of_events_with_a_duration(
    case: Case, weather: Weather, engine: str, limit: Limit
) -> None:
    check_stream(case, weather, engine, limit)


@settings(relaxed, max_examples=examples("shedding", part=2))
@given(cases(), WEATHER, ENGINES, LIMITS)
def test_streams_of_joins_and_stacks(
    case: Case, weather: Weather, engine: str, limit: Limit
) -> None:
    check_stream(case, weather, engine, limit)
