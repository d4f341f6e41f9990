"""Times, positions and clock values of the rows of a stream, batch after batch.

The clock is what windows are measured on: time, or the ordinal of the row in its partition
(`n EVENTS`). It only ever rises. A keyed stream that is measured in events comes key by key;
between keys the clock jumps further than any window reaches, so that the keys can't meet.

Positions are ranks, unless events have a duration: then they are times, so that a start can be
compared with ends that are long past. Rows are in the order of their ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.binding.windows import TOO_LONG
from cepheid.algebra.query import Clock, Window
from cepheid.algebra.types import Schema
from cepheid.engine.arrays.columns import beyond, decoded, microseconds
from cepheid.engine.arrays.numbers import in_numpy, is_exact
from cepheid.engine.arrays.vector import seen
from cepheid.engine.counts import Counts
from cepheid.errors import DataError

CLOCK_COLUMN = "__ordinal"
"""The row's ordinal in its partition, from 0, if the runtime has numbered the rows already."""

LATEST = (1 << 62) - TOO_LONG
"""The last time, and the first less its sign: a window further is still before FOREVER."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Ticks:
    """The ticks of rows that belong to a class, and the clock of the batch's last row. `time`,
    `position` and `clock` are those of an event's end. `start`, `begin` and `opened` are those of
    its start, and are the same arrays if events have no duration.
    """

    time: Ints
    position: Ints
    clock: Ints
    start: Ints
    begin: Ints
    opened: Ints
    reached: int

    def of(self, rows: Ints) -> Ticks:
        time, position, clock = self.time[rows], self.position[rows], self.clock[rows]
        if self.start is self.time:
            return Ticks(time, position, clock, time, position, clock, self.reached)
        start, begin, opened = self.start[rows], self.begin[rows], self.opened[rows]
        return Ticks(time, position, clock, start, begin, opened, self.reached)


def joined_ticks(parts: Sequence[Ticks]) -> Ticks:
    """The ticks of rows that were read one after the other. What is the same array stays so."""
    names = ("time", "position", "clock", "start", "begin", "opened")
    arrays: dict[str, Ints] = {}
    for name in names:
        same = (n for n in arrays if all(getattr(p, n) is getattr(p, name) for p in parts))
        known = next(same, None)
        columns = [getattr(part, name) for part in parts]
        arrays[name] = np.concatenate(columns) if known is None else arrays[known]
    return Ticks(**arrays, reached=parts[-1].reached)


def times(column: pa.Array) -> Ints:
    """The time column as 64-bit integers: microseconds for timestamps, else the number."""
    type_ = column.type
    if pa.types.is_timestamp(type_) and type_.unit == "us" and not column.null_count:
        return np.asarray(column.view(pa.int64()).to_numpy())
    array = column if pa.types.is_integer(type_) else microseconds(column)
    array = array if array.type == pa.int64() else array.cast(pa.int64())
    return np.asarray(array.to_numpy(zero_copy_only=False))


def check_times(column: str, first: int, last: int) -> None:
    """Raise `DataError` if a time is too far away to measure windows from it."""
    for time in (first, last):
        if abs(time) > LATEST:
            raise DataError(
                f"`{column}` has the time {time}, and times must lie between {-LATEST} and "
                f"{LATEST}: leave such rows out, or make their time NULL, if it isn't known"
            )


def unplaced(rows: pa.RecordBatch | pa.Table, time: str, start: str | None) -> pa.Array | None:
    """The mask of rows that no query can place: those without a time or a start, and those that
    start after their end; None if there can't be any. A float can't be a time, but may be checked
    before it becomes an integer: NaN is then no time."""
    ends = rows.column(time)
    if start is None:
        if ends.null_count or pa.types.is_floating(ends.type):
            return pc.is_null(ends, nan_is_null=True)
        return None
    starts = rows.column(start)
    missing = pc.or_(pc.is_null(ends, nan_is_null=True), pc.is_null(starts, nan_is_null=True))
    return pc.or_(missing, pc.fill_null(pc.greater(decoded(starts), decoded(ends)), False))


def with_times(batch: pa.RecordBatch, schema: Schema, counts: Counts) -> pa.RecordBatch:
    """Drop and count the rows without a valid time."""
    counts.events += batch.num_rows
    rejected = unplaced(batch, schema.time, schema.start)
    if rejected is None:
        return batch
    counts.rejected += rejected.true_count
    return batch.filter(pc.invert(rejected))


@dataclass(frozen=True)
class Numbering:
    """The state of a stream's numbering."""

    last: pa.RecordBatch | None  # the last row
    reached: int  # the last time of all
    latest: int | None  # the last time of a row, where nothing else counts
    position: int
    ordinal: int  # of the last row, in its section
    clock: int
    offset: int  # of the positions of this section, where they are times


