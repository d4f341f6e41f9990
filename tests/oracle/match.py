"""The matches of a query, by brute force: the definition that every engine is tested against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from cepheid.algebra.expressions import variables as variables_of
from cepheid.algebra.patterns import Unless, positive
from cepheid.algebra.query import BoundQuery, Clock, Role
from cepheid.algebra.types import STREAM_COLUMN
from cepheid.language.ast import SequenceOperator

from .closures import Limits, groups, size_range
from .conditions import Search, negation_of, span
from .events import Event, Match, Position, Stream, rank
from .expressions import Scope, evaluate
from .negation import negated
from .nested import with_paths
from .patterns import exception_occurs, parts
from .skipping import skip
from .state import Edge, State, events_of, node_at


def matches(query: BoundQuery, events: Sequence[Event]) -> list[Match]:
    """All matches, in the order in which AFTER MATCH considers them.

    Rows without a time, or that start after their end, are rejected. Keys are kept apart. LIMIT
    "keeps the first n matches in this order, over all, or for each key".
    """
    timed = [with_paths(e, query.schema.paths) for e in events if placed(query, e)]
    most = None if query.selection is None else query.selection.most
    per_key = query.selection is not None and query.selection.per_key
    found: list[tuple[Any, Match]] = []
    for search in searches(query, timed):
        considered = sorted(
            ((order(search, s), s) for s in complete_matches(search)), key=lambda o: o[0]
        )
        kept = skip(search, [s for _, s in considered])
        for state in islice(kept, most if per_key else None):
            found.append((order(search, state), as_match(search, state)))
    ordered = [m for _, m in sorted(found, key=lambda f: f[0])]
    return ordered if per_key else ordered[:most]


def placed(query: BoundQuery, event: Event) -> bool:
    if event.values[query.schema.time] is None:
        return False
    return query.schema.start is None or (event.start is not None and event.start <= event.time)


def outputs(query: BoundQuery, match: Match, events: Sequence[Event]) -> dict[str, Any]:
    """The RETURN columns of a match."""
    scope = Scope(
        State(env=match.bindings, iterations=match.rounds),
        {e.index: with_paths(e, query.schema.paths) for e in events},
        query.variables,
        match.end - match.start,
    )
    return {o.name: evaluate(o.expression, scope) for o in query.outputs}


def as_match(search: Search, state: State) -> Match:
    whole = span(search, state)
    bindings = {v: state.env[v] for v in positive(search.query.pattern)}
    return Match(bindings, whole.start[0], whole.end[0], state.iterations)


# ── keys ─────────────────────────────────────────────────────────────────────


def searches(query: BoundQuery, events: list[Event]) -> Iterator[Search]:
    """One per key: "matches never cross keys". "Where the attribute's name differs between
    variables the query is keyed, but `=>` and `n EVENTS` then look at the whole stream"."""
    chosen = {name: [e for e in events if is_a(query, name, e)] for name in query.variables}
    keys = {k for name, own in chosen.items() for k in (key_of(query, name, e) for e in own)}
    columns = [c for c in (part.uniform for part in query.key) if c is not None]
    for key in sorted(k for k in keys if k is not None):
        if len(columns) == len(query.key):
            in_part = [e for e in events if tuple(rank(e.values.get(c)) for c in columns) == key]
        else:
            in_part = events
        stream = Stream(in_part, query.schema.tie)
        yield Search(
            query,
            stream,
            {e.index: e for e in events},
            {
                name: tuple(
                    sorted(
                        (e for e in own if key_of(query, name, e) == key),
                        key=stream.order,
                    )
                )
                for name, own in chosen.items()
            },
            tuple(
                c
                for c in query.where
                if c.role is not Role.MATCH and c.variables and negation_of(c, query) is None
            ),
        )


def is_a(query: BoundQuery, variable: str, event: Event) -> bool:
    types = query.variables[variable].types
    return not types or event.values[query.schema.type or STREAM_COLUMN] in types


def key_of(query: BoundQuery, variable: str, event: Event) -> tuple[Any, ...] | None:
    """ "an event with a NULL key takes part in no match"."""
    values = [event.values.get(part.columns[variable]) for part in query.key]
    return None if any(v is None for v in values) else tuple(rank(v) for v in values)


