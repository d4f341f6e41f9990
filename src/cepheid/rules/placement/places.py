"""Where rules run on Spark: which share a pass over the events, and how a pass is divided.

A *pass* brings the rows that its rules read to tasks, once for all of them. How many tasks that can
be depends on what keeps the rows apart: the values of a key, slices of time, or nothing. These are
its *lanes*. Where lanes are fewer than cores, the rules are divided instead: each *part* of them
has tasks of its own, and the rows that it reads are shipped once more.

Parts are filled greedily, as NEXT places operators (4.4): rules that share steps stay together, and
go where the load is least once they are there; what is shipped there already costs nothing more.
Loads are per row of the events, and count conditions that a row is tried with. Only their ratios
mean something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cepheid.options import Placement

READ = 6.0
"""The cost of handing a row to the automaton and finding its predicates."""
SHUFFLED = 12.0
"""The cost of shuffling a row to its key or slice, and sorting it there."""
MOST_NODES = 1 << 20
"""The most nodes in the automata of one part: a task holds all of them."""
WORTH = 0.9
"""A division is used only if it takes at most this share of the time without it: it also takes
cores from other passes."""
EVERY = ""
"""The row type of rules that read every type."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rules that stay together: the cost of a row, their number of nodes, and the row types that
    they read."""

    rules: int
    cost: float
    nodes: int
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class Load:
    """Rules with a common key, or without any. `reach` is how long an event matters. With `single`,
    every match is one event, so rows aren't shuffled."""

    key: str | None
    reach: int
    single: bool
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Ground:
    """The session: its parallel tasks and shuffle partitions, and the time range of the events if
    it is known."""

    cores: int
    partitions: int
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A pass. `groups` are the numbers of its loads; `parts` lists the pieces of each part as
    (load, piece). `loads` has the load of each part, `lanes` its number of tasks."""

    groups: tuple[int, ...]
    key: str | None
    parts: tuple[tuple[tuple[int, int], ...], ...]
    loads: tuple[float, ...]
    lanes: int

    @property
    def total(self) -> float:
        return sum(self.loads)

    @property
    def longest(self) -> float:
        """The time of its longest task."""
        return max(self.loads) / self.lanes


def time_of(places: Iterable[Place], cores: int) -> float:
    """The time until all are done: the work divided by the cores, but at least the longest task."""
    held = tuple(places)
    return max(sum(p.total for p in held) / cores, max((p.longest for p in held), default=0.0))


def place(
    loads: Sequence[Load], ground: Ground, placement: Placement = "auto"
) -> tuple[Place, ...]:
    """Choose the passes: `keys` makes one for each load, `one` one for all, `split` divides each
    among the cores, and `auto` takes the choice with the shortest estimated time."""
    site = Site(tuple(loads), ground, kinds_of(loads))
    alone: list[tuple[int, ...]] = [(n,) for n in range(len(loads))]
    match placement:
        case "one":
            return (site.divided(tuple(range(len(loads))), 1),) if loads else ()
        case "keys":
            return tuple(site.divided(groups, 1) for groups in alone)
        case "split":
            return tuple(site.divided(groups, ground.cores) for groups in alone)
        case "auto":
            return _split(site, _joined(site, alone))


def _joined(site: Site, passes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The loads that are cheaper in the slices of the keyless ones, the lightest first."""
    wide = next((g for g in passes if site.loads[g[0]].key is None), None)
    if wide is None:
        return passes
    keyed = sorted((g for g in passes if g != wide), key=lambda g: site.divided(g, 1).total)
    for groups in keyed:
        both = tuple(sorted((*wide, *groups)))
        others = [site.divided(g, 1) for g in passes if g not in (wide, groups)]
        apart = [*others, site.divided(wide, 1), site.divided(groups, 1)]
        joined = [*others, site.divided(both, 1)]
        less = sum(p.total for p in joined) < sum(p.total for p in apart)
        if less and time_of(joined, site.ground.cores) <= time_of(apart, site.ground.cores):
            passes = [both if g == wide else g for g in passes if g != groups]
            wide = both
    return passes


def _split(site: Site, passes: list[tuple[int, ...]]) -> tuple[Place, ...]:
    """Divide passes, the one with the longest task first, into as many parts as shorten the total
    time."""
    cores = site.ground.cores
    chosen = {groups: site.divided(groups, site.fewest(groups)) for groups in passes}
    for groups in sorted(passes, key=lambda g: -chosen[g].longest):
        others = [p for g, p in chosen.items() if g != groups]
        ways = [site.divided(groups, n) for n in site.counts(groups)]
        best = min(ways, key=lambda way: time_of([*others, way], cores), default=chosen[groups])
        if time_of([*others, best], cores) < WORTH * time_of(chosen.values(), cores):
            chosen[groups] = best
    return tuple(chosen.values())


