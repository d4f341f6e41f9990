"""Conditions on constants are decided, NOT moves inward, and AND falls apart into conjuncts.

5 - 2 > 1 = TRUE, x = NULL = unknown, p AND TRUE = p, NOT (p OR q) = NOT p AND NOT q,
NOT x < y = x >= y, 3 < x = x > 3, x IN (k) = x = k

All hold in three-valued logic and with NaN, which has its place in the order. Where a condition
decides a match, unknown is as good as false. What falls apart, or reads fewer variables than
before, is checked where it then belongs (the filter of one class goes to its leaf), provided that
this changes no choice: see `conditions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from cepheid.algebra.expressions import (
    FLIPPED,
    TRUE,
    Accumulator,
    Aggregate,
    Attribute,
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Previous,
    PreviousOr,
    Reduce,
    Some,
    TimeSpan,
    Value,
    Whole,
    conjuncts,
    transform,
)
from cepheid.algebra.query import BoundQuery, Conjunct
from cepheid.algebra.types import Type
from cepheid.rewrites.condition_roles import classify, may_replace, may_replace_having
from cepheid.rewrites.conditions.constant_values import (
    ARITHMETIC,
    COMPARISONS,
    OPPOSITE,
    compare,
    compute,
    contains,
)
from cepheid.rewrites.law import Facts, Rewrite

FALSE = Constant(False, Type.BOOLEAN)
UNKNOWN = Constant(None, Type.BOOLEAN)


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    for place, conjunct in enumerate(query.where):
        parts = _parts(conjunct, query)
        if parts is not None:
            where = (*query.where[:place], *parts, *query.where[place + 1 :])
            return replace(query, where=where)
    for place, condition in enumerate(query.having):
        folded = tuple(p for p in conjuncts(decisive(fold(condition))) if p != TRUE)
        if folded != (condition,) and may_replace_having(condition, folded, query):
            having = (*query.having[:place], *folded, *query.having[place + 1 :])
            return replace(query, having=having)
    return None


def _parts(conjunct: Conjunct, query: BoundQuery) -> tuple[Conjunct, ...] | None:
    """What the conjunct becomes; None if that is itself."""
    folded = decisive(fold(conjunct.expression))
    if folded == conjunct.expression:
        return None
    if folded == FALSE:
        return (replace(conjunct, expression=FALSE),)
    parts = tuple(classify(p, query) for p in conjuncts(folded) if p != TRUE)
    return parts if may_replace(conjunct, parts, query) else None


def decisive(expr: Expr) -> Expr:
    """The condition where it must be true: unknown counts as false."""
    match expr:
        case Constant(value=None):
            return FALSE
        case Call("and" | "or", arguments):
            return _logical(expr.operator, [decisive(a) for a in arguments])
        case _:
            return expr


def fold(expr: Expr) -> Expr:
    """The same value, in three-valued logic, with less to compute."""
    return transform(expr, _fold)


def _fold(expr: Expr) -> Expr | None:
    match expr:
        case Call():
            return _call(expr)
        case Every(condition=condition) if condition == TRUE:
            return TRUE
        case (
            Constant()
            | Attribute()
            | Previous()
            | PreviousOr()
            | Aggregate()
            | Accumulator()
            | Reduce()
            | Every()
            | Some()
            | TimeSpan()
            | MatchDuration()
            | Whole()
        ):
            return None
        case _:
            assert_never(expr)


def _call(expr: Call) -> Expr | None:
    operator, arguments = expr.operator, expr.arguments
    match operator:
        case "and" | "or":
            return _logical(operator, arguments)
        case "not":
            return negated(arguments[0])
        case _ if operator in COMPARISONS:
            return _comparison(operator, *arguments)
        case _ if operator in ARITHMETIC or operator == "neg":
            return _arithmetic(expr)
        case "in":
            return _member(expr)
        case "is_null" if isinstance(arguments[0], Constant):
            return Constant(arguments[0].value is None, Type.BOOLEAN)
        case "to_float" if isinstance(arguments[0], Constant):
            value = arguments[0].value
            return Constant(float(value), Type.FLOAT) if isinstance(value, int | float) else None
        case "coalesce":
            return _coalesce(expr)
        case "case":
            return _case(expr)
        case _:
            return None


def _logical(operator: str, arguments: Iterable[Expr]) -> Expr:
    """AND and OR, flat, without what doesn't matter."""
    decides, ignored = (FALSE, TRUE) if operator == "and" else (TRUE, FALSE)
    operands: dict[Expr, None] = {}
    for argument in arguments:
        nested = isinstance(argument, Call) and argument.operator == operator
        inner = argument.arguments if nested and isinstance(argument, Call) else (argument,)
        operands.update(dict.fromkeys(inner))
    operands.pop(ignored, None)
    if decides in operands:
        return decides
    match tuple(operands):
        case ():
            return ignored
        case (only,):
            return only
        case several:
            return Call(operator, several, Type.BOOLEAN)


