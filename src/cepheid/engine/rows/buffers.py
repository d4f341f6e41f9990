"""Growing arrays of records, their hash chains, and the pools that hold groups.

Records and pool elements have absolute numbers, so that dropping old ones in bulk moves nothing
but a base.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cepheid.engine.arrays.columns import Hash
from cepheid.engine.rows.clock import Ticks
from cepheid.kernels import Records
from cepheid.kernels.compile import load_chain

Ints = NDArray[np.int64]

Key = tuple[tuple[str, Hash], ...]
"""The key of a hash chain: the variables whose events are read, and their columns."""

HALF = 31
"""Hashes have 62 bits. Those of several events are mixed: half of the bits change places with the
other half before the next hash is put over them. NULL has the hash -1, and makes the whole NULL."""


class Buffer:
    """Records of one node, sorted by end: numbers `base` to `base + n`.

    `visible` of them have been reached by the rounds; a leaf is loaded ahead of them.
    """

    def __init__(self, width: int, capacity: int = 256) -> None:
        self.width = width
        self.base = 0
        self.n = 0
        self.visible = 0
        self.chains: dict[Key, Chain] = {}
        self._allocate(capacity)

    def _allocate(self, capacity: int) -> None:
        start, end, first, last = (np.empty(capacity, np.int64) for _ in range(4))
        slots = np.empty((self.width, capacity), np.int64)
        self.records = Records(start, end, first, last, slots, _NONE)

    @property
    def capacity(self) -> int:
        return len(self.records.start)

    def reserve(self, room: int) -> None:
        """Make room for this many more records."""
        if self.n + room <= self.capacity:
            return
        old = self.records
        self._allocate(max(2 * self.capacity, self.n + room))
        self._move(old, 0)

    def _move(self, source: Records, begin: int) -> None:
        """Copy the records from `begin` on; NumPy copies correctly even if the source is the
        target."""
        count = self.n - begin
        for name in ("start", "end", "first", "last"):
            getattr(self.records, name)[:count] = getattr(source, name)[begin : self.n]
        self.records.slots[:, :count] = source.slots[:, begin : self.n]

    def append(self, ticks: Ticks, places: Ints, row: int) -> None:
        """Add events of the store: those at these places, counted from this row."""
        self.reserve(len(places))
        new = slice(self.n, self.n + len(places))
        end, last = ticks.clock[places], ticks.position[places]
        self.records.end[new] = end
        self.records.last[new] = last
        self.records.start[new] = end if ticks.opened is ticks.clock else ticks.opened[places]
        self.records.first[new] = last if ticks.begin is ticks.position else ticks.begin[places]
        self.records.slots[0, new] = places + row
        self.n += len(places)

    def drop(self, count: int) -> None:
        """Drop the oldest records."""
        if count < self.n:
            self._move(self.records, count)
        for chain in self.chains.values():
            chain.drop(count, self.n)
        self.base += count
        self.n -= count
        self.visible = max(0, self.visible - count)

    def choose(self, records: Ints) -> None:
        """Keep only these records, in this order, of a buffer that nobody else reads."""
        for name in ("start", "end", "first", "last"):
            values = getattr(self.records, name)
            values[: len(records)] = values[records]
        self.records.slots[:, : len(records)] = self.records.slots[:, records]
        self.base += self.n - len(records)
        self.n = self.visible = len(records)

    def renumber(self, kept: Ints, new: int) -> None:
        """Renumber: only these rows are left, starting with `new`. Keep their records, which are
        single events."""
        rows = self.records.slots[0, : self.n]
        places = np.searchsorted(rows, kept)
        places[places == self.n] = 0  # where there is another row, if any
        remaining = np.flatnonzero(rows[places] == kept) if self.n else places[:0]
        self.choose(places[remaining])
        self.records.slots[0, : self.n] = remaining + new

    def expire(self, eat: int, most: int) -> None:
        """Forget records that ended at or before the clock `eat`, at most so many.

        Moving costs as much as what stays, so it waits until at least half can go.
        """
        expired = min(most, int(np.searchsorted(self.records.end[: self.n], eat, "right")))
        if expired > 0 and expired * 2 >= self.n:
            self.drop(expired)

    def chain(self, key: Key, jit: bool) -> None:
        """Keep a hash chain over this buffer."""
        if key not in self.chains:
            self.chains[key] = Chain(jit)

    def linked(self, key: Key | None) -> Records:
        """The records as a kernel sees them, with the chain that it walks."""
        if key is None:
            return self.records
        return self.records._replace(link=self.chains[key].link)


_NONE: Ints = np.zeros(1, np.int64)


class Chain:
    """`heads` has the newest record of each bucket, `link` the one before each record; absolute
    numbers, -1 for none."""

    def __init__(self, jit: bool) -> None:
        self._append = load_chain(jit)
        self.heads: Ints = np.full(1024, -1, np.int64)
        self.link: Ints = np.zeros(256, np.int64)
        self.done = 0  # absolute number of the first record not yet in the chains

    def extend(self, buffer: Buffer, parts: Sequence[tuple[int, Ints]], row_base: int) -> None:
        """Put the visible records that are new into their chains. `parts` are slots, and hashes by
        row."""
        if buffer.visible > len(self.heads):
            self.heads = np.full(1 << (int(buffer.visible).bit_length() + 1), -1, np.int64)
            self.done = buffer.base
        if len(self.link) < buffer.capacity:
            grown = np.zeros(buffer.capacity, np.int64)
            grown[: len(self.link)] = self.link
            self.link = grown
        begin = max(0, self.done - buffer.base)
        if begin < buffer.visible:
            # A record whose row has left the store is past every window: it needs no chain.
            slot, hashes = parts[0]
            rows = buffer.records.slots[slot, begin : buffer.visible]
            if len(parts) > 1:
                hashes, rows, row_base = _combined(buffer, parts, begin, row_base)
            chains = (self.heads, self.link)
            self._append(hashes, rows, row_base, *chains, begin, buffer.visible, buffer.base)
        self.done = buffer.base + buffer.visible

    def drop(self, count: int, n: int) -> None:
        known = min(n, len(self.link))  # the buffer may have grown since the last `extend`
        if count < known:
            self.link[: known - count] = self.link[count:known]


def _combined(
    buffer: Buffer, parts: Sequence[tuple[int, Ints]], begin: int, row_base: int
) -> tuple[Ints, Ints, int]:
    """The hashes of records of several rows, as if each record were a row."""
    combined: Ints | None = None
    for slot, hashes in parts:
        rows = buffer.records.slots[slot, begin : buffer.visible] - row_base
        part = np.where(rows >= 0, hashes[np.maximum(rows, 0)], -1)
        combined = part if combined is None else _mixed(combined, part)
    assert combined is not None
    return combined, np.arange(len(combined)), 0


def _mixed(left: Ints, right: Ints) -> Ints:
    turned = (left & ((1 << HALF) - 1)) << HALF | left >> HALF
    return np.where((left >= 0) & (right >= 0), turned ^ right, -1)


class Pool:
    """Elements of the groups of one KSEQ, as absolute rows."""

    def __init__(self) -> None:
        self.base = 0
        self.n = 0
        self.rows: Ints = np.zeros(1024, np.int64)
        self._marks: deque[tuple[int, int]] = deque()  # absolute end, clock when it was written
        self._expired = 0  # the absolute number of the first element that has not

    def reserve(self, room: int) -> None:
        if self.n + room > len(self.rows):
            grown = np.empty(max(2 * len(self.rows), self.n + room), np.int64)
            grown[: self.n] = self.rows[: self.n]
            self.rows = grown

    def mark(self, clock: int) -> None:
        """Record when the elements up to here were written."""
        self._marks.append((self.base + self.n, clock))

    def clear(self) -> None:
        """Drop all elements."""
        self.base += self.n
        self.n = 0
        self._marks.clear()

    def expire(self, eat: int) -> None:
        """Drop elements written at or before this clock, once they are at least half of all."""
        while self._marks and self._marks[0][1] <= eat:
            self._expired = self._marks.popleft()[0]
        count = self._expired - self.base
        if count > 0 and 2 * count >= self.n:
            self.rows[: self.n - count] = self.rows[count : self.n]
            self.base += count
            self.n -= count
