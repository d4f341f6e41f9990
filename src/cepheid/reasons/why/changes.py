"""Single changes of a query, one of which may make given events match: the smallest first.

First amounts that the query has: a threshold, by its relative change; then a window, a time, a
size, LIMIT. Then the query without one of its parts, and with a looser operator. Whether one
is enough is for a run to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from cepheid.algebra.query import Clock
from cepheid.algebra.values import MICROSECONDS
from cepheid.language import ast
from cepheid.language.render import render_after_match, render_expression, render_pattern
from cepheid.language.traversal import walk
from cepheid.options import TICK_US
from cepheid.reasons.why.investigation import readable, window_words
from cepheid.reasons.why.pinned_events import PinnedEvents, any_order_of_choice, with_part

_LOOSER = {
    ast.SequenceOperator.STRICT: (ast.SequenceOperator.NEXT, ast.SequenceOperator.ANY),
    ast.SequenceOperator.NEXT: (ast.SequenceOperator.ANY,),
}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class QueryChange:
    text: str
    query: ast.Query


def changes(events: PinnedEvents, outcomes: Mapping[str, str]) -> Iterator[QueryChange]:
    """`outcomes` are those of the conditions, by their texts: the ones that are true come last."""
    thresholds = [*_of_conditions(events, outcomes), *_of_having(events)]
    yield from (change for _, change in sorted(thresholds, key=lambda found: found[0]))
    yield from _amounts(events)
    yield from _without(events, outcomes)
    yield from _operators(events)


# ── thresholds ───────────────────────────────────────────────────────────────

Measured = tuple[float, QueryChange]
"""How large a change is, relative to what it changes."""


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
            case ast.Comparison((left, right), (operator,)) if operator in _FLIPPED:
                moved = _of_comparison(part, left, operator, right, events)
            case ast.InRange(operand, low, high, False):
                moved = _of_range(part, operand, low, high, events)
            case ast.OccursWithin(names, duration):
                moved = _closer(part, names, duration, events)
            case _:
                continue
        for size, new in moved:
            yield size, _replaced(node, part, new)


def _of_comparison(
    part: ast.Comparison,
    left: ast.Expression,
    operator: str,
    right: ast.Expression,
    events: PinnedEvents,
) -> Looser:
    if _is_constant(right):
        for size, new, bound in _moved(left, operator, right, events):
            yield size, replace(part, operands=(left, bound), operators=(new,))
    elif _is_constant(left):
        for size, new, bound in _moved(right, _FLIPPED[operator], left, events):
            yield size, replace(part, operands=(bound, right), operators=(_FLIPPED[new],))


def _of_range(
    part: ast.InRange,
    operand: ast.Expression,
    low: ast.Expression,
    high: ast.Expression,
    events: PinnedEvents,
) -> Looser:
    if _is_constant(low) and _is_constant(high):
        for size, _, bound in _moved(operand, ">", low, events):
            yield size, replace(part, low=bound)
        for size, _, bound in _moved(operand, "<", high, events):
            yield size, replace(part, high=bound)


def _moved(
    read: ast.Expression, operator: str, bound: ast.Expression, events: PinnedEvents
) -> Iterator[tuple[float, str, ast.Expression]]:
    """How far the bound moves, the operator and the new bound: so that the values of these events
    just satisfy it, or, for a condition under NOT, just don't."""
    values = [v for v in map(_number, events.values(read)) if v is not None]
    (now,) = events.values(bound)[:1] or (None,)
    old = _number(now) if not isinstance(bound, ast.Duration) else _ticks(bound, events)
    if not values or old is None:
        return
    for value in dict.fromkeys((min(values), max(values))):
        size = abs(float(value) - float(old)) / max(abs(float(value)), abs(float(old)), 1e-300)
        for moved in (f"{operator[0]}=", operator[0]):
            if (value, moved) != (old, operator):
                yield size, moved, _bound_of(value, bound, events)


