"""Sorted batches cut where partitions end, so that a worker holds few partitions at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def whole_partitions(
    batches: Iterator[pa.RecordBatch], partition: Sequence[str]
) -> Iterator[pa.Table]:
    """Tables of one or more complete partitions. Rows come sorted by the partition's columns."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        at = _last_change(held, batch, partition)
        if at is None:
            held.append(batch)
            continue
        held.append(batch.slice(0, at))
        yield pa.Table.from_batches([part for part in held if part.num_rows])
        held = [batch.slice(at)]
    if held:
        yield pa.Table.from_batches(held)


def _last_change(
    held: list[pa.RecordBatch], batch: pa.RecordBatch, partition: Sequence[str]
) -> int | None:
    """Where the last partition of the batch begins; None if it began before the batch."""
    if not partition or batch.num_rows == 0:
        return None
    changes = np.zeros(batch.num_rows, np.bool_)
    for name in partition:
        column = batch.column(name)
        changes[1:] |= _differs(column.slice(1), column.slice(0, len(column) - 1))
        if held:
            before = held[-1].column(name)
            changes[0] |= bool(_differs(column.slice(0, 1), before.slice(len(before) - 1))[0])
    places = np.flatnonzero(changes)
    return int(places[-1]) if len(places) else None


def _differs(left: pa.Array, right: pa.Array) -> NDArray[np.bool_]:
    """Two NULLs are equal; NaN is not equal to itself here, which only makes tables smaller."""
    unequal = pc.fill_null(pc.not_equal(left, right), False)
    either = pc.xor(pc.is_null(left), pc.is_null(right))
    differs: NDArray[np.bool_] = pc.or_(unequal, either).to_numpy(zero_copy_only=False)
    return differs
