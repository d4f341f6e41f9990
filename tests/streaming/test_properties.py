"""The corpus, and random queries over random streams, cut, shuffled and interrupted at random: the
matches are the oracle's."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from cepheid.algebra.query import Clock
from cepheid.errors import PlanError, QueryError, UnsupportedError
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Source
from cepheid.options import Limit, Options
from cepheid.planner import Prepared, prepare
from cepheid.planner.bounds import require_bounds, uncut
from tests.corpus import reader
from tests.corpus.reader import Case, bound
from tests.engine.harness import indexed, multiset, with_index
from tests.examples import examples, in_turn
from tests.properties.construct_strategies import construct_cases
from tests.properties.full_strategies import full_cases
from tests.properties.strategies import cases
from tests.streaming.simulation import Cluster, Weather, matches_of, run

relaxed = settings(
    max_examples=examples("streams"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

WEATHER = st.builds(
    Weather,
    seed=st.integers(0, 1 << 16),
    most=st.sampled_from((1, 2, 5, 100)),
    delay=st.none() | st.integers(1, 6),
    buckets=st.sampled_from((1, 2, 3)),
    workers=st.sampled_from((1, 2, 3)),
    failing=st.sampled_from((0.0, 0.0, 0.3)),
)

ENGINES = st.sampled_from(("auto", "tree", "nfa"))


def runnable(case: Case, engine: str) -> Prepared | None:
    """The case's query, if it can run on a stream."""
    query = bound(case)
    try:
        # Without a window, time completes only what waits for nothing else.
        limit = None if query.window is None else Limit(total=1000)
        require_bounds(query, limit, Span(0, 0), Source("", ""))
        counted = query.window is not None and query.window.clock is Clock.EVENTS
        if query.window is not None and "strict" in str(uncut(query)):
            return None
        if counted and not all(v.types for v in query.variables.values()):
            return None  # nothing could fill its window
        options = Options(query.schema.time, engine=engine)
        prepared = prepare(indexed(query), options)
    except (PlanError, QueryError, UnsupportedError):
        return None
    return None if prepared.query.nothing is not None else prepared


def check(case: Case, weather: Weather, engine: str) -> None:
    prepared = runnable(case, engine)
    if prepared is None:
        reject()
    compare(case, prepared, weather)


def compare(case: Case, prepared: Prepared, weather: Weather) -> None:
    query = bound(case)
    cluster = run(query, prepared, case.events, weather, Cluster)
    found = multiset(query, matches_of(query, cluster))
    assert found == multiset(query, case.answer)
    assert cluster.late == 0


@relaxed
@given(full_cases(), WEATHER, ENGINES)
def test_any_query(case: Case, weather: Weather, engine: str) -> None:
    check(case, weather, engine)


@relaxed
@given(construct_cases(), WEATHER, ENGINES)
def test_every_construct(case: Case, weather: Weather, engine: str) -> None:
    check(case, weather, engine)


@settings(relaxed, max_examples=examples("streams", part=3))
@given(full_cases(lasting=True), WEATHER, ENGINES)
def test_events_with_a_duration(case: Case, weather: Weather, engine: str) -> None:
    check(case, weather, engine)


@settings(relaxed, max_examples=examples("streams", part=3))
@given(cases(), WEATHER, ENGINES)
def test_joins_and_stacks(case: Case, weather: Weather, engine: str) -> None:
    check(case, weather, engine)


RUNS = {
    "tree": Weather(seed=1, most=1, delay=None, buckets=2, workers=2, failing=0.3),
    "auto": Weather(seed=2, most=4, delay=5, buckets=2, workers=2, failing=0.3),
}


@cache
def runs_of(name: str) -> list[tuple[Prepared, Weather]]:
    """How a case of the corpus can run on a stream; some can't."""
    (case,) = (c for c in reader.cases() if c.name == name)
    if any(event.values[case.schema.time] is None for event in case.events):
        return []
    plans = ((runnable(case, engine), weather) for engine, weather in RUNS.items())
    return [(prepared, weather) for prepared, weather in plans if prepared is not None]


