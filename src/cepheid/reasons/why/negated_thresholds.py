"""Thresholds in conditions on negated events, moved just as far as to let given events match: so
that what lies between them isn't forbidden any more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from cepheid.language import ast
from cepheid.language.render import render_expression
from cepheid.language.traversal import walk
from cepheid.reasons.anatomy import WrittenCondition
from cepheid.reasons.why.pinned_events import PinnedEvents, QueryChange, least
from cepheid.reasons.why.thresholds import (
    FLIPPED,
    Measured,
    bound_of,
    is_constant,
    number,
    relative,
    replaced,
)

_Moved = tuple[float, ast.Expression]
"""How far a threshold was moved, and the condition with it."""


def thresholds_of_negated(events: PinnedEvents) -> Iterator[Measured]:
    """Those with which the given events match, in each direction."""
    parts = events.parts
    negated = {v for n in parts.negations for v in n.variables}
    for condition in parts.conditions:
        if condition.key or condition.variables.isdisjoint(negated):
            continue
        for moves in _moves(condition, sorted(condition.variables & negated), events):

            def moved(
                amount: int, old: WrittenCondition = condition, moves: list[_Moved] = moves
            ) -> ast.Query:
                return parts.with_condition(old, moves[amount - 1][1])

            fits = events.fits(moved)
            # One that doesn't help at its furthest doesn't help at all.
            if moves and fits(len(moves)):
                size, new = moves[least(fits, 0, len(moves)) - 1]
                text = f"{render_expression(new)} instead of {condition.text}"
                yield size, QueryChange(text, parts.with_condition(condition, new))


def _moves(
    condition: WrittenCondition, negated: Sequence[str], events: PinnedEvents
) -> Iterator[list[_Moved]]:
    """The condition with one of its constants moved up, past more and more events, or down."""
    for part in dict.fromkeys(walk(condition.node)):
        for threshold in _thresholds(part):
            seen = (number(v) for v in events.values_beside(threshold.read, negated))
            old = threshold.now(events)
            if old is None:
                continue
            places = list(threshold.places({value for value in seen if value is not None}))
            now = old, _rank(threshold.operator)
            for way in (
                sorted(place for place in places if place > now),
                sorted((place for place in places if place < now), reverse=True),
            ):
                yield [
                    (
                        relative(value, old),
                        replaced(condition.node, part, threshold.at(value, rank, events)),
                    )
                    for value, rank in way
                ]


_Place = tuple[int | Decimal, bool]
"""A threshold and its rank: whether `>` or `<=`, and not `>=` or `<`. With a higher threshold or
rank fewer values are above it, and more below."""


def _rank(operator: str) -> bool:
    return operator in (">", "<=")


@dataclass(frozen=True, slots=True)
class _Threshold:
    """A constant that an expression is compared with; `moved` puts another operator and constant
    in the place of these. A range knows no `>`, so that whole numbers alone can be left out."""

    read: ast.Expression
    operator: str
    bound: ast.Expression
    moved: Callable[[str, ast.Expression], ast.Expression]
    range: bool = False

    def now(self, events: PinnedEvents) -> int | Decimal | None:
        if isinstance(self.bound, ast.Duration):
            return events.ticks(self.bound)
        return next(map(number, events.values(self.bound)), None)

    def places(self, values: Collection[int | Decimal]) -> Iterator[_Place]:
        for value in values:
            if not self.range:
                yield from ((value, False), (value, True))
            elif isinstance(value, int):
                yield value + (1 if self.operator == ">=" else -1), _rank(self.operator)

    def at(self, value: int | Decimal, rank: bool, events: PinnedEvents) -> ast.Expression:
        strict = rank is (self.operator[0] == ">")
        operator = self.operator[0] if strict else f"{self.operator[0]}="
        return self.moved(operator, bound_of(value, self.bound, events))


def _thresholds(part: object) -> Iterator[_Threshold]:
    match part:
        case ast.Comparison((left, right), (operator,)) if operator in FLIPPED:
            if is_constant(right):
                yield _Threshold(left, operator, right, partial(_compared, part, 1))
            elif is_constant(left):
                yield _Threshold(right, FLIPPED[operator], left, partial(_compared, part, 0))
        case ast.InRange(operand, low, high, False) if is_constant(low) and is_constant(high):
            yield _Threshold(operand, ">=", low, lambda _, new: replace(part, low=new), True)
            yield _Threshold(operand, "<=", high, lambda _, new: replace(part, high=new), True)
        case _:
            pass


def _compared(
    part: ast.Comparison, side: int, operator: str, bound: ast.Expression
) -> ast.Comparison:
    left, right = part.operands
    if side:
        return replace(part, operands=(left, bound), operators=(operator,))
    return replace(part, operands=(bound, right), operators=(FLIPPED[operator],))
