"""Conditions on one event as intervals of columns, for all rules of a template at once.

Every value is a 64-bit integer here, in the order of the values: doubles by their bits, strings by
codes that can only be equal or not. So a comparison with a constant is a closed interval, a
conjunction is one interval per column, and an arbitrary condition is a disjunction of those
(Cayuga 4: DNF). What a column is may itself be an expression over the event, as long as it has no
parameter: `a.url LIKE '%x%'` is a column that has to be true.

A template's constants are columns of its table, so each interval has as many bounds as there are
rules. `(:p IS NULL OR a.x = :p)` is no condition at all for the rules whose p is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import (
    FLIPPED,
    Attribute,
    Call,
    Constant,
    Expr,
    Varying,
    conjuncts,
    walk,
)
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import Column, kernel_values
from cepheid.engine.arrays.interner import Interner
from cepheid.engine.arrays.ordered_codes import HIGHEST, LOWEST, ordered
from cepheid.engine.attribution.parameters import RuleParameters
from cepheid.engine.merged.paths import NoPath

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

MOST = 16
"""The most alternatives of a rule's condition, on average."""

_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Interval:
    """A column between two bounds, one pair per rule; a rule that isn't `live` can't be
    satisfied."""

    column: Column
    low: Ints
    high: Ints
    live: Mask


Alternative: TypeAlias = tuple[Interval | Mask, ...]
"""All of these hold; a mask gives the rules for which it holds regardless of the event."""


@dataclass(frozen=True)
class Boxes:
    """Conjunctions of intervals: box i belongs to rule `rule[i]`; column j must lie between `low[i,
    j]` and `high[i, j]`. `bound[i, j]`: the column is constrained, and must not be NULL."""

    columns: tuple[Column, ...]
    rule: Ints
    low: Ints
    high: Ints
    bound: Mask


def boxes(conditions: Iterable[Expr], rows: RuleParameters, interner: Interner) -> Boxes:
    """The boxes of events that satisfy all conditions. Raises `NoPath` if there are too many
    alternatives."""
    reader = _Reader(rows, interner)
    clauses = [reader.alternatives(c) for condition in conditions for c in conjuncts(condition)]
    columns = tuple(
        dict.fromkeys(
            part.column
            for clause in clauses
            for alternative in clause
            for part in alternative
            if isinstance(part, Interval)
        )
    )
    n, width = rows.length, len(columns)
    boxes = Boxes(
        columns,
        np.arange(n),
        np.full((n, width), LOWEST),
        np.full((n, width), HIGHEST),
        np.zeros((n, width), np.bool_),
    )
    for clause in clauses:
        boxes = _narrowed(boxes, clause, n)
        if len(boxes.rule) > MOST * n:
            raise NoPath("a condition has too many alternatives")
    return boxes


def _narrowed(boxes: Boxes, clause: tuple[Alternative, ...], rules: int) -> Boxes:
    """Add a condition: copy each box for every alternative of its rule, unless one alternative
    holds for every event."""
    live = [_live(alternative, rules) for alternative in clause]
    always = np.zeros(rules, np.bool_)
    for alternative, alive in zip(clause, live, strict=True):
        if not any(isinstance(part, Interval) for part in alternative):
            always |= alive
    chosen = [always, *(alive & ~always for alive in live)]
    at = [np.flatnonzero(rules_of[boxes.rule]) for rules_of in chosen]
    boxes = _taken(boxes, np.concatenate(at))
    ends = np.cumsum([len(part_rules) for part_rules in at]).tolist()
    left = np.ones(len(boxes.rule), np.bool_)
    for alternative, begin, end in zip(clause, ends[:-1], ends[1:], strict=True):
        for interval in alternative:
            if isinstance(interval, Interval):
                left[begin:end] &= _cut(boxes, slice(begin, end), interval)
    return boxes if left.all() else _taken(boxes, np.flatnonzero(left))


def _live(alternative: Alternative, rules: int) -> Mask:
    live = np.ones(rules, np.bool_)
    for part in alternative:
        live &= part.live if isinstance(part, Interval) else part
    return live


def _taken(boxes: Boxes, at: Ints) -> Boxes:
    return Boxes(boxes.columns, boxes.rule[at], boxes.low[at], boxes.high[at], boxes.bound[at])


def _cut(boxes: Boxes, part: slice, interval: Interval) -> Mask:
    """Narrow some of the boxes; returns which are not empty."""
    j = boxes.columns.index(interval.column)
    rule, low, high = boxes.rule[part], boxes.low[part, j], boxes.high[part, j]
    np.maximum(low, interval.low[rule], out=low)
    np.minimum(high, interval.high[rule], out=high)
    boxes.bound[part, j] = True
    return low <= high


