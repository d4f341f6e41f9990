"""Chains of single events, and the walks that count their matches.

From every event of one end of the chain, its *anchor*, a walk goes through the window, forwards
from the first step or back from the last one. A state of the walk holds how many partial matches
have bound the steps so far. What a later condition reads, or an answer, has to be remembered: the
anchor is, all along, and one other variable may be *live* in a state. Partial matches that agree on
what is read of it are one *record*, with their number as its weight. So matches are worked on in
pairs of the anchor and another event, whatever the length of the chain; in triples where a
condition is between a live event and a third one.

A step may be a group, as in `a ; b+ ; c`: a partial match stays in its state with every further
element, so the last element is live where PREV reads it. In SUBSETS an event may be taken or not
(GRETA's graph, whose edges lead from each element to those that may follow it). In the other modes
it must be taken if it can follow, so each partial match has one way through its group: with every
element in PREFIXES and RUNS, and once in a maximal group, another match becomes possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from cepheid.algebra.expressions import (
    Attribute,
    Call,
    Constant,
    Expr,
    Previous,
    transform,
    variables,
    walk,
)
from cepheid.algebra.patterns import Closure, Leaf, Negation, Pattern, Sequence
from cepheid.algebra.query import BoundQuery, Clock, Role
from cepheid.answers.counted.counting_automaton import NotCounted
from cepheid.language.ast import Between, Mode, SequenceOperator

MOST_STEPS = 16


@dataclass(frozen=True)
class EventChain:
    """Steps in the order of time; `negations` has each with the number of steps before it.
    `conditions` read several events, `returned` are the variables that the answers read. `loops`
    are steps that are groups; conditions read their elements before as other variables."""

    steps: tuple[str, ...]
    negations: tuple[tuple[str, int], ...]
    conditions: tuple[Expr, ...]
    returned: frozenset[str]
    loops: Mapping[str, Mode]


@dataclass(frozen=True)
class ChainWalk:
    """One way to go through a chain; `steps` are in its order, and the first is the anchor.
    `live[s]` is the step of the variable that is live after step s, if there is one. `negations`
    has each with the state that it is checked in."""

    forwards: bool
    steps: tuple[str, ...]
    live: tuple[int | None, ...]
    negations: tuple[tuple[str, int], ...]
    conditions: tuple[Expr, ...]
    returned: frozenset[str]
    loops: Mapping[str, Mode]

    @property
    def events(self) -> tuple[str, ...]:
        """The variables whose events are needed."""
        return (*self.steps, *(variable for variable, _ in self.negations))

    @property
    def last(self) -> int:
        """The last step."""
        return len(self.steps) - 1

    @property
    def end(self) -> str:
        """The variable of the last event in time."""
        return self.steps[self.last if self.forwards else 0]

    @property
    def pairs(self) -> bool:
        """Whether answers need more of a match than its end."""
        return not self.returned <= {self.end}

    @property
    def kept(self) -> str | None:
        """The variable whose event is live where a match is counted."""
        live = self.live_before(self.last) if self.forwards else self.live[self.last]
        return None if live is None or self.steps[live] not in self.returned else self.steps[live]

    def live_before(self, step: int) -> int | None:
        """The step that is live where this one is bound. Nothing reads the elements of a group
        that is complete."""
        return None if not step or self.steps[step - 1] in self.loops else self.live[step - 1]

    def conditions_at(self, step: int) -> list[Expr]:
        """What is checked when this step is bound."""
        return [
            condition
            for condition in self.conditions
            if (reads := variables(condition)) <= {*self.steps[: step + 1]}
            and self.steps[step] in reads
        ]

    def conditions_of_loop(self, step: int) -> list[Expr]:
        """What is checked when another element of the group is bound."""
        variable = self.steps[step]
        bound = {*self.steps[: step + 1], before(variable)}
        return [
            condition
            for condition in self.conditions
            if (reads := variables(condition)) <= bound and reads & {variable, before(variable)}
        ]

    def conditions_on(self, negated: str) -> list[Expr]:
        return [condition for condition in self.conditions if negated in variables(condition)]


def chain_of(query: BoundQuery, values: tuple[Expr, ...]) -> EventChain:
    """The chain of a query whose answers read these values. Raises `NotCounted` if it isn't one."""
    steps, negations, loops = _parts(query)
    if len(steps) < 2 and not loops:
        raise NotCounted("the pattern is no chain of single events")
    if len(steps) + len(negations) > MOST_STEPS:
        raise NotCounted(f"the pattern has more than {MOST_STEPS} parts")
    where = [c.expression for c in query.where if c.role is not Role.CLASS]
    conditions = tuple(transform(c, _of_before) for c in (*where, *query.having))
    known = {*steps, *(variable for variable, _ in negations)}
    for condition in conditions:
        if not variables(condition) or not _of_events(condition):
            raise NotCounted("a condition is about the whole match")
    if not all(map(_of_events, values)):
        raise NotCounted("a value is of the whole match")
    returned = frozenset(chain.from_iterable(map(variables, values)))
    if loops:
        _check_loops(steps, loops, conditions, returned)
        if any(loops.get(v, Mode.SUBSETS) is not Mode.SUBSETS for v in _read(query.having)):
            raise NotCounted("HAVING checks every match")
    assert returned <= known
    return EventChain(steps, negations, conditions, returned, loops)


