"""What instructions take: events of a class, groups of them, rounds of a pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cepheid.algebra.expressions import Aggregate, Expr
from cepheid.algebra.patterns import Closure, Leaf
from cepheid.engine.automaton.points import End, Path, Point

if TYPE_CHECKING:
    from cepheid.engine.automaton.instructions import Instructions


@dataclass(frozen=True, slots=True)
class Criterion:
    """A condition that has to hold. One that is `running`, for this variable, is checked against
    the elements of its group before; for the first element it holds, unless it is `initial`."""

    condition: Expr
    running: str | None = None
    initial: bool = False


@dataclass(frozen=True, slots=True)
class TimeBound:
    """An event comes less than this many ticks after the earliest of these others."""

    others: tuple[str, ...]
    ticks: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """The events of a class that are gone through: after one position and before another.

    `inside`: it ends at the first that is out of the window. `unordered`: events may come before
    what is bound; `near`: only from where the window of the latest begins. `awaits`: where it runs
    into the horizon, events to come may count, and the start stays alive. `bounds`: it ends where
    one of them is exceeded.
    """

    variable: str
    lower: Point | None
    upper: Point | None
    inside: bool
    unordered: bool
    near: bool
    awaits: bool
    bounds: tuple[TimeBound, ...] = ()


@dataclass(frozen=True, slots=True)
class EventGroup:
    """How a closure takes events: those of the sweep that satisfy the criteria, until one `until`
    names. `strict`: each at the next position of the stream; `touch`: the first of them at the
    position next to this one. `aggregates` are carried along (Cayuga's α)."""

    path: Path
    closure: Closure
    sweep: Sweep
    strict: bool
    touch: End | None
    until: Expr | None
    criteria: tuple[Criterion, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def variable(self) -> str:
        return self.sweep.variable


@dataclass(frozen=True, slots=True)
class RoundChain:
    """How a closure over a pattern takes its rounds: `search` finds the first one after the round
    before, and ends with `Complete`. `branches` are the disjunctions inside. With an `anchor`, the
    first round starts with its event. `awaits`: where there is no further round, one may come."""

    path: Path
    closure: Closure
    lower: Point | None
    upper: Point | None
    strict: bool
    touch: End | None
    awaits: bool
    search: Instructions
    branches: tuple[Path, ...]
    anchor: str | None = None


def element(closure: Closure) -> str:
    """The variable of a closure over events."""
    assert isinstance(closure.item, Leaf)
    return closure.item.variable
