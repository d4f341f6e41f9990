"""Columns of a window that moves on: they grow at the end and are cut at the beginning.

A stream's window may be a thousand times as long as its batches, so nothing here costs as much as
what is held, except now and then: when memory is full, there is made room for as much again.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)

WASTED = 4
"""Memory is given back when it exceeds the needed size this many times."""

MERGED = 1 << 16
"""Chunks of Arrow arrays are merged up to this many rows: that takes less time than visiting two
chunks."""

SPREAD = 32
"""Chunks are merged, not visited one by one, if they have at most this many rows for each row that
is taken."""


class Growing(Generic[Scalar]):
    """A contiguous array that can be written to: kernels are compiled for arrays of one kind. It
    may be of rows of several columns.

    An array that was handed out never changes: rows come behind it or move to new memory. Before
    they move, as many must have come as are held, so each row is moved about once.
    """

    def __init__(self, values: NDArray[Scalar]) -> None:
        self._memory = _of_one_kind(values)
        self._begin, self._end = 0, len(values)

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def array(self) -> NDArray[Scalar]:
        return self._memory[self._begin : self._end]

    def append(self, values: NDArray[Scalar]) -> None:
        if not len(self):
            self._memory, self._begin, self._end = _of_one_kind(values), 0, len(values)
            return
        held, needed = len(self), len(self) + len(values)
        full = self._end + len(values) > len(self._memory)
        if full or len(self._memory) > WASTED * needed:
            # Behind a batch that is longer than all before, room would be memory never touched.
            room = needed if held <= len(values) else 2 * needed
            memory = np.empty((room, *self._memory.shape[1:]), self._memory.dtype)
            memory[:held] = self.array
            self._memory, self._begin, self._end = memory, 0, held
        self._memory[self._end : self._end + len(values)] = values
        self._end += len(values)

    def drop(self, count: int) -> None:
        """Drop the oldest rows; all, if there are fewer."""
        self._begin = min(self._begin + count, self._end)


def _of_one_kind(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """The values as kernels know arrays: contiguous, and of the kind that may be written to, though
    nobody does. Those of Arrow, which may not, are the same memory."""
    if not values.flags.c_contiguous:
        return values.copy()
    return values if values.flags.writeable else np.asarray(_Unlocked(values))


class _Unlocked:
    """An array's memory, as NumPy asks for it."""

    def __init__(self, values: NDArray[Any]) -> None:
        interface = values.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        self._values = values  # lives as long as this does


class Chunks:
    """An Arrow array in parts, for types that NumPy has no arrays of, and for NULLs."""

    def __init__(self, array: pa.Array) -> None:
        self._type = array.type
        self._parts = [array] if len(array) else []  # none is empty

    @property
    def has_nulls(self) -> bool:
        return any(part.null_count for part in self._parts)

    def append(self, array: pa.Array) -> None:
        """Merge short parts as they come, each with one of its length."""
        if len(array):
            self._parts.append(array)
        parts = self._parts
        while len(parts) > 1 and len(parts[-2]) <= len(parts[-1]) <= MERGED - len(parts[-2]):
            self._merge(len(parts) - 2, len(parts))

    def drop(self, count: int) -> None:
        """Drop the oldest rows."""
        gone = 0
        while count and count >= len(self._parts[gone]):
            count -= len(self._parts[gone])
            gone += 1
        del self._parts[:gone]
        if count:
            self._parts[0] = self._parts[0].slice(count)

    def whole(self) -> pa.Array:
        """The whole column as one array."""
        self._merge(0, len(self._parts))
        return self._parts[0] if self._parts else pa.nulls(0, self._type)

    def _merge(self, begin: int, end: int) -> None:
        if end - begin > 1:
            self._parts[begin:end] = [pa.concat_arrays(self._parts[begin:end])]

    def take(self, rows: Ints) -> pa.Array:
        """These rows, at a cost that follows their number, not how far they are apart."""
        if not len(rows):
            return pa.nulls(0, self._type)
        ends = np.cumsum([len(part) for part in self._parts])
        first, last = np.searchsorted(ends, (rows.min(), rows.max()), "right").tolist()
        before = int(ends[first]) - len(self._parts[first])
        if int(ends[last]) - before <= MERGED + SPREAD * len(rows):
            self._merge(first, last + 1)
            last = first
        if first == last:
            return self._parts[first].take(pa.array(rows - before))
        return self._gather(rows, ends)

    def _gather(self, rows: Ints, ends: Ints) -> pa.Array:
        """Take the rows from each part, then restore their order."""
        part = np.searchsorted(ends, rows, "right")
        order = np.argsort(part, kind="stable")
        sought, counts = np.unique(part, return_counts=True)
        taken: list[pa.Array] = []
        for n, places in zip(sought.tolist(), np.split(order, np.cumsum(counts)[:-1]), strict=True):
            begin = int(ends[n]) - len(self._parts[n])
            taken.append(self._parts[n].take(pa.array(rows[places] - begin)))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(taken).take(pa.array(back))


class Returned:
    """A column that RETURN reads. Numbers and times without NULL are one array, which kernels can
    read; all else is chunks."""

    def __init__(self, array: pa.Array) -> None:
        self.type = array.type
        self._fixed = _is_fixed(array.type)
        self._held: Growing[np.generic] | Chunks = self._as_array(Chunks(array))

    @property
    def numbers(self) -> NDArray[np.generic] | None:
        """The values, times as integers, if all have a fixed width and none is NULL."""
        if isinstance(self._held, Chunks):
            return None
        values = self._held.array
        values.flags.writeable = False  # they are Arrow's as well, which nobody writes to
        return values.view(np.int64) if values.dtype.kind == "M" else values

    def append(self, array: pa.Array) -> None:
        if isinstance(self._held, Growing):
            if not array.null_count:
                self._held.append(array.to_numpy())
                return
            self._held = Chunks(pa.array(self._held.array, self.type))
        self._held.append(array)
        self._held = self._as_array(self._held)

    def _as_array(self, chunks: Chunks) -> Growing[np.generic] | Chunks:
        if not self._fixed or chunks.has_nulls:
            return chunks
        return Growing(chunks.whole().to_numpy())

    def drop(self, count: int) -> None:
        """Drop the oldest rows."""
        self._held.drop(count)

    def keep(self, rows: Ints) -> None:
        """Keep only these rows, in this order."""
        self._held = self._as_array(Chunks(self.take(rows)))

    def take(self, rows: Ints) -> pa.Array:
        if isinstance(self._held, Chunks):
            return self._held.take(rows)
        # Much faster than pyarrow's take, and most of the output of large results.
        return pa.array(np.take(self._held.array, rows), self.type)


def _is_fixed(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_timestamp(type_)
    )
