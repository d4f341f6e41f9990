"""Which bucket a row of a stream belongs to.

A bucket holds the events of many keys: Spark's cost for a group is a fixed one, so keys are ours
to keep apart. Only where the events of each key are counted, and a match may wait for more of them,
every key is a bucket of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import and_
from typing import assert_never

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cepheid.algebra.types import STREAM_COLUMN, Schema
from cepheid.engine.rows.classes import CLASS_COLUMN
from cepheid.engine.rows.order import key_by_key
from cepheid.errors import PlanError
from cepheid.options import Options
from cepheid.spark.columns.class_filters import mask, relevant
from cepheid.spark.columns.column_names import named, safe
from cepheid.spark.columns.predicates import Translator, combine
from cepheid.spark.columns.schema import event_schema
from cepheid.spark.partitions.arrange import (
    EventSource,
    ShippedRows,
    by_keys,
    copied,
    placed,
    shipped,
)
from cepheid.spark.partitions.layout import (
    ByKey,
    ByPartialKey,
    Layout,
    Rows,
    Single,
    Slices,
    choose,
    find_partial,
    in_events,
)
from cepheid.spark.partitions.salts import salts
from cepheid.spark.partitions.worker import COPY_COLUMN, SECTION_COLUMN
from cepheid.spark.streaming.clock.ahead import AHEAD
from cepheid.spark.streaming.stateful.packed_rows import (
    BUCKET_COLUMN,
    FIRST,
    FUTURE,
    NO_TIME,
    REASON_COLUMN,
)
from cepheid.streaming.counted_keys import keys_share

DEFAULT = 8
"""The default number of buckets. It doesn't depend on the session: state is kept by bucket, so the
number must be the same when a query resumes."""

ONE_BUCKET = (
    "no key connects the variables of this query, so all its events go through one bucket, on one "
    "core; connect the variables by a key in WHERE, such as [id], or keep the stream small"
)


def stream_layout(source: EventSource, options: Options) -> Layout:
    """The layout of a stream: as in batch, but without time slices, since it has no end."""
    if options.partitioning == "slices":
        raise PlanError(
            "partitioning='slices' cuts data in time, which isn't possible for a stream"
        )
    translator, query = Translator(source.types), source.prepared.query
    layout = choose(source.plan, query, options, translator)
    if isinstance(layout, Slices):
        layout = find_partial(source.plan, query, translator) or Single()
    if isinstance(layout, Rows) or not in_events(source.plan):
        return layout
    # Events are counted where they are matched: those of a key, or all.
    if isinstance(layout, ByKey) and layout.uniform:
        return layout
    if key_by_key(source.plan) and not keys_share(source.prepared):
        raise PlanError(
            "the events of each key are counted here, and a match may wait for more of them: on a "
            "stream this needs a bucket for each key. Leave partitioning= out, and use a key that "
            "is a number, a text or a time"
        )
    return Single()


def bucket_count(layout: Layout, options: Options) -> int:
    return 1 if isinstance(layout, Single) else options.buckets or DEFAULT


def bucket_numbers(layout: Layout, count: int) -> tuple[int, ...]:
    """The numbers of all buckets; for layouts in which buckets are numbered."""
    return (FIRST,) if isinstance(layout, Single) else salts(count)


def by_single_key(source: EventSource, layout: Layout) -> bool:
    """Whether every key is a bucket of its own."""
    return isinstance(layout, ByKey) and in_events(source.plan) and not keys_share(source.prepared)


def counts_keys(source: EventSource, layout: Layout) -> bool:
    """Whether the events of each key are counted."""
    return isinstance(layout, ByKey | Single) and key_by_key(source.plan)


def bucket_type(source: EventSource, layout: Layout) -> pa.DataType:
    return pa.string() if by_single_key(source, layout) else pa.int32()


def bucketed(
    source: EventSource, layout: Layout, count: int, carried: Sequence[str] | None = None
) -> DataFrame:
    """Give each row its bucket. Rows that no variable takes have none, and keep only their time.
    Rows without a valid time are dropped unless dead letters are wanted: then they have no bucket,
    but a reason, and the `carried` columns, as all rows that a variable takes."""
    rows, kept = in_time_rows(source.events, source.plan.schema, carried is not None)
    sent = sent_columns(source)
    more = [name for name in carried or () if name not in sent]
    more += [] if carried is None else [REASON_COLUMN]
    rows = _with_buckets(
        source, layout, count, rows, ShippedRows(taken_rows(source, kept), tuple(more))
    )
    if source.results:  # of which none is late
        is_event = ~named(STREAM_COLUMN).isin(*source.results)
        rows = rows.filter(named(BUCKET_COLUMN).isNotNull() | is_event)
    more += [COPY_COLUMN] if COPY_COLUMN in rows.columns else []
    whole = named(BUCKET_COLUMN).isNotNull() | ~kept
    time = source.plan.schema.time
    columns = (F.when(whole, named(n)).alias(safe(n)) for n in (*sent, *more) if n != time)
    return rows.select(named(time), *columns, named(BUCKET_COLUMN))


def in_time_rows(rows: DataFrame, schema: Schema, all_rows: bool) -> tuple[DataFrame, Column]:
    """The rows with a valid time; or all rows, with a reason if theirs is invalid. Also the
    condition that a row's time is valid."""
    in_time = F.coalesce(placed(schema.time, schema.start), F.lit(False))
    if not all_rows:
        return rows.filter(in_time), F.lit(True)
    reason, time = F.lit(NO_TIME), named(schema.time)
    if AHEAD in rows.columns:
        reason = F.when(named(AHEAD).isNotNull(), FUTURE).otherwise(NO_TIME)
        time = F.coalesce(time, named(AHEAD))  # the one that the row came with
    rows = rows.withColumns({REASON_COLUMN: F.when(~in_time, reason), safe(schema.time): time})
    return rows, named(REASON_COLUMN).isNull()


