"""Rules over a streaming DataFrame: a stateful operator for each pass.

Rules that may change while the stream runs come as a stream themselves: every version goes to all
buckets, with the events of its batch, and Spark's checkpoint says which batch that is.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.algebra.types import Schema
from cepheid.errors import OptionError
from cepheid.options import Options
from cepheid.spark.arrange import key_columns, placed
from cepheid.spark.column_names import named
from cepheid.spark.rule_sets import Frame
from cepheid.spark.salts import salts
from cepheid.spark.schema import event_schema, spark_schema
from cepheid.spark.session import PANDAS_NOTICE, adopt_session
from cepheid.spark.streaming.ahead import AHEAD
from cepheid.spark.streaming.bucket_work import BucketWork
from cepheid.spark.streaming.buckets import in_time_rows, spread
from cepheid.spark.streaming.heartbeat import heartbeat_of, with_clock
from cepheid.spark.streaming.letters import Letters, asked_letters
from cepheid.spark.streaming.packed_rows import (
    BUCKET,
    BUCKET_COLUMN,
    DATA,
    REASON_COLUMN,
    VERSION,
    packing,
    unpacking,
)
from cepheid.spark.streaming.pipeline import use_rocksdb
from cepheid.spark.streaming.processor import Processor
from cepheid.spark.streaming.reports import RESULT, observe_found, observe_read
from cepheid.spark.streaming.time import Watermark
from cepheid.streaming.rule_bucket import RulesJob
from cepheid.streaming.silence import Heartbeat

RULES = "rules"
_PACKED = t.StructType().add(BUCKET, t.IntegerType()).add(DATA, t.BinaryType())


@dataclass(frozen=True)
class StreamPass:
    """Rules that share a key, if there is one, and the columns that they read."""

    key: str | None
    job: RulesJob
    columns: tuple[str, ...]


def rows_schema(frame: Frame, columns: tuple[str, ...]) -> pa.Schema:
    """Of the rows that a pass over these columns gets."""
    return event_schema(frame.events.select(*(named(name) for name in columns)))


def match_passes(
    frame: Frame,
    passes: list[StreamPass],
    schema: Schema,
    found: pa.Schema,
    watermark: Watermark,
    versions: DataFrame | None,
    options: Options,
) -> DataFrame:
    """What the rules find. `versions` are those of rules that change: a name, which grows, and the
    rules."""
    if options.idle is not None:
        raise OptionError("idle= is for a single query: leave it out, or run the rule by itself")
    letters = asked_letters(frame.events, passes[0].columns, found, options)
    result = found if letters is None else found.append(letters.field)
    adopt_session(frame.events.sparkSession)
    use_rocksdb(frame.events.sparkSession)
    heartbeat = heartbeat_of(options, watermark)
    run = uuid4().hex[:12]
    whole = [
        _found(frame, n, own, schema, watermark, versions, letters, heartbeat, f"{run} {n}")
        for n, own in enumerate(passes)
    ]
    union, *others = whole
    for other in others:
        union = union.unionByName(other)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        return union.mapInArrow(unpacking(result), spark_schema(result))


def _found(
    frame: Frame,
    place: int,
    own: StreamPass,
    schema: Schema,
    watermark: Watermark,
    versions: DataFrame | None,
    letters: Letters | None,
    heartbeat: Heartbeat | None,
    run: str,
) -> DataFrame:
    rows = frame.events
    if place == 0:  # events are counted, and dead letters written, once
        names = own.columns if letters is None else letters.columns.names
        ahead = [AHEAD] if AHEAD in rows.columns else []
        rows = rows.select(*(named(name) for name in (*names, *ahead)))
        rows = observe_read(rows, run, placed(schema.time, None))
    kept = None if place else letters
    rows, in_time = in_time_rows(rows, schema, kept is not None)
    names = own.columns if kept is None else [*kept.columns.names, REASON_COLUMN]
    rows = rows.select(*(named(name) for name in names))
    count = own.job.buckets
    bucket = F.lit(0)
    if own.key is not None:
        bucket = spread(F.xxhash64(*key_columns(frame.types, schema, [own.key])), count)
    bucket = F.when(in_time, bucket).alias(BUCKET_COLUMN)
    arriving = event_schema(rows.drop(REASON_COLUMN))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        clock_buckets = () if heartbeat is None else _numbers(own)
        pack = packing(pa.int32(), schema.time, clock_buckets)
        packed = rows.select("*", bucket).mapInArrow(pack, _PACKED)
        if heartbeat is not None:
            packed = with_clock(packed, clock_buckets)
        packed = packed.withColumn(VERSION, F.lit(None).cast("string"))
        if versions is not None:
            every = _everywhere(versions, own)
            packed = packed.unionByName(every, allowMissingColumns=heartbeat is not None)
        found = packed.groupBy(BUCKET).transformWithStateInPandas(
            Processor(BucketWork(own.job, arriving, watermark, run, kept, heartbeat)),
            outputStructType=RESULT,
            outputMode="Append",
            timeMode="EventTime",
        )
    if own.key is not None:  # each pass has a bucket 0
        found = found.withColumn(BUCKET, F.concat(F.lit(f"{own.key} "), F.col(BUCKET)))
    return observe_found(found, run).filter(F.col(DATA).isNotNull())


def _numbers(own: StreamPass) -> tuple[int, ...]:
    return (0,) if own.key is None else salts(own.job.buckets)


def _everywhere(versions: DataFrame, own: StreamPass) -> DataFrame:
    """A copy for each bucket."""
    every = F.explode(F.array(*(F.lit(number).cast("int") for number in _numbers(own))))
    return versions.select(
        every.alias(BUCKET), F.col(RULES).alias(DATA), F.col(VERSION).cast("string").alias(VERSION)
    )