def _closer(
    part: ast.OccursWithin, names: tuple[str, ...], old: ast.Duration, events: PinnedEvents
) -> Iterator[tuple[float, ast.Expression]]:
    moments = [int(events.trials.moments[r]) for v in names for r in events.rows.get(v, ())]
    span, now = max(moments, default=0) - min(moments, default=0), _ticks(old, events)
    if now is not None:
        for size in dict.fromkeys(readable(events.parts, long) for long in (span, span + 1)):
            if size > now:
                yield (size - now) / size, replace(part, duration=_duration(size, events))


def _is_constant(node: ast.Expression) -> bool:
    constant = (ast.Literal, ast.Unary, ast.Binary, ast.Parameter, ast.Duration)
    return all(isinstance(part, constant) for part in walk(node))


def _number(value: Any) -> int | Decimal | None:
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


def _bound_of(value: int | Decimal, old: ast.Expression, events: PinnedEvents) -> ast.Expression:
    if any(isinstance(part, ast.Duration) for part in walk(old)):
        return _duration(int(value), events)
    return ast.Unary("-", ast.Literal(-value)) if value < 0 else ast.Literal(value)


def _replaced(node: Any, old: object, new: object) -> Any:
    """The tree with a node in the place of another."""
    if node == old:
        return new
    match node:
        case ast.Logical():
            return replace(node, operands=tuple(_replaced(n, old, new) for n in node.operands))
        case ast.Unary():
            return replace(node, operand=_replaced(node.operand, old, new))
        case _:
            return node


# ── other amounts ────────────────────────────────────────────────────────────


def _amounts(events: PinnedEvents) -> Iterator[QueryChange]:
    yield from _windows(events)
    yield from _times(events)
    yield from _sizes(events)
    yield from _limits(events)


def _windows(events: PinnedEvents) -> Iterator[QueryChange]:
    parts, window = events.parts, events.parts.bound.window
    if window is None:
        return
    shortest: int | None = None
    if window.clock is Clock.TIME:
        wide = events.trials.run(events.held(wide=True)).matches
        spans = [m.end - m.start + 1 for m in wide]
        shortest = readable(parts, min(spans)) if spans else None
    elif events.match_of(parts.with_window(events.trials.longest(window))) is not None:
        fits = _fits(events, parts.with_window)
        shortest = least(fits, window.size, events.trials.longest(window))
    if shortest is not None and shortest > window.size:
        now = window_words(parts, window.size)
        yield QueryChange(
            f"{window_words(parts, shortest)} instead of {now}", parts.with_window(shortest)
        )


def _times(events: PinnedEvents) -> Iterator[QueryChange]:
    """A shorter time of a negation, in which no forbidden event falls, or of a delay."""
    syntax = events.parts.syntax
    for node in walk(syntax.pattern):
        if not isinstance(node, ast.Negation | ast.Delay) or node.duration is None:
            continue
        size = _ticks(node.duration, events)

        def shorter(ticks: int, node: ast.Negation | ast.Delay = node) -> ast.Query:
            new = replace(node, duration=_duration(ticks, events))
            return replace(syntax, pattern=with_part(syntax.pattern, node, new))

        if size is not None and size > 1 and events.match_of(shorter(1)) is not None:
            longest = least(_fits(events, shorter, False), 1, size) - 1
            new = replace(node, duration=_duration(longest, events))
            text = f"{render_pattern(new)} instead of {render_pattern(node)}"
            yield QueryChange(text, shorter(longest))


def _sizes(events: PinnedEvents) -> Iterator[QueryChange]:
    """A group of as few or as many events as these are."""
    leaves = {leaf: v for v, leaf in events.parts.leaves.items()}
    syntax = events.parts.syntax
    for node in events.parts.closures:
        if node.item not in leaves:
            continue
        size = len(events.rows.get(leaves[node.item], ()))
        match node.quantifier:
            case ast.Between(low, high) if 0 < size < low:
                new = replace(node, quantifier=ast.Between(size, high))
            case ast.Between(low, int(high)) if size > high:
                new = replace(node, quantifier=ast.Between(low, size))
            case ast.Exactly(number) if size not in (0, number):
                new = replace(node, quantifier=ast.Exactly(size))
            case _:
                continue
        pattern = with_part(syntax.pattern, node, new)
        text = f"{render_pattern(new)} instead of {render_pattern(node)}"
        yield QueryChange(text, replace(syntax, pattern=pattern))


