"""What fails early: conditions on the match, as soon as what they read is bound (NEXT 3.4).

HAVING kills a match without looking for another, so it doesn't matter when: checked early, it saves
the search for the rest, and frees a start that no event to come can save. It must not decide which
event comes first. So nothing is checked between a search for the first and the place at which that
is found, nor inside a search of its own (the earliest composite, what is forbidden, rounds).

A bound on the time between events ends a search as the window does, and says when a start can stop
waiting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from cepheid.algebra.expressions import (
    Call,
    Constant,
    Expr,
    MatchDuration,
    TimeSpan,
    Varying,
    variables,
    walk,
)
from cepheid.engine.automaton.elements import EventGroup, TimeBound
from cepheid.engine.automaton.instructions import (
    Choose,
    ChooseRounds,
    Fork,
    Gather,
    Grown,
    Hold,
    Instruction,
    Instructions,
    Require,
    Search,
    Start,
    TakeFirst,
)
from cepheid.engine.automaton.points import Path


def checked_early(instructions: Instructions, *, timed: bool) -> Instructions:
    """The program with its conditions where they can be checked first. `timed`: its clock is time,
    and no end is moved."""
    return _checked_early(instructions, _Place(), timed)


@dataclass(frozen=True)
class _Place:
    """What is bound at a place: `events` one by one, and `names` altogether. `checked` holds
    already. `seeking` are the searches for a first event that isn't found yet."""

    names: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()
    checked: frozenset[Expr] = frozenset()
    seeking: frozenset[Path] = frozenset()

    def behind(self, step: Instruction) -> _Place:
        match step:
            case Start(variable=v):
                return replace(self, names=self.names | {v}, events=self.events | {v})
            case Search(sweep=sweep, path=path, first=first):
                v = sweep.variable
                seeking = self.seeking | {path} if first else self.seeking
                return replace(
                    self, names=self.names | {v}, events=self.events | {v}, seeking=seeking
                )
            case TakeFirst(path=path):
                return replace(self, seeking=self.seeking - {path})
            case Gather(group=EventGroup() as group) | Grown(group=group):
                return replace(self, names=self.names | {group.variable})
            case Choose(group=group, first=first):
                seeking = self.seeking | {group.path} if first else self.seeking
                return replace(self, names=self.names | {group.variable}, seeking=seeking)
            case ChooseRounds(chain=chain, first=True):
                return replace(self, seeking=self.seeking | {chain.path})
            case _:
                return self

    def ready(self, conditions: Iterable[Expr]) -> tuple[Expr, ...]:
        """Those that can be checked here and weren't before."""
        if self.seeking:
            return ()
        return tuple(
            c
            for c in dict.fromkeys(conditions)
            if c not in self.checked
            and variables(c)
            and variables(c) <= self.names
            and not any(isinstance(e, MatchDuration) for e in walk(c))
        )


def _checked_early(instructions: Instructions, place: _Place, timed: bool) -> Instructions:
    required = tuple(_required(instructions))
    made: list[Instruction] = []
    for n, step in enumerate(instructions):
        behind = instructions[n + 1 :]
        match step:
            case Fork(ways=ways):
                made.append(Fork(tuple(_checked_early(way, place, timed) for way in ways)))
                continue
            case Require(conditions=conditions):
                step = Require(tuple(c for c in conditions if c not in place.checked))
            case Search() if timed:
                held = tuple(_held(behind))
                step = _bounded(step, place, (*held, *required))
            case _:
                pass
        made.append(step)
        place = place.behind(step)
        if behind and isinstance(behind[0], Hold):
            continue
        if ready := place.ready(required):
            made.append(Require(ready))
            place = replace(place, checked=place.checked | set(ready))
    return tuple(made)


def _required(instructions: Instructions) -> Iterator[Expr]:
    """The conditions on every match that these instructions find."""
    for step in instructions:
        match step:
            case Require(conditions=conditions):
                yield from conditions
            case Fork(ways=ways):
                first, *others = (tuple(_required(way)) for way in ways)
                yield from (c for c in first if all(c in other for other in others))
            case _:
                pass


def _held(behind: Instructions) -> Iterator[Expr]:
    """The conditions that each event of a search has to satisfy."""
    if behind and isinstance(behind[0], Hold):
        yield from (c.condition for c in behind[0].criteria if c.running is None)


def _bounded(step: Search, place: _Place, conditions: Iterable[Expr]) -> Search:
    """The search, ended where the time from events that are bound gets too long."""
    if not step.sweep.awaits or step.sweep.unordered or step.exact is not None:
        return step
    bounds = [s for c in conditions if (s := _bound_of(c, step.sweep.variable, place.events))]
    if not bounds:
        return step
    return replace(step, sweep=replace(step.sweep, bounds=tuple(dict.fromkeys(bounds))))


def _bound_of(condition: Expr, variable: str, events: frozenset[str]) -> TimeBound | None:
    """How long after other events the variable's may come, if the condition says that."""
    match condition:
        case Call("<", (TimeSpan(variables=names), Constant(value=int(ticks)) as limit)):
            others = tuple(v for v in names if v in events and v != variable)
            fixed = variable in names and not isinstance(limit, Varying)
            return TimeBound(others, ticks) if others and fixed else None
        case _:
            return None
