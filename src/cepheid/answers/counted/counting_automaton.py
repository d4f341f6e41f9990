"""The automaton that counts the matches of a pattern.

A state holds partial matches that wait for the same event. Every step has edges that take an event,
and some that only let partial matches pass by one: after `B+ b RUNS` has stopped, for example, what
stands right of it is still looked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, pairwise

from cepheid.algebra.patterns import (
    Closure,
    Conjunction,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    walk,
)
from cepheid.kernels.templates.sequence_counts import CountingShape, Out, WeightedEdge
from cepheid.language.ast import Between, Exactly, Mode, Optional, SequenceOperator

MOST_STATES = 16
MOST_STEPS = 16


class NotCounted(Exception):
    """Why a pattern has no such automaton."""


@dataclass(frozen=True, slots=True)
class _Move:
    step: int
    source: int
    target: int
    takes: bool = True


@dataclass(frozen=True)
class CountingAutomaton:
    """`steps` are the variables whose events move partial matches; `shape` counts matches as its
    output 0."""

    steps: tuple[str, ...]
    moves: tuple[_Move, ...]
    ends: frozenset[int]
    counting: int  # the first so many states count
    shape: CountingShape

    def carrying(self, variable: str, output: int, value: int) -> CountingAutomaton:
        """Also sums up a value of the variable's events, over matches: of each match, one partial
        copy has taken the value, for every event that it could have been."""
        shape, step = self.shape, self.steps.index(variable)
        edges, outs = list(shape.edges), list(shape.outs)
        first = shape.states
        for move in self.moves:
            source, target = move.source, move.target
            edges.append(WeightedEdge(move.step, source + first, target + first))
            if move.step == step and move.takes:
                edges.append(WeightedEdge(move.step, source, target + first, value))
            if move.takes and target in self.ends:
                outs.append(Out(move.step, source + first, output))
                if move.step == step:
                    outs.append(Out(move.step, source, output, value))
        copies = [(by, state + first) for by, state in shape.clears if state < self.counting]
        clears = (*shape.clears, *copies)
        states = first + self.counting
        grown = CountingShape(states, tuple(edges), tuple(outs), clears, shape.blocks)
        return replace(self, shape=grown)


def counting_automaton(pattern: Pattern) -> CountingAutomaton:
    """Raises `NotCounted` if there is none."""
    building = _Building()
    ends = building.add(pattern, (0,), alone=True, last=True)
    if 0 in ends:
        raise NotCounted("a match may be empty")
    if building.states > MOST_STATES or len(building.steps) > MOST_STEPS:
        raise NotCounted(f"the pattern has more than {MOST_STATES} states")
    moves = building.moves
    shape = CountingShape(
        building.states,
        tuple(WeightedEdge(m.step, m.source, m.target) for m in moves),
        tuple(Out(m.step, m.source, 0) for m in moves if m.takes and m.target in ends),
        tuple(building.clears),
        tuple(building.blocks),
    )
    return CountingAutomaton(
        tuple(building.steps), tuple(moves), frozenset(ends), building.states, shape
    )


States = tuple[int, ...]


@dataclass
class _Building:
    """`add` continues partial matches from some states, and returns those in which the part is
    complete. `alone`: nothing else leaves the states; `last`: nothing follows in the pattern."""

    states: int = 1
    steps: list[str] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    moves: list[_Move] = field(default_factory=list)
    clears: list[tuple[int, int]] = field(default_factory=list)

    def add(self, pattern: Pattern, entries: States, *, alone: bool, last: bool) -> States:
        match pattern:
            case Leaf(variable):
                step, state = self._step(variable), self._state()
                self._move(step, entries, state)
                return (state,)
            case Sequence():
                return self._sequence(pattern, entries, alone, last)
            case Disjunction(items):
                parts = (self.add(item, entries, alone=False, last=last) for item in items)
                return tuple(chain.from_iterable(parts))
            case Conjunction(items):
                return self._conjunction(items, entries)
            case Closure():
                return self._closure(pattern, entries, alone, last)
            case _:
                raise NotCounted("the pattern has a part that only whole matches decide")

    def _step(self, variable: str, block: int | None = None) -> int:
        self.steps.append(variable)
        following = self.blocks[-1] + 1 if self.blocks else 0
        self.blocks.append(following if block is None else block)
        return len(self.steps) - 1

    def _state(self) -> int:
        self.states += 1
        return self.states - 1

    def _move(self, step: int, sources: Iterable[int], target: int, takes: bool = True) -> None:
        self.moves += [_Move(step, source, target, takes) for source in sources]

    def _sequence(self, pattern: Sequence, entries: States, alone: bool, last: bool) -> States:
        if any(operator is not SequenceOperator.ANY for operator in pattern.operators):
            raise NotCounted("`->` and `=>` choose among events")
        final = len(pattern.items) - 1
        for n, item in enumerate(pattern.items):
            if isinstance(item, Negation):
                self._negation(item, entries, alone, last and n == final)
            else:
                entries = self.add(item, entries, alone=alone, last=last and n == final)
                alone = not any(isinstance(part, Closure) for part in walk(item))
        return entries

    def _negation(self, item: Negation, entries: States, alone: bool, last: bool) -> None:
        if not isinstance(item.item, Leaf) or last or not alone:
            raise NotCounted("a negation is not of one event between two others")
        step = self._step(item.item.variable)
        self.clears += [(step, state) for state in entries]

    def _conjunction(self, items: tuple[Pattern, ...], entries: States) -> States:
        """A state for each choice of items that are there, in whatever order they came."""
        if not all(isinstance(item, Leaf) for item in items):
            raise NotCounted("`&` joins more than single events")
        if len(items) > 3:
            raise NotCounted("`&` joins more than three events")
        block = self.blocks[-1] + 1 if self.blocks else 0
        steps = [self._step(item.variable, block) for item in items if isinstance(item, Leaf)]
        choices = chain.from_iterable(combinations(steps, n + 1) for n in range(len(steps)))
        states: dict[tuple[int, ...], States] = {(): entries}
        for chosen in choices:
            states[chosen] = (self._state(),)
            for step in chosen:
                before = states[tuple(other for other in chosen if other != step)]
                self._move(step, before, states[chosen][0])
        return states[tuple(steps)]

    def _closure(self, closure: Closure, entries: States, alone: bool, last: bool) -> States:
        if not isinstance(closure.item, Leaf) or closure.strict or closure.until is not None:
            raise NotCounted("a closure is of several events, STRICT, or has UNTIL")
        shaped = not closure.mode.independent and not isinstance(closure.quantifier, Exactly)
        if shaped and not alone:
            raise NotCounted("two closures stand side by side")
        match closure.quantifier:
            case Optional():
                if last:
                    raise NotCounted("a closure at the end is known only when its window is over")
                return self._first(closure.item.variable, entries)
            case Exactly(count):
                return self._taken_in_turn(closure.item.variable, entries, (count, count), False)
            case Between(low, high):
                size = (low, high)
        variable = closure.item.variable
        match closure.mode:
            case Mode.SUBSETS:
                return self._subsets(variable, entries, size)
            case Mode.MAXIMAL:
                if last:
                    raise NotCounted("a closure at the end is known only when its window is over")
                return self._maximal(variable, entries, size)
            case Mode.PREFIXES:
                return self._taken_in_turn(variable, entries, size, True)
            case Mode.RUNS:
                return self._taken_in_turn(variable, entries, size, False)

    def _first(self, variable: str, entries: States) -> States:
        """The first event is taken, if there is one."""
        step, taken = self._step(variable), self._state()
        self.clears += [(step, state) for state in entries]
        self._move(step, entries, taken)
        return (*entries, taken)

    def _counted_states(self, size: tuple[int, int | None]) -> list[int]:
        """One for each number of elements; the last one of those without a limit has more."""
        low, high = size
        count = max(low, 1) if high is None else high
        if count > MOST_STATES:
            raise NotCounted("a closure has too many elements to count them by states")
        return [self._state() for _ in range(count)]

    def _subsets(self, variable: str, entries: States, size: tuple[int, int | None]) -> States:
        low, high = size
        step, taken = self._step(variable), self._counted_states(size)
        self._move(step, entries, taken[0])
        for before, after in pairwise(taken):
            self._move(step, (before,), after)
        if high is None:
            self._move(step, taken[-1:], taken[-1])
        return (*(entries if low == 0 else ()), *taken[max(low, 1) - 1 :])

    def _maximal(self, variable: str, entries: States, size: tuple[int, int | None]) -> States:
        """Every event is taken, so partial matches don't wait while one passes."""
        low, high = size
        step, taken = self._step(variable), self._counted_states(size)
        self.clears += [(step, state) for state in (*entries, *taken)]
        self._move(step, entries, taken[0])
        for before, after in pairwise(taken):
            self._move(step, (before,), after)
        if high is None:
            self._move(step, taken[-1:], taken[-1])
        return (*(entries if low == 0 else ()), *taken[max(low, 1) - 1 :])

    def _taken_in_turn(
        self, variable: str, entries: States, size: tuple[int, int | None], first: bool
    ) -> States:
        """Every event is taken until the group stops, and then none. `first`: the group begins with
        the first event that qualifies, not at any."""
        low, high = size
        step, taken = self._step(variable), self._counted_states(size)
        stopped = self._state()
        self._move(step, entries, taken[0])
        if first:
            self.clears += [(step, state) for state in entries]
            if low == 0:
                if any(state in entries for _, state in self.clears[: -len(entries)]):
                    raise NotCounted("a negation stands before a closure that may be empty")
                self._move(step, entries, stopped, takes=False)
        for before, after in pairwise(taken):
            self._move(step, (before,), after)
        if high is None:
            self._move(step, taken[-1:], taken[-1])
        self.clears += [(step, state) for state in taken]
        complete = taken[max(low, 1) - 1 :]
        self._move(step, complete, stopped, takes=False)
        return (*(entries if low == 0 else ()), *complete, stopped)
