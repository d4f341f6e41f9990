"""Negations: checks on the complete match."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

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
from cepheid.language.ast import SequenceOperator

from .closures import Limits
from .conditions import Search
from .events import Position, instant
from .patterns import members, occurrences
from .state import Path, State, span_of


def negated(
    search: Search,
    pattern: Pattern,
    path: Path,
    state: State,
    limits: Limits,
) -> bool:
    """Whether some negation below is violated. `limits` are the nearest bound parts around the
    pattern: "the nearest bound part before it and ... after it, in any enclosing sequence
    (parentheses and empty groups don't count; members of the same conjunction are neither before
    nor after). With nothing before it: after `end - window`. With nothing after it: before
    `start + window`"."""
    match pattern:
        case Leaf():
            return False
        case Negation():
            return occurs(search, pattern, path, state, limits)
        case Absence():
            return occurs(search, pattern, path, state, in_time(search, pattern, limits))
        case Sequence():
            return any(
                negated_item(search, pattern, n, path, state, limits)
                for n in range(len(pattern.items))
            )
        case Conjunction():
            return any(
                negated(search, item, (*path, n), state, limits)
                for n, item in enumerate(pattern.items)
            )
        case Disjunction():
            branch = state.choices[path]
            return negated(search, pattern.items[branch], (*path, branch), state, limits)
        case Unless() | Delay():
            return negated(search, pattern.item, (*path, 0), state, limits)
        case Closure():
            return negated_round(search, pattern, path, state, limits)
        case _:
            assert_never(pattern)


def negated_item(
    search: Search,
    sequence: Sequence,
    n: int,
    path: Path,
    state: State,
    limits: Limits,
) -> bool:
    item = sequence.items[n]
    spans = [span_of(p, (*path, m), state, absences=False) for m, p in enumerate(sequence.items)]
    before = [s.end for s in spans[:n] if s is not None]
    after = [s.start for s in spans[n + 1 :] if s is not None]
    strict = n > 0 and sequence.operators[n - 1] is SequenceOperator.STRICT
    lower = before[-1] if before else limits.lower
    if isinstance(item, Negation) and strict and lower is not None:
        return occurs_next(search, item, (*path, n), state, lower)
    inside = narrowed(limits, lower, after[0] if after else limits.upper)
    return negated(search, item, (*path, n), state, inside)


def negated_round(
    search: Search, closure: Closure, path: Path, state: State, limits: Limits
) -> bool:
    """In a closure over a pattern, the rounds before and after are the nearest parts."""
    rounds = state.iterations.get(path, ())
    spans = [span_of(closure.item, (*path, 0), r) for r in rounds]
    for n, one in enumerate(rounds):
        before = [s.end for s in spans[:n] if s is not None]
        after = [s.start for s in spans[n + 1 :] if s is not None]
        inside = narrowed(
            limits, before[-1] if before else limits.lower, after[0] if after else limits.upper
        )
        # "conditions between them hold per iteration"
        here = replace(state.join(one), round=frozenset(positive(closure.item)))
        if negated(search, closure.item, (*path, 0), here, inside):
            return True
    return False


def narrowed(limits: Limits, lower: Position | None, upper: Position | None) -> Limits:
    """The clock counts only where there is no neighbor."""
    return Limits(
        lower,
        upper,
        limits.clock,
        limits.earliest if lower is None else None,
        limits.latest if upper is None else None,
        limits.counted,
    )


def in_time(search: Search, absence: Absence, limits: Limits) -> Limits:
    """ "in the time d after the end of the nearest bound part before it (both ends exclusive),
    whatever the window"; "Leading: none in the time d before the start of the next bound part"."""
    if limits.lower is not None:
        return Limits(limits.lower, instant(limits.lower[0] + absence.duration))
    assert limits.upper is not None, "binding refuses it with nothing on either side"
    return Limits(
        None,
        limits.upper,
        lambda i: (search.begin(i)[0], search.events[i].time),
        limits.upper[0] - absence.duration,
    )


def occurs(
    search: Search, negation: Negation | Absence, path: Path, state: State, limits: Limits
) -> bool:
    """ "no such event strictly after the end of the nearest bound part before it and strictly
    before the start of the nearest bound part after it"; "Events bound in the match are never the
    forbidden ones"."""
    bound = set(members(search.query.pattern, state))
    inner = (*path, 0)
    for found in occurrences(search, negation.index, negation.item, inner, state, limits.lower):
        at = span_of(negation.item, inner, found)
        own = members(negation.item, found)
        assert at is not None
        if (at.start, at.end, own) in limits and not bound & set(own):
            return True
    return False


def occurs_next(
    search: Search, negation: Negation, path: Path, state: State, after: Position
) -> bool:
    """`P => !Q`: "no such Q at the next position of the stream after p, whatever the window; a
    bound event may be that Q"."""
    inner = (*path, 0)
    for found in occurrences(search, negation.index, negation.item, inner, state, after):
        at = span_of(negation.item, inner, found)
        assert at is not None
        if at.first == search.stream.next_position(after):
            return True
    return False