# ── complete matches ─────────────────────────────────────────────────────────


def complete_matches(search: Search) -> Iterator[State]:
    query = search.query
    for bound in parts(search, query.pattern, (), State(), None):
        for state in with_edges(search, bound):
            if valid(search, state):
                yield state


def clock(search: Search, index: int) -> tuple[int, int]:
    """Where the event starts and ends on what the window counts: times, or the numbers of events
    in the stream."""
    window = search.query.window
    if window is not None and window.clock is Clock.EVENTS:
        return search.stream.ordinal[index], search.stream.ordinal[index]
    return search.begin(index)[0], search.events[index].time


def extent(search: Search, state: State) -> tuple[int, int]:
    """Start and end on the window's clock. A delay moves the end in time."""
    window = search.query.window
    if window is not None and window.clock is Clock.EVENTS:
        readings = [search.stream.ordinal[i] for v in state.env.values() for i in events_of(v)]
        return min(readings), max(readings)
    whole = span(search, state)
    return whole.start[0], whole.end[0]


def edge_limits(
    search: Search, state: State, lower: Position | None, upper: Position | None
) -> Limits:
    """Where a side has no neighbor: after `end - window`, before `start + window`."""
    window = search.query.window
    if window is None:
        return Limits(lower, upper)
    start, end = extent(search, state)
    return Limits(
        lower,
        upper,
        lambda i: clock(search, i),
        end - window.size if lower is None else None,
        start + window.size if upper is None else None,
        window.clock is Clock.EVENTS,
    )


def with_edges(search: Search, state: State) -> Iterator[State]:
    """Bind the closures that waited for the whole match's start and end."""
    if not state.edges:
        yield state
        return
    edge, *rest = state.edges
    for bound in with_edge(search, replace(state, edges=tuple(rest)), edge):
        yield from with_edges(search, bound)


def with_edge(search: Search, state: State, edge: Edge) -> Iterator[State]:
    strict_right = edge.lower is None and edge.after is SequenceOperator.STRICT
    ends = [state.spans[path].end for path in edge.beside if path in state.spans]
    lower = max(ends, default=edge.lower)
    found = groups(
        search,
        edge.path,
        edge.closure,
        state,
        edge_limits(search, state, lower, edge.upper),
        unbroken=strict_right or edge.before is SequenceOperator.STRICT,
        touch_left=lower if edge.before is SequenceOperator.STRICT else None,
        touch_right=edge.touched if strict_right else None,
    )
    low, high = size_range(edge.closure)
    for group in found:
        if group.size < low or (high is not None and group.size > high):
            continue
        spans = {} if group.span is None else {edge.path: group.span}
        bound = search.extend(state, group.bindings, spans)
        if bound is not None:
            yield replace(bound, iterations={**bound.iterations, edge.path: group.rounds})


def valid(search: Search, state: State) -> bool:
    """The checks on a complete match, HAVING last: it "is applied to a chosen match and kills
    it, without looking for another"."""
    query = search.query
    start, end = extent(search, state)
    if query.window is not None and not end - start < query.window.size:
        return False
    whole = span(search, state)
    duration = whole.end[0] - whole.start[0]
    for conjunct in query.where:
        if (conjunct.role is Role.MATCH or not conjunct.variables) and not search.satisfied(
            conjunct.expression, conjunct.variables, state, duration
        ):
            return False
    for path in state.exceptions:
        node = node_at(query.pattern, path)
        assert isinstance(node, Unless)
        if exception_occurs(search, node, path, state):
            return False
    limits = edge_limits(search, state, None, None)
    if negated(search, query.pattern, (), state, limits):
        return False
    return all(search.satisfied(h, variables_of(h), state, duration) for h in query.having)


def order(search: Search, state: State) -> tuple[Any, ...]:
    """ "Matches are considered by end, then start, then the positions of their events in pattern
    order, a longer group before its own prefix. ... Simultaneous matches: by input order."""
    whole = span(search, state)
    bound = [events_of(state.env[v]) for v in positive(search.query.pattern)]
    positions = [[*((0, search.position(i)) for i in group), (1,)] for group in bound]
    places = [[*((0, search.order(i)) for i in group), (1,)] for group in bound]
    return (whole.end, whole.start, positions, places)
