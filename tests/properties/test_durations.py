"""Random patterns of joins over events with a duration: trees agree with the oracle."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.corpus.reader import START, Case, bound
from tests.engine.harness import multiset, run
from tests.examples import examples
from tests.oracle.match import matches
from tests.properties.full_strategies import durations
from tests.properties.strategies import COLUMNS, cases
from tests.properties.test_engine import setups


@st.composite
def lasting(draw: st.DrawFn) -> Case:
    case = draw(cases())
    columns = {**COLUMNS, START: COLUMNS["ts"]}
    schema = replace(case.schema, columns=columns, tie=None, start=START)
    return replace(case, schema=schema, events=draw(durations(case.events)))


@settings(
    max_examples=examples("durations"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_trees_agree_with_the_oracle(data: st.DataObject) -> None:
    case = data.draw(lasting())
    propagation = data.draw(st.sampled_from(("lazy", "push", "pull", "pass-down")))
    setup = replace(data.draw(setups(case)), propagation=propagation)
    query = bound(case)
    expected = multiset(query, matches(query, case.events))
    assert multiset(query, run(query, case.events, setup)) == expected
