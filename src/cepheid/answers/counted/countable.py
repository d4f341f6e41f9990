"""Which answers can be counted from the events, without finding the matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from cepheid.algebra.answer_shape import MatchAggregate
from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Expr,
    MatchDuration,
    TimeSpan,
    transform,
    variables,
    walk,
)
from cepheid.algebra.patterns import Closure, Conjunction, Leaf, Negation, Pattern, Sequence
from cepheid.algebra.patterns import walk as walk_pattern
from cepheid.algebra.query import BoundQuery, Clock, Kind, Role
from cepheid.answers.counted.branches import Branch, branches_of
from cepheid.answers.counted.chain_kernel import check_conditions
from cepheid.answers.counted.chain_walks import ChainWalk, chain_of, chain_walks, is_loop
from cepheid.answers.counted.counting_automaton import (
    CountingAutomaton,
    NotCounted,
    counting_automaton,
)
from cepheid.answers.counted.neighbor_pair import NeighborPair, neighbor_pair
from cepheid.language.group_clause import WindowKind

END = "end of the match"
"""Stands for the variable of the last event, where matches differ in it."""

_OF_LAST = ("count", "sum", "avg", "stddev", "min", "max")
_CARRIED = ("count", "sum", "avg", "min", "max")


@dataclass(frozen=True, slots=True)
class CarriedValue:
    """A value of the events of one variable, which matches carry to their ends. Without a value
    the elements of a closure are counted. `always`: every match has such an event."""

    variable: str
    value: Expr | None
    always: bool


@dataclass(frozen=True)
class Counting:
    """How the matches of a query are counted. Of the columns that the aggregates read, `carried`
    are those that aren't known from the last event."""

    automaton: CountingAutomaton
    carried: dict[str, CarriedValue]


ChainWay: TypeAlias = Counting | NeighborPair | ChainWalk


@dataclass(frozen=True)
class CountedBranches:
    """Each branch is counted by itself, in its own way."""

    branches: tuple[tuple[Branch, ChainWay], ...]


Way: TypeAlias = ChainWay | CountedBranches
"""How matches can be counted."""


def ways(query: BoundQuery) -> tuple[Way, ...]:
    """The ways to count the matches of a query. Raises `NotCounted` with the reason if there is
    none."""
    for reason in _reasons(query):
        raise NotCounted(reason)
    try:
        return _ways_of_chain(query)
    except NotCounted:
        closures = any(isinstance(part, Closure) for part in walk_pattern(query.pattern))
        if closures or _is_chain(query):
            raise
    branches = branches_of(query)
    each = [_ways_of_chain(branch.query) for branch in branches]
    return tuple(
        CountedBranches(
            tuple((b, of_b[min(n, len(of_b) - 1)]) for b, of_b in zip(branches, each, strict=True))
        )
        for n in range(max(map(len, each)))
    )


def _ways_of_chain(query: BoundQuery) -> tuple[ChainWay, ...]:
    try:
        return (counting(query),)
    except NotCounted:
        if not _is_chain(query):
            raise
    return _chain_walks(query)


def steps_of(way: Way) -> tuple[str, ...]:
    """The variables whose events are needed."""
    match way:
        case Counting(automaton):
            return automaton.steps
        case NeighborPair(walk):
            return walk.events
        case ChainWalk():
            return way.events
        case CountedBranches(branches):
            every = chain.from_iterable(steps_of(of_branch) for _, of_branch in branches)
            return tuple(dict.fromkeys(every))


def counting(query: BoundQuery) -> Counting:
    """A pattern whose conditions read one event each, or make the key: how many matches end at an
    event follows from the events before it. Raises `NotCounted` with the reason for any other."""
    shape = query.answers
    assert shape is not None
    if query.having:
        raise NotCounted("HAVING checks every match")
    if any(conjunct.role is not Role.CLASS for conjunct in query.where):
        raise NotCounted("a condition is about several events")
    automaton = counting_automaton(query.pattern)
    known = {last_variable(query) or END}
    values = {o.name: of_last(o.expression, query) for o in query.outputs}
    if not all(_reads(values[name]) <= known for name in shape.groups):
        raise NotCounted("a group is not known from the last event")
    carried: dict[str, CarriedValue] = {}
    for aggregate in shape.aggregates:
        if aggregate.column is None or _reads(values[aggregate.column]) <= known:
            if not _of_last(aggregate):
                raise NotCounted("an aggregate needs every match")
        else:
            carried[aggregate.column] = _carried(aggregate, values[aggregate.column], query)
    return Counting(automaton, carried)


