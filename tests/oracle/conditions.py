"""When a WHERE conjunct becomes evaluable, and whether it applies and holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cepheid.algebra.expressions import Aggregate, Expr, Previous, PreviousOr, Reduce, walk
from cepheid.algebra.patterns import Closure, Disjunction, Pattern, items, leaves
from cepheid.algebra.query import BoundQuery, Conjunct, Kind, Role

from .events import Binding, Event, Position, Stream
from .expressions import Scope, evaluate
from .state import Path, Span, State, span_of


@dataclass(frozen=True)
class Search:
    """One part of the input (one key), and what may be bound in it.

    `candidates` are, for each variable, the events of its types (and key), in order.
    `conjuncts` are those that are looked at while events are chosen.
    """

    query: BoundQuery
    stream: Stream
    events: Mapping[int, Event]
    candidates: Mapping[str, tuple[Event, ...]]
    conjuncts: tuple[Conjunct, ...]

    def position(self, index: int) -> Position:
        return self.stream.position(self.events[index])

    def begin(self, index: int) -> Position:
        return self.stream.begin(self.events[index])

    def order(self, index: int) -> tuple[Any, ...]:
        return self.stream.order(self.events[index])

    def scope(self, state: State, duration: int | None = None) -> Scope:
        return Scope(state, self.events, self.query.variables, duration)

    def extend(
        self, state: State, bindings: Mapping[str, Binding], spans: Mapping[Path, Span]
    ) -> State | None:
        """Decide more variables; None if a conjunct that becomes evaluable with them fails."""
        grown = replace(state, env={**state.env, **bindings}, spans={**state.spans, **spans})
        return grown if self.holds(grown, [state]) else None

    def holds(self, state: State, earlier: Iterable[State]) -> bool:
        """ "an event is skipped if any WHERE conjunct that becomes evaluable with it fails":
        every conjunct that is evaluable now and was not in one of the earlier states."""
        return all(
            self.satisfied(c.expression, c.variables, state, first_of=running_target(c))
            for c in self.conjuncts
            if self.ready(c, state) and not any(self.ready(c, e) for e in earlier)
        )

    def ready(self, conjunct: Conjunct, state: State) -> bool:
        """All its variables are decided. A condition on the elements of a group needs one at
        hand; every other one needs the groups that it reads complete."""
        if any(v not in state.env for v in conjunct.variables):
            return False
        at_hand = {v for v in conjunct.variables if self.element_at_hand(v, state)}
        target = element_target(conjunct, self.query)
        if target is not None:
            # In a round of a repeated disjunction the target may be absent: it reads as NULL.
            return target in at_hand or (state.env[target] is None and bool(at_hand))
        return conjunct.role is Role.NEGATION or not at_hand

    def element_at_hand(self, variable: str, state: State) -> bool:
        return self.query.variables[variable].kind is not Kind.SINGLE and isinstance(
            state.env[variable], int
        )

    def satisfied(
        self,
        expression: Expr,
        variables: Iterable[str],
        state: State,
        duration: int | None = None,
        first_of: str | None = None,
    ) -> bool:
        """ "unknown never satisfies a predicate". A running condition: "for the first element it
        holds"."""
        if not applies(self.query.pattern, variables, state):
            return True
        if first_of is not None and not state.taken.get(first_of):
            return True
        return evaluate(expression, self.scope(state, duration)) is True


def element_target(conjunct: Conjunct, query: BoundQuery) -> str | None:
    """The closure variable whose elements the conjunct tests one by one."""
    match conjunct.role:
        case Role.FILTER | Role.RUNNING | Role.NEGATION:
            return conjunct.target
        case Role.CLASS:
            variable = conjunct.variables[0]
            return None if query.variables[variable].kind is Kind.SINGLE else variable
        case _:
            return None


def running_target(conjunct: Conjunct) -> str | None:
    """The closure variable of a running condition that holds for the first element; it may also
    stand in a negation. "`PREV(b.x, s.x)` has a value for the first element too: then the condition
    is tested on it as well"."""
    tests_first = any(isinstance(e, PreviousOr) for e in walk(conjunct.expression))
    return conjunct.target if is_running(conjunct) and not tests_first else None


def is_running(conjunct: Conjunct) -> bool:
    """Whether it is tested "against the elements taken before"."""
    reads_before = any(
        isinstance(e, Previous | Aggregate | Reduce) for e in walk(conjunct.expression)
    )
    return conjunct.target is not None and reads_before


def negation_of(conjunct: Conjunct, query: BoundQuery) -> int | None:
    """The negation (or exception) that the conjunct belongs to."""
    found = {query.variables[v].negation for v in conjunct.variables} - {None}
    return found.pop() if found else None


def disjunctions(
    pattern: Pattern, path: Path = (), repeated: bool = False
) -> Iterator[tuple[Path, Disjunction, bool]]:
    """Each with whether it is inside a closure, so that every round decides it anew."""
    if isinstance(pattern, Disjunction):
        yield path, pattern, repeated
    for n, item in enumerate(items(pattern)):
        yield from disjunctions(item, (*path, n), repeated or isinstance(pattern, Closure))


def applies(pattern: Pattern, variables: Iterable[str], state: State) -> bool:
    """ "A conjunct applies to a match unless, for some disjunction that the match decides, it reads
    variables of branches of it but none of the branch taken". One that is repeated is decided in
    each round: a condition on the complete group applies if a round took one of its branches."""
    read = set(variables)
    for path, disjunction, repeated in disjunctions(pattern):
        branches = {n for n, item in enumerate(disjunction.items) if read & set(leaves(item))}
        taken = {n for n in (state.choices.get(path),) if n is not None}
        if repeated and not taken:
            taken = {
                n
                for n, item in enumerate(disjunction.items)
                if any(state.env.get(v) for v in leaves(item))
            }
        if taken and branches and not taken & branches:
            return False
    return True


def span(search: Search, state: State) -> Span:
    """Start and end of the whole match."""
    found = span_of(search.query.pattern, (), state)
    assert found is not None, "a match binds at least one event"
    return found
