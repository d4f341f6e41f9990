"""Random queries over random streams: the engine agrees with the oracle, however it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.engine import needs
from cepheid.planner.alternatives import alternatives
from cepheid.planner.trees.gaps import core
from cepheid.planner.trees.shapes import Shape, ShapePair
from tests.corpus.reader import Case, bound
from tests.engine.harness import Setup, multiset, run
from tests.examples import examples
from tests.oracle.match import matches
from tests.properties.strategies import cases

ENGINES: tuple[Literal["tree", "nfa", "auto"], ...] = ("tree", "tree", "nfa", "auto")

COUNTS = st.integers(1, 6)


@st.composite
def trees(draw: st.DrawFn, variables: tuple[str, ...]) -> Shape:
    """Any binary tree over the variables, in their order."""
    if len(variables) == 1:
        return variables[0]
    cut = draw(st.integers(1, len(variables) - 1))
    return ShapePair(draw(trees(variables[:cut])), draw(trees(variables[cut:])))


def text(shape: Shape) -> str:
    return shape if isinstance(shape, str) else f"({text(shape.left)} {text(shape.right)})"


@st.composite
def setups(draw: st.DrawFn, case: Case) -> Setup:
    """Any way to run the case. An explicit tree only for a plain sequence: elsewhere its
    branches must follow the pattern's nesting, which left-deep and right-deep plans do."""
    query = bound(case)
    choices = alternatives(query)
    names = core(choices[0].pattern)
    flat = len(choices) == 1 and "&" not in case.query_text and len(names) > 2
    shape = draw(st.sampled_from(["left-deep", "right-deep", *(["tree"] if flat else [])]))
    if shape == "tree":
        shape = text(draw(trees(names)))
    return Setup(
        shape=shape,
        push=draw(st.booleans()),
        cuts=tuple(draw(st.lists(COUNTS | st.just(100), min_size=1, max_size=3))),
        round_size=draw(COUNTS | st.just(0)),
    )


@settings(
    max_examples=examples("engine"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_engine_agrees_with_the_oracle(data: st.DataObject) -> None:
    case = data.draw(cases())
    setup = data.draw(setups(case))
    setup = replace(setup, engine=data.draw(st.sampled_from(ENGINES)))
    query = bound(case)
    expected = multiset(query, matches(query, case.events))
    # Rounds that the engine chooses grow and shrink with what they make, from one row on.
    with patch.object(needs, "ROUND", 1), patch.object(needs, "MOST_ROWS", 8):
        assert multiset(query, run(query, case.events, setup)) == expected
