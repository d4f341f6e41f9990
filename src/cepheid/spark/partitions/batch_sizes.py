"""Merges Spark's small record batches into batches of a size that suits the engine."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from cepheid.spark.columns.column_names import as_given

ROWS = 1 << 16


def gather(batches: Iterator[pa.RecordBatch], rows: int = ROWS) -> Iterator[pa.RecordBatch]:
    """The same rows, with the caller's names, in batches of at least the given size (the last may
    be smaller); none is empty."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in map(as_given, batches):
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
        if count >= rows:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, count = [], 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()
