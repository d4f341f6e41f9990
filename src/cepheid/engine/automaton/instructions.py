"""What an automaton's program is made of.

An instruction that binds is a state with its edges: *forward* continues with what comes behind it,
*filter* passes over an event and on to the next (a `Search` for the `exact` position has no such
edge), *rebind* takes one more event into a group. `Fork` ends a list with several ways to continue.
Some instructions have a search of their own, a list inside them.
"""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.algebra.expressions import Expr
from cepheid.engine.automaton.elements import Criterion, EventGroup, RoundChain, Sweep
from cepheid.engine.automaton.points import End, Neighbors, Path

# ── binding ──


@dataclass(frozen=True, slots=True)
class Start:
    """Bind each live event of a class that a match can start with; `entry` numbers the ways."""

    entry: int
    variable: str
    path: Path


@dataclass(frozen=True, slots=True)
class Search:
    """Bind each event of the sweep.

    `exact`: only at the position next to this one (`=>`). `first`: only the first for which all up
    to `TakeFirst` holds, and those that tie with it (`->`). `growing` are groups left of it that
    grow as the search continues. `unbroken`: the event must touch this one of them, or, if it is
    empty, what is left of it. `member`: the event is one of the match's, no forbidden one.
    """

    sweep: Sweep
    path: Path
    member: bool
    exact: End | None = None
    first: bool = False
    growing: tuple[EventGroup, ...] = ()
    unbroken: Path | None = None


@dataclass(frozen=True, slots=True)
class Choose:
    """Bind each group of events, as `{n}`, PREFIXES, RUNS and SUBSETS have them. `first`: only
    those that begin with the first event that qualifies. `start`: the group is what matches start
    with. `rest` continues after the first element. `awaits`: the position that the group has to
    touch may come. `runs`: the positions of the first run are noted for `FirstRun`."""

    group: EventGroup
    rest: Sweep
    first: bool
    start: int | None
    member: bool
    awaits: bool
    runs: bool


@dataclass(frozen=True, slots=True)
class ChooseRounds:
    """The same among the rounds of a closure over a pattern. If nothing is bound before it, its
    rounds count from every event of `anchors`, or from every start."""

    chain: RoundChain
    first: bool
    start: int | None
    anchors: Sweep | None
    awaits: bool
    runs: bool


@dataclass(frozen=True, slots=True)
class FirstRun:
    """Continue with the first run alone, and those that are simultaneous with it."""

    path: Path
    variable: str


@dataclass(frozen=True, slots=True)
class Empty:
    """Bind an empty group."""

    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass: `duration` from the end of the last of the parts `before` that binds
    something. What comes behind it comes after that, and after the parts `beside`, in which time
    passes, too."""

    path: Path
    before: tuple[Path, ...]
    duration: int
    beside: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Gather:
    """Bind the maximal group between two neighbors, if it has at least so many elements."""

    group: EventGroup | RoundChain
    least: int


@dataclass(frozen=True, slots=True)
class Grow:
    """Let a group that grows with the anchor at hand take what lies before that."""

    group: Path
    anchor: str


@dataclass(frozen=True, slots=True)
class Unbroken:
    """Leave the search if the anchor doesn't touch the group left of it."""

    group: Path
    left: End
    anchor: Path


@dataclass(frozen=True, slots=True)
class Grown:
    """Bind a group that has grown, if it has at least so many elements."""

    group: EventGroup
    least: int


@dataclass(frozen=True, slots=True)
class Defer:
    """Let a closure that has no neighbor on one side wait for the whole match."""

    path: Path
    lower: Path | None
    upper: Path | None


@dataclass(frozen=True, slots=True)
class GatherEdge:
    """Bind a closure that was deferred: up to the edge of the match's window where it has no
    neighbor. `least` to `most` elements; `prefixes`: each of those sizes. `leading`: the longest
    run that touches what is right of it. `beside` are closures that were deferred before it: it
    comes after them."""

    group: EventGroup | RoundChain
    least: int
    most: int | None
    prefixes: bool
    leading: bool
    beside: tuple[Path, ...] = ()


# ── going on ──