def _with_buckets(
    source: EventSource, layout: Layout, count: int, rows: DataFrame, taken: ShippedRows
) -> DataFrame:
    """The columns that are sent or carried, and the bucket of a row that is taken."""
    if isinstance(layout, ByKey) and not layout.uniform:
        rows = by_keys(source, rows, layout, taken)
        return rows.withColumn(BUCKET_COLUMN, spread(named(SECTION_COLUMN), count))
    if isinstance(layout, ByPartialKey):
        rows = copied(source, rows, layout, salts(count), taken)
        return rows.withColumn(BUCKET_COLUMN, named(SECTION_COLUMN))
    match layout:
        case ByKey() if by_single_key(source, layout):
            key = source.key(layout.columns[0])
            named_key = zip(layout.columns[0], key, strict=True)
            # The caller's names are part of the key in checkpoints.
            fields = (k if safe(name) == name else k.alias(name) for name, k in named_key)
            bucket = F.when(_complete(key), F.to_json(F.struct(*fields)))
        case ByKey():
            key = source.key(layout.columns[0])
            bucket = spread(F.xxhash64(*key), count)
            if counts_keys(source, layout):  # of others, the classes know that they need a key
                bucket = F.when(_complete(key), bucket)
        case Single():
            bucket = F.lit(FIRST)
        case Rows():
            bucket = spread(F.xxhash64(named(source.plan.schema.time)), count)
        case Slices():
            raise AssertionError(layout)
        case _:
            assert_never(layout)
    classes = {CLASS_COLUMN: mask(source.classes)} if source.masked else {}
    return rows.withColumns({**classes, BUCKET_COLUMN: F.when(taken.condition, bucket)})


def _complete(key: Sequence[Column]) -> Column:
    return combine(and_, [part.isNotNull() for part in key])


def taken_rows(source: EventSource, in_time: Column) -> Column:
    """Whether some variable can take a row, or it is counted."""
    condition = None if in_events(source.plan) else relevant(source.classes)
    return in_time if condition is None else in_time & F.coalesce(condition, F.lit(False))


def row_schema(source: EventSource) -> pa.Schema:
    """The schema of the rows that a bucket matches and keeps."""
    schema = event_schema(source.events.select(*(named(n) for n in shipped(source))))
    return schema.append(pa.field(CLASS_COLUMN, pa.int64(), False)) if source.masked else schema


def sent_columns(source: EventSource) -> list[str]:
    """The columns of each row that a bucket receives."""
    return [*shipped(source), *([CLASS_COLUMN] if source.masked else [])]


def spread(place: Column, count: int) -> Column:
    """Map a number to a bucket; the shuffle spreads buckets evenly over as many partitions."""
    numbers = F.array(*(F.lit(number) for number in salts(count)))
    return F.element_at(numbers, F.pmod(place, F.lit(count)).cast("int") + 1)