@dataclass(frozen=True)
class Site:
    """The cost of a pass in this session."""

    loads: tuple[Load, ...]
    ground: Ground
    kinds: frozenset[str]

    def reach(self, groups: Sequence[int]) -> int:
        return max(self.loads[n].reach for n in groups)

    def key(self, groups: Sequence[int]) -> str | None:
        """The key of a load; different loads have different keys."""
        return self.loads[groups[0]].key if len(groups) == 1 else None

    def single(self, groups: Sequence[int]) -> bool:
        return all(self.loads[n].single for n in groups)

    def lanes(self, groups: Sequence[int]) -> int:
        whole = Load(self.key(groups), self.reach(groups), self.single(groups), ())
        return lanes(whole, self.ground)

    def copies(self, groups: Sequence[int]) -> float:
        """How often a row is shipped: a slice also needs the end of the slice before it."""
        count, length = self.lanes(groups), self.ground.length
        if self.single(groups) or self.key(groups) is not None or count < 2 or length is None:
            return 1.0
        return 1 + min(1.0, (count - 1) * self.reach(groups) / length)

    def fewest(self, groups: Sequence[int]) -> int:
        """The fewest parts with which each part fits into a task."""
        nodes = sum(piece.nodes for n in groups for piece in self.loads[n].pieces)
        return max(1, -(-nodes // MOST_NODES))

    def counts(self, groups: Sequence[int]) -> Iterator[int]:
        """The numbers of parts to try: powers of two, and one for each core that has no lane."""
        most = -(-self.ground.cores // self.lanes(groups))
        count = self.fewest(groups) + 1
        while count < most:
            yield count
            count *= 2
        if most > self.fewest(groups):
            yield most

    def divided(self, groups: tuple[int, ...], count: int) -> Place:
        """Assign pieces, the heaviest first, each to the part that stays lightest with it."""
        pieces = [(n, m) for n in groups for m in range(len(self.loads[n].pieces))]
        pieces.sort(key=lambda at: -self.piece(at).cost)
        copies = self.copies(groups)
        shipped = copies * (READ if self.single(groups) else READ + SHUFFLED)
        kinds: list[frozenset[str]] = [frozenset()] * min(count, len(pieces))
        loads = [0.0] * len(kinds)
        parts: list[list[tuple[int, int]]] = [[] for _ in kinds]
        for at in pieces:
            piece = self.piece(at)
            rows = [shipped * (self.share(k | piece.kinds) - self.share(k)) for k in kinds]
            most = max(rows)
            part = cheapest(loads, [(n, most - row) for n, row in enumerate(rows)])
            loads[part] += copies * piece.cost + rows[part]
            kinds[part] |= piece.kinds
            parts[part].append(at)
        filled = [n for n, held in enumerate(parts) if held]
        return Place(
            groups,
            self.key(groups),
            tuple(tuple(sorted(parts[n])) for n in filled),
            tuple(loads[n] for n in filled),
            self.lanes(groups),
        )

    def piece(self, at: tuple[int, int]) -> Piece:
        return self.loads[at[0]].pieces[at[1]]

    def share(self, kinds: frozenset[str]) -> float:
        return share(kinds, self.kinds)


def cheapest(loads: Sequence[float], inputs: Sequence[tuple[int, float]]) -> int:
    """The node with the least load after placing an item with inputs at these nodes, of these
    rates. The item's own cost is the same everywhere; inputs that needn't be shipped are saved.

    >>> cheapest([5.0, 3.0], []), cheapest([5.0, 3.0], [(0, 4.0)])
    (1, 0)
    """
    left = [*loads]
    for node, rate in inputs:
        left[node] -= rate
    return min(range(len(left)), key=left.__getitem__)


def kinds_of(loads: Iterable[Load]) -> frozenset[str]:
    return frozenset(kind for load in loads for piece in load.pieces for kind in piece.kinds)


def share(kinds: frozenset[str], known: frozenset[str]) -> float:
    """The share of rows of these types. Rates are unknown, so every type counts the same.

    >>> share(frozenset("a"), frozenset("abc")), share(frozenset((EVERY, "a")), frozenset("abc"))
    (0.3333333333333333, 1.0)
    """
    if EVERY in kinds:
        return 1.0
    return len(kinds) / max(1, len(known - {EVERY}))


def lanes(load: Load, ground: Ground) -> int:
    """How many tasks the rows can be spread over. Slices of time are no shorter than an event
    matters; if the time range is unknown, assume many."""
    if load.single or load.key is not None or ground.length is None:
        return ground.partitions
    return max(1, min(ground.partitions, ground.length // max(1, load.reach)))
