"""The FR index: which predicates an event satisfies, of thousands (Cayuga 4.3).

Predicates that have to equal something in the same columns are a *kind*; an event's own values in
those columns lead to their bucket by one look into a hash table. Inside a bucket, predicates are
sorted by the bound that tells most of them apart, so that those that miss by it are skipped; the
others are tested. Testing is cheaper than the counting of pub/sub systems: what is left after
equalities and one bound are few, and counters of all predicates would have to be cleared for
every event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cepheid.engine.merged.dag import Atom, Numbers, Predicates, Ragged
from cepheid.engine.merged.intervals import HIGHEST, LOWEST
from cepheid.kernels import load
from cepheid.kernels.templates.merged import MIXED, SATISFIED

Ints: TypeAlias = NDArray[np.int64]

WIDEST = 3
"""Columns of a kind at most: further equalities tell little more apart."""
SORTED_FROM = 8
"""Predicates of a bucket from which on they are sorted by a bound."""


@dataclass(frozen=True)
class Index:
    """Arrays of the kernel; see there."""

    kinds: Ragged
    hashes: Ints
    buckets: Ints
    places: Ints
    members: Ints
    bounds: Ints
    atoms: Ints
    columns: Ints
    lows: Ints
    highs: Ints

    def satisfied(self, cells: Ints, known: NDArray[np.bool_], jit: bool) -> tuple[Ints, Ints]:
        """The predicates of each row: where they begin, and all of them."""
        kernel: Callable[..., Any] = load(SATISFIED, jit)
        found: tuple[Ints, Ints] = kernel(
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
        )
        return found


def index_of(predicates: Predicates) -> Index:
    every = list(predicates.atoms)
    begins = np.zeros(len(every) + 1, np.int64)
    np.cumsum([len(atoms) for atoms in every], out=begins[1:])
    flat = np.array([atom for atoms in every for atom in atoms], np.int64).reshape(-1, 3)
    kinds, kind, values = _kinds(every)
    hashes = _hashes(kinds, kind, values)
    order = np.argsort(hashes, kind="stable")
    different, first = np.unique(hashes[order], return_index=True)
    ends = np.append(first[1:], len(order))
    members, bounds = order.copy(), np.zeros(len(order), np.int64)
    places = np.full((len(different), 4), -1)
    for bucket, (begin, end) in enumerate(zip(first.tolist(), ends.tolist(), strict=True)):
        places[bucket, :2] = begin, end
        if end - begin >= SORTED_FROM:
            own = members[begin:end]
            column, upper, by = _telling([every[p] for p in own.tolist()])
            if column >= 0:
                sort = np.argsort(by, kind="stable")
                members[begin:end], bounds[begin:end] = own[sort], by[sort]
                places[bucket, 2:] = column, upper
    slots, slot_buckets = _table(different)
    return Index(
        kinds=Ragged.of(kinds),
        hashes=slots,
        buckets=slot_buckets,
        places=places,
        members=members,
        bounds=bounds,
        atoms=begins,
        columns=flat[:, 0].copy(),
        lows=flat[:, 1].copy(),
        highs=flat[:, 2].copy(),
    )


def _kinds(every: list[tuple[Atom, ...]]) -> tuple[Numbers[tuple[int, ...]], Ints, Ints]:
    """The kinds; that of each predicate; and what it has to equal in the kind's columns."""
    equal = [[(c, low) for c, low, high in atoms if low == high] for atoms in every]
    telling = Counter(column for column, _ in {pair for pairs in equal for pair in pairs})
    kinds: Numbers[tuple[int, ...]] = Numbers()
    kind = np.zeros(len(every), np.int64)
    values = np.zeros((len(every), WIDEST), np.int64)
    for n, pairs in enumerate(equal):
        best = sorted(sorted(pairs, key=lambda pair: -telling[pair[0]])[:WIDEST])
        kind[n] = kinds.number(tuple(column for column, _ in best))
        for k, (_, value) in enumerate(best):
            values[n, k] = value
    return kinds, kind, values


def _hashes(kinds: Numbers[tuple[int, ...]], kind: Ints, values: Ints) -> Ints:
    mixed: Callable[..., Any] = load(MIXED, False)
    hashes: Ints = np.zeros(len(kind), np.int64)
    for number, columns in enumerate(kinds):
        own = np.flatnonzero(kind == number)
        h = np.full(len(own), mixed(0, number))
        for k in range(len(columns)):
            h = mixed(h, values[own, k])
        hashes[own] = h
    return hashes


def _telling(members: list[tuple[Atom, ...]]) -> tuple[int, bool, Ints]:
    """The column and the side of its interval by which most of these differ, and that bound of
    each; -1 if there is none. Those that have no such bound are found whatever the event."""
    sides: dict[tuple[int, bool], set[int]] = {}
    for atoms in members:
        for column, low, high in atoms:
            if low != high:
                sides.setdefault((column, False), set()).add(low)
                sides.setdefault((column, True), set()).add(high)
    if not sides:
        return -1, False, np.zeros(0, np.int64)
    column, upper = max(sides, key=lambda side: len(sides[side]))
    none = HIGHEST if upper else LOWEST
    bounds = [
        next((high if upper else low for c, low, high in atoms if c == column), none)
        for atoms in members
    ]
    return column, upper, np.array(bounds, np.int64)


def _table(hashes: Ints) -> tuple[Ints, Ints]:
    """Open addressing: a hash stands at its place, or at the next one that was free."""
    size = 16
    while size < 2 * len(hashes):
        size *= 2
    slots, buckets = np.zeros(size, np.int64), np.full(size, -1, np.int64)
    taken: list[int] = [-1] * size
    for bucket, h in enumerate(hashes.tolist()):
        slot = h & (size - 1)
        while taken[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        taken[slot] = bucket
    buckets[:] = taken
    slots[buckets >= 0] = hashes[buckets[buckets >= 0]]
    return slots, buckets
