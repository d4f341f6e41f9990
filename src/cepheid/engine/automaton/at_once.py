"""All events at once, numbered key by key: how they are arranged, and what becomes of the records.

A kernel for this (`source.numbered`) needs no lists of rows and no positions, and reads columns
from one end to the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cepheid.engine.automaton.rows_by_key import Key, key_codes
from cepheid.engine.rows.buffers import Buffer, Pool
from cepheid.engine.rows.order import ascending
from cepheid.engine.rows.store import EventStore
from cepheid.kernels import load
from cepheid.kernels.templates.automaton import ARRANGE

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Arranged:
    """The rows of the store in the order in which a kernel numbers them (None: as they are), and
    where those of each key begin and end."""

    order: Ints | None
    begins: Ints
    ends: Ints

    def rows(self, numbers: Ints) -> Ints:
        """The rows of the store that have these numbers."""
        return numbers if self.order is None else np.take(self.order, numbers)

    def taken(self, values: Ints) -> Ints:
        """The values in this order."""
        return values if self.order is None else np.take(values, self.order)


def arranged(
    store: EventStore, key: Sequence[Key], part: tuple[int, int], jit: bool
) -> Arranged | None:
    """The rows whose keys are in this of so many parts. None if the number of a row can't be its
    position: classes have different keys, some event has none, or events of a key share a
    position."""
    if any(len(set(part)) > 1 or part[0] is None for part in key):
        return None
    columns = tuple(part[0] for part in key if part[0] is not None)
    if any(store.valid[column] is not None for column in columns):
        return None
    distinct = int(store.position[-1] - store.position[0]) == store.n - 1
    if not key:
        whole = Arranged(None, np.zeros(1, np.int64), np.full(1, store.n))
        return whole if distinct else None
    codes, keys = key_codes(store, columns)
    first, last = (keys * n // part[1] for n in (part[0], part[0] + 1))
    begins, ends = np.zeros(last - first, np.int64), np.zeros(last - first, np.int64)
    order = np.empty(store.n, np.int64)
    order = order[: load(ARRANGE, jit)(codes, first, begins, ends, order)]
    if not distinct:
        again = np.diff(np.take(store.position, order)) == 0
        again[begins[begins > 0] - 1] = False
        if again.any():
            return None
    return Arranged(order, begins, ends)


def no_events(keyed: bool, jit: bool) -> Arranged:
    """An arrangement of nothing, to have the kernels compiled."""
    none, begins, ends = (np.zeros(n, np.int64) for n in (0, 1, 1))
    load(ARRANGE, jit)(none, 0, begins, ends, none)
    return Arranged(none if keyed else None, begins, ends)


def restore(
    out: Buffer, singles: Iterable[int], pools: Iterable[tuple[Pool, int]], events: Arranged
) -> None:
    """Give the events of the records, and of groups from an element on, their numbers in the
    store."""
    for slot in singles if events.order is not None else ():
        rows = out.records.slots[slot, : out.n]
        absent = rows < 0 if rows.min(initial=0) < 0 else None
        rows[:] = events.rows(rows)
        if absent is not None:
            rows[absent] = -1
    for pool, begin in pools if events.order is not None else ():
        new = pool.rows[begin : pool.n]
        new[:] = events.rows(new)


def sort_by_end(out: Buffer, times: tuple[int, int], store: EventStore, events: Arranged) -> None:
    """Put the records in the order of their ends, and add their times. Of what they are, only the
    positions of their ends and the slots are kept."""
    records, n = out.records, out.n
    ends = events.rows(records.last[:n])
    position = store.position
    if n and int(position[-1] - position[0]) == store.n - 1:
        last = ends + position[0]
    else:
        last = np.take(position, ends)
    order = ascending(last)
    for slot, values in enumerate(records.slots):
        if slot not in times:
            values[:n] = np.take(values, order)
    records.slots[times[0], :n] = np.take(store.time, events.rows(np.take(records.first, order)))
    records.slots[times[1], :n] = np.take(store.time, np.take(ends, order))
    records.last[:n] = np.take(last, order)
