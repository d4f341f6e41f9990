"""The hull of many rules' conditions: one condition that holds wherever any of them holds."""

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
    VaryingList,
    transform,
    variables,
    walk,
)
from cepheid.algebra.types import Type
from cepheid.engine.attribution.parameters import RuleParameters

MOST_VALUES = 32
"""If a parameter has more values than this, the hull uses only the least and the greatest."""
MOST_ALTERNATIVES = 8
"""Up to this many rules, the hull may be the disjunction of their conditions on one event."""
FALSE = Constant(False, Type.BOOLEAN)
_ORDERED = (Type.INTEGER, Type.FLOAT, Type.DATE, Type.TIMESTAMP, Type.DURATION)


def parameters_of(expr: Expr) -> set[str]:
    return {node.name for node in walk(expr) if isinstance(node, Varying)}


def wide(condition: Expr, rows: RuleParameters, one_event: bool = False) -> tuple[Expr, ...]:
    """The hull of the condition: it holds wherever the condition holds for one of the rules; empty
    if it would hold for every event. A condition on one event may be long: it is checked once per
    event."""
    if not parameters_of(condition):
        return (condition,)
    hull = _hull(condition, rows)
    listed = any(isinstance(node, VaryingList) for node in walk(condition))
    if hull is None and one_event and not listed:
        hull = _alternatives(condition, rows)
    return () if hull is None or hull == TRUE else (hull,)


def _hull(expr: Expr, rows: RuleParameters) -> Expr | None:
    """The hull from the extremes of comparisons; None if they are unknown."""
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
    """A disjunct that reads no event is constant for each rule: if it is true for any, the hull is
    no condition; otherwise drop it."""
    hulls: list[Expr] = []
    for part in parts:
        if variables(part):
            hull = _hull(part, rows)
        else:
            hull = TRUE if pc.any(rows.evaluate(part)).as_py() else FALSE
        if hull is None or hull == TRUE:
            return hull
        hulls += [hull] if hull != FALSE else []
    return _joined("or", hulls)


def _joined(operator: str, parts: list[Expr]) -> Expr | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    return Call(operator, tuple(parts), Type.BOOLEAN)


def _bounded(value: Expr, operator: str, bound: Expr, rows: RuleParameters) -> Expr | None:
    """Compare a value with the loosest bound of all rules. A rule whose bound is NULL matches
    nothing."""
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
    """The disjunction of the rules' conditions, if the rules are few."""
    varying = {node.name: node for node in walk(condition) if isinstance(node, Varying)}
    columns = [rows.evaluate(parameter).to_pylist() for parameter in varying.values()]
    given = list(dict.fromkeys(zip(*columns, strict=True)))
    if len(given) > MOST_ALTERNATIVES:
        return None
    return _joined(
        "or", [_with(condition, dict(zip(varying, values, strict=True))) for values in given]
    )


def _with(condition: Expr, given: Mapping[str, Value]) -> Expr:
    return transform(
        condition, lambda e: Constant(given[e.name], e.type) if isinstance(e, Varying) else None
    )