def before(variable: str) -> str:
    """Stands for the element before the one at hand."""
    return f"{variable} before"


def _of_before(node: Expr) -> Expr | None:
    if isinstance(node, Previous):
        return Attribute(before(node.variable), node.name, node.type)
    return None


def _check_loops(
    steps: tuple[str, ...],
    loops: Mapping[str, Mode],
    conditions: tuple[Expr, ...],
    returned: frozenset[str],
) -> None:
    """A condition of an element is checked with the element, so it reads no later step."""
    if not returned <= {steps[0], steps[-1]} - loops.keys():
        raise NotCounted("a group of events is answered by more than the first or last event")
    for n, step in enumerate(steps):
        shaped = step in loops and not loops[step].independent
        if shaped and (n == 0 or steps[n - 1] in loops):
            raise NotCounted("a group of events begins where no single event ends")
    if loops.get(steps[-1]) is Mode.MAXIMAL:
        raise NotCounted("a closure at the end is known only when its window is over")
    for condition in conditions:
        reads = variables(condition)
        for loop in reads & loops.keys():
            if not reads <= {*steps[: steps.index(loop) + 1], before(loop)}:
                raise NotCounted("a condition reads a group and a later event")


def is_loop(item: Pattern) -> bool:
    """Whether it is a group of single events that a walk can go through."""
    return (
        isinstance(item, Closure)
        and isinstance(item.item, Leaf)
        and item.quantifier == Between(1, None)
        and not item.strict
        and item.until is None
    )


def _parts(
    query: BoundQuery,
) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...], Mapping[str, Mode]]:
    pattern = query.pattern
    items = pattern.items if isinstance(pattern, Sequence) else (pattern,)
    operators = pattern.operators if isinstance(pattern, Sequence) else ()
    if any(operator is not SequenceOperator.ANY for operator in operators):
        raise NotCounted("`->` and `=>` choose among events")
    if query.window is None or query.window.clock is not Clock.TIME:
        raise NotCounted("the window counts events")
    steps: list[str] = []
    negations: list[tuple[str, int]] = []
    loops: dict[str, Mode] = {}
    for item in items:
        match item:
            case Leaf(variable):
                steps.append(variable)
            case Negation(Leaf(variable)):
                negations.append((variable, len(steps)))
            case Closure(Leaf(variable), mode=mode) if is_loop(item):
                steps.append(variable)
                loops[variable] = mode
            case _:
                raise NotCounted("the pattern is no chain of single events")
    if any(before in (0, len(steps)) for _, before in negations):
        raise NotCounted("a negation is not of one event between two others")
    if any(steps[before_ - 1] in loops for _, before_ in negations):
        raise NotCounted("a negation stands behind a group")
    return tuple(steps), tuple(negations), loops


def _read(conditions: Iterable[Expr]) -> Iterator[str]:
    return chain.from_iterable(map(variables, conditions))


def _of_events(expr: Expr) -> bool:
    return all(isinstance(node, Attribute | Call | Constant) for node in walk(expr))


def chain_walks(chain_: EventChain) -> tuple[ChainWalk, ...]:
    """The walks that there are. Raises `NotCounted` if more than one variable would be live in
    both."""
    back = None if chain_.loops else _walk(chain_, False)
    walks = tuple(filter(None, (_walk(chain_, True), back)))
    if not walks:
        raise NotCounted("conditions and answers read too many events at once")
    return walks


def _walk(chain_: EventChain, forwards: bool) -> ChainWalk | None:
    steps = chain_.steps if forwards else chain_.steps[::-1]
    number = {step: n for n, step in enumerate(steps)}
    size = len(steps)
    negations = tuple(
        (variable, before - 1 if forwards else size - 1 - before)
        for variable, before in chain_.negations
    )
    state_of = dict(negations)
    live: list[set[int]] = [set() for _ in steps]

    def hold(step: int, until: int) -> None:
        """The step's event is read in states up to this one."""
        if step:
            for state in range(step, until + 1):
                live[state].add(step)

    for condition in chain_.conditions:
        reads = variables(condition)
        negated = [state_of[variable] for variable in reads if variable in state_of]
        bound = sorted(number[variable] for variable in reads & number.keys())
        until = negated[0] if negated else bound[-1] - (steps[bound[-1]] not in chain_.loops)
        if negated and bound and bound[-1] > until:
            return None  # what is forbidden is known only later
        for step in bound:
            hold(step, until)
    for variable in chain_.returned:
        hold(number[variable], size - 1)
    if forwards and steps[-1] not in chain_.loops:  # the last event is at hand when it is counted
        live[-1] = set()
    looked_back = frozenset[str]().union(*map(variables, chain_.conditions))
    for state, variable in enumerate(steps):
        if variable in chain_.loops:
            live[state].discard(state)
            if live[state]:
                return None  # elements lead back to the state, so they know no other event
            live[state] = {state} if before(variable) in looked_back else set()
    if any(len(steps) > 1 for steps in live):
        return None
    return ChainWalk(
        forwards,
        steps,
        tuple(next(iter(variables_), None) for variables_ in live),
        negations,
        chain_.conditions,
        chain_.returned,
        chain_.loops,
    )
