"""The table of functions is consistent with itself and with what binding accepts."""

from __future__ import annotations

import pytest

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.expressions import Call
from cepheid.algebra.functions import FUNCTIONS, LOWERED, SYNONYMS, Accepts
from tests.algebra.test_roles import bound

_ARGUMENT = {
    Accepts.NUMBER: "a.price",
    Accepts.AMOUNT: "a.price",
    Accepts.FLOAT: "a.x",
    Accepts.INTEGER: "a.x",
    Accepts.STRING: "a.name",
    Accepts.CALENDAR: "a.on",
    Accepts.TIMESTAMP: "a.at",
    Accepts.SAME: "a.x",
}


def test_a_name_means_one_thing() -> None:
    tables = [set(FUNCTIONS), set(SYNONYMS), set(AGGREGATES), set(LOWERED)]
    assert len(set().union(*tables)) == sum(map(len, tables))
    assert set(SYNONYMS.values()) <= set(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_binds_with_its_arguments(name: str) -> None:
    function = FUNCTIONS[name]
    count = max(function.required, len(function.parameters))
    arguments = ", ".join(_ARGUMENT[function.parameter(i)] for i in range(count))
    (output,) = bound(f"PATTERN A a RETURN {name}({arguments}) AS y").outputs
    assert isinstance(output.expression, Call)
    assert output.expression.operator == name
    assert function.doc
