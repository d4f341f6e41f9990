"""Which stretches of a stream a sample is taken from, and what is found in them.

Rates need whole stretches of time, and combinations need windows, so rows are not drawn one by
one: a few ranges of time are, evenly spread over the rows, so that a gap or an event with a wrong
date doesn't matter. A range is at least two windows long. If the ranges have more rows than
wanted, a random part of their rows is looked at.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.query import Clock
from cepheid.engine.rows.clock import times
from cepheid.engine.rows.event_types import misspelled, types_in
from cepheid.engine.rows.order import in_order
from cepheid.engine.sampling import Sample, Targets, observe
from cepheid.errors import DataError
from cepheid.statistics.samples import Interval

STRETCHES = 4
SEED = 0


def check_rows(rows: object) -> int:
    """Check the number of rows to sample."""
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise DataError(f"rows must be a number from 1 up, not {rows!r}")
    return rows


def places(count: int, rows: int) -> list[float]:
    """Where the stretches begin and end, as shares of a stream of `count` rows.

    >>> places(1000, 100)[:2]
    [0.1125, 0.1375]
    """
    length = min(1.0, rows / count) / STRETCHES
    centers = [(n + 0.5) / STRETCHES for n in range(STRETCHES)]
    return [place for c in centers for place in (c - length / 2, c + length / 2)]


def ranges(cuts: Sequence[int], last: int, targets: Targets) -> tuple[Interval, ...]:
    """The stretches, given the times at their places, and the last time of all."""
    window = targets.plan.window
    least = 2 * window.size if window is not None and window.clock is Clock.TIME else 1
    intervals: list[Interval] = []
    for begin, end in list(pairwise(cuts))[::2]:
        end = min(last + 1, max(end, begin + least))
        if intervals and begin <= intervals[-1][1]:
            intervals[-1] = intervals[-1][0], max(end, intervals[-1][1])
        else:
            intervals.append((begin, end))
    return tuple(intervals)


def of_table(targets: Targets, table: pa.Table, rows: int) -> Sample:
    """A sample of all the events of a table. Rows without a time are not events."""
    table = _events(targets, table)
    moments = times(table[targets.plan.schema.time].combine_chunks())
    if len(moments) == 0:
        return Sample()
    if len(moments) <= rows:
        return in_ranges(targets, table, ((int(moments.min()), int(moments.max()) + 1),))
    ordered = np.sort(moments)
    cuts = ordered[(np.array(places(len(ordered), rows)) * len(ordered)).astype(np.int64)]
    intervals = ranges(cuts.tolist(), int(ordered[-1]), targets)
    inside = np.flatnonzero(_inside(moments, intervals))
    count = len(inside)
    if count > rows:
        inside = np.sort(np.random.default_rng(SEED).choice(inside, rows, replace=False))
    return in_ranges(targets, table.take(pa.array(inside)), intervals, count)


def in_ranges(
    targets: Targets, table: pa.Table, intervals: Sequence[Interval], count: int | None = None
) -> Sample:
    """A sample of the rows in some ranges of time; `count` says how many there are, if these are
    only a random part of them."""
    table = _events(targets, table)
    _warn_of_types(targets, table)
    weight = 1.0 if count is None or table.num_rows == 0 else count / table.num_rows
    moments = times(table[targets.plan.schema.time].combine_chunks())
    random = np.random.default_rng(SEED)
    parts = (table.filter(pa.array(_inside(moments, [interval]))) for interval in intervals)
    samples = (
        observe(targets, _batch(in_order(targets.plan, part)), interval, random, weight)
        for part, interval in zip(parts, intervals, strict=True)
    )
    return reduce(Sample.merge, samples)


def _warn_of_types(targets: Targets, table: pa.Table) -> None:
    column, streams = targets.plan.schema.type, targets.plan.schema.streams or {}
    if column is not None and table.num_rows:
        named = [t for v in targets.plan.variables.values() for t in v.types if t not in streams]
        for message in misspelled(named, types_in(table[column]), column):
            warnings.warn(message, stacklevel=5)


def _events(targets: Targets, table: pa.Table) -> pa.Table:
    table = table.select([n for n in table.column_names if n in targets.plan.required])
    time = table[targets.plan.schema.time]
    return table.filter(pc.is_valid(time)) if time.null_count else table


def _inside(moments: NDArray[np.int64], intervals: Sequence[Interval]) -> NDArray[np.bool_]:
    masks = [(begin <= moments) & (moments < end) for begin, end in intervals]
    return np.asarray(np.logical_or.reduce(masks))


def _batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
