"""Random plans in turn, another one after every round: no match is lost, and none comes twice."""

from __future__ import annotations

import os
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.plan.nodes import waits
from cepheid.planner import make_plan
from tests.corpus.reader import bound
from tests.engine.harness import multiset, run
from tests.oracle.match import matches
from tests.properties.strategies import cases
from tests.properties.test_engine import setups

EXAMPLES = int(os.environ.get("CEPHEID_EXAMPLES", "1000"))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_switching_after_every_round_changes_nothing(data: st.DataObject) -> None:
    case = data.draw(cases())
    query = bound(case)
    drawn = data.draw(st.lists(setups(case), min_size=2, max_size=4))
    if any(waits(root) for root in make_plan(query).alternatives):
        # What waits must wait for the same in all plans: negations stay where they are.
        drawn = [replace(setup, push=drawn[0].push) for setup in drawn]
    expected = multiset(query, matches(query, case.events))
    found = run(query, case.events, drawn[0], others=drawn[1:] + drawn[:1])
    assert multiset(query, found) == expected
