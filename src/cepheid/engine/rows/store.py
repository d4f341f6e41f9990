"""The event store: every retained event once, as columns.

Only rows that belong to some class are kept, and only the columns that predicates and RETURN
read. Rows have absolute numbers; `base` is that of the oldest row still here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, walk
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import (
    START,
    TIME,
    Column,
    Hash,
    KernelColumn,
    Stored,
    TextBytes,
    TextConstant,
    TextPlaces,
    beyond,
    decoded,
    hashes,
    kernel_values,
)
from cepheid.engine.arrays.interner import Interner
from cepheid.engine.arrays.vector import evaluate
from cepheid.engine.arrays.window_columns import Growing, Returned
from cepheid.engine.rows.clock import Ticks
from cepheid.engine.rows.text_heap import TextHeap

Ints = NDArray[np.int64]
Values = NDArray[np.generic]
Valid = NDArray[np.bool_]

CODED = (Type.STRING, Type.BINARY, Type.OTHER)
"""What kernels see as codes, and plain Python as values."""

FORGET_AT = 100_000
"""How many strings the interner may hold before those of expired events are dropped."""


class EventStore:
    """Rows `base` to `base + n`: their ticks; Arrow columns; kernel columns.

    `time`, `position` and `clock` are those of events' ends; `start`, `begin` and `opened` those of
    their starts, and the same arrays unless the events are `lasting`. Arrays hold for a `version`;
    those of another one may be kept, but have other rows.
    """

    def __init__(self, returned: Iterable[str], interner: Interner, lasting: bool = False) -> None:
        self.interner = interner
        self.lasting = lasting
        self.base = 0
        self.version = 0  # changes with every append
        self.returned: dict[str, Returned | None] = dict.fromkeys(returned)
        self.values: dict[Column, Values] = {}
        self.valid: dict[Column, Valid | None] = {}
        self.nullable: frozenset[Column] = frozenset()
        self._ticks = [Growing(np.zeros(0, np.int64)) for _ in range(6 if lasting else 3)]
        self._columns: dict[Column, None] = {}
        self._values: dict[Column, Growing[np.generic]] = {}
        self._valid: dict[Column, Growing[np.bool_]] = {}
        self._objects: dict[Column, Growing[np.object_]] = {}
        self._hashes: dict[Hash, Growing[np.int64]] = {}
        self._heap = TextHeap(interner)
        self._places: dict[Column, Growing[np.int64]] = {}
        self.remembered: Callable[[], Iterable[Ints]] = tuple  # codes that others still know
        self._pinned: set[int] = set()
        self._limit = FORGET_AT
        self._show()

    def _show(self) -> None:
        """Refresh the views of the columns."""
        self.time, self.position, self.clock, *starts = (ticks.array for ticks in self._ticks)
        self.start, self.begin, self.opened = starts or (self.time, self.position, self.clock)
        self.n = len(self.time)
        for column, values in self._values.items():
            self.values[column] = values.array
            valid = self._valid.get(column)
            self.valid[column] = None if valid is None else valid.array

    def require(self, columns: Iterable[Column]) -> None:
        """Keep these columns for the kernels."""
        self._columns.update({c: None for c in columns if c not in (TIME, START)})

    def pin(self, code: int) -> None:
        """Keep a constant's code for good."""
        self._pinned.add(code)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of a batch that are read: what is returned, and what kernels need."""
        needed = {name for column in self._columns for name in _names(column)}
        return tuple(sorted(needed.union(self.returned)))

    def expire(self, eat: int) -> None:
        """Drop the rows whose clock is at or before `eat`."""
        expired = int(np.searchsorted(self.clock, eat, "right"))
        # Clocks rise with rows, except that ties in time may be cut anywhere: that is harmless.
        if not expired:
            return
        self.version += 1
        self.base += expired
        parts: tuple[Collection[Growing[Any]], ...] = (
            self._ticks,
            self._values.values(),
            self._valid.values(),
            self._objects.values(),
            self._hashes.values(),
            self._places.values(),
        )
        for held in chain(*parts):
            held.drop(expired)
        for column in self.returned.values():
            if column is not None:
                column.drop(expired)
        self._show()

    def append(self, batch: pa.RecordBatch, ticks: Ticks, eat: int) -> None:
        """Append rows in order; drop those whose clock is at or before `eat`."""
        self.expire(eat)
        self.version += 1
        new = (ticks.time, ticks.position, ticks.clock, ticks.start, ticks.begin, ticks.opened)
        for held, values in zip(self._ticks, new, strict=False):  # the starts only if they differ
            held.append(values)
        for name, column in self.returned.items():
            array = decoded(batch.column(name))
            if column is None:
                self.returned[name] = Returned(array)
            else:
                column.append(array)
        for stored in self._columns:
            self._append(stored, batch)
        self._show()
        if len(self.interner) > self._limit:
            self._forget()

    def keep(self, kept: Ints) -> None:
        """Drop all rows but these, which get the last of the numbers."""
        self.version += 1
        self.base += self.n - len(kept)
        self._ticks = [Growing(held.array[kept]) for held in self._ticks]
        self._values = {c: Growing(held.array[kept]) for c, held in self._values.items()}
        self._valid = {c: Growing(held.array[kept]) for c, held in self._valid.items()}
        for column in self.returned.values():
            if column is not None:
                column.keep(kept)
        self._objects.clear()
        self._hashes.clear()
        self._places.clear()
        self._show()

    def _append(self, column: Column, batch: pa.RecordBatch) -> None:
        try:
            values, valid = kernel_values(evaluated(column, batch), column.type, self.interner)
        except pa.ArrowInvalid as error:
            raise beyond(", ".join(_names(column)), error) from None
        held = self._values.get(column)
        if valid is not None and column not in self.nullable:
            self.nullable |= {column}
            self._valid[column] = Growing(np.ones(0 if held is None else len(held), np.bool_))
        if column in self.nullable:
            known = np.ones(len(values), np.bool_) if valid is None else valid
            self._valid[column].append(known)
        if held is None:
            self._values[column] = Growing(values)
        else:
            held.append(values)

    def _forget(self) -> None:
        strings = [v for c, v in self.values.items() if c.type in CODED]
        strings += self.remembered()
        self.interner.forget(np.concatenate([np.fromiter(self._pinned, np.int64), *strings]))
        self._heap.clear()
        self._places.clear()
        self._limit = max(FORGET_AT, 2 * len(self.interner))

    def kernel_columns(
        self, columns: Sequence[KernelColumn], objects: bool, order: Ints | None = None
    ) -> list[Values]:
        """The arrays that a kernel is called with: values, and validity where NULL may be; of the
        rows in this order, if there is one."""
        pairs = [self._kernel_column(column, objects) for column in columns]
        if order is not None:
            of_rows = [not isinstance(c, TextBytes | TextConstant) for c in columns]
            pairs = [_taken(*p, order) if of else p for p, of in zip(pairs, of_rows, strict=True)]
        # Looking up places adds texts to the heap.
        pairs = [(self._heap.bytes, None) if v is None else (v, valid) for v, valid in pairs]
        return [array for pair in pairs for array in pair if array is not None]

    def _kernel_column(
        self, column: KernelColumn, objects: bool
    ) -> tuple[Values | None, Valid | None]:
        match column:
            case Hash():
                return self.hash(column), None
            case Stored():
                return self.stored(column.name), None
            case TextPlaces():
                return self._text_places(column.column), self.valid[column.column]
            case TextConstant():
                code = self.interner.code(column.value)
                self.pin(code)
                return self._heap.places(np.array([code])), None
            case TextBytes():
                return None, None
            case Column() if column in (TIME, START):
                return self.time if column == TIME else self.start, None
            case Column() if objects and column.type in CODED:
                return self._object(column)
            case Column():
                return self.values[column], self.valid[column]

    def _text_places(self, column: Column) -> Values:
        held = self._places.get(column)
        if held is None:
            held = self._places[column] = Growing(np.zeros(0, np.int64))
        if len(held) < self.n:
            held.append(self._heap.places(self.values[column][len(held) :].astype(np.int64)))
        return held.array

    def stored(self, name: str) -> Values:
        """A returned column of fixed width as an array; times as integers."""
        column = self.returned[name]
        assert column is not None
        numbers = column.numbers
        assert numbers is not None
        return numbers

    def _object(self, column: Column) -> tuple[Values, Valid | None]:
        """Strings are read back from their codes, so that they need not be kept twice."""
        held = self._objects.get(column)
        if held is None:
            held = self._objects[column] = Growing(np.empty(0, np.object_))
        if len(held) < self.n:
            held.append(self.interner.decode(self.values[column][len(held) :], None)[0])
        return held.array, self.valid[column]

    def hash(self, key: Hash) -> Ints:
        """The hash of each row; hashes of new rows are computed on demand."""
        held = self._hashes.get(key)
        if held is None:
            held = self._hashes[key] = Growing(np.zeros(0, np.int64))
        if len(held) < self.n:
            new = [(self.values[c][len(held) :], self._known(c, len(held))) for c in key.columns]
            held.append(hashes(new, self.n - len(held)))
        return held.array

    def _known(self, column: Column, begin: int) -> Valid | None:
        valid = self.valid[column]
        return None if valid is None else valid[begin:]


def _taken(values: Values | None, valid: Valid | None, order: Ints) -> tuple[Values, Valid | None]:
    assert values is not None
    return np.take(values, order), None if valid is None else np.take(valid, order)


def _names(column: Column) -> list[str]:
    """The columns of a batch that a kernel column is made of."""
    return [node.name for node in walk(column.expression) if isinstance(node, Attribute)]


def evaluated(column: Column, batch: pa.RecordBatch) -> pa.Array:
    expression = column.expression
    if isinstance(expression, Attribute):
        return batch.column(expression.name)
    return evaluate(expression, lambda a: batch.column(a.name), batch.num_rows)
