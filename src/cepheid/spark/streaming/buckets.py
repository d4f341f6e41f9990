"""Which bucket a row of a stream belongs to.

A bucket holds the events of many keys: Spark's cost for a group is a fixed one, so keys are ours
to keep apart. Only where the events of each key are counted every key is a bucket of its own.
"""

from __future__ import annotations

from operator import and_
from typing import assert_never

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cepheid.engine.classes import CLASS_COLUMN
from cepheid.errors import PlanError
from cepheid.options import Options
from cepheid.spark.arrange import Source, by_keys, copied, relevant_rows, shipped
from cepheid.spark.expressions import Translator, combine, named
from cepheid.spark.layout import (
    ByKey,
    Layout,
    Partial,
    Rows,
    Single,
    Slices,
    choose,
    find_partial,
    in_events,
)
from cepheid.spark.salts import salts
from cepheid.spark.streaming.packing import BUCKET
from cepheid.spark.worker import SECTION_COLUMN

DEFAULT = 8
"""How many buckets there are unless the caller says so. It doesn't depend on the session: state is
kept by bucket, so the number must be the same when a query goes on."""

ONE_BUCKET = (
    "no key connects the variables of this query, so all its events go through one bucket, on one "
    "core; connect the variables by a key in WHERE, such as [id], or keep the stream small"
)


def stream_layout(source: Source, options: Options) -> Layout:
    """How a stream is cut: as in batch, but never in time, since it has no end."""
    if options.partitioning == "slices":
        raise PlanError("partitioning='slices' cuts data in time, and a stream can't be cut so")
    translator, query = Translator(source.types), source.prepared.query
    layout = choose(source.plan, query, options, translator)
    if isinstance(layout, Slices):
        layout = find_partial(source.plan, query, translator) or Single()
    if isinstance(layout, Rows | Single) or not in_events(source.plan):
        return layout
    # Events are counted where they are matched: those of a key, or all.
    return layout if isinstance(layout, ByKey) and layout.uniform else Single()


def bucket_count(layout: Layout, options: Options) -> int:
    return 1 if isinstance(layout, Single) else options.buckets or DEFAULT


def by_single_key(source: Source, layout: Layout) -> bool:
    """Whether every key is a bucket of its own."""
    return isinstance(layout, ByKey) and in_events(source.plan)


def bucket_type(source: Source, layout: Layout) -> pa.DataType:
    return pa.string() if by_single_key(source, layout) else pa.int32()


def bucketed(source: Source, layout: Layout, count: int) -> DataFrame:
    """The rows that matter, each with its bucket."""
    rows = relevant_rows(source, layout, numbered=False)
    sent = [named(n) for n in sent_columns(source)]
    match layout:
        case ByKey() if by_single_key(source, layout):
            key = source.key(layout.columns[0])
            rows = rows.filter(combine(and_, [part.isNotNull() for part in key]))
            return rows.select(*sent, F.to_json(F.struct(*key)).alias(BUCKET))
        case ByKey() if layout.uniform:
            return rows.select(*sent, spread(F.xxhash64(*source.key(layout.columns[0])), count))
        case ByKey():
            return by_keys(source, rows, layout).select(*sent, spread(named(SECTION_COLUMN), count))
        case Partial():
            rows = copied(source, rows, layout, salts(count))
            return rows.select(*sent, named(SECTION_COLUMN).alias(BUCKET))
        case Single():
            return rows.select(*sent, F.lit(0).alias(BUCKET))
        case Rows() | Slices():
            raise AssertionError(layout)
        case _:
            assert_never(layout)


def sent_columns(source: Source) -> list[str]:
    """What a bucket gets of each row."""
    return [*shipped(source), *([CLASS_COLUMN] if source.masked else [])]


def spread(place: Column, count: int) -> Column:
    """A bucket for each place: numbers that the shuffle spreads evenly over as many partitions."""
    numbers = F.array(*(F.lit(number) for number in salts(count)))
    return F.element_at(numbers, F.pmod(place, F.lit(count)).cast("int") + 1).alias(BUCKET)