class _Reader:
    """Conditions as alternatives. NOT is pushed down to the comparisons, where unknown stays
    unknown."""

    def __init__(self, rows: RuleParameters, interner: Interner) -> None:
        self.rows = rows
        self.interner = interner

    def alternatives(self, expr: Expr, negated: bool = False) -> tuple[Alternative, ...]:
        if not _reads(expr):
            return ((self._true(expr, negated),),)
        match expr:
            case Call(("and" | "or") as operator):
                parts = [self.alternatives(a, negated) for a in expr.arguments]
                if (operator == "and") != negated:
                    return _product(parts)
                return tuple(alternative for part in parts for alternative in part)
            case Call("not", (inner,)):
                return self.alternatives(inner, not negated)
            case Call("in", (value, *options)):
                equal = [Call("=", (value, option), Type.BOOLEAN) for option in options]
                some = Call("or", tuple(equal), Type.BOOLEAN)
                return self.alternatives(some, negated)
            case Call(operator, (left, right)) if operator in FLIPPED:
                chosen = _NEGATED[operator] if negated else operator
                if _reads(right):
                    left, right, chosen = right, left, FLIPPED[chosen]
                if not _reads(right):
                    return self._comparison(left, chosen, right)
        return self._test(expr, negated)

    def _true(self, expr: Expr, negated: bool) -> Mask:
        values = pc.fill_null(self.rows.evaluate(expr), negated)
        holds: Mask = values.to_numpy(zero_copy_only=False).astype(np.bool_)
        return ~holds if negated else holds

    def _test(self, expr: Expr, negated: bool) -> tuple[Alternative, ...]:
        """A condition as a Boolean column of its own."""
        value = np.full(self.rows.length, 0 if negated else 1)
        return ((Interval(_column(expr), value, value, np.ones(len(value), np.bool_)),),)

    def _comparison(self, left: Expr, operator: str, right: Expr) -> tuple[Alternative, ...]:
        """A column compared with a value per rule."""
        column = _column(left)
        if left.type in (Type.STRING, Type.BINARY) and operator not in ("=", "<>"):
            if any(isinstance(node, Varying) for node in walk(right)):
                raise NoPath("a text is compared with a parameter by < or >")
            return self._test(Call(operator, (left, right), Type.BOOLEAN), False)
        values, live = self._constants(right, left.type)

        def between(low: Ints, high: Ints) -> Alternative:
            return (Interval(column, low, high, live),)

        lowest, highest = np.full(len(values), LOWEST), np.full(len(values), HIGHEST)
        # At the ends of the integers nothing is below or above.
        below = (lowest, values - (values > LOWEST), values > LOWEST)
        above = (values + (values < HIGHEST), highest, values < HIGHEST)

        def beyond(side: tuple[Ints, Ints, Mask]) -> Alternative:
            return (Interval(column, side[0], side[1], live & side[2]),)

        match operator:
            case "=":
                return (between(values, values),)
            case "<=":
                return (between(lowest, values),)
            case ">=":
                return (between(values, highest),)
            case "<":
                return (beyond(below),)
            case ">":
                return (beyond(above),)
            case _:
                return (beyond(below), beyond(above))

    def _constants(self, expr: Expr, type_: Type) -> tuple[Ints, Mask]:
        """The values as the columns have them, and which are not NULL."""
        if isinstance(expr, Constant) and expr.value is None:
            return np.zeros(self.rows.length, np.int64), np.zeros(self.rows.length, np.bool_)
        values, valid = kernel_values(self.rows.evaluate(expr), type_, self.interner)
        return ordered(values), np.ones(len(values), np.bool_) if valid is None else valid


def _product(parts: list[tuple[Alternative, ...]]) -> tuple[Alternative, ...]:
    alternatives: tuple[Alternative, ...] = ((),)
    for part in parts:
        alternatives = tuple((*left, *right) for left in alternatives for right in part)
        if len(alternatives) > MOST * MOST:
            raise NoPath("a condition has too many alternatives")
    return alternatives


def _reads(expr: Expr) -> bool:
    """Whether the expression reads the event; its variable is left blank."""
    return any(isinstance(node, Attribute) for node in walk(expr))


def _column(expr: Expr) -> Column:
    if any(isinstance(node, Varying) for node in walk(expr)):
        raise NoPath("an expression mixes the event and parameters")
    return Column(expr)