def negated(expr: Expr) -> Expr:
    match expr:
        case Constant(value=None):
            return UNKNOWN
        case Constant():
            return Constant(not expr.value, Type.BOOLEAN)
        case Call("not", (inner,)):
            return inner
        case Call("and" | "or" as operator, arguments):
            other = "or" if operator == "and" else "and"
            return _logical(other, [negated(a) for a in arguments])
        case Call(operator, arguments) if operator in OPPOSITE:
            return Call(OPPOSITE[operator], arguments, Type.BOOLEAN)
        case _:
            return Call("not", (expr,), Type.BOOLEAN)


def _comparison(operator: str, left: Expr, right: Expr) -> Expr | None:
    for side in (left, right):
        if isinstance(side, Constant) and side.value is None:
            return UNKNOWN
    if not isinstance(left, Constant):
        return None
    if not isinstance(right, Constant):
        return Call(FLIPPED[operator], (right, left), Type.BOOLEAN)
    return Constant(compare(left.value, right.value) in COMPARISONS[operator], Type.BOOLEAN)


def _constants(arguments: Iterable[Expr]) -> list[Value] | None:
    listed = [a for a in arguments]
    constants = [a.value for a in listed if isinstance(a, Constant)]
    return constants if len(constants) == len(listed) else None


def _arithmetic(expr: Call) -> Expr | None:
    if any(isinstance(a, Constant) and a.value is None for a in expr.arguments):
        return Constant(None, expr.type)
    known = _constants(expr.arguments)
    match known:
        case [int() | float() as only] if not isinstance(only, bool):
            return compute("-", 0, only, expr.type) if only else None
        case [left, right]:
            return compute(expr.operator, left, right, expr.type)
        case _:
            return None


def _member(expr: Call) -> Expr | None:
    operand, *options = expr.arguments
    known = _constants(options)
    if known is None:
        return None
    if isinstance(operand, Constant):
        if operand.value is None:
            return UNKNOWN
        if contains(known, operand.value):
            return TRUE
        return UNKNOWN if None in known else FALSE
    different = tuple(dict.fromkeys(options))
    if len(different) == 1:
        return _comparison("=", operand, different[0]) or Call(
            "=", (operand, different[0]), Type.BOOLEAN
        )
    return replace(expr, arguments=(operand, *different))


def _coalesce(expr: Call) -> Expr | None:
    kept: list[Expr] = []
    for argument in expr.arguments:
        if isinstance(argument, Constant) and argument.value is None:
            continue
        kept.append(argument)
        if isinstance(argument, Constant):
            break
    if not kept:
        return Constant(None, expr.type)
    return kept[0] if len(kept) == 1 else replace(expr, arguments=tuple(kept))


def _case(expr: Call) -> Expr | None:
    """c1, v1, c2, v2, …, default: without the branches that are never taken."""
    *branches, default = expr.arguments
    kept: list[Expr] = []
    for condition, value in zip(branches[::2], branches[1::2], strict=True):
        if condition == TRUE:
            default = value
            break
        if not isinstance(condition, Constant):
            kept += [condition, value]
    return replace(expr, arguments=(*kept, default)) if kept else default


REWRITE = Rewrite("folding", "5 - 2 > 1 = TRUE, NOT (p OR q) = NOT p AND NOT q", apply)