@dataclass(frozen=True, slots=True)
class Hold:
    """Continue if the criteria hold: those that have become evaluable."""

    criteria: tuple[Criterion, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """Continue if no event is bound by variables of both sides."""

    some: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Touching:
    """That a part stands at the position next to this one. An `anchor` does if nothing is bound
    before it, a group if it is empty."""

    end: End
    part: Path
    anchor: bool = False


@dataclass(frozen=True, slots=True)
class Touch:
    """Continue if all of these touch (`=>`)."""

    parts: tuple[Touching, ...]


@dataclass(frozen=True, slots=True)
class TakeFirst:
    """Note that the first event of a search is the one at hand."""

    path: Path


@dataclass(frozen=True, slots=True)
class Fit:
    """Continue if no maximal group has more elements than it may."""

    most: tuple[tuple[Path, int], ...]


@dataclass(frozen=True, slots=True)
class Fork:
    """Each of these ways in turn."""

    ways: tuple[Instructions, ...]


@dataclass(frozen=True, slots=True)
class Pick:
    """Take a branch of a disjunction."""

    path: Path
    branch: int


# ── searches of their own ──


@dataclass(frozen=True, slots=True)
class Earliest:
    """Find the earliest composite, by its complete history; what comes behind, up to `Equal`,
    searches again, without waiting. `awaits`: if there is none, one may come."""

    path: Path
    search: Instructions
    awaits: bool


@dataclass(frozen=True, slots=True)
class Equal:
    """Continue only with the composites that are as early as the earliest."""

    path: Path


@dataclass(frozen=True, slots=True)
class Remember:
    """What is bound up to here is where the rivals of an anchor are looked for from."""

    path: Path


@dataclass(frozen=True, slots=True)
class Unbeaten:
    """Continue if no earlier anchor has the same groups left of it."""

    path: Path
    groups: tuple[str, ...]
    rivals: Instructions


@dataclass(frozen=True, slots=True)
class Complete:
    """A round is bound: keep it if it is the first so far. `until`: whether it ends the group."""

    until: Expr | None


@dataclass(frozen=True, slots=True)
class Interruption:
    """An exception, looked for from a part's start to its end; no search if that binds nothing."""

    during: Path
    path: Path
    item_variables: tuple[str, ...]
    exception_variables: tuple[str, ...]
    search: Instructions | None


@dataclass(frozen=True, slots=True)
class Uninterrupted:
    """Continue if the exception isn't there."""

    exception: Interruption


# ── a complete match ──


@dataclass(frozen=True, slots=True)
class Passed:
    """Continue if the window of the match has passed; else it waits."""


@dataclass(frozen=True, slots=True)
class Decide:
    """All is bound. Continue if the match is inside its window, known by now, and wasn't known in
    the round before. `waits`: it is known when its window has passed. `strict`: when the next
    position of the stream is known (`P => !Q`). `last`: it is known as soon as this variable is
    bound, so the position of its last event shows whether the match is new."""

    waits: bool
    strict: bool
    last: str | None


@dataclass(frozen=True, slots=True)
class Require:
    """Continue if these conditions on the match hold; what they read is bound."""

    conditions: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Forbid:
    """No match of the pattern lies between the neighbors; if it has a time of its own, in that
    `duration` after the one before, or, if there is none, before the one after."""

    path: Path
    between: Neighbors
    variables: tuple[str, ...]
    search: Instructions
    duration: int | None = None


@dataclass(frozen=True, slots=True)
class ForbidNext:
    """None starts at the position next to the neighbor on the left (`P => !Q`). If nothing is bound
    there, what is forbidden `otherwise` counts."""

    path: Path
    between: Neighbors
    search: Instructions
    otherwise: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class ForbidRounds:
    """What is forbidden in each round of a closure: `rounds` ends with `CheckRound`."""

    path: Path
    rounds: Instructions


Check = Forbid | ForbidNext | ForbidRounds


@dataclass(frozen=True, slots=True)
class RoundEvent:
    """The event that a variable binds in the round at hand of a closure."""

    closure: Path
    variable: str
    path: Path


@dataclass(frozen=True, slots=True)
class RoundGroup:
    """The group that a variable binds in the round at hand."""

    closure: Path
    variable: str
    path: Path
    least: int


@dataclass(frozen=True, slots=True)
class RoundGroups:
    """The groups that the variables of a closure inside bind in the round at hand."""

    closure: Path
    variables: tuple[str, ...]
    path: Path


@dataclass(frozen=True, slots=True)
class PickRound:
    """Continue if the current round took this branch; the variables of the others are absent."""

    closure: Path
    path: Path
    branch: int
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckRound:
    """Note whether one of the checks fails."""

    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Unforbidden:
    """Continue if no exception is there and no check fails. `negating`: there may be checks."""

    exceptions: tuple[Interruption, ...]
    checks: tuple[Check, ...]
    negating: bool
    strict: bool


@dataclass(frozen=True, slots=True)
class Emit:
    """Write the match."""


Binding = Start | Search | Choose | ChooseRounds | Gather | Grown | GatherEdge | Earliest | Unbeaten
"""Instructions that look for something."""

Gate = (
    Hold
    | Distinct
    | Touch
    | Wait
    | Fit
    | FirstRun
    | Grow
    | Unbroken
    | TakeFirst
    | Equal
    | Uninterrupted
    | PickRound
    | Passed
    | Decide
    | Require
    | Unforbidden
)
"""Instructions that check or do something before those behind them."""

Note = Empty | Defer | Pick | Remember | RoundEvent | RoundGroup | RoundGroups
"""Instructions that say where something is; no source is written for them."""

Last = Fork | Complete | CheckRound | Emit
"""Instructions that nothing comes behind."""

Instruction = Binding | Gate | Note | Last
Instructions = tuple[Instruction, ...]
