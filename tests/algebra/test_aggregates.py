"""The table of aggregates is consistent with itself and with what binding accepts."""

from __future__ import annotations

import pytest

from cepheid.algebra.aggregates import AGGREGATES, FoldResult, FoldStep, Operand
from cepheid.algebra.expressions import Aggregate
from cepheid.algebra.functions import FUNCTIONS
from cepheid.errors import QueryError
from tests.algebra.test_roles import bound

_ACCEPTED = {
    Operand.ANY: ("price", "name", "at"),
    Operand.ORDERED: ("price", "name", "at"),
    Operand.AMOUNT: ("x", "price"),
    Operand.NUMBER: ("x", "price"),
}


@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_binds_with_what_it_takes(name: str) -> None:
    function = AGGREGATES[name]
    for column in _ACCEPTED[function.operand]:
        (output,) = bound(
            f"PATTERN A a ; B+ b ; C c WITHIN 9 units RETURN {name}(b.{column}) AS y"
        ).outputs
        expression = output.expression
        assert isinstance(expression, Aggregate)
        assert expression.argument is not None
        assert expression.type is (function.type or expression.argument.type)


@pytest.mark.parametrize("name", AGGREGATES)
def test_what_it_does_not_take_is_refused_in_its_words(name: str) -> None:
    function = AGGREGATES[name]
    query = f"PATTERN A a ; B+ b ; C c WITHIN 9 units RETURN {name}(b.name) AS y"
    if function.operand in (Operand.ANY, Operand.ORDERED):
        bound(query)
        return
    with pytest.raises(QueryError, match=f"`{name}` needs {function.operand.value}, but"):
        bound(query)


@pytest.mark.parametrize("name", AGGREGATES)
def test_it_is_over_events_if_the_table_says_so(name: str) -> None:
    query = f"PATTERN A a ; B+ b ; C c WITHIN 9 units RETURN {name}(b) AS y"
    if AGGREGATES[name].events:
        bound(query)
        return
    with pytest.raises(QueryError, match="needs an attribute"):
        bound(query)


def test_results_follow_from_steps() -> None:
    for function in AGGREGATES.values():
        assert (function.result is FoldResult.COUNT) == (function.step is FoldStep.COUNT)
        assert function.scalar is None or function.scalar in FUNCTIONS
        assert not (function.chooses and function.lists)