def test_most_of_the_corpus_runs_on_streams() -> None:
    assert sum(len(runs_of(case.name)) for case in reader.cases()) > 600


@pytest.mark.parametrize("case", reader.cases(), ids=str)
def test_the_corpus(case: Case) -> None:
    for prepared, weather in in_turn(runs_of(case.name), case.name):
        compare(case, prepared, weather)


LONG = (
    "A a -> B b WHERE [k] WITHIN 5",
    "A a -> B b WITHIN 5",
    "A a -> B b -> C c WHERE [k] WITHIN 8",
    "A a -> !B b -> C c WHERE [k] WITHIN 6",
    "A a => B b WHERE [k] WITHIN 4",
    "A a -> B+ b RUNS -> C c WHERE [k] WITHIN 6",
    "A a -> B b ; C c WHERE [k] WITHIN 6",
)


@pytest.mark.parametrize("pattern", LONG)
@pytest.mark.parametrize("seed", range(4))
def test_streams_of_many_windows(pattern: str, seed: int) -> None:
    """Some keys are silent while others go on: what the bucket still holds of them is renumbered
    when events that have expired are dropped."""
    chance = random.Random(seed)
    events = []
    for time in range(1, 90):
        for _ in range(chance.choice((0, 1, 1, 3))):
            events.append(f"{chance.choice('ABC')}@{time}(k={chance.choice((0, 1, 2))})")
    given = " ".join(events)
    fields = {"name": pattern, "query": f"PATTERN {pattern}", "events": given, "oracle": ""}
    case = reader.case_of(fields, "streams")
    prepared = runnable(case, "auto")
    assert prepared is not None
    for workers, delay in ((1, 7), (2, 3), (1, None)):
        compare(case, prepared, Weather(seed, most=12, delay=delay, buckets=1, workers=workers))


def test_what_is_alive_stays_so_when_earlier_rows_have_expired() -> None:
    """The second batch expires B@29, and drops what the automaton doesn't need any more; the third
    brings the end of a76 b92."""
    events = "B@29(k=2) A@73(k=0) A@76(k=2) B@84(k=0) B@92(k=2) A@98(k=1)"
    query = "PATTERN A a -> B b WHERE [k] WITHIN 20"
    fields = {"name": "", "query": query, "events": events, "matches": "a73 b84 | a76 b92"}
    case = reader.case_of(fields, "streams")
    prepared = runnable(case, "auto")
    assert prepared is not None
    data = with_index(bound(case), case.events)
    cluster = Cluster(prepared, data.schema, Weather(1, delay=10, buckets=1, workers=1))
    for batch in (data, data.slice(0, 0), data.slice(0, 0)):
        cluster.batch(batch)
    cluster.finish(20)
    assert len(case.answer) == len(case.expected)
    assert multiset(bound(case), matches_of(bound(case), cluster)) == multiset(
        bound(case), case.answer
    )


@pytest.mark.parametrize("pattern", ["A{1} a STRICT", "A a | B b"])
def test_a_worker_that_sees_nothing_but_a_key_that_is_done(pattern: str) -> None:
    """No row gets into its store, which then has no columns; nor has a round looked for starts."""
    query = f"PATTERN {pattern} WHERE [id] WITHIN 12 LIMIT 1 PER KEY"
    events = " ".join(f"A@{time}(id=1)" for time in (1, 2, 3, 4, 5, 6, 8, 9, 10))
    fields = {"name": "", "query": query, "events": events, "matches": "a1"}
    case = reader.case_of(fields, "streams")
    for workers in (2, 3):
        prepared = runnable(case, "nfa")
        assert prepared is not None
        compare(case, prepared, Weather(seed=0, most=1, delay=2, buckets=1, workers=workers))
