"""A bound on the time of the whole match is a window.

HAVING (first, last) OCCURS WITHIN d = WITHIN d, and the same of WHERE

Holds if every match starts with the event of the one variable and ends with that of the other: the
pattern is a sequence with single events at both edges. Nothing in it then looks beyond the match,
so a window only drops matches, as the condition does. In WHERE, `->` would skip an event that comes
too late; every later one does, too.

A window ends the search for what comes too late, and says when a start can be forgotten: without
one, a start that nothing continues is held forever. Runtimes cut data by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil

from cepheid.algebra.expressions import Call, Constant, Expr, MatchDuration, TimeSpan, Varying
from cepheid.algebra.patterns import Absence, Delay, Leaf, Pattern, Sequence, walk
from cepheid.algebra.query import BoundQuery, Clock, Window
from cepheid.rewrites.law import Facts, Rewrite

LONGEST = 2**52
"""Longer times, of more than a century, are no whole numbers as doubles."""


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    for place, condition in enumerate(query.having):
        if (window := window_of(condition, query)) is not None:
            having = (*query.having[:place], *query.having[place + 1 :])
            return replace(query, having=having, window=window)
    for place, conjunct in enumerate(query.where):
        window = window_of(conjunct.expression, query)
        if window is not None and conjunct.negation is None:
            where = (*query.where[:place], *query.where[place + 1 :])
            return replace(query, where=where, window=window)
    return None


def is_bounded(query: BoundQuery) -> bool:
    """Whether the query has a window, or a condition that is one."""
    conditions = (*query.having, *(c.expression for c in query.where if c.negation is None))
    return query.window is not None or any(window_of(c, query) for c in conditions)


def window_of(condition: Expr, query: BoundQuery) -> Window | None:
    """The window that the query has if the condition is taken as one; None if it is none."""
    match condition:
        case Call("<" | "<=" as operator, (left, limit)):
            span = _span(left)
        case Call(">" | ">=" as operator, (limit, right)):
            span = _span(right)
        case _:
            return None
    if query.window is not None and query.window.clock is not Clock.TIME:
        return None
    if not isinstance(limit, Constant) or isinstance(limit, Varying):
        return None
    if not isinstance(limit.value, int | float) or not 0 < limit.value < LONGEST:
        return None
    if span is None or not _is_whole(span, query.pattern):
        return None
    size = ceil(limit.value) if operator in "<>" else int(limit.value) + 1
    return Window(size if query.window is None else min(size, query.window.size))


def _span(expr: Expr) -> TimeSpan | MatchDuration | None:
    """A time between events, compared with a whole number of ticks or with another."""
    match expr:
        case TimeSpan() | MatchDuration():
            return expr
        case Call("to_float", (TimeSpan() | MatchDuration() as span,)):
            return span
        case _:
            return None


def _is_whole(span: TimeSpan | MatchDuration, pattern: Pattern) -> bool:
    """Whether this is the time from the match's start to its end, at both of which events stand."""
    if any(isinstance(part, Absence | Delay) for part in walk(pattern)):
        return False
    first, last = _edge(pattern, _first), _edge(pattern, _last)
    if first is None or last is None:
        return False
    return isinstance(span, MatchDuration) or {first, last} <= set(span.variables)


def _edge(pattern: Pattern, item: Callable[[Sequence], Pattern]) -> str | None:
    """The variable of the event that stands first, or last, in every match."""
    while isinstance(pattern, Sequence):
        pattern = item(pattern)
    return pattern.variable if isinstance(pattern, Leaf) else None


def _first(sequence: Sequence) -> Pattern:
    return sequence.items[0]


def _last(sequence: Sequence) -> Pattern:
    return sequence.items[-1]


REWRITE = Rewrite("windows", "HAVING (first, last) OCCURS WITHIN d = WITHIN d", apply)
