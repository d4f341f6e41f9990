"""Whose matches are whose, against asking every rule about every match."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid.algebra.expressions import Attribute, Call, Expr
from cepheid.algebra.query import Output
from cepheid.algebra.types import Type
from cepheid.engine.attribution import pairs as checked_pairs
from cepheid.engine.attribution.json_rows import alert_schema
from cepheid.engine.attribution.pairs import OF_ROW
from cepheid.engine.attribution.parameters import RuleParameters
from cepheid.engine.attribution.residual import (
    Residual,
    alerts_of_query,
    satisfied,
    worth_asking,
)

COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
VALUES: dict[Type, tuple[Any, ...]] = {
    Type.INTEGER: (0, 1, 2, 3, -(2**63), 2**63 - 1, None),
    Type.FLOAT: (0.0, -0.0, 1.5, -1.5, float("inf"), float("nan"), None),
    Type.STRING: ("", "u", "v", "w", None),
    Type.BOOLEAN: (True, False, None),
}
ARROW = {
    Type.INTEGER: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.STRING: pa.string(),
    Type.BOOLEAN: pa.bool_(),
}


def column(values: list[Any], type_: Type) -> pa.Array:
    return pa.array(values, ARROW[type_], from_pandas=False)


def matches(values: list[Any], type_: Type, ends: list[int] | None = None) -> pa.RecordBatch:
    """All start at 0."""
    own = pa.array([1] * len(values) if ends is None else ends, pa.int64())
    starts = pa.array([0] * len(values), pa.int64())
    return pa.record_batch({"v": column(values, type_), "match_start": starts, "match_end": own})


def compared(sign: str, type_: Type, flipped: bool = False) -> Expr:
    sides: tuple[Expr, Expr] = Attribute(OF_ROW, "v", type_), Attribute("", "p", type_)
    return Call(sign, sides[::-1] if flipped else sides, Type.BOOLEAN)


def rank(value: Any) -> Any:
    """NaN equals itself and is above all numbers."""
    return (value != value, 0 if value != value else value)


def pairs(found: tuple[Any, Any]) -> list[tuple[int, int]]:
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


CASES = [
    (sign, type_)
    for sign in COMPARED
    for type_ in VALUES
    if type_ in (Type.INTEGER, Type.FLOAT) or sign in ("=", "<>")
]


@pytest.mark.parametrize(("sign", "type_"), CASES)
@pytest.mark.parametrize("chunk", [1, 7, 1 << 18])
def test_pairs_that_satisfy_a_comparison(
    monkeypatch: pytest.MonkeyPatch, sign: str, type_: Type, chunk: int
) -> None:
    monkeypatch.setattr(checked_pairs, "PAIRS", chunk)
    random = np.random.default_rng(1)
    values = [VALUES[type_][n] for n in random.integers(0, len(VALUES[type_]), 20)]
    bounds = [VALUES[type_][n] for n in random.integers(0, len(VALUES[type_]), 15)]
    rows = RuleParameters(15, {"p": column(bounds, type_)})
    for flipped in (False, True):
        asked = Residual(rows, (compared(sign, type_, flipped),), ())
        expected = [
            (m, r)
            for m, value in enumerate(values)
            for r, bound in enumerate(bounds)
            if value is not None and bound is not None
            if COMPARED[sign](*(map(rank, (bound, value) if flipped else (value, bound))))
        ]
        assert expected and pairs(satisfied(asked, matches(values, type_))) == expected


def test_all_conditions_and_the_window_count() -> None:
    rows = RuleParameters(3, {"p": pa.array([1, 2, 3])})
    asked = Residual(
        rows,
        (compared(">=", Type.INTEGER), compared("<>", Type.INTEGER)),
        (),
        windows=np.array([5, 10, 5]),
    )
    # The first is too long for all but the second rule; the others are as long as they may be.
    found = satisfied(asked, matches([5, 2, 3, None], Type.INTEGER, [7, 1, 4, 1]))
    assert pairs(found) == [(0, 1), (1, 0), (2, 0), (2, 1)]


def test_conditions_on_parameters_alone() -> None:
    rows = RuleParameters(3, {"on": pa.array([True, None, False])})
    asked = Residual(rows, (Attribute("", "on", Type.BOOLEAN),), ())
    assert pairs(satisfied(asked, matches([1, 2], Type.INTEGER))) == [(0, 0), (1, 0)]


def test_rules_are_found_by_the_condition_that_leaves_the_fewest() -> None:
    count = 1_000
    rows = RuleParameters(count, {"p": pa.array(range(count)), "q": pa.array([0] * count)})
    low = Call(
        ">",
        (Attribute(OF_ROW, "v", Type.INTEGER), Attribute("", "q", Type.INTEGER)),
        Type.BOOLEAN,
    )
    both = Residual(rows, (low, compared("=", Type.INTEGER)), ())
    found = matches([5, 7, 2_000], Type.INTEGER)
    assert worth_asking(both, found, np.array([1, 1, 1])).pairs == 2
    only = Residual(rows, (low,), (), windows=np.arange(count))
    assert worth_asking(only, found, np.array([990, 995, 1])).pairs == 9 + 4 + 998


def test_values_are_those_of_the_rule() -> None:
    rows = RuleParameters(2, {"p": pa.array([1, 10])})
    asked = Residual(
        rows,
        (compared(">=", Type.INTEGER),),
        (
            Output("v", Attribute(OF_ROW, "v", Type.INTEGER)),
            Output("p", Attribute("", "p", Type.INTEGER)),
            Output("sum", Call("+", compared("=", Type.INTEGER).arguments, Type.INTEGER)),
        ),
    )
    rules = pa.table({"rule": ["other", "low", "high"]})
    schema = alert_schema(rules, pa.int64())
    found = alerts_of_query(rules, np.array([1, 2]), asked, matches([10, 3], Type.INTEGER), schema)
    assert list(zip(*found.select(["rule", "match"]).to_pydict().values(), strict=True)) == [
        ("low", '{"v":10,"p":1,"sum":11}'),
        ("high", '{"v":10,"p":10,"sum":20}'),
        ("low", '{"v":3,"p":1,"sum":4}'),
    ]


def test_no_matches() -> None:
    rows = RuleParameters(2, {"p": pa.array([1, 2])})
    rules = pa.table({"rule": ["low", "high"]})
    schema = alert_schema(rules, pa.int64())
    for asked in (None, Residual(rows, (compared("=", Type.INTEGER),), ())):
        found = alerts_of_query(rules, np.array([0, 1]), asked, matches([], Type.INTEGER), schema)
        assert found.num_rows == 0 and found.schema == schema
