"""Conjuncts over a few dozen rows of the event store, where a call of pyarrow would cost more than
the rows do: comparisons of sums and products, which is what most conjuncts are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Call, Constant, Expr, TimeSpan

Value = Any  # an array of numbers, or one number; NumPy's operators take both
Rows = Mapping[str, NDArray[np.int64]]
Gather = Callable[[Attribute, Rows], Value]
Times = Callable[[str, Rows], NDArray[np.int64]]
Compute = Callable[[Rows], Value]

_ARITHMETIC: Mapping[str, Callable[[Value, Value], Value]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def compiled(expr: Expr, gather: Gather, times: Times) -> Compute | None:
    """Whether the expression holds for each row, if nothing that it reads is NULL; None if it is
    not of this kind. Whatever is of this kind is unknown if anything that it reads is NULL."""
    match expr:
        case Call("and", arguments):
            parts = [compiled(a, gather, times) for a in arguments]
            known = [p for p in parts if p is not None]
            if len(known) < len(parts):
                return None
            return lambda rows: np.logical_and.reduce([part(rows) for part in known])
        case Call(operator, (first, second)) if operator in _COMPARISONS:
            left, right = _value(first, gather, times), _value(second, gather, times)
            if left is None or right is None:
                return None
            return lambda rows: _compare(operator, left(rows), right(rows))
        case _:
            return None


def _value(expr: Expr, gather: Gather, times: Times) -> Compute | None:
    match expr:
        case Constant(value=bool() | int() | float() as number):
            return lambda rows: number
        case Attribute():
            return lambda rows: gather(expr, rows)
        case TimeSpan(names):
            return lambda rows: np.ptp([times(name, rows) for name in names], axis=0)
        case Call("to_float", (argument,)):
            return _value(argument, gather, times)
        case Call(operator, (first, second)) if operator in _ARITHMETIC:
            left, right = _value(first, gather, times), _value(second, gather, times)
            if left is None or right is None:
                return None
            function = _ARITHMETIC[operator]
            return lambda rows: function(left(rows), right(rows))
        case _:
            return None


def _compare(operator: str, x: Value, y: Value) -> Value:
    """Spark's order of doubles: NaN equals itself and is above every number."""
    match operator:
        case "<>":
            return ~_compare("=", x, y)
        case ">":
            return _compare("<", y, x)
        case ">=":
            return _compare("<=", y, x)
        case "=":
            return (x == y) | ((x != x) & (y != y))
        case "<":
            return (x < y) | ((y != y) & (x == x))
        case _:
            return (x <= y) | (y != y)
