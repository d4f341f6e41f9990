"""Joined rules over a stream that is cut, shuffled and interrupted: each finds what it finds alone,
also when others of its joint have gone."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.rules.overlapping import overlapping
from tests.rules.strategies import Set
from tests.rules.test_shared_plan import whatever_it_costs
from tests.streaming.simulation import Weather
from tests.streaming.test_rules import WEATHER, check

random = settings(
    max_examples=examples("joined rules on streams"),
    suppress_health_check=list(HealthCheck),
    deadline=None,
)


@random
@given(overlapping(), WEATHER)
def test_joined_rules_that_stay(drawn: Set, weather: Weather) -> None:
    with whatever_it_costs():
        check(drawn, weather, [frozenset(drawn.templates)])


@random
@given(st.data(), overlapping(), WEATHER)
def test_joined_rules_that_come_and_go(data: st.DataObject, drawn: Set, weather: Weather) -> None:
    some = st.frozensets(st.sampled_from(sorted(drawn.templates)))
    changes = data.draw(st.lists(some, min_size=1, max_size=4))
    with whatever_it_costs():
        check(drawn, weather, changes)
