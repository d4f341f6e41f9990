"""Rows that come out of order: they wait for the time by which others may be late (ZStream 4.1).

A row is late if it is before the latest time so far, less the delay: it may belong before rows
that have been matched. This looks at one row after the other, so that the result doesn't depend on
how rows are cut into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.types import Schema, Type
from cepheid.engine.arrays.columns import decoded
from cepheid.engine.end_of_data import moment
from cepheid.engine.rows.clock import check_times, times
from cepheid.engine.rows.order import sorted_by
from cepheid.errors import OptionError
from cepheid.options import TICK_US, Options, duration_us

NEVER = -(1 << 62)
"""Before every time."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Heartbeat:
    """Among the record batches of an iterator: time has come so far, also if no event has. It ends
    windows and releases what waits for time, and is no event for `=>` and `n EVENTS`.

    >>> import cepheid as cep, pyarrow as pa
    >>> cart = pa.record_batch({"ts": [1], "type": ["CART"]})
    >>> query = "PATTERN CART c ; !PAY p FOR 30 RETURN c.ts AS cart"
    >>> found = cep.match(iter([cart, cep.Heartbeat(31)]), query, time="ts", type="type")
    >>> found.read_all().to_pylist()
    [{'cart': 1, 'match_start': 1, 'match_end': 31}]
    """

    time: Any

    def ticks(self, schema: Schema) -> int:
        """The time, on the clock of these events."""
        return moment(self.time, schema, "Heartbeat")


def delay_ticks(options: Options, schema: Schema) -> int | None:
    """The delay that a run allows, on the clock of its events."""
    delay, is_number = options.delay, schema.columns[schema.time] is Type.INTEGER
    if isinstance(delay, str) and is_number:
        if options.unit is None:
            raise OptionError(
                f"delay={delay!r} is a duration, and the time column has integers: say what a tick "
                "of it is, as in unit='ms', or give the delay in ticks"
            )
        return duration_us(delay) // TICK_US[options.unit]
    if isinstance(delay, int) and not is_number:
        raise OptionError(f"delay={delay} has no unit: give a duration, as in delay='10 seconds'")
    return duration_us(delay) if isinstance(delay, str) else delay


def late_rows(at: Ints, latest: int, delay: int) -> NDArray[np.bool_]:
    """Which rows come too late, given the latest time before them."""
    before = np.maximum.accumulate(np.concatenate(([latest], at[:-1])))
    return np.asarray(at < before - delay)


class WaitingRows:
    """Rows that wait for their turn. `order` are the columns that say when it is, time first."""

    def __init__(self, schema: pa.Schema, order: Sequence[str]) -> None:
        self._order = list(order)
        self._rows = schema.empty_table()
        self._times: Ints = np.zeros(0, np.int64)

    @property
    def rows(self) -> pa.Table:
        """In the order in which they came."""
        return self._rows

    def add(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self._rows = pa.concat_tables([self._rows, rows])
            self._times = np.concatenate((self._times, row_times(rows, self._order[0])))

    def release(self, before: int | None = None) -> pa.Table:
        """Those before this time, or all, in order."""
        due = np.ones(len(self._times), np.bool_) if before is None else self._times < before
        if not due.any():
            return self._rows.slice(0, 0)
        if due.all():
            released, self._rows = self._rows, self._rows.slice(0, 0)
        else:
            released = self._rows.filter(pa.array(due))
            self._rows = self._rows.filter(pa.array(~due)).combine_chunks()
        self._times = self._times[~due]
        return sorted_by(released, self._order)


def row_times(rows: pa.Table, time: str) -> Ints:
    """The times of rows that have one."""
    at = times(decoded(rows[time].combine_chunks()))
    if len(at):
        check_times(time, int(at.min()), int(at.max()))
    return at


def in_time(
    items: Iterable[pa.RecordBatch | Heartbeat],
    schema: Schema,
    delay: int | None,
    late: Callable[[int], None],
) -> Iterator[pa.RecordBatch | int]:
    """The batches in order, and between them times that have been reached: no row before one
    follows it. `late` is called with numbers of rows that were left out. Rows without a time are
    passed on: they are counted where all are."""
    if delay is None:
        for item in items:
            yield item.ticks(schema) if isinstance(item, Heartbeat) else item
        return
    waiting: WaitingRows | None = None
    latest = NEVER
    for item in items:
        if isinstance(item, Heartbeat):
            latest = max(latest, item.ticks(schema))
        else:
            rows = pa.Table.from_batches([item])
            waiting = waiting or WaitingRows(rows.schema, schema.order)
            timed = pc.is_valid(rows[schema.time])
            yield from rows.filter(pc.invert(timed)).combine_chunks().to_batches()
            rows = rows.filter(timed)
            at = row_times(rows, schema.time)
            if not len(at):
                continue
            too_late = late_rows(at, latest, delay)
            latest = max(latest, int(at.max()))
            late(int(too_late.sum()))
            waiting.add(rows.filter(pa.array(~too_late)))
        if waiting is not None:
            yield from waiting.release(latest - delay).combine_chunks().to_batches()
        yield latest - delay
    if waiting is not None:
        yield from waiting.release().combine_chunks().to_batches()