def _limits(events: PinnedEvents) -> Iterator[QueryChange]:
    syntax = events.parts.syntax
    limit = syntax.limit
    if limit is None:
        return

    def larger(number: int) -> ast.Query:
        return replace(syntax, limit=replace(limit, most=ast.EventCount(number)))

    every = events.trials.run(replace(syntax, limit=None), most=None).matches
    place = next((n for n, match in enumerate(every, 1) if events.binds(match)), None)
    if place is not None:
        enough = least(_fits(events, larger), 0, place)
        per_key = " PER KEY" if limit.per_key else ""
        yield QueryChange(f"LIMIT {enough}{per_key}", larger(enough))


def _fits(
    events: PinnedEvents, query_of: Callable[[int], ast.Query], match: bool = True
) -> Callable[[int], bool]:
    """Whether there is a match with an amount, or isn't."""
    return lambda amount: (events.match_of(query_of(amount)) is not None) is match


def least(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The least amount above `low` that fits; `high` does."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


# ── without a part ───────────────────────────────────────────────────────────


def _without(events: PinnedEvents, outcomes: Mapping[str, str]) -> Iterator[QueryChange]:
    parts, syntax = events.parts, events.parts.syntax
    for condition in sorted(parts.conditions, key=lambda c: outcomes[c.text] == "true"):
        yield QueryChange(f"without {condition.text}", parts.without(condition))
    for negation in parts.negations:
        yield QueryChange(f"without {negation.text}", parts.without_negation(negation))
    for closure in events.parts.closures:
        if closure.until is not None:
            free = with_part(syntax.pattern, closure, replace(closure, until=None))
            text = f"without UNTIL ({render_expression(closure.until)})"
            yield QueryChange(text, replace(syntax, pattern=free))
    for having in parts.having:
        text = f"without HAVING {render_expression(having)}"
        yield QueryChange(text, parts.without_having(having))
    if syntax.after_match is not None:
        text = f"without {render_after_match(syntax.after_match)}"
        yield QueryChange(text, replace(syntax, after_match=None))
    if syntax.limit is not None:
        yield QueryChange("without LIMIT", replace(syntax, limit=None))


def _operators(events: PinnedEvents) -> Iterator[QueryChange]:
    """Each of the top-level operators as a looser one, and all of them as `;`."""
    syntax = events.parts.syntax
    if not isinstance(syntax.pattern, ast.Sequence):
        return
    operators = syntax.pattern.operators
    others = [n for n, o in enumerate(operators) if o is not ast.SequenceOperator.ANY]
    for place in others:
        right = render_pattern(syntax.pattern.items[place + 1])
        for looser in _LOOSER[operators[place]]:
            new = (*operators[:place], looser, *operators[place + 1 :])
            text = f"`{looser.value} {right}` instead of `{operators[place].value} {right}`"
            pattern = replace(syntax.pattern, operators=new)
            yield QueryChange(text, replace(syntax, pattern=pattern))
    if len(others) > 1:
        loose = any_order_of_choice(syntax.pattern)
        yield QueryChange("`;` instead of the other operators", replace(syntax, pattern=loose))


# ── durations and patterns ───────────────────────────────────────────────────


def _duration(size: int, events: PinnedEvents) -> ast.Duration:
    """In its largest whole unit."""
    if events.parts.ticks:
        return ast.Duration(size, ast.Unit.UNITS)
    units = reversed(MICROSECONDS.items())
    unit, long = next((u, long) for u, long in units if size % long == 0)
    return ast.Duration(size // long, unit)


def _ticks(duration: ast.Duration, events: PinnedEvents) -> int | None:
    """Its size in microseconds, or in the units of an integer time."""
    if isinstance(duration.amount, ast.Parameter):
        return None
    if duration.unit is ast.Unit.UNITS:
        return int(duration.amount)
    unit = events.trials.options.unit
    tick = TICK_US[unit] if events.parts.ticks and unit is not None else 1
    return int(duration.amount * MICROSECONDS[duration.unit]) // tick
