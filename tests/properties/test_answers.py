"""Random queries that return answers, over the whole language and over chains of events: tables,
iterators, sessions and streams give the oracle's, whether matches are found or counted."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from cepheid.answers.counted import counting_engine
from cepheid.errors import PlanError, UnsupportedError
from cepheid.language.group_clause import WindowKind
from cepheid.planner import Prepared
from tests.answers.harness import answered, counted_by
from tests.answers.test_corpus import same
from tests.corpus.reader import Case, bound, table
from tests.examples import examples
from tests.oracle import answers
from tests.properties.answer_strategies import KINDS, AnsweringChains
from tests.properties.full_strategies import full_cases
from tests.sessions.test_answers import plain
from tests.sessions.test_properties import ENGINES, WAYS, Driven, Way, arranged
from tests.streaming.simulation import Weather, run
from tests.streaming.test_answers import AnsweringCluster, answerable, in_some_order

relaxed = settings(
    max_examples=examples("answers"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
CASES = st.sampled_from((*KINDS, AnsweringChains, AnsweringChains)).flatmap(
    lambda kind: full_cases(kind=kind)
)
WEATHERS = st.builds(
    Weather,
    seed=st.integers(0, 1 << 16),
    most=st.sampled_from((1, 3, 8)),
    delay=st.none() | st.integers(1, 6),
    buckets=st.integers(1, 3),
    failing=st.sampled_from((0.0, 0.3)),
)
COUNTED = st.none() | st.integers(0, 2)
"""The number of a way to count, or that which costs least."""


@pytest.fixture(scope="module", autouse=True)
def small_rounds() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting_engine, "ROUND", 4)
        yield


@relaxed
@given(CASES, st.sampled_from((None, (1,), (3,), (2, 100))), ENGINES, COUNTED)
def test_in_process(
    case: Case, cuts: tuple[int, ...] | None, engine: str, counted: int | None
) -> None:
    try:
        found = answered(bound(case), case.events, cuts, counted, engine=engine)
    except (PlanError, UnsupportedError):
        reject()
    assert same(found, answers(bound(case), case.events))


def prepared_for(case: Case, counted: int | None) -> Prepared:
    """On data that may never end a group needs a window."""
    if (prepared := answerable(case)) is None or prepared.query.answers.window is None:
        reject()
    return prepared if counted is None else counted_by(prepared, counted)


@settings(relaxed, max_examples=examples("answers", part=2))
@given(CASES, WAYS, COUNTED)
def test_in_sessions(case: Case, way: Way, counted: int | None) -> None:
    prepared = prepared_for(case, counted)
    data, arrivals = arranged(case.bound, table(case.schema, case.events), way)
    try:
        driven = Driven(prepared, data.schema, way)
    except UnsupportedError:
        reject()
    driven.run(data, arrivals)
    assert same(plain(driven.rows), answers(case.bound, case.events))


@settings(relaxed, max_examples=examples("answers", part=2))
@given(CASES, WEATHERS, COUNTED)
def test_on_streams(case: Case, weather: Weather, counted: int | None) -> None:
    prepared = prepared_for(case, counted)
    cluster = run(case.bound, prepared, case.events, weather, AnsweringCluster)
    found = [{k: v for k, v in r.items() if not k.startswith("match_")} for r in cluster.answers]
    expected = answers(case.bound, case.events)
    assert same(in_some_order(found), in_some_order(expected))
    shape = prepared.query.answers
    if shape.window.kind is not WindowKind.RANGE:  # which is dropped with the next answer
        assert cluster.held == 0