def _is_chain(query: BoundQuery) -> bool:
    match query.pattern:
        case Sequence(items):
            return all(isinstance(item, Leaf | Negation) or is_loop(item) for item in items)
        case pattern:
            return is_loop(pattern)


def _chain_walks(query: BoundQuery) -> tuple[ChainWay, ...]:
    assert query.answers is not None
    if not all(map(_of_last, query.answers.aggregates)):
        raise NotCounted("an aggregate needs every match")
    values = tuple(of_last(output.expression, query) for output in query.outputs)
    walks = chain_walks(chain_of(query, values))
    check_conditions(walks[0])
    pairs = filter(None, map(neighbor_pair, walks))
    return (*pairs, *walks)


def _reasons(query: BoundQuery) -> Iterator[str]:
    shape = query.answers
    assert shape is not None
    if query.selection is not None:
        yield "AFTER MATCH chooses among the matches"
    if query.window is not None and query.window.clock is not Clock.TIME:
        yield "the window counts events"
    if query.schema.start is not None:
        yield "events have a duration"
    if any(part.uniform is None for part in query.key):
        yield "the key has different names"
    if query.renamed or query.nothing is not None:
        yield "the query was rewritten to another one"
    if shape.window is not None and shape.window.kind is WindowKind.RANGE:
        yield "RANGE has a row for every match"


def _of_last(aggregate: MatchAggregate) -> bool:
    """Whether the aggregate of equal values follows from how many there are."""
    if aggregate.distinct:
        return aggregate.function == "count"
    return aggregate.column is None or aggregate.function in _OF_LAST


def _carried(aggregate: MatchAggregate, expr: Expr, query: BoundQuery) -> CarriedValue:
    reads = _reads(expr)
    if len(reads) != 1:
        raise NotCounted("a value is of several events")
    (variable,) = reads
    if aggregate.distinct or aggregate.function not in _CARRIED:
        raise NotCounted("an aggregate needs every match")
    match expr:
        case Aggregate("count", None) if aggregate.function in ("sum", "avg"):
            return CarriedValue(variable, None, True)
        case _ if query.variables[variable].kind is Kind.SINGLE:
            return CarriedValue(variable, expr, _always(variable, query.pattern))
        case _:
            raise NotCounted("a value is of a whole group of events")


def _always(variable: str, pattern: Pattern) -> bool:
    match pattern:
        case Leaf():
            return pattern.variable == variable
        case Sequence() | Conjunction():
            return any(_always(variable, item) for item in pattern.items)
        case _:
            return False


def _reads(expr: Expr) -> frozenset[str]:
    """The variables that a value depends on; the match's start and end are others."""
    spans = any(isinstance(node, MatchDuration | TimeSpan) for node in walk(expr))
    return variables(expr) | ({"start of the match", END} if spans else set())


def last_variable(query: BoundQuery) -> str | None:
    """The variable of the last event, if that is the same in all matches."""
    pattern = query.pattern
    while isinstance(pattern, Sequence):
        pattern = pattern.items[-1]
    return pattern.variable if isinstance(pattern, Leaf) else None


def of_last(expr: Expr, query: BoundQuery) -> Expr:
    """The same value read from the last event, where it can be: a part of the key is the same for
    all events of a match."""
    key = {part.uniform for part in query.key}
    last = last_variable(query) or END

    def change(node: Expr) -> Expr | None:
        if not isinstance(node, Attribute) or node.name not in key:
            return None
        if _always(node.variable, query.pattern):
            return Attribute(last, node.name, node.type)
        return None

    return transform(expr, change)
