"""Rows as Arrow in a binary column, and back.

Spark hands the rows of a stateful operator to Python one by one. So before the shuffle the rows of
each bucket are packed into a few binary values, and matches leave the operator the same way.
Workers that only do this never load the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.spark.partitions.batch_sizes import ROWS, gather
from cepheid.streaming.cells import arrow_bytes, table_of

BUCKET, DATA, VERSION, CLOCK = "bucket", "data", "version", "clock"
"""Where rows go, the rows; if those are rules instead, which version of them; and of a heartbeat,
which has no rows, what the clock is."""

BUCKET_COLUMN = "__bucket"
"""The bucket column before packing: events may have a column `bucket` of their own."""

FIRST, FIRST_KEY = 0, ""
"""A bucket that exists whatever their number (see `cepheid.spark.partitions.salts`). If each key is
a bucket, `FIRST_KEY` is one that belongs to no key."""

REASON_COLUMN = "__reason"
FUTURE, NO_TIME, LATE = "future", "no time", "late"
"""The reason why a row is in no match, and the column that holds it."""

KIND, QUERY = b"cepheid", b"cepheid query"
REJECTED, UNREAD, LETTERS = b"rejected", b"unread", b"letters"
"""What is packed besides rows of buckets and matches: rows that are rejected, the times of those
that no variable takes, and dead letters. Where several queries share buckets, it is also noted for
which one rows are packed."""

TIME, COUNT = "time", "count"

Mapped = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def packing(
    bucket: pa.DataType, time: str, clock_buckets: Sequence[int] = (), query: str | None = None
) -> Mapped:
    """One row for each bucket that has rows, for every so many rows.

    The first bucket always has one: in its header stands what query the state belongs to, and how
    many buckets there are. If those have changed, others may look like new ones. It also gets the
    rows without a bucket: those that are rejected, as they are, and how many there are of each
    time of the others, for some bucket to count those that are late. The `clock_buckets` have one,
    too, if there are rows of any. Rows for one `query` of several have its name.
    """
    schema = pa.schema({BUCKET: bucket, DATA: pa.binary()})
    first = FIRST if pa.types.is_integer(bucket) else FIRST_KEY

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in gather(batches, ROWS):
            inside, outside = divided(batch)
            parts = dict(_by_bucket(inside))
            for number in [first, *clock_buckets] if first == FIRST else clock_buckets:
                empty = batch.slice(0, 0).drop_columns([BUCKET_COLUMN, *_outside(batch)])
                parts.setdefault(number, empty)
            packed = [*parts.items(), *((first, part) for part in _of_none(outside, time))]
            cells = [(place, arrow_bytes(_named(part, query))) for place, part in packed]
            places, data = (pa.array(values) for values in zip(*cells, strict=True))
            yield pa.record_batch([places.cast(bucket), data.cast(pa.binary())], schema)

    return pack


def divided(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Split the rows into those with a bucket and the others."""
    buckets = batch.column(BUCKET_COLUMN)
    none = pc.is_null(buckets)
    inside = batch if buckets.null_count == 0 else batch.filter(pc.invert(none))
    outside = batch.slice(0, 0) if buckets.null_count == 0 else batch.filter(none)
    return inside.drop_columns(_outside(batch)), outside.drop_columns([BUCKET_COLUMN])


def _outside(batch: pa.RecordBatch) -> list[str]:
    """Columns that only rows without a bucket have."""
    return [REASON_COLUMN] if REASON_COLUMN in batch.schema.names else []


def _of_none(rows: pa.RecordBatch, time: str) -> Iterator[pa.RecordBatch]:
    """What is kept of rows without a bucket: rejected rows, and the times of all others."""
    if REASON_COLUMN in rows.schema.names:
        rejected = rows.filter(pc.is_valid(rows.column(REASON_COLUMN)))
        rows = rows.filter(pc.is_null(rows.column(REASON_COLUMN)))
        if rejected.num_rows:
            yield _marked(rejected, REJECTED)
    if rows.num_rows:
        yield _marked(counted_times(rows.column(time)), UNREAD)


def counted_times(times: pa.Array) -> pa.RecordBatch:
    """The number of rows of each time, in ticks of the query's clock. Timestamps are rounded up to
    milliseconds, as watermarks are: a watermark that has passed one has passed the other."""
    ticks = times
    if not pa.types.is_integer(times.type):
        # An engine does the same, but isn't needed here (`cepheid.engine.rows.clock.times`).
        ticks = times.cast(pa.timestamp("us", getattr(times.type, "tz", None)))
    values = ticks.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if ticks is not times:
        values = -(-values // 1000) * 1000
    distinct, counts = np.unique(values, return_counts=True)
    return pa.record_batch({TIME: pa.array(distinct), COUNT: pa.array(counts)})


def _marked(rows: pa.RecordBatch, kind: bytes) -> pa.RecordBatch:
    return rows.replace_schema_metadata({KIND: kind})


def _named(rows: pa.RecordBatch, query: str | None) -> pa.RecordBatch:
    if query is None:
        return rows
    return rows.replace_schema_metadata({**(rows.schema.metadata or {}), QUERY: query.encode()})


def query_of(rows: pa.Table) -> str:
    """The query for which rows are packed."""
    name: bytes = rows.schema.metadata[QUERY]
    return name.decode()


def kind_of(rows: pa.Table) -> bytes | None:
    """The kind of a packed value; None if it holds rows of a bucket."""
    kind: bytes | None = (rows.schema.metadata or {}).get(KIND)
    return kind


def _by_bucket(batch: pa.RecordBatch) -> Iterator[tuple[object, pa.RecordBatch]]:
    """The rows of each bucket, in the order in which they came."""
    codes = pc.dictionary_encode(batch.column(BUCKET_COLUMN))
    rows = batch.drop_columns([BUCKET_COLUMN])
    order = np.argsort(np.asarray(codes.indices), kind="stable")
    if len(codes.dictionary) > 1:
        rows = rows.take(pa.array(order))
    ends = np.cumsum(np.bincount(np.asarray(codes.indices), minlength=len(codes.dictionary)))
    begin = 0
    for key, end in zip(codes.dictionary.to_pylist(), ends.tolist(), strict=True):
        yield key, rows.slice(begin, end - begin)
        begin = end


def unpacking(schema: pa.Schema) -> Mapped:
    """Unpack the matches and, if the schema has their column, the dead letters."""

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for data in batch.column(DATA):
                if data.is_valid:
                    for rows in table_of(data.as_buffer()).to_batches():
                        yield filled(rows, schema)

    return unpack


def filled(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with all columns of the schema; missing ones are NULL."""
    if len(rows.schema) == len(schema):
        return rows
    names = rows.schema.names
    columns = [
        rows.column(f.name) if f.name in names else pa.nulls(rows.num_rows, f.type) for f in schema
    ]
    return pa.record_batch(columns, schema.names)
