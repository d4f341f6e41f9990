"""Thresholds of conditions, moved just as far as given events need: one change for each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from cepheid.language import ast
from cepheid.language.render import render_expression
from cepheid.language.traversal import walk
from cepheid.reasons.longer_windows import readable
from cepheid.reasons.why.pinned_events import PinnedEvents, QueryChange

Measured = tuple[float, QueryChange]
"""How large a change is, relative to what it changes."""

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def thresholds(events: PinnedEvents, outcomes: Mapping[str, str]) -> Iterator[Measured]:
    """Of conditions that aren't true (`outcomes`, by their texts), and of HAVING."""
    yield from _of_conditions(events, outcomes)
    yield from _of_having(events)


def _of_conditions(events: PinnedEvents, outcomes: Mapping[str, str]) -> Iterator[Measured]:
    parts = events.parts
    for condition in parts.conditions:
        if outcomes[condition.text] != "true":
            for size, looser in _looser(condition.node, events):
                text = f"{render_expression(looser)} instead of {condition.text}"
                yield size, QueryChange(text, parts.with_condition(condition, looser))


def _of_having(events: PinnedEvents) -> Iterator[Measured]:
    for having in events.parts.having:
        for size, looser in _looser(having, events):
            text = f"HAVING {render_expression(looser)} instead of {render_expression(having)}"
            yield size, QueryChange(text, events.parts.with_having(having, looser))


Looser = Iterator[tuple[float, ast.Expression]]


def _looser(node: ast.Expression, events: PinnedEvents) -> Looser:
    """A condition with one of its constants moved to what the events have."""
    for part in dict.fromkeys(walk(node)):
        match part:
            case ast.Comparison((left, right), (operator,)) if operator in FLIPPED:
                moved = _of_comparison(part, left, operator, right, events)
            case ast.InRange(operand, low, high, False):
                moved = _of_range(part, operand, low, high, events)
            case ast.OccursWithin(names, duration):
                moved = _closer(part, names, duration, events)
            case _:
                continue
        for size, new in moved:
            yield size, replaced(node, part, new)


def _of_comparison(
    part: ast.Comparison,
    left: ast.Expression,
    operator: str,
    right: ast.Expression,
    events: PinnedEvents,
) -> Looser:
    if is_constant(right):
        for size, new, bound in _moved(left, operator, right, events):
            yield size, replace(part, operands=(left, bound), operators=(new,))
    elif is_constant(left):
        for size, new, bound in _moved(right, FLIPPED[operator], left, events):
            yield size, replace(part, operands=(bound, right), operators=(FLIPPED[new],))


def _of_range(
    part: ast.InRange,
    operand: ast.Expression,
    low: ast.Expression,
    high: ast.Expression,
    events: PinnedEvents,
) -> Looser:
    if is_constant(low) and is_constant(high):
        for size, _, bound in _moved(operand, ">", low, events):
            yield size, replace(part, low=bound)
        for size, _, bound in _moved(operand, "<", high, events):
            yield size, replace(part, high=bound)


def _moved(
    read: ast.Expression, operator: str, bound: ast.Expression, events: PinnedEvents
) -> Iterator[tuple[float, str, ast.Expression]]:
    """How far the bound moves, the operator and the new bound: so that the values of these events
    just satisfy it, or, for a condition under NOT, just don't."""
    values = [v for v in map(number, events.values(read)) if v is not None]
    (now,) = events.values(bound)[:1] or (None,)
    old = number(now) if not isinstance(bound, ast.Duration) else events.ticks(bound)
    if not values or old is None:
        return
    for value in dict.fromkeys((min(values), max(values))):
        size = relative(value, old)
        for moved in (f"{operator[0]}=", operator[0]):
            if (value, moved) != (old, operator):
                yield size, moved, bound_of(value, bound, events)


def _closer(
    part: ast.OccursWithin, names: tuple[str, ...], old: ast.Duration, events: PinnedEvents
) -> Iterator[tuple[float, ast.Expression]]:
    moments = [int(events.trials.moments[r]) for v in names for r in events.rows.get(v, ())]
    span, now = max(moments, default=0) - min(moments, default=0), events.ticks(old)
    if now is not None:
        for size in dict.fromkeys(readable(events.parts, long) for long in (span, span + 1)):
            if size > now:
                yield (size - now) / size, replace(part, duration=events.duration(size))


def relative(new: int | Decimal, old: int | Decimal) -> float:
    """How far it is, for the size of the two."""
    return abs(float(new) - float(old)) / max(abs(float(new)), abs(float(old)), 1e-300)


def is_constant(node: ast.Expression) -> bool:
    constant = (ast.Literal, ast.Unary, ast.Binary, ast.Parameter, ast.Duration)
    return all(isinstance(part, constant) for part in walk(node))


def number(value: Any) -> int | Decimal | None:
    """A value as a literal writes it; a time in microseconds."""
    match value:
        case bool() | None:
            return None
        case int() | Decimal():
            return value
        case float():
            return Decimal(repr(value)) if math.isfinite(value) else None
        case timedelta():
            return round(value / timedelta(microseconds=1))
        case _:
            return None


def bound_of(value: int | Decimal, old: ast.Expression, events: PinnedEvents) -> ast.Expression:
    if any(isinstance(part, ast.Duration) for part in walk(old)):
        return events.duration(int(value))
    return ast.Unary("-", ast.Literal(-value)) if value < 0 else ast.Literal(value)


def replaced(node: Any, old: object, new: object) -> Any:
    """The tree with a node in the place of another."""
    if node == old:
        return new
    match node:
        case ast.Logical():
            return replace(node, operands=tuple(replaced(n, old, new) for n in node.operands))
        case ast.Unary():
            return replace(node, operand=replaced(node.operand, old, new))
        case _:
            return node