class Ticker:
    """Numbers the rows of a stream; remembers where the last batch ended."""

    def __init__(
        self, schema: Schema, window: Window | None, key: Sequence[Mapping[str, str]]
    ) -> None:
        self._time = schema.time
        self._tie = schema.tie
        self._start = schema.start
        self._order = schema.order
        self._kinds = schema.columns
        self._events = window is not None and window.clock is Clock.EVENTS
        names = [set(part.values()) for part in key]
        keyed = self._events and all(len(n) == 1 for n in names)
        self._sections = [n.pop() for n in names] if keyed else []
        # Further than any window reaches, also a negation's that is open on both sides.
        self._jump = 0 if window is None else 3 * window.size + 1
        self.resume(Numbering(None, -(1 << 63), None, -(1 << 63) if self._start else 0, -1, -1, 0))

    def save(self) -> Numbering:
        last = None if self._last is None else self._last.select(self._compared)
        return Numbering(
            last,
            self._reached,
            self._latest,
            self._position,
            self._ordinal,
            self._clock,
            self._offset,
        )

    def resume(self, numbering: Numbering) -> None:
        """Resume the numbering of a stream."""
        self._last = numbering.last
        self._reached = numbering.reached
        self._latest = numbering.latest
        self._position = numbering.position
        self._ordinal = numbering.ordinal
        self._clock = numbering.clock
        self._offset = numbering.offset

    def advance(self, time: int) -> None:
        """Advance the time: no earlier row will come."""
        self._reached = max(self._reached, time)

    @property
    def _compared(self) -> list[str]:
        """The columns that distinguish a row from the previous one."""
        names = (self._time, *self._sections, self._tie)
        return list(dict.fromkeys(name for name in names if name is not None))

    def read(self, batch: pa.RecordBatch, rows: Ints) -> Ticks:
        """The ticks of these rows of the batch. Only a clock of events looks at the others."""
        if batch.num_rows == 0:
            return Ticks(rows, rows, rows, rows, rows, rows, self._reached)
        try:
            everything = times(batch.column(self._time))
        except pa.ArrowInvalid as error:
            raise beyond(self._time, error) from None
        if self._events:  # key by key, so that the first time may be anywhere
            check_times(self._time, int(everything.min()), int(everything.max()))
            return self._number(batch, everything).of(rows)
        if everything[0] < self._reached or (everything[1:] < everything[:-1]).any():
            before = np.concatenate(([self._reached], everything[:-1]))
            self._check_order(everything, before, False)
        check_times(self._time, int(everything[0]), int(everything[-1]))
        self._reached = int(everything[-1])
        if len(rows) == 0:
            return Ticks(rows, rows, rows, rows, rows, rows, self._reached)
        if self._start is None:
            tie = None if self._tie is None else batch.column(self._tie)
            if tie is None or (not tie.null_count and is_exact(tie.type)):
                time = everything if len(rows) == batch.num_rows else everything[rows]
                return self._ranked(time, tie, batch, rows)
        if len(rows) < batch.num_rows:
            batch = batch.select(self._order).take(pa.array(rows))
            everything = everything[rows]
        return replace(self._number(batch, everything), reached=self._reached)

    def _ranked(self, time: Ints, tie: pa.Array | None, batch: pa.RecordBatch, rows: Ints) -> Ticks:
        """The ticks, if position and clock depend on times, and a tie-break of numbers, alone."""
        changed = np.empty(len(time), np.bool_)
        np.not_equal(time[1:], time[:-1], out=changed[1:])
        if tie is None:
            changed[0] = self._latest is None or int(time[0]) != self._latest
            self._latest = int(time[-1])
        else:
            values = in_numpy(tie)
            values = values if len(rows) == len(values) else values[rows]
            changed[1:] |= values[1:] != values[:-1]
            changed[0] = self._last is None or self._follows(batch.slice(int(rows[0]), 1))
            self._last = batch.slice(int(rows[-1]), 1)
        if changed.all():
            position = np.arange(self._position + 1, self._position + len(time) + 1)
        else:
            position = self._position + np.cumsum(changed)
        self._position = int(position[-1])
        return Ticks(time, position, time, time, position, time, self._reached)

    def _follows(self, row: pa.RecordBatch) -> bool:
        """Whether the row has another position than the last one."""
        assert self._last is not None
        pairs = ((row.column(name), self._last.column(name)) for name in self._compared)
        return any(bool(_differs(column, before)[0]) for column, before in pairs)

    def _number(self, batch: pa.RecordBatch, time: Ints) -> Ticks:
        """Positions and clock of all rows of a batch, given their times."""
        before = self._before(batch)
        new_section = np.zeros(len(time), np.bool_)
        for name in self._sections:
            key = (seen(name, part.column(name), self._kinds[name]) for part in (batch, before))
            new_section |= _differs(*key)
        previous = times(before.column(self._time))
        self._check_order(time, previous, new_section)
        changed = new_section | (time != previous)
        if self._tie is not None:
            changed |= _differs(batch.column(self._tie), before.column(self._tie))
        if self._last is None:
            changed[0] = True
            new_section[0] = bool(self._sections)
        clock = self._ordinals(batch, new_section) if self._events else time
        self._last = batch.slice(batch.num_rows - 1)
        reached = int(clock[-1])
        if self._start is not None:
            offset = self._offsets(np.where(new_section, previous - time + 1, 0), time)
            start = times(batch.column(self._start))
            check_times(self._start, int(start.min()), int(start.max()))
            opened = clock if self._events else start
            return Ticks(time, time + offset, clock, start, start + offset, opened, reached)
        position = self._position + np.cumsum(changed)
        self._position = int(position[-1])
        return Ticks(time, position, clock, time, position, clock, reached)

    def _offsets(self, steps: Ints, time: Ints) -> Ints | int:
        """How far the times of each row's section are moved, so that positions rise where the next
        section begins: right after the end of the one before."""
        if not self._sections:
            return 0
        offsets = self._offset + np.cumsum(steps)
        before, self._offset = self._position, int(offsets[-1])
        self._position = int(time[-1] + offsets[-1])
        if self._position < before:
            raise DataError("there are too many keys to count the events of each: times overflow")
        return offsets

    def _before(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The row before each row; for the very first, itself."""
        names = self._compared
        first = batch.slice(0, 1) if self._last is None else self._last
        rest = batch.select(names).slice(0, batch.num_rows - 1)
        rows = pa.Table.from_batches([first.select(names), rest])
        return rows.combine_chunks().to_batches()[0]

    def _check_order(self, time: Ints, before: Ints, new_section: NDArray[np.bool_] | bool) -> None:
        backwards = np.flatnonzero((time < before) & np.logical_not(new_section))
        if len(backwards):
            at = backwards[0]
            raise DataError(
                f"the events are not in the order of `{self._time}`: "
                f"{time[at]} comes after {before[at]}; sort them, or pass a whole table"
            )

    def _ordinals(self, batch: pa.RecordBatch, new_section: NDArray[np.bool_]) -> Ints:
        """The clock of `n EVENTS`: ordinals, moved so that it rises across sections."""
        n = batch.num_rows
        rows = np.arange(n)
        if CLOCK_COLUMN in batch.schema.names:
            ordinals: Ints = np.asarray(batch.column(CLOCK_COLUMN), np.int64)
            if not self._sections:
                return ordinals
        elif not self._sections:
            ordinals = self._ordinal + 1 + rows
            self._ordinal = int(ordinals[-1])
            return ordinals
        else:
            begins = np.maximum.accumulate(np.where(new_section, rows, -1))
            ordinals = np.where(begins >= 0, rows - begins, self._ordinal + 1 + rows)
        # Inside a section the clock moves as the ordinal does; into a new one it jumps.
        steps = np.diff(ordinals, prepend=self._ordinal)
        steps[new_section] = self._jump
        clock: Ints = self._clock + np.cumsum(steps)
        self._ordinal, self._clock = int(ordinals[-1]), int(clock[-1])
        return clock


def _differs(column: pa.Array, before: pa.Array) -> NDArray[np.bool_]:
    """The mask where two columns differ; NULL equals NULL, and NaN equals NaN."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.bool_)
    column, before = decoded(column), decoded(before)
    if not (column.null_count or before.null_count or pa.types.is_floating(column.type)):
        return np.asarray(pc.not_equal(column, before).to_numpy(zero_copy_only=False))
    unequal = pc.fill_null(pc.not_equal(column, before), False)
    if pa.types.is_floating(column.type):
        both = pc.and_(pc.is_nan(column), pc.is_nan(before))
        unequal = pc.and_not(unequal, pc.fill_null(both, False))
    differs = pc.or_(unequal, pc.xor(pc.is_null(column), pc.is_null(before)))
    return np.asarray(differs.to_numpy(zero_copy_only=False))
