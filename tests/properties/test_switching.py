"""Random plans in turn, another one after every round: no match is lost, and none comes twice."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.options import Adaptation
from cepheid.plan.nodes import waits
from cepheid.planner import make_plan
from cepheid.planner.adapt import Adapter, Adaptive
from cepheid.planner.choice import Propagation
from cepheid.planner.search import search
from cepheid.statistics import Statistics
from tests.corpus.reader import bound
from tests.engine.harness import indexed, multiset, run, run_plan
from tests.examples import examples
from tests.oracle.match import matches
from tests.properties.strategies import cases
from tests.properties.test_engine import setups


@settings(
    max_examples=examples("switched plans"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_switching_after_every_round_changes_nothing(data: st.DataObject) -> None:
    case = data.draw(cases())
    query = bound(case)
    drawn = [
        replace(setup, propagation=data.draw(st.sampled_from(get_args(Propagation))))
        for setup in data.draw(st.lists(setups(case), min_size=2, max_size=4))
    ]
    if any(waits(root) for root in make_plan(query).alternatives):
        # What waits must wait for the same in all plans: negations stay where they are.
        drawn = [replace(setup, push=drawn[0].push) for setup in drawn]
    expected = multiset(query, matches(query, case.events))
    found = run(query, case.events, drawn[0], others=drawn[1:] + drawn[:1])
    assert multiset(query, found) == expected


class Restless(Adapter):
    """Looks after every round and takes whatever seems better, or as good."""

    def __init__(self, adaptive: Adaptive) -> None:
        super().__init__(adaptive, sampling=float("inf"), searching=float("inf"))


@settings(
    max_examples=examples("switched plans", part=2),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_adapting_after_every_round_changes_nothing(data: st.DataObject) -> None:
    case = data.draw(cases())
    query = bound(case)
    setup = data.draw(setups(case))
    returning = indexed(query)
    planned = search(returning, Statistics())
    advisor = Restless(Adaptive(returning, planned, Adaptation(change=0, gain=0)))
    expected = multiset(query, matches(query, case.events))
    found = run_plan(query, case.events, planned.plan, setup, advisor)
    assert multiset(query, found) == expected
