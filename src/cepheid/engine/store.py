"""The event store: every retained event once, as columns.

Only rows that belong to some class are kept, and only the columns that predicates and RETURN
read. Rows have absolute numbers; `base` is that of the oldest row still here.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, walk
from cepheid.algebra.types import Type
from cepheid.engine.clock import Ticks
from cepheid.engine.columns import (
    START,
    TIME,
    Column,
    Hash,
    Interner,
    Stored,
    hashes,
    kernel_values,
)
from cepheid.engine.vector import evaluate

Ints = NDArray[np.int64]
Values = NDArray[np.generic]
Valid = NDArray[np.bool_]

FORGET_AT = 100_000
"""Strings that the interner may hold before those of expired events are looked for."""


class EventStore:
    """Rows `base` to `base + n`: their ticks; Arrow columns; kernel columns.

    `time`, `position` and `clock` are those of events' ends; `start`, `begin` and `opened` those of
    their starts, and the same arrays unless the events are `lasting`.
    """

    def __init__(self, returned: Iterable[str], interner: Interner, lasting: bool = False) -> None:
        self.interner = interner
        self.lasting = lasting
        self.base = 0
        self.n = 0
        self.version = 0  # changes with every append
        self.time: Ints = np.zeros(0, np.int64)
        self.position: Ints = np.zeros(0, np.int64)
        self.clock: Ints = np.zeros(0, np.int64)
        self.start, self.begin, self.opened = self.time, self.position, self.clock
        self.arrow: dict[str, pa.Array | None] = dict.fromkeys(returned)
        self.values: dict[Column, Values] = {}
        self.valid: dict[Column, Valid | None] = {}
        self.nullable: frozenset[Column] = frozenset()
        self._columns: dict[Column, None] = {}
        self._objects: dict[Column, tuple[Values, Valid | None]] = {}
        self._hashes: dict[Hash, Ints] = {}
        self._pinned: set[int] = set()
        self._limit = FORGET_AT

    def require(self, columns: Iterable[Column]) -> None:
        """Keep these columns for the kernels."""
        self._columns.update({c: None for c in columns if c not in (TIME, START)})

    def pin(self, code: int) -> None:
        """Keep a constant's code for good."""
        self._pinned.add(code)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of a batch that are read: what is returned, and what kernels need."""
        needed = {
            node.name
            for column in self._columns
            for node in walk(column.expression)
            if isinstance(node, Attribute)
        }
        return tuple(sorted(needed.union(self.arrow)))

    def expire(self, eat: int) -> None:
        """Forget the rows whose clock is at or before `eat`."""
        expired = int(np.searchsorted(self.clock, eat, "right"))
        # Clocks rise with rows, except that ties in time may be cut anywhere: that is harmless.
        if not expired:
            return
        self.version += 1
        self.base += expired
        ends = (self.time, self.position, self.clock)
        self.time, self.position, self.clock = (values[expired:] for values in ends)
        if self.lasting:
            starts = (self.start, self.begin, self.opened)
            self.start, self.begin, self.opened = (values[expired:] for values in starts)
        else:
            self.start, self.begin, self.opened = self.time, self.position, self.clock
        self.n = len(self.time)
        for name, column in self.arrow.items():
            self.arrow[name] = None if column is None else column.slice(expired)
        for key, values in self.values.items():
            self.values[key] = values[expired:]
            valid = self.valid[key]
            self.valid[key] = None if valid is None else valid[expired:]
        self._objects.clear()
        self._hashes.clear()

    def append(self, batch: pa.RecordBatch, ticks: Ticks, eat: int) -> None:
        """Add rows in order; forget those whose clock is at or before `eat`."""
        self.expire(eat)
        self.version += 1
        self.time = np.concatenate((self.time, ticks.time))
        self.position = np.concatenate((self.position, ticks.position))
        self.clock = np.concatenate((self.clock, ticks.clock))
        if self.lasting:
            self.start = np.concatenate((self.start, ticks.start))
            self.begin = np.concatenate((self.begin, ticks.begin))
            self.opened = np.concatenate((self.opened, ticks.opened))
        else:
            self.start, self.begin, self.opened = self.time, self.position, self.clock
        self.n = len(self.time)
        for name, kept in self.arrow.items():
            new = _plain(batch.column(name))
            self.arrow[name] = new if kept is None else pa.concat_arrays([kept, new])
        for column in self._columns:
            self._append(column, batch)
        self._objects.clear()
        self._hashes.clear()
        if len(self.interner) > self._limit:
            self._forget()

    def keep(self, kept: Ints) -> None:
        """Forget all rows but these, which get the last of the numbers."""
        self.version += 1
        self.base += self.n - len(kept)
        ends = (self.time, self.position, self.clock)
        self.time, self.position, self.clock = (values[kept] for values in ends)
        if self.lasting:
            starts = (self.start, self.begin, self.opened)
            self.start, self.begin, self.opened = (values[kept] for values in starts)
        else:
            self.start, self.begin, self.opened = self.time, self.position, self.clock
        self.n = len(self.time)
        for name, column in self.arrow.items():
            self.arrow[name] = None if column is None else column.take(pa.array(kept))
        for key, values in self.values.items():
            self.values[key] = values[kept]
            valid = self.valid[key]
            self.valid[key] = None if valid is None else valid[kept]
        self._objects.clear()
        self._hashes.clear()

    def _append(self, column: Column, batch: pa.RecordBatch) -> None:
        values, valid = kernel_values(_evaluated(column, batch), column.type, self.interner)
        if valid is not None and column not in self.nullable:
            self.nullable |= {column}
        if column in self.values:
            kept = self.valid[column]
            if column in self.nullable:
                old = len(self.values[column])
                before = np.ones(old, np.bool_) if kept is None else kept
                after = np.ones(len(values), np.bool_) if valid is None else valid
                valid = np.concatenate((before, after))
            values = np.concatenate((self.values[column], values))
        elif not values.flags.writeable or not values.flags.c_contiguous:
            values = values.copy()  # kernels are compiled for arrays of one kind
        self.values[column] = values
        if valid is None and column in self.nullable:
            valid = np.ones(len(values), np.bool_)
        self.valid[column] = valid

    def _forget(self) -> None:
        strings = [v for c, v in self.values.items() if c.type in (Type.STRING, Type.BINARY)]
        live = set(self._pinned).union(*(np.unique(v).tolist() for v in strings))
        self.interner.forget(live)
        self._limit = max(FORGET_AT, 2 * len(self.interner))

    def kernel_columns(
        self, columns: Iterable[Column | Hash | Stored], objects: bool
    ) -> list[Values]:
        """The arrays that a kernel is called with: values, and validity where NULL may be."""
        arrays: list[Values] = []
        for column in columns:
            if isinstance(column, Hash):
                arrays.append(self.hash(column))
                continue
            if isinstance(column, Stored):
                arrays.append(self.stored(column.name))
                continue
            if column in (TIME, START):
                arrays.append(self.time if column == TIME else self.start)
                continue
            if objects and column.type in (Type.STRING, Type.BINARY):
                values, valid = self._object(column)
            else:
                values, valid = self.values[column], self.valid[column]
            arrays.append(values)
            if column in self.nullable:
                arrays.append(np.ones(self.n, np.bool_) if valid is None else valid)
        return arrays

    def stored(self, name: str) -> Values:
        """A returned column of fixed width as an array; times as integers."""
        array = self.arrow[name]
        assert array is not None
        values: Values = array.to_numpy()
        return values.view(np.int64) if values.dtype.kind == "M" else values

    def _object(self, column: Column) -> tuple[Values, Valid | None]:
        if column not in self._objects:
            # Strings are read back from their codes, so that they need not be kept twice.
            self._objects[column] = self.interner.decode(self.values[column], self.valid[column])
        return self._objects[column]

    def hash(self, key: Hash) -> Ints:
        if key not in self._hashes:
            self._hashes[key] = hashes(
                ((self.values[c], self.valid[c]) for c in key.columns), self.n
            )
        return self._hashes[key]


def _plain(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def _evaluated(column: Column, batch: pa.RecordBatch) -> pa.Array:
    expression = column.expression
    if isinstance(expression, Attribute):
        return batch.column(expression.name)
    return evaluate(expression, lambda a: batch.column(a.name), batch.num_rows)
