"""Rows as Arrow in a binary column, and back.

Spark hands the rows of a stateful operator to Python one by one. So before the shuffle the rows of
each bucket are packed into a few binary values, and matches leave the operator the same way.
Workers that only do this never load the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.spark.chunks import ROWS, gather
from cepheid.streaming.cells import arrow_bytes, table_of

BUCKET, DATA, VERSION = "bucket", "data", "version"
"""Where rows go, the rows; and if those are rules instead, which version of them."""

FIRST = 0
"""A bucket that there is whatever their number (see `cepheid.spark.salts`)."""

Mapped = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def packing(bucket: pa.DataType) -> Mapped:
    """One row for each bucket that has rows, for every so many rows.

    The first bucket always has one: in its header stands what query the state belongs to, and how
    many buckets there are. If those have changed, others may look like new ones.
    """
    schema = pa.schema({BUCKET: bucket, DATA: pa.binary()})

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in gather(batches, ROWS):
            parts = dict(_by_bucket(batch))
            if pa.types.is_integer(bucket):
                parts.setdefault(FIRST, batch.slice(0, 0).drop_columns([BUCKET]))
            data = pa.array([arrow_bytes(part) for part in parts.values()], pa.binary())
            yield pa.record_batch([pa.array(list(parts), bucket), data], schema)

    return pack


def _by_bucket(batch: pa.RecordBatch) -> Iterator[tuple[object, pa.RecordBatch]]:
    """The rows of each bucket, in the order in which they came."""
    codes = pc.dictionary_encode(batch.column(BUCKET))
    rows = batch.drop_columns([BUCKET])
    order = np.argsort(np.asarray(codes.indices), kind="stable")
    if len(codes.dictionary) > 1:
        rows = rows.take(pa.array(order))
    ends = np.cumsum(np.bincount(np.asarray(codes.indices), minlength=len(codes.dictionary)))
    begin = 0
    for key, end in zip(codes.dictionary.to_pylist(), ends.tolist(), strict=True):
        yield key, rows.slice(begin, end - begin)
        begin = end


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that were packed."""
    for batch in batches:
        for data in batch.column(DATA):
            if data.is_valid:
                yield from table_of(data.as_buffer()).to_batches()
