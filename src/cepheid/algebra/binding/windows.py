"""WITHIN, and which queries can't do without it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise
from typing import assert_never

from cepheid.algebra.answer_shape import AnswerWindow
from cepheid.algebra.binding.expressions.expression_binder import ExpressionBinder
from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Negation,
    Pattern,
    Sequence,
    Unless,
    items,
    walk,
)
from cepheid.algebra.query import Clock, Window
from cepheid.algebra.values import window_size
from cepheid.language import ast
from cepheid.language.group_clause import GroupWindow

TOO_LONG = 2**60
"""Windows and delays are shorter, so that all that is computed with them stays in 64 bits."""

MOST_WINDOWS = 10_000
"""That one match may be in."""


def window(
    within: ast.Duration | ast.EventCount | None, lowering: ExpressionBinder
) -> Window | None:
    match within:
        case None:
            return None
        case ast.EventCount():
            clock, size = Clock.EVENTS, _count(within, lowering)
        case ast.Duration():
            clock, size = Clock.TIME, _size(within, lowering)
        case _:
            assert_never(within)
    if size is None:
        return None
    if size <= 0:
        message = "the window is empty: it must be longer than 0"
        lowering.findings.add("CEP402", message, within.span, "give it a positive length")
    return Window(window_size(size), clock)


def delay(duration: ast.Duration, lowering: ExpressionBinder) -> int:
    """By how much `@` moves an end; it has to land on a tick."""
    size = _size(duration, lowering)
    if size is not None and (size < 0 or size.denominator != 1):
        message = "a delay is a whole number of ticks of the time column, not below 0"
        lowering.findings.add("CEP405", message, duration.span)
    return 0 if size is None else round(size)


def pause(duration: ast.Duration, lowering: ExpressionBinder) -> int:
    """How long SKIP FOR drops matches, in ticks; less than a tick counts as one."""
    size = _size(duration, lowering)
    if size is not None and size <= 0:
        message = "SKIP FOR drops nothing: its time must be longer than 0"
        lowering.findings.add("CEP402", message, duration.span, "give it a positive length")
    return 0 if size is None else window_size(size)


def group_window(written: GroupWindow, lowering: ExpressionBinder) -> AnswerWindow:
    """A window over the ends of matches: it has to begin and end on ticks."""
    lengths = (written.size,) if written.slide is None else (written.slide, written.size)
    ticks: list[int] = []
    for duration in lengths:
        size = _size(duration, lowering)
        if size is not None and (size <= 0 or size.denominator != 1):
            message = (
                "the length of a window in GROUP BY is a whole number of ticks of the time column, "
                "above 0"
            )
            lowering.findings.add("CEP345", message, duration.span)
            size = None
        ticks.append(1 if size is None else round(size))
    if written.slide is not None and ticks[1] // ticks[0] > MOST_WINDOWS:
        message = f"every match would be in more than {MOST_WINDOWS:,} windows"
        lowering.findings.add("CEP345", message, written.span, "let HOP slide further at once")
    return AnswerWindow(written.kind, ticks[-1], ticks[0] if written.slide is not None else 0)


def absence(duration: ast.Duration, lowering: ExpressionBinder) -> int:
    """How long `!P FOR d` lasts."""
    size = _size(duration, lowering)
    if size is None:
        return 1
    if size <= 0:
        message = "a negation FOR no time forbids nothing: the time must be longer than 0"
        lowering.findings.add("CEP405", message, duration.span, "give it a positive length")
    elif size.denominator != 1:
        message = "the time after FOR is a whole number of ticks of the time column"
        lowering.findings.add("CEP405", message, duration.span)
    return max(1, round(size))


def check_delays(
    pattern: Pattern, window: Window | None, query: ast.Query, lowering: ExpressionBinder
) -> None:
    """Delays inside each other add up, and so do the times after FOR, and the window looks as far
    again from where they end."""
    counted = window is not None and window.clock is Clock.EVENTS
    moving = next((p for p in walk(pattern) if isinstance(p, Delay | Absence)), None)
    if counted and query.within is not None and moving is not None:
        what = "a delay" if isinstance(moving, Delay) else "the time after FOR"
        message = f"{what} is in time: no number of events says when it has passed"
        hint = "give the window as a duration, as in WITHIN 10 minutes"
        lowering.findings.add("CEP408", message, query.within.span, hint)
    single = max((p.duration for p in walk(pattern) if isinstance(p, Delay | Absence)), default=0)
    together = _longest_delay(pattern)
    clocked = window is not None and window.clock is Clock.TIME
    size = window.size if window is not None and clocked else 0
    if together == 0 or max(single, size) >= TOO_LONG or together + size < TOO_LONG:
        return  # what is too long by itself has been reported
    alone = together >= TOO_LONG or query.within is None
    span = query.pattern.span if alone or query.within is None else query.within.span
    what = "these delays" if alone else "the delay and the window"
    message = f"{what} together are longer than time itself: times are 64-bit numbers"
    lowering.findings.add("CEP402", message, span, "make one of them shorter")


def _longest_delay(pattern: Pattern) -> int:
    duration = pattern.duration if isinstance(pattern, Delay) else 0
    absent = sum(item.duration for item in items(pattern) if isinstance(item, Absence))
    return duration + absent + max((_longest_delay(item) for item in items(pattern)), default=0)


def _size(duration: ast.Duration, lowering: ExpressionBinder) -> Fraction | None:
    amount, unit = lowering.amount(duration), duration.unit
    if amount is None:
        return None
    if isinstance(amount, timedelta):
        amount, unit = Fraction(amount // timedelta(microseconds=1)), ast.Unit.MICROSECONDS
    size = lowering.clock_ticks(amount, unit, duration.span)
    if size is not None and size >= TOO_LONG:
        message = "this is longer than time itself: times are 64-bit numbers"
        lowering.findings.add("CEP402", message, duration.span, "make it shorter")
    return size


def _count(within: ast.EventCount, lowering: ExpressionBinder) -> Fraction | None:
    count = lowering.amount(within)
    if not isinstance(count, Fraction):
        return None
    if count.denominator != 1:
        lowering.findings.add("CEP402", "a number of events must be whole", within.span)
    return count


def most(count: ast.EventCount, lowering: ExpressionBinder) -> int:
    """How many matches LIMIT keeps."""
    size = lowering.amount(count)
    if isinstance(size, Fraction) and (size < 1 or size.denominator != 1):
        lowering.findings.add("CEP120", "a LIMIT is a whole number, at least 1", count.span)
    return min(round(size), TOO_LONG) if isinstance(size, Fraction) else 1


CLOSURE_AT_EDGE = "a closure at its edge"


def needs_window(pattern: Pattern) -> str | None:
    """Why the pattern needs a window, in words; None if it doesn't. A negation with a time of its
    own needs none, nor does the `;` beside it, nor what it forbids."""
    for part in _outside_absences(pattern):
        if isinstance(part, Sequence) and _unbounded_any(part):
            return "`;`"
        if isinstance(part, Conjunction):
            return "`&`"
    return _open_edge(pattern)


def _outside_absences(pattern: Pattern) -> Iterator[Pattern]:
    yield pattern
    if not isinstance(pattern, Absence):
        for item in items(pattern):
            yield from _outside_absences(item)


def _unbounded_any(sequence: Sequence) -> bool:
    return any(
        operator is ast.SequenceOperator.ANY
        and not isinstance(left, Absence)
        and not isinstance(right, Absence)
        for operator, (left, right) in zip(
            sequence.operators, pairwise(sequence.items), strict=True
        )
    )


def _open_edge(pattern: Pattern) -> str | None:
    """A negation or closure at an edge of the pattern, or of a branch: only a window ends it."""
    match pattern:
        case Negation():
            return "a negation at its edge"
        case Closure():
            return CLOSURE_AT_EDGE
        case Sequence(parts, _):
            parts = tuple(part for part in parts if not isinstance(part, Absence))
            edges = [part for part in parts[:1] if len(parts) == 1 or not _begins_by_itself(part)]
            edges += [part for part in parts[-1:] if len(parts) == 1 or not _is_counted(part)]
            return next((edge for part in edges if (edge := _open_edge(part))), None)
        case Disjunction(branches):
            return next((edge for branch in branches if (edge := _open_edge(branch))), None)
        case Unless(item) | Delay(item):
            return _open_edge(item)
        case _:
            return None


def _begins_by_itself(part: Pattern) -> bool:
    """Its group begins with an event of its own, so that nothing before that counts."""
    return _is_counted(part) or (isinstance(part, Closure) and part.mode is ast.Mode.RUNS)


def _is_counted(part: Pattern) -> bool:
    """Its group is complete with so many events."""
    return isinstance(part, Closure) and isinstance(part.quantifier, ast.Exactly)


def never_ending(pattern: ast.Pattern) -> ast.Closure | None:
    """A strict closure that ends the pattern. Its run continues as long as events qualify, so that
    only a window, or what stands after it, says when it is known."""
    match pattern:
        case ast.Sequence():
            last = pattern.items[-1]
            touches = pattern.operators[-1] is ast.SequenceOperator.STRICT
            if not isinstance(last, ast.Closure):
                return never_ending(last)
            return last if (last.strict or touches) and _unbounded(last) else None
        case ast.Closure():
            return pattern if pattern.strict and _unbounded(pattern) else None
        case ast.Disjunction():
            return next((c for item in pattern.items if (c := never_ending(item))), None)
        case ast.Unless() | ast.Delay():
            return never_ending(pattern.item)
        case _:
            return None


def _unbounded(closure: ast.Closure) -> bool:
    return isinstance(closure.quantifier, ast.Between) and closure.quantifier.high is None
