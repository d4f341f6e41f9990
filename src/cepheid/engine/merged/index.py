"""The FR index: which predicates an event satisfies, of thousands (Cayuga 4.3).

Predicates that have to equal something in the same columns are a *kind*; an event's own values in
those columns lead to their bucket by one look into a hash table. Inside a bucket, predicates are
sorted by the bound that tells most of them apart, so that those that miss by it are skipped; the
others are tested. Testing is cheaper than the counting of pub/sub systems: what is left after
equalities and one bound are few, and counters of all predicates would have to be cleared for
every event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cepheid.engine.arrays.ordered_codes import HIGHEST, LOWEST
from cepheid.engine.merged.dag import Numbers, Ragged, Shape, Short, distinct
from cepheid.kernels import load
from cepheid.kernels.templates.merged import MIXED, SATISFIED

Ints: TypeAlias = NDArray[np.int64]

WIDEST = 3
"""The most columns of a kind: further equalities distinguish little more."""
SORTED_FROM = 8
"""From this many predicates on, a bucket is sorted by a bound."""
NO_SIDE = -2
"""The side of a bucket that isn't sorted: half of it, the column, is negative."""


@dataclass(frozen=True)
class Index:
    """Arrays of the kernel; see there."""

    kinds: Ragged
    hashes: Ints
    buckets: Ints
    places: Short
    members: Short
    bounds: Ints
    atoms: Short
    columns: Short
    lows: Ints
    highs: Ints

    def satisfied(self, cells: Ints, known: NDArray[np.bool_], jit: bool) -> tuple[Ints, Ints]:
        """The predicates that each row satisfies: where each row's begin, and all of them."""
        kernel: Callable[..., Any] = load(SATISFIED, jit)
        begins, numbers = np.zeros(len(cells) + 1, np.int64), np.empty(1 << 12, np.int64)
        done = 0
        while True:
            done = kernel(
                cells,
                known,
                self.kinds.begins,
                self.kinds.values,
                self.hashes,
                self.buckets,
                self.places,
                self.members,
                self.bounds,
                self.atoms,
                self.columns,
                self.lows,
                self.highs,
                begins,
                numbers,
                done,
            )
            if done == len(cells):
                return begins, numbers[: begins[-1]]
            numbers = np.concatenate((numbers, np.empty_like(numbers)))


class ByShape(Protocol):
    """Predicates by the columns that they constrain, as `Predicates` has them."""

    def __len__(self) -> int: ...

    def by_shape(self) -> Iterator[tuple[Shape, Ints, Ints]]: ...


def index_of(predicates: ByShape) -> Index:
    atoms = _atoms(predicates)
    kinds, hashes = _hashed(predicates)
    different, bucket, count = np.unique(hashes, return_inverse=True, return_counts=True)
    side = _telling(atoms, bucket, count)
    by = _bounds(atoms, side[bucket])
    members = np.lexsort((by, bucket))
    ends = np.cumsum(count)
    places = np.column_stack((ends - count, ends, side >> 1, side & 1))
    slots, slot_buckets = _table(different, len(kinds))
    return Index(
        kinds=Ragged.of(kinds),
        hashes=slots,
        buckets=slot_buckets,
        places=places.astype(np.int32),
        members=members.astype(np.int32),
        bounds=by[members],
        atoms=atoms.begins,
        columns=atoms.columns,
        lows=atoms.lows,
        highs=atoms.highs,
    )


@dataclass(frozen=True)
class _Atoms:
    """Intervals of columns: those of predicate p are `begins[p]` to `begins[p + 1]`."""

    begins: Short
    columns: Short
    lows: Ints
    highs: Ints

    @property
    def predicate(self) -> Ints:
        """The predicate of each interval."""
        return np.repeat(np.arange(len(self.begins) - 1), np.diff(self.begins))


def _atoms(predicates: ByShape) -> _Atoms:
    begins = np.zeros(len(predicates) + 1, np.int32)
    for shape, numbers, _ in predicates.by_shape():
        begins[numbers + 1] = len(shape)
    np.cumsum(begins, out=begins)
    columns = np.zeros(begins[-1], np.int32)
    lows, highs = np.zeros(len(columns), np.int64), np.zeros(len(columns), np.int64)
    for shape, numbers, bounds in predicates.by_shape():
        for k, column in enumerate(shape):
            at = begins[numbers] + k
            columns[at], lows[at], highs[at] = column, bounds[:, k, 0], bounds[:, k, 1]
    return _Atoms(begins, columns, lows, highs)


