"""Conditions of many rules as one that is wider than each: their hull."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.compute as pc

from cepheid.algebra.expressions import (
    FLIPPED,
    TRUE,
    Call,
    Constant,
    Expr,
    Value,
    Varying,
    transform,
    variables,
    walk,
)
from cepheid.algebra.types import Type
from cepheid.engine.attribution.parameters import RuleParameters

MOST_VALUES = 32
"""Of a parameter with more values, only the least and the greatest count."""
MOST_ALTERNATIVES = 8
"""Rules of which the conditions on one event are kept as alternatives, if nothing simpler is."""
FALSE = Constant(False, Type.BOOLEAN)
_ORDERED = (Type.INTEGER, Type.FLOAT, Type.DATE, Type.TIMESTAMP, Type.DURATION)


def parameters_of(expr: Expr) -> set[str]:
    return {node.name for node in walk(expr) if isinstance(node, Varying)}


def wide(condition: Expr, rows: RuleParameters, one_event: bool = False) -> tuple[Expr, ...]:
    """A condition that holds wherever it holds for one of the rules; none if that says nothing. Of
    one event, the conditions of a few rules may be long: they are checked once per event."""
    if not parameters_of(condition):
        return (condition,)
    hull = _hull(condition, rows)
    if hull is None and one_event:
        hull = _alternatives(condition, rows)
    return () if hull is None or hull == TRUE else (hull,)


def _hull(expr: Expr, rows: RuleParameters) -> Expr | None:
    """By the extremes of comparisons; None if those are unknown."""
    if not parameters_of(expr):
        return expr
    match expr:
        case Call("and", parts):
            return _joined("and", [h for h in (_hull(p, rows) for p in parts) if h is not None])
        case Call("or", parts):
            return _either(parts, rows)
        case Call("in", (value, *options)):
            equal = (Call("=", (value, option), Type.BOOLEAN) for option in options)
            return _either(tuple(equal), rows)
        case Call(operator, (left, right)) if operator in FLIPPED:
            if not variables(left):
                left, right, operator = right, left, FLIPPED[operator]
            if parameters_of(left) or variables(right):
                return None
            return _bounded(left, operator, right, rows)
        case _:
            return None


def _either(parts: tuple[Expr, ...], rows: RuleParameters) -> Expr | None:
    """A part that reads no event is true for some rule, and then nothing is left to ask; or it is
    for none."""
    found: list[Expr] = []
    for part in parts:
        if variables(part):
            hull = _hull(part, rows)
        else:
            hull = TRUE if pc.any(rows.evaluate(part)).as_py() else FALSE
        if hull is None or hull == TRUE:
            return hull
        found += [hull] if hull != FALSE else []
    return _joined("or", found)


def _joined(operator: str, parts: list[Expr]) -> Expr | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    return Call(operator, tuple(parts), Type.BOOLEAN)


def _bounded(value: Expr, operator: str, bound: Expr, rows: RuleParameters) -> Expr | None:
    """A value, compared with a bound of each rule. A rule whose bound is NULL finds nothing."""
    distinct = set(pc.unique(rows.evaluate(bound)).drop_null().to_pylist())
    if not distinct or any(v != v for v in distinct):
        return None

    def compared(operator: str, limit: int | float | str | bytes | bool) -> Expr:
        return Call(operator, (value, Constant(limit, bound.type)), Type.BOOLEAN)

    if operator == "=" and len(distinct) == 1:
        return compared("=", distinct.pop())
    if operator == "=" and len(distinct) <= MOST_VALUES:
        options = (Constant(v, bound.type) for v in sorted(distinct))
        return Call("in", (value, *options), Type.BOOLEAN)
    if bound.type not in _ORDERED:
        return None
    match operator:
        case "=":
            return _joined("and", [compared(">=", min(distinct)), compared("<=", max(distinct))])
        case ">" | ">=":
            return compared(operator, min(distinct))
        case "<" | "<=":
            return compared(operator, max(distinct))
        case _:
            return None


def _alternatives(condition: Expr, rows: RuleParameters) -> Expr | None:
    """The condition of each rule, if they are few."""
    found = {node.name: node for node in walk(condition) if isinstance(node, Varying)}
    columns = [rows.evaluate(parameter).to_pylist() for parameter in found.values()]
    given = list(dict.fromkeys(zip(*columns, strict=True)))
    if len(given) > MOST_ALTERNATIVES:
        return None
    return _joined("or", [_with(condition, dict(zip(found, own, strict=True))) for own in given])


def _with(condition: Expr, given: Mapping[str, Value]) -> Expr:
    return transform(
        condition, lambda e: Constant(given[e.name], e.type) if isinstance(e, Varying) else None
    )
