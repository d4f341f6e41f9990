"""One type for the sides of an operator: the few conversions of the language, made explicit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeGuard

from cepheid.algebra.expressions import Attribute, Call, Constant, Expr, Varying
from cepheid.algebra.types import Type
from cepheid.algebra.values import DAY, parse_moment

_CALENDAR = (Type.DATE, Type.TIMESTAMP)


def common_type(types: Iterable[Type]) -> Type | None:
    """The type in which values of these types can meet; None if there is none.

    Decimals meet as doubles (exact ones are for RETURN), dates and timestamps as timestamps;
    NULL adapts to whatever it meets.
    """
    seen = set(types) - {Type.NULL}
    if not seen:
        return Type.NULL
    if Type.OTHER in seen:
        return None
    if len(seen) == 1:
        only = seen.pop()
        return Type.FLOAT if only is Type.DECIMAL else only
    if all(t.numeric for t in seen):
        return Type.FLOAT
    if seen == set(_CALENDAR):
        return Type.TIMESTAMP
    return None


def cast(expr: Expr, target: Type) -> Expr:
    """The expression in a type that `common_type` found for it."""
    if expr.type is target:
        return expr
    if isinstance(expr, Attribute) and expr.type is Type.NULL:
        return replace(expr, type=target)  # a column without a value is one of any type
    if _fixed(expr):
        return _cast_constant(expr, target)
    if target is Type.FLOAT:
        return Call("to_float", (expr,), Type.FLOAT)
    if target is Type.TIMESTAMP and expr.type is Type.DATE:
        return Call("to_timestamp", (expr,), Type.TIMESTAMP)
    return expr


def _fixed(expr: Expr) -> TypeGuard[Constant]:
    return isinstance(expr, Constant) and not isinstance(expr, Varying)


def _cast_constant(constant: Constant, target: Type) -> Constant:
    value = constant.value
    if value is None:
        return Constant(None, target)
    if target is Type.FLOAT and isinstance(value, int):
        return Constant(float(value), Type.FLOAT)
    if target is Type.TIMESTAMP and isinstance(value, int) and constant.type is Type.DATE:
        return Constant(value * DAY, Type.TIMESTAMP)
    return constant


def read_moments(exprs: Sequence[Expr]) -> list[Expr]:
    """String constants beside timestamps or dates are moments; ValueError if one isn't."""
    if not any(e.type in _CALENDAR for e in exprs):
        return list(exprs)
    return [parse_moment(e.value) if _fixed(e) and isinstance(e.value, str) else e for e in exprs]


def unify(exprs: Sequence[Expr]) -> list[Expr] | None:
    """All in one type, or None; ValueError for a string that is no moment."""
    read = read_moments(exprs)
    target = common_type(e.type for e in read)
    return None if target is None else [cast(e, target) for e in read]


def arithmetic(operator: str, left: Expr, right: Expr) -> Expr | None:
    """`+ - * / %`, or None if the types have no such operation.

    `/` is always a double. Moments differ by a duration and move by one.
    """
    pair = (left.type, right.type)
    if Type.NULL in pair:
        other = pair[1] if pair[0] is Type.NULL else pair[0]
        adapted = Type.INTEGER if other is Type.NULL else other
        if adapted in _CALENDAR:
            return Constant(None, Type.NULL)
        left, right = cast(left, adapted), cast(right, adapted)
        pair = (left.type, right.type)
    if all(t.numeric for t in pair):
        keep = pair == (Type.INTEGER, Type.INTEGER) and operator != "/"
        target = Type.INTEGER if keep else Type.FLOAT
        return Call(operator, (cast(left, target), cast(right, target)), target)
    return _moments(operator, left, right)


def _moments(operator: str, left: Expr, right: Expr) -> Expr | None:
    match operator, left.type, right.type:
        case "-", (Type.DATE | Type.TIMESTAMP), (Type.DATE | Type.TIMESTAMP):
            return Call("-", (_moment(left), _moment(right)), Type.DURATION)
        case (("+" | "-"), (Type.DATE | Type.TIMESTAMP), Type.DURATION):
            return Call(operator, (_moment(left), right), Type.TIMESTAMP)
        case "+", Type.DURATION, (Type.DATE | Type.TIMESTAMP):
            return Call("+", (_moment(right), left), Type.TIMESTAMP)
        case (("+" | "-"), Type.DURATION, Type.DURATION):
            return Call(operator, (left, right), Type.DURATION)
        case "*", Type.DURATION, Type.INTEGER:
            return Call("*", (left, right), Type.DURATION)
        case "*", Type.INTEGER, Type.DURATION:
            return Call("*", (left, right), Type.DURATION)
        case "/", Type.DURATION, Type.DURATION:
            return Call("/", (cast(left, Type.FLOAT), cast(right, Type.FLOAT)), Type.FLOAT)
        case _:
            return None


def _moment(expr: Expr) -> Expr:
    return cast(expr, Type.TIMESTAMP)


def negate(expr: Expr) -> Expr | None:
    if _fixed(expr) and isinstance(expr.value, int | float):
        return Constant(-expr.value, expr.type) if expr.type is not Type.BOOLEAN else None
    match expr.type:
        case Type.INTEGER | Type.FLOAT | Type.DURATION:
            return Call("neg", (expr,), expr.type)
        case Type.DECIMAL:
            return Call("neg", (cast(expr, Type.FLOAT),), Type.FLOAT)
        case Type.NULL:
            return expr
        case _:
            return None


def named(expr: Expr) -> str:
    return "NULL" if expr.type is Type.NULL else expr.type.value


def described(expr: Expr) -> str:
    """A type with its article."""
    name = named(expr)
    return name if name in ("NULL", "nested") else f"{'an' if name[0] in 'aeio' else 'a'} {name}"
