"""Times, positions and clock values of the rows of a stream, batch after batch.

The clock is what windows are measured on: time, or the ordinal of the row in its partition
(`n EVENTS`). It only ever rises. A keyed stream that is measured in events comes key by key;
between keys the clock jumps further than any window reaches, so that the keys can't meet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.query import Clock
from cepheid.algebra.types import Type
from cepheid.engine.columns import Interner, kernel_values, microseconds
from cepheid.errors import DataError
from cepheid.plan.nodes import Plan

CLOCK_COLUMN = "__ordinal"
"""The row's ordinal in its partition, from 0, if the runtime has numbered the rows already."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Ticks:
    time: Ints
    position: Ints
    clock: Ints

    def take(self, rows: Ints) -> Ticks:
        return Ticks(self.time[rows], self.position[rows], self.clock[rows])


def times(column: pa.Array) -> Ints:
    """The time column as 64-bit integers: microseconds for timestamps, else the number."""
    array = column if pa.types.is_integer(column.type) else microseconds(column)
    return array.cast(pa.int64()).to_numpy(zero_copy_only=False)


class Ticker:
    """Numbers the rows of a stream; remembers where the last batch ended."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._interner = Interner()
        events = plan.window is not None and plan.window.clock is Clock.EVENTS
        self._events = events
        names = [set(part.values()) for part in plan.key]
        self._sections = [n.pop() for n in names] if events and all(len(n) == 1 for n in names) else []
        self._jump = 0 if plan.window is None else 2 * plan.window.size + 1
        self._position = 0
        self._last: list[np.int64] | None = None  # section values, time, tie of the last row
        self._ordinal = -1  # of the last row, in its section
        self._clock = -1 if events else None

    def read(self, batch: pa.RecordBatch) -> Ticks:
        time = times(batch.column(self._plan.schema.time))
        sections = [self._codes(batch, name) for name in self._sections]
        tie = self._plan.schema.tie
        ties = [] if tie is None else [self._codes(batch, tie)]
        new_section = self._changes(sections, 0, len(time))
        changed = new_section | self._changes([time, *ties], len(sections), len(time))
        self._check_order(time, new_section)
        position = self._position + np.cumsum(changed)
        clock = self._ordinals(batch, new_section) if self._events else time
        self._position = int(position[-1])
        self._last = [a[-1] for a in (*sections, time, *ties)]
        return Ticks(time, position, clock)

    def _codes(self, batch: pa.RecordBatch, name: str) -> Ints:
        type_ = self._plan.schema.columns[name]
        values, valid = kernel_values(batch.column(name), type_, self._interner)
        codes = values.view(np.int64) if values.dtype == np.float64 else values.astype(np.int64)
        return codes if valid is None else np.where(valid, codes, np.iinfo(np.int64).min)

    def _changes(self, columns: list[Ints], offset: int, length: int) -> NDArray[np.bool_]:
        """Rows that differ from the one before in one of the columns."""
        changed = np.zeros(length, np.bool_)
        for n, column in enumerate(columns):
            changed[1:] |= column[1:] != column[:-1]
            changed[0] |= self._last is None or column[0] != self._last[offset + n]
        return changed

    def _check_order(self, time: Ints, new_section: NDArray[np.bool_]) -> None:
        last = time[0] if self._last is None else self._last[len(self._sections)]
        before = np.concatenate(([last], time[:-1]))
        backwards = np.flatnonzero((time < before) & ~new_section)
        if len(backwards):
            at = backwards[0]
            raise DataError(
                f"the events are not in the order of `{self._plan.schema.time}`: "
                f"{time[at]} comes after {before[at]}; sort them, or pass a table instead of batches"
            )

    def _ordinals(self, batch: pa.RecordBatch, new_section: NDArray[np.bool_]) -> Ints:
        """The clock of `n EVENTS`: ordinals, moved so that it rises across sections."""
        n = batch.num_rows
        rows = np.arange(n)
        if CLOCK_COLUMN in batch.schema.names:
            ordinals = batch.column(CLOCK_COLUMN).to_numpy(zero_copy_only=False).astype(np.int64)
            if not self._sections:
                return ordinals
        elif not self._sections:
            ordinals = self._ordinal + 1 + rows
            self._ordinal = int(ordinals[-1])
            return ordinals
        else:
            begins = np.maximum.accumulate(np.where(new_section, rows, -1))
            ordinals = np.where(begins >= 0, rows - begins, self._ordinal + 1 + rows)
        assert self._clock is not None
        # Between two rows of a section the clock moves as the ordinal does; into a new one it jumps.
        steps = np.diff(ordinals, prepend=self._ordinal)
        steps[new_section] = self._jump
        clock = self._clock + np.cumsum(steps)
        self._ordinal, self._clock = int(ordinals[-1]), int(clock[-1])
        return clock


def is_time(type_: Type) -> bool:
    return type_ in (Type.INTEGER, Type.TIMESTAMP, Type.DATE)
