"""Constants as SQL computes with them: NULL is unknown, NaN equals itself and is above all."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cepheid.algebra.expressions import Constant, Value
from cepheid.algebra.types import Type

COMPARISONS: dict[str, frozenset[int]] = {
    "<": frozenset((-1,)),
    "<=": frozenset((-1, 0)),
    "=": frozenset((0,)),
    "<>": frozenset((-1, 1)),
    ">=": frozenset((0, 1)),
    ">": frozenset((1,)),
}
"""Each comparison as the outcomes of `compare` for which it is true."""

NAMES = {outcomes: name for name, outcomes in COMPARISONS.items()}

OPPOSITE = {"<": ">=", "<=": ">", "=": "<>", "<>": "=", ">=": "<", ">": "<="}
"""The comparison that is true where this one is false; unknown where this one is."""

ARITHMETIC = frozenset("+-*/%")

_BEYOND = 2**63


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1, of two values that are not NULL."""
    if _nan(left) or _nan(right):
        return int(_nan(left)) - int(_nan(right))
    match left, right:
        case str(), str():
            return int(left > right) - int(left < right)
        case bytes(), bytes():
            return int(left > right) - int(left < right)
        case ((int() | float()), (int() | float())):
            return int(left > right) - int(left < right)
        case _:
            raise AssertionError(f"{left!r} and {right!r} are of types that no query compares")


def compute(operator: str, left: Value, right: Value, type_: Type) -> Constant | None:
    """The arithmetic result, which is NULL if it is undefined or doesn't fit into 64 bits; None
    where this isn't sure to be what an engine computes."""
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    result: Value
    match operator:
        case "+":
            result = left + right
        case "-":
            result = left - right
        case "*":
            result = left * right
        case "/" if right == 0:
            result = None
        case "/":
            result = float(left) / float(right)
        case "%" if right == 0:
            result = None
        case "%" if isinstance(left, int) and isinstance(right, int):
            result = (abs(left) % abs(right)) * (-1 if left < 0 else 1)
        case _:
            return None
    if isinstance(result, int) and not -_BEYOND <= result < _BEYOND:
        result = None
    return Constant(result, type_)


def contains(values: Sequence[Value], value: Value) -> bool:
    return any(v is not None and compare(v, value) == 0 for v in values)


def _nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)
