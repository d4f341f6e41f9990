"""Chains of single events, and the walks that count their matches.

From every event of one end of the chain, its *anchor*, a walk goes through the window, forwards
from the first step or back from the last one. A state of the walk holds how many partial matches
have bound the steps so far. What a later condition reads, or an answer, has to be remembered: the
anchor is, all along, and one other variable may be *live* in a state. Partial matches that agree on
what is read of it are one *record*, with their number as its weight. So matches are worked on in
pairs of the anchor and another event, whatever the length of the chain; in triples where a
condition is between a live event and a third one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from cepheid.algebra.expressions import Attribute, Call, Constant, Expr, variables, walk
from cepheid.algebra.patterns import Leaf, Negation, Sequence
from cepheid.algebra.query import BoundQuery, Clock, Role
from cepheid.answers.counted.counting_automaton import NotCounted
from cepheid.language.ast import SequenceOperator

MOST_STEPS = 16


@dataclass(frozen=True)
class EventChain:
    """Steps in the order of time; `negations` has each with the number of steps before it.
    `conditions` read several events, `returned` are the variables that the answers read."""

    steps: tuple[str, ...]
    negations: tuple[tuple[str, int], ...]
    conditions: tuple[Expr, ...]
    returned: frozenset[str]


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
        live = self.live[self.last - 1 if self.forwards else self.last]
        return None if live is None or self.steps[live] not in self.returned else self.steps[live]

    def conditions_at(self, step: int) -> list[Expr]:
        """What is checked when this step is bound."""
        return [
            condition
            for condition in self.conditions
            if (reads := variables(condition)) <= {*self.steps[: step + 1]}
            and self.steps[step] in reads
        ]

    def conditions_on(self, negated: str) -> list[Expr]:
        return [condition for condition in self.conditions if negated in variables(condition)]


def chain_of(query: BoundQuery, values: tuple[Expr, ...]) -> EventChain:
    """The chain of a query whose answers read these values. Raises `NotCounted` if it isn't one."""
    steps, negations = _parts(query)
    if len(steps) < 2:
        raise NotCounted("the pattern is no chain of single events")
    if len(steps) + len(negations) > MOST_STEPS:
        raise NotCounted(f"the pattern has more than {MOST_STEPS} parts")
    where = [c.expression for c in query.where if c.role is not Role.CLASS]
    conditions = (*where, *query.having)
    known = {*steps, *(variable for variable, _ in negations)}
    for condition in conditions:
        if not variables(condition) or not _of_events(condition):
            raise NotCounted("a condition is about the whole match")
    if not all(map(_of_events, values)):
        raise NotCounted("a value is of the whole match")
    returned = frozenset(chain.from_iterable(map(variables, values)))
    assert returned <= known
    return EventChain(steps, negations, conditions, returned)


def _parts(query: BoundQuery) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    pattern = query.pattern
    if not isinstance(pattern, Sequence):
        raise NotCounted("the pattern is no chain of single events")
    if any(operator is not SequenceOperator.ANY for operator in pattern.operators):
        raise NotCounted("`->` and `=>` choose among events")
    if query.window is None or query.window.clock is not Clock.TIME:
        raise NotCounted("the window counts events")
    steps: list[str] = []
    negations: list[tuple[str, int]] = []
    for item in pattern.items:
        match item:
            case Leaf(variable):
                steps.append(variable)
            case Negation(Leaf(variable)):
                negations.append((variable, len(steps)))
            case _:
                raise NotCounted("the pattern is no chain of single events")
    if any(before in (0, len(steps)) for _, before in negations):
        raise NotCounted("a negation is not of one event between two others")
    return tuple(steps), tuple(negations)


def _of_events(expr: Expr) -> bool:
    return all(isinstance(node, Attribute | Call | Constant) for node in walk(expr))


def chain_walks(chain_: EventChain) -> tuple[ChainWalk, ...]:
    """The walks that there are. Raises `NotCounted` if more than one variable would be live in
    both."""
    walks = tuple(filter(None, (_walk(chain_, True), _walk(chain_, False))))
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
        bound = sorted(number[variable] for variable in reads - state_of.keys())
        until = negated[0] if negated else bound[-1] - 1
        if negated and bound and bound[-1] > until:
            return None  # what is forbidden is known only later
        for step in bound:
            hold(step, until)
    for variable in chain_.returned:
        hold(number[variable], size - 1)
    if forwards:  # the last event of a match is at hand when it is counted
        live[-1] = set()
    if any(len(steps) > 1 for steps in live):
        return None
    return ChainWalk(
        forwards,
        steps,
        tuple(next(iter(variables_), None) for variables_ in live),
        negations,
        chain_.conditions,
        chain_.returned,
    )
