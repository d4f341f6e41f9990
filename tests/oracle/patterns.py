"""Every way to bind a pattern, left to right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, assert_never

from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    positive,
)

from . import sequences
from .conditions import Search, negation_of
from .events import Position, instant
from .state import Path, Span, State, end_before, events_of, span_of


def parts(
    search: Search, pattern: Pattern, path: Path, state: State, after: Position | None
) -> Iterator[State]:
    """All states in which the pattern is bound too, with its start after the given position."""
    match pattern:
        case Leaf():
            yield from leaf(search, pattern, path, state, after)
        case Sequence():
            yield from sequences.sequence(
                search, sequences.bound_items(pattern, path), state, after
            )
        case Closure():
            yield from sequences.sequence(search, [sequences.Item(path, pattern)], state, after)
        case Conjunction():
            yield from conjunction(search, pattern, path, state, after)
        case Disjunction():
            yield from disjunction(search, pattern, path, state, after)
        case Unless():
            yield from unless(search, pattern, path, state, after)
        case Delay():
            yield from parts(search, pattern.item, (*path, 0), state, after)
        case Negation():
            yield state
        case Absence():
            yield absence(search, pattern, path, state)
        case _:
            assert_never(pattern)


def leaf(
    search: Search, pattern: Leaf, path: Path, state: State, after: Position | None
) -> Iterator[State]:
    """ "`p before q` means: the position of p's end is smaller than the position of q's start"."""
    for event in search.candidates[pattern.variable]:
        begin, at = search.stream.begin(event), search.stream.position(event)
        if after is None or begin > after:
            here = Span(begin, at, at)
            bound = search.extend(state, {pattern.variable: event.index}, {path: here})
            if bound is not None:
                yield bound


def absence(search: Search, pattern: Absence, path: Path, state: State) -> State:
    """ "no such event in the time d after the end of the nearest bound part before it ...; what
    stands right of it starts at or after that end + d". It begins nothing: its end alone counts."""
    left = end_before(search.query.pattern, path, state)
    if left is None:
        return state  # "Leading: none in the time d before the start of the next bound part."
    span = Span(NEVER, instant(left[0] + pattern.duration), NEVER)
    return replace(state, spans={**state.spans, path: span})


NEVER = instant(1 << 62)


def conjunction(
    search: Search, pattern: Conjunction, path: Path, state: State, after: Position | None
) -> Iterator[State]:
    """ "both, in any order, distinct events"."""

    def bind(n: int, state: State, used: frozenset[int]) -> Iterator[State]:
        if n == len(pattern.items):
            yield state
            return
        for bound in parts(search, pattern.items[n], (*path, n), state, after):
            new = frozenset(members(pattern.items[n], bound))
            if not new & used:
                yield from bind(n + 1, bound, used | new)

    yield from bind(0, state, frozenset())


def disjunction(
    search: Search, pattern: Disjunction, path: Path, state: State, after: Position | None
) -> Iterator[State]:
    """ "either. Each branch is a pattern of its own"."""
    for n, branch in enumerate(pattern.items):
        absent = [v for m, other in enumerate(pattern.items) if m != n for v in positive(other)]
        # Absent ones are NULL from the start: also for what decides which events a group takes.
        chosen = replace(state, choices={**state.choices, path: n})
        decided = search.extend(chosen, dict.fromkeys(absent), {})
        if decided is not None:
            yield from parts(search, branch, (*path, n), decided, after)


def unless(
    search: Search, pattern: Unless, path: Path, state: State, after: Position | None
) -> Iterator[State]:
    """An exception decides which composite is first, so it is checked as soon as it can be: now,
    unless it reads what is bound later, or the part has a closure that waits for its edge."""
    later = {
        v
        for c in search.query.where
        if negation_of(c, search.query) == pattern.index
        for v in c.variables
        if search.query.variables[v].negation is None
    }
    for bound in parts(search, pattern.item, (*path, 0), state, after):
        if later <= set(bound.env) and bound.edges == state.edges:
            if not exception_occurs(search, pattern, path, bound):
                yield bound
        else:
            yield replace(bound, exceptions=(*bound.exceptions, path))


def exception_occurs(search: Search, pattern: Unless, path: Path, state: State) -> bool:
    """ "a P during which (from p's start to p's end, inclusive) no Q occurs; P's own events don't
    count as Q"."""
    during = span_of(pattern.item, (*path, 0), state)
    own = set(members(pattern.item, state))
    if during is None:
        return False
    for occurrence in occurrences(
        search, pattern.index, pattern.exception, (*path, 1), state, None
    ):
        found = span_of(pattern.exception, (*path, 1), occurrence)
        assert found is not None
        inside = during.start <= found.start and found.end <= during.end
        if inside and not own & set(members(pattern.exception, occurrence)):
            return True
    return False


def occurrences(
    search: Search,
    index: int,
    pattern: Pattern,
    path: Path,
    state: State,
    after: Position | None,
) -> Iterator[State]:
    """Every binding of a negated pattern that the conjuncts of its negation accept."""
    own = tuple(c for c in search.query.where if negation_of(c, search.query) == index)
    return parts(replace(search, conjuncts=own), pattern, path, state, after)


def members(pattern: Pattern, state: State) -> tuple[int, ...]:
    """The events that the part binds."""
    return tuple(i for v in positive(pattern) for i in events_of(state.env[v]))


def history(search: Search, pattern: Pattern, path: Path, state: State) -> tuple[Any, ...]:
    """Sorts composites as `->` takes them: "earliest end", then "NEXT's complete history: member
    times compared from the last backwards, and if one runs out the longer is first"."""
    found = span_of(pattern, path, state)
    assert found is not None
    positions = sorted((search.position(i) for i in members(pattern, state)), reverse=True)
    return (found.end, *((0, p) for p in positions), (1,))
