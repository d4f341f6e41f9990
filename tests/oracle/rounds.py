"""Closures over a pattern: `(A ; B)+`."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

from cepheid.algebra.patterns import (
    Closure,
    Delay,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    positive,
)
from cepheid.language.ast import Exactly, Mode, Optional

from . import patterns
from .closures import Group, Limits, size_range
from .conditions import Search
from .events import Position
from .expressions import evaluate
from .state import Path, Span, State, events_of, span_of


def round_groups(
    search: Search,
    path: Path,
    closure: Closure,
    state: State,
    limits: Limits,
    unbroken: bool,
    touch_left: Position | None,
) -> list[Group]:
    """The modes choose among rounds as they choose among events. Where nothing stands before a
    group that is chosen by itself, its rounds are counted from every event that one can start
    with, and the first of them is taken."""
    if limits.lower is None and limits.earliest is None and is_chosen(closure):
        found: list[Group] = []
        for event in search.candidates[first_variable(closure.item)]:
            chain = rounds(search, path, closure, state, limits, unbroken, touch_left, event.index)
            found += [
                group
                for group in chosen_groups(search, path, closure, chain)
                if not group.rounds or group.rounds[0] is chain[0]
            ]
        empty = [g for g in found if not g.rounds] or chosen_groups(search, path, closure, [])
        return [g for g in found if g.rounds] + empty[:1]
    chain = rounds(search, path, closure, state, limits, unbroken, touch_left)
    return chosen_groups(search, path, closure, chain)


def is_chosen(closure: Closure) -> bool:
    if isinstance(closure.quantifier, Optional):
        return False
    return isinstance(closure.quantifier, Exactly) or closure.mode in (Mode.RUNS, Mode.SUBSETS)


def first_variable(pattern: Pattern) -> str:
    """Of a pattern that starts with an event: its variable."""
    match pattern:
        case Leaf():
            return pattern.variable
        case Sequence():
            return first_variable(next(i for i in pattern.items if not isinstance(i, Negation)))
        case Unless() | Delay():
            return first_variable(pattern.item)
        case _:
            raise AssertionError("binding refuses a group that leads and starts with no event")


def chosen_groups(search: Search, path: Path, closure: Closure, chain: list[State]) -> list[Group]:
    low, high = size_range(closure)
    sizes = range(low, min(len(chain), high if high is not None else len(chain)) + 1)
    if isinstance(closure.quantifier, Optional):
        chosen = [chain[:1]]
    elif isinstance(closure.quantifier, Exactly) or closure.mode is Mode.RUNS:
        chosen = [chain[n : n + s] for s in sizes for n in range(len(chain) - s + 1) if s or not n]
    elif closure.mode is Mode.MAXIMAL:
        chosen = [chain]
    elif closure.mode is Mode.PREFIXES:
        chosen = [chain[:s] for s in sizes]
    else:
        chosen = [list(c) for s in sizes for c in combinations(chain, s)]
    return [group_of(search, path, closure, c) for c in chosen]


def rounds(
    search: Search,
    path: Path,
    closure: Closure,
    state: State,
    limits: Limits,
    unbroken: bool,
    touch_left: Position | None,
    anchor: int | None = None,
) -> list[State]:
    """ "from the left neighbor on, the earliest-ending match of P, then the earliest-ending one
    after it, and so on before the right neighbor (among equal ends the first by complete
    history)"; among simultaneous ones, by input order. With an anchor, the first round starts
    with that event."""
    inner = (*path, 0)
    variables = positive(closure.item)
    chain: list[State] = []
    lower, touch = limits.lower, touch_left
    while True:
        taken = {v: tuple(i for s in chain for i in events_of(s.env[v])) for v in variables}
        base = replace(
            state,
            taken={**state.taken, **taken},
            iterations={**state.iterations, path: tuple(chain)},
        )
        found: list[tuple[Any, State]] = []
        for bound in patterns.parts(search, closure.item, inner, base, lower):
            at = span_of(closure.item, inner, bound)
            own = patterns.members(closure.item, bound)
            if at is None or (at.start, at.end, own) not in limits:
                continue
            first = bound.env[first_variable(closure.item)] if anchor is not None else None
            if not chain and first != anchor:
                continue
            if touch is not None and search.stream.next_position(touch) != at.first:
                continue
            first = patterns.history(search, closure.item, inner, bound)
            found.append(((first, [search.order(i) for i in own]), bound))
        if not found:
            return chain
        chosen = min(found, key=lambda f: f[0])[1]
        if closure.until is not None and evaluate(closure.until, search.scope(chosen)) is True:
            return chain
        chain.append(replace(chosen, env={v: chosen.env[v] for v in variables}))
        last = span_of(closure.item, inner, chosen)
        assert last is not None
        lower = last.end
        touch = last.end if closure.strict or unbroken else None


def group_of(search: Search, path: Path, closure: Closure, chosen: list[State]) -> Group:
    inner = (*path, 0)
    spans = [s for s in (span_of(closure.item, inner, r) for r in chosen) if s is not None]
    return Group(
        {v: tuple(i for r in chosen for i in events_of(r.env[v])) for v in positive(closure.item)},
        tuple(s.first for s in spans),
        Span(spans[0].start, spans[-1].end, spans[0].first) if spans else None,
        tuple(chosen),
    )
