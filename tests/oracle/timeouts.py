"""Partial matches that expire (docs/language.md), by brute force.

The first components are bound as the oracle binds any sequence; whether something continues what
they bind is looked up event by event. No negation, and no other query, is involved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cepheid.algebra import patterns
from cepheid.algebra.expressions import (
    Aggregate,
    Every,
    Expr,
    MatchDuration,
    Previous,
    Reduce,
    Some,
    TimeSpan,
    variables,
    walk,
)
from cepheid.algebra.query import BoundQuery, Conjunct, Kind, Role

from .closures import size_range
from .conditions import Search, span
from .events import Event, Match
from .match import clock, extent, placed, searches, with_edges
from .sequences import bound_items, sequence
from .state import State, events_of


@dataclass(frozen=True)
class Expired:
    """`match` binds the variables of the first `step` components; all others are None in it."""

    step: int
    match: Match


def timeouts(query: BoundQuery, events: Sequence[Event]) -> list[Expired]:
    timed = [e for e in events if placed(query, e)]
    assert isinstance(query.pattern, patterns.Sequence)
    return [
        Expired(length, as_match(search, state))
        for search in searches(query, timed)
        for length, after in enumerate(query.pattern.items)
        if length > 0 and not may_be_empty(after)
        for state in partial_matches(search, length)
        if not continued(search, state, after)
    ]


def may_be_empty(component: patterns.Pattern) -> bool:
    return isinstance(component, patterns.Closure) and size_range(component)[0] == 0


def as_match(search: Search, state: State) -> Match:
    whole = span(search, state)
    bindings = {v: state.env.get(v) for v in search.query.variables}
    return Match(bindings, whole.start[0], whole.end[0], state.iterations)


# ── how far it got ───────────────────────────────────────────────────────────


def partial_matches(search: Search, length: int) -> Iterator[State]:
    """Bindings of the first components "that satisfy all conditions of WHERE that read no other
    variables", in the window; a group at the end takes what it would at the end of a pattern."""
    query = search.query
    assert isinstance(query.pattern, patterns.Sequence) and query.window is not None
    constants = [c for c in query.where if not c.variables and not of_the_match(c.expression)]
    first = bound_items(query.pattern, ())[:length]
    for bound in sequence(search, first, State(), None):
        for state in with_edges(search, bound):
            start, end = extent(search, state)
            if end - start < query.window.size and all(
                search.satisfied(c.expression, (), state) for c in constants
            ):
                yield state


def of_the_match(expr: Expr) -> bool:
    return any(isinstance(e, MatchDuration) for e in walk(expr))


# ── what could have continued it ─────────────────────────────────────────────


def continued(search: Search, state: State, after: patterns.Pattern) -> bool:
    (variable,) = patterns.leaves(after)
    return any(continues(search, state, variable, e) for e in search.candidates[variable])


def continues(search: Search, state: State, variable: str, event: Event) -> bool:
    """Whether the event comes after all that is bound, in the window, and "satisfies the conditions
    that read it and nothing that comes later"."""
    window = search.query.window
    assert window is not None
    start, _ = extent(search, state)
    if not search.begin(event.index) > span(search, state).end:
        return False
    if not clock(search, event.index)[1] < start + window.size:
        return False
    known = {*state.env, variable}
    return all(
        holds(search, conjunct, state, variable, event.index)
        for conjunct in search.query.where
        if variable in conjunct.variables
        and known.issuperset(conjunct.variables)
        and not of_the_match(conjunct.expression)
        and not (is_group(search, variable) and of_the_group(conjunct.expression, variable))
    )


def is_group(search: Search, variable: str) -> bool:
    return search.query.variables[variable].kind is not Kind.SINGLE


def of_the_group(expr: Expr, variable: str) -> bool:
    """It needs all of the group, of which only a first element is known."""
    complete = (Aggregate, Previous, Reduce, Some, TimeSpan)
    return any(isinstance(e, complete) and variable in variables(e) for e in walk(expr))


def holds(search: Search, conjunct: Conjunct, state: State, variable: str, index: int) -> bool:
    """A group that is read bare is known already: it must hold for each element."""
    quantified = any(
        isinstance(e, Every) and e.variable == variable for e in walk(conjunct.expression)
    )
    env = {**state.env, variable: (index,) if quantified else index}
    states = [replace(state, env=env)]
    if conjunct.role is Role.FILTER and conjunct.target != variable:
        target = conjunct.target
        assert target is not None
        states = [replace(state, env={**env, target: e}) for e in events_of(env[target])]
    return all(search.satisfied(conjunct.expression, (), s) for s in states)