def _hashed(predicates: ByShape) -> tuple[Numbers[Shape], Ints]:
    """The kinds, and for each predicate a hash of the values that it must equal, times the number
    of kinds, plus its kind: so no two kinds share a hash."""
    mixed: Callable[..., Any] = load(MIXED, False)
    values = _values(predicates)
    kinds: Numbers[Shape] = Numbers()
    hashes, own_kinds = (np.zeros(len(predicates), np.int64) for _ in range(2))
    for shape, numbers, bounds in predicates.by_shape():
        patterns, place = distinct((bounds[:, :, 0] == bounds[:, :, 1]).astype(np.int64))
        for n, pattern in enumerate(patterns):
            members = np.flatnonzero(place == n)
            equal = np.flatnonzero(pattern).tolist()
            best = sorted(sorted(equal, key=lambda k: -values[shape[k]])[:WIDEST])
            kind = kinds.number(tuple(shape[k] for k in best))
            own_kinds[numbers[members]] = kind
            h = np.full(len(members), mixed(kind, kind))
            for k in best:
                h = mixed(h, bounds[members, k, 0])
            hashes[numbers[members]] = h
    return kinds, hashes * len(kinds) + own_kinds


def _values(predicates: ByShape) -> Mapping[int, int]:
    """How many distinct values predicates must equal, by column: the more, the better the column
    distinguishes predicates."""
    values_by_column: dict[int, list[Ints]] = {}
    for shape, _, bounds in predicates.by_shape():
        for k, column in enumerate(shape):
            low, high = bounds[:, k, 0], bounds[:, k, 1]
            values_by_column.setdefault(column, []).append(np.unique(low[low == high]))
    return {
        column: len(np.unique(np.concatenate(values)))
        for column, values in values_by_column.items()
    }


def _telling(atoms: _Atoms, bucket: Ints, count: Ints) -> Ints:
    """For each bucket, the column and side of the interval by which most of its predicates differ:
    twice the column, plus one for upper bounds; negative if there is none, or if the bucket is
    small."""
    buckets = bucket[atoms.predicate]
    ranged = np.flatnonzero((atoms.lows < atoms.highs) & (count[buckets] >= SORTED_FROM))
    best_side = np.full(len(count), NO_SIDE, np.int64)
    if not len(ranged):
        return best_side
    buckets, column = np.tile(buckets[ranged], 2), atoms.columns[ranged].astype(np.int64)
    side = np.concatenate((2 * column, 2 * column + 1))
    bounds = np.concatenate((atoms.lows[ranged], atoms.highs[ranged]))
    values, rank = np.unique(bounds, return_inverse=True)
    sides = int(side.max()) + 1
    different = np.unique((buckets * sides + side) * len(values) + rank)
    pairs, differ = np.unique(different // len(values), return_counts=True)
    order = np.argsort(differ, kind="stable")
    best_side[pairs[order] // sides] = pairs[order] % sides  # the last is the one that stays
    return best_side


def _bounds(atoms: _Atoms, side: Ints) -> Ints:
    """The bound by which each predicate is sorted. Predicates without it are candidates for every
    event."""
    by = np.where(side < 0, 0, np.where(side & 1, HIGHEST, LOWEST))
    predicate = atoms.predicate
    bounded = np.flatnonzero(atoms.columns == side[predicate] >> 1)
    by[predicate[bounded]] = np.where(
        side[predicate[bounded]] & 1, atoms.highs[bounded], atoms.lows[bounded]
    )
    return by


def _table(hashes: Ints, kinds: int) -> tuple[Ints, Ints]:
    """A hash table with open addressing: a hash is at its place, or at the next free one."""
    size = 16
    while size < 2 * len(hashes):
        size *= 2
    slots, buckets = np.zeros(size, np.int64), np.full(size, -1, np.int64)
    taken: list[int] = [-1] * size
    for bucket, h in enumerate(hashes.tolist()):
        slot = h // kinds & (size - 1)
        while taken[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        taken[slot] = bucket
    buckets[:] = taken
    slots[buckets >= 0] = hashes[buckets[buckets >= 0]]
    return slots, buckets
