"""Where things are at a place in the kernel, as source: events, groups, positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cepheid.algebra.expressions import Expr
from cepheid.engine.automaton.elements import EventGroup
from cepheid.engine.automaton.points import Path
from cepheid.engine.lowering import Event, GroupPlace, Place, Seen

BEFORE_ALL, AFTER_ALL = "-FAR", "FAR"


@dataclass(frozen=True)
class Extent:
    """Source of where a part lies: positions, readings of the window's clock, and times, at its
    start and at its end. `first` is where its first member stands in the stream, which is at that
    member's end. `some` says whether it binds anything (None: always)."""

    start: str
    end: str
    clock_start: str
    clock_end: str
    time_start: str
    time_end: str
    first: str
    some: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """All but `some`; of each pair, and last, what is the least of its parts'."""
        return (
            self.start,
            self.end,
            self.clock_start,
            self.clock_end,
            self.time_start,
            self.time_end,
            self.first,
        )


FIELDS = 7


def around(extents: list[Extent], ordered: bool) -> Extent | None:
    """From the earliest start to the latest end. `ordered`: they follow each other."""
    if len(extents) < 2:
        return extents[0] if extents else None
    if ordered and all(e.some is None for e in extents):
        first, last = extents[0].fields, extents[-1].fields
        return Extent(first[0], last[1], first[2], last[3], first[4], last[5], first[6])
    sides: list[str] = []
    for n in range(FIELDS):
        which, far = ("min", AFTER_ALL) if n % 2 == 0 else ("max", BEFORE_ALL)
        values = [
            e.fields[n] if e.some is None else f"({e.fields[n]} if {e.some} else {far})"
            for e in extents
        ]
        sides.append(f"{which}({', '.join(values)})")
    certain = any(e.some is None for e in extents)
    some = None if certain else f"({' or '.join(str(e.some) for e in extents)})"
    return replace(Extent(*sides), some=some)


@dataclass(frozen=True)
class Limits:
    """Strictly between two positions and, where a neighbor is missing, two readings of the
    clock. None is no limit."""

    lower: str | None = None
    upper: str | None = None
    earliest: str | None = None
    latest: str | None = None


@dataclass(frozen=True)
class Fold:
    """An aggregate that is carried along while a group is built (Cayuga's α: initialize,
    accumulate, finalize): `totals[n]` and `counts[n]` are of its first n elements. `seen` are the
    values of one that is DISTINCT."""

    totals: str
    counts: str
    seen: Seen | None = None


@dataclass(frozen=True)
class GroupInProgress:
    """A group of events while it is being built: `rows[:count]`. `touch` is the position that its
    first element must have."""

    group: EventGroup
    limits: Limits
    touch: str | None
    rows: str
    count: str

    @property
    def place(self) -> GroupPlace:
        return GroupPlace(self.rows, "0", self.count)


@dataclass(frozen=True)
class Growth:
    """A group that grows with an anchor: how far its list has been read, whether it has ended, and
    what was known before the anchor."""

    taken: GroupInProgress
    index: str
    ended: str
    outside: Env


@dataclass(frozen=True)
class Rounds:
    """The rounds of a closure over a pattern that were chosen: `count` of them, from the
    `first`-th on. `rows[v]` holds the events of variable v, `offsets[v]` where each round's
    begin; `bounds` are where each round lies, as the fields of an extent, and `branches` which
    branch of each disjunction it took. Of other than consecutive rounds, `first` is 0 and the
    arrays hold the chosen ones."""

    count: str
    first: str
    rows: Mapping[str, str]
    offsets: Mapping[str, str]
    bounds: tuple[str, ...]
    branches: Mapping[Path, str]

    def extent(self, at: str) -> Extent:
        return Extent(*(f"{array}[u({at})]" for array in self.bounds))


@dataclass(frozen=True)
class Composite:
    """The history of the earliest composite, one that is compared with it, and the size of the
    first, which is 0 as long as there is none; `upper` is what bounded the search for it."""

    best: str
    compared: str
    size: str
    upper: str | None


@dataclass(frozen=True)
class Env:
    """Where things are at a place in the kernel.

    `scope` says where variables are; of one whose group is being built, `v` is the element at
    hand and `v…` the elements taken before. `low` and `high` are readings of the clock that the
    match's start and end are not after and not before. Of the search at hand, `origin` is where it
    begins, `upper` a position that all must end before, `stop` a flag that ends it.
    """

    scope: Mapping[str, Place] = field(default_factory=dict)
    extents: Mapping[Path, Extent] = field(default_factory=dict)
    choices: Mapping[Path, int] = field(default_factory=dict)
    rounds: Mapping[Path, Rounds] = field(default_factory=dict)
    low: str | None = None
    high: str | None = None
    origin: str | None = None
    upper: str | None = None
    stop: str | None = None
    # Of a round that is bound: whether it ends the group.
    until: Expr | None = None
    # Of groups: how many elements, and those that grow; of `{n}` after `->`, the first run.
    counts: Mapping[Path, str] = field(default_factory=dict)
    growing: Mapping[Path, Growth] = field(default_factory=dict)
    runs: Mapping[Path, tuple[str, str]] = field(default_factory=dict)
    # Of negations with a time of their own: a position that lies behind those of the events in it,
    # or is the last of them.
    lapses: Mapping[Path, str] = field(default_factory=dict)
    # Of anchors: the position at hand, and the first for which all holds.
    anchors: Mapping[Path, tuple[str, str | None]] = field(default_factory=dict)
    composites: Mapping[Path, Composite] = field(default_factory=dict)
    remembered: Mapping[Path, Env] = field(default_factory=dict)
    fringes: Mapping[Path, tuple[Extent | None, Extent | None]] = field(default_factory=dict)
    # Of a complete match: where it lies, whether it was known in the round before, the edges of its
    # window, whether something forbidden is there, and of closures, which round is looked at.
    whole: Extent | None = None
    known_before: str = ""
    window: tuple[str | None, str | None] = (None, None)
    hit: str = ""
    turns: Mapping[Path, str] = field(default_factory=dict)

    def bind(self, variable: str, row: str, path: Path, extent: Extent) -> Env:
        return replace(
            self,
            scope={**self.scope, variable: Event(row, False)},
            extents={**self.extents, path: extent},
        )
