"""WITHIN, and which queries can't do without it."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import assert_never

from cepheid.algebra.lowering import Lowering
from cepheid.algebra.patterns import (
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Negation,
    Pattern,
    Sequence,
    Unless,
    walk,
)
from cepheid.algebra.query import Clock, Window
from cepheid.algebra.values import window_size
from cepheid.language import ast

_TOO_LONG = 2**62  # so that `start + window` stays in 64 bits


def window(within: ast.Duration | ast.EventCount | None, lowering: Lowering) -> Window | None:
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


def delay(duration: ast.Duration, lowering: Lowering) -> int:
    """By how much `@` moves an end; it has to land on a tick."""
    size = _size(duration, lowering)
    if size is not None and (size < 0 or size.denominator != 1):
        message = "a delay is a whole number of ticks of the time column, not below 0"
        lowering.findings.add("CEP405", message, duration.span)
    return 0 if size is None else round(size)


def _size(duration: ast.Duration, lowering: Lowering) -> Fraction | None:
    amount, unit = lowering.amount(duration), duration.unit
    if amount is None:
        return None
    if isinstance(amount, timedelta):
        amount, unit = Fraction(amount // timedelta(microseconds=1)), ast.Unit.MICROSECONDS
    size = lowering.clock_ticks(amount, unit, duration.span)
    if size is not None and size >= _TOO_LONG:
        message = "this is longer than time itself: times are 64-bit numbers"
        lowering.findings.add("CEP402", message, duration.span, "make it shorter")
    return size


def _count(within: ast.EventCount, lowering: Lowering) -> Fraction | None:
    count = lowering.amount(within)
    if not isinstance(count, Fraction):
        return None
    if count.denominator != 1:
        lowering.findings.add("CEP402", "a number of events must be whole", within.span)
    return count


def needs_window(pattern: Pattern) -> str | None:
    """Why the pattern needs a window, in words; None if it doesn't."""
    for part in walk(pattern):
        if isinstance(part, Sequence) and ast.SequenceOperator.ANY in part.operators:
            return "`;`"
        if isinstance(part, Conjunction):
            return "`&`"
    return _open_edge(pattern)


def _open_edge(pattern: Pattern) -> str | None:
    """A negation or closure at an edge of the pattern, or of a branch: only a window ends it."""
    match pattern:
        case Negation():
            return "a negation at its edge"
        case Closure():
            return "a closure at its edge"
        case Sequence(items, _):
            return _open_edge(items[0]) or _open_edge(items[-1])
        case Disjunction(items):
            return next((edge for item in items if (edge := _open_edge(item))), None)
        case Unless(item) | Delay(item):
            return _open_edge(item)
        case _:
            return None
