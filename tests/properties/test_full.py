"""Random queries over the whole language: every plan that can run them agrees with the oracle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from cepheid.errors import UnsupportedError
from tests.corpus.reader import Case, bound
from tests.engine.harness import Setup, in_order_of_ends, multiset, returned, run
from tests.examples import examples
from tests.oracle.match import matches, outputs
from tests.properties.construct_strategies import (
    BranchingQueries,
    CallingQueries,
    ChoosingQueries,
    FoldingQueries,
    MixedQueries,
)
from tests.properties.full_strategies import (
    PartedQueries,
    PartlyKeyedQueries,
    PassingQueries,
    TimedQueries,
    TouchingQueries,
    full_cases,
)

COUNTS = st.integers(1, 6)


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    """Any way to cut the stream into batches and rounds."""
    return Setup(
        shape=draw(st.sampled_from(("left-deep", "right-deep"))),
        push=draw(st.booleans()),
        engine=draw(st.sampled_from(("automaton", "mixed", "nfa", "auto"))),
        cuts=tuple(draw(st.lists(COUNTS | st.just(100), min_size=1, max_size=3))),
        round_size=draw(COUNTS | st.just(100)),
    )


full = settings(
    max_examples=examples("language"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check(case: Case, setup: Setup) -> None:
    query = bound(case)
    try:
        found = run(query, case.events, setup)
    except UnsupportedError:
        reject()
    assert multiset(query, found) == multiset(query, matches(query, case.events))
    assert in_order_of_ends(query, found)


@full
@given(full_cases(), setups())
def test_every_plan_agrees_with_the_oracle(case: Case, setup: Setup) -> None:
    check(case, setup)


@settings(full, max_examples=examples("language", part=4))
@given(full_cases(kind=PartedQueries), setups())
def test_automata_below_joins(case: Case, setup: Setup) -> None:
    check(case, replace(setup, engine="mixed"))


@settings(full, max_examples=examples("language", part=8))
@given(full_cases(kind=PartlyKeyedQueries), setups())
def test_keys_of_parts_that_are_often_null(case: Case, setup: Setup) -> None:
    check(case, replace(setup, engine="mixed"))


@settings(full, max_examples=examples("language", part=4))
@given(full_cases(kind=TimedQueries) | full_cases(kind=PassingQueries), setups())
def test_negations_with_a_time_of_their_own(case: Case, setup: Setup) -> None:
    check(case, setup)


@settings(full, max_examples=examples("language", part=8))
@given(full_cases(kind=TimedQueries, lasting=True), setups())
def test_negations_with_a_time_among_events_that_last(case: Case, setup: Setup) -> None:
    check(case, setup)


@settings(full, max_examples=examples("language", part=4))
@given(full_cases(kind=TouchingQueries), setups())
def test_closures_side_by_side(case: Case, setup: Setup) -> None:
    check(case, setup)


@settings(full, max_examples=examples("language", part=4))
@given(full_cases(kind=FoldingQueries), setups())
def test_folds_of_groups(case: Case, setup: Setup) -> None:
    check(case, setup)


@settings(full, max_examples=examples("language", part=4))
@given(full_cases(kind=ChoosingQueries), setups())
def test_choices_among_matches(case: Case, setup: Setup) -> None:
    check(case, setup)


@settings(full, max_examples=examples("language", part=4))
@given(full_cases(kind=BranchingQueries), setups())
def test_disjunctions_of_three(case: Case, setup: Setup) -> None:
    check(case, setup)


@settings(full, max_examples=examples("language", part=4))
@given(full_cases(kind=CallingQueries), setups())
def test_functions(case: Case, setup: Setup) -> None:
    check(case, setup)


@settings(full, max_examples=examples("language", part=2))
@given(full_cases(kind=MixedQueries), setups())
def test_all_constructs_in_one(case: Case, setup: Setup) -> None:
    check(case, setup)


@settings(full, max_examples=examples("language", part=4))
@given(full_cases(lasting=True), setups())
def test_events_with_a_duration(case: Case, setup: Setup) -> None:
    check(case, setup)


@settings(full, max_examples=examples("language", part=4))
@given(full_cases(returning=True) | full_cases(kind=FoldingQueries, returning=True), setups())
def test_every_plan_returns_what_the_oracle_returns(case: Case, setup: Setup) -> None:
    query = bound(case)
    try:
        found = returned(query, case.events, setup)
    except UnsupportedError:
        reject()
    expected = [outputs(query, m, case.events) for m in matches(query, case.events)]
    assert Counter(map(str, found)) == Counter(map(str, expected))
