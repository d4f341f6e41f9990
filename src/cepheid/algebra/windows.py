"""WITHIN, and which queries can't do without it."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

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
    if within is None:
        return None
    amount = lowering.amount(within)
    if amount is None:
        return None
    if isinstance(within, ast.EventCount):
        return _positive(amount, Clock.EVENTS, within, lowering)
    unit = within.unit
    if isinstance(amount, timedelta):
        amount, unit = Fraction(amount // timedelta(microseconds=1)), ast.Unit.MICROSECONDS
    size = lowering.clock_ticks(amount, unit, within.span)
    return None if size is None else _positive(size, Clock.TIME, within, lowering)


def _positive(
    size: Fraction | timedelta,
    clock: Clock,
    within: ast.Duration | ast.EventCount,
    lowering: Lowering,
) -> Window | None:
    assert isinstance(size, Fraction)
    if clock is Clock.EVENTS and size.denominator != 1:
        message = "a number of events must be whole"
        lowering.findings.add("CEP402", message, within.span)
        return None
    if size >= _TOO_LONG:
        message = "the window is longer than time itself"
        lowering.findings.add("CEP402", message, within.span, "make it shorter")
        return None
    if size <= 0:
        message = "the window is empty: it must be longer than 0"
        lowering.findings.add("CEP402", message, within.span, "give it a positive length")
        return None
    return Window(window_size(size), clock)


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
