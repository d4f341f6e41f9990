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
from cepheid.spark.columns.column_names import named
from cepheid.spark.columns.schema import event_schema, spark_schema
from cepheid.spark.partitions.arrange import key_columns, placed
from cepheid.spark.partitions.salts import salts
from cepheid.spark.rule_sets import Frame
from cepheid.spark.start.session import PANDAS_NOTICE, adopt_session
from cepheid.spark.streaming.clock.ahead import AHEAD
from cepheid.spark.streaming.clock.heartbeat import heartbeat_of, with_clock
from cepheid.spark.streaming.clock.time import Watermark
from cepheid.spark.streaming.letters import Letters, wanted_letters
from cepheid.spark.streaming.pipeline import use_rocksdb
from cepheid.spark.streaming.stateful.bucket_work import BucketWork
from cepheid.spark.streaming.stateful.buckets import in_time_rows, spread
from cepheid.spark.streaming.stateful.packed_rows import (
    BUCKET,
    BUCKET_COLUMN,
    DATA,
    REASON_COLUMN,
    VERSION,
    packing,
    unpacking,
)
from cepheid.spark.streaming.stateful.processor import Processor
from cepheid.spark.streaming.status.reports import RESULT, observe_read, observe_results
from cepheid.streaming.buckets.rule_bucket import RulesJob
from cepheid.streaming.silence import SilenceLimit

RULES = "rules"
_PACKED = t.StructType().add(BUCKET, t.IntegerType()).add(DATA, t.BinaryType())


@dataclass(frozen=True)
class StreamPass:
    """Rules that share a key, if there is one, and the columns that they read."""

    key: str | None
    job: RulesJob
    columns: tuple[str, ...]


def rows_schema(frame: Frame, columns: tuple[str, ...]) -> pa.Schema:
    """The schema of the rows of a pass over these columns."""
    return event_schema(frame.events.select(*(named(name) for name in columns)))


def match_passes(
    frame: Frame,
    passes: list[StreamPass],
    schema: Schema,
    alert_schema: pa.Schema,
    watermark: Watermark,
    versions: DataFrame | None,
    options: Options,
) -> DataFrame:
    """The alerts of the rules. `versions` is the stream of versions if the rules change: an
    increasing name, and the rules."""
    if options.idle is not None:
        raise OptionError("idle= is for a single query: leave it out, or run the rule by itself")
    letters = wanted_letters(frame.events, passes[0].columns, alert_schema, options)
    result = alert_schema if letters is None else alert_schema.append(letters.field)
    adopt_session(frame.events.sparkSession)
    use_rocksdb(frame.events.sparkSession)
    heartbeat = heartbeat_of(options, watermark)
    run = uuid4().hex[:12]
    whole = [
        _pass_rows(frame, n, pass_, schema, watermark, versions, letters, heartbeat, f"{run} {n}")
        for n, pass_ in enumerate(passes)
    ]
    union, *others = whole
    for other in others:
        union = union.unionByName(other)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        return union.mapInArrow(unpacking(result), spark_schema(result))


def _pass_rows(
    frame: Frame,
    place: int,
    pass_: StreamPass,
    schema: Schema,
    watermark: Watermark,
    versions: DataFrame | None,
    letters: Letters | None,
    heartbeat: SilenceLimit | None,
    run: str,
) -> DataFrame:
    rows = frame.events
    if place == 0:  # events are counted, and dead letters written, once
        names = pass_.columns if letters is None else letters.columns.names
        ahead = [AHEAD] if AHEAD in rows.columns else []
        rows = rows.select(*(named(name) for name in (*names, *ahead)))
        rows = observe_read(rows, run, placed(schema.time, None))
    kept = None if place else letters
    rows, in_time = in_time_rows(rows, schema, kept is not None)
    names = pass_.columns if kept is None else [*kept.columns.names, REASON_COLUMN]
    rows = rows.select(*(named(name) for name in names))
    count = pass_.job.buckets
    bucket = F.lit(0)
    if pass_.key is not None:
        bucket = spread(F.xxhash64(*key_columns(frame.types, schema, [pass_.key])), count)
    bucket = F.when(in_time, bucket).alias(BUCKET_COLUMN)
    arriving = event_schema(rows.drop(REASON_COLUMN))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        clock_buckets = () if heartbeat is None else _numbers(pass_)
        pack = packing(pa.int32(), schema.time, clock_buckets)
        packed = rows.select("*", bucket).mapInArrow(pack, _PACKED)
        if heartbeat is not None:
            packed = with_clock(packed, clock_buckets)
        packed = packed.withColumn(VERSION, F.lit(None).cast("string"))
        if versions is not None:
            every = _everywhere(versions, pass_)
            packed = packed.unionByName(every, allowMissingColumns=heartbeat is not None)
        results = packed.groupBy(BUCKET).transformWithStateInPandas(
            Processor(BucketWork(pass_.job, arriving, watermark, run, kept, heartbeat)),
            outputStructType=RESULT,
            outputMode="Append",
            timeMode="EventTime",
        )
    if pass_.key is not None:  # each pass has a bucket 0
        results = results.withColumn(BUCKET, F.concat(F.lit(f"{pass_.key} "), F.col(BUCKET)))
    return observe_results(results, run).filter(F.col(DATA).isNotNull())


def _numbers(pass_: StreamPass) -> tuple[int, ...]:
    return (0,) if pass_.key is None else salts(pass_.job.buckets)


def _everywhere(versions: DataFrame, pass_: StreamPass) -> DataFrame:
    """Copy each version to every bucket."""
    every = F.explode(F.array(*(F.lit(number).cast("int") for number in _numbers(pass_))))
    return versions.select(
        every.alias(BUCKET), F.col(RULES).alias(DATA), F.col(VERSION).cast("string").alias(VERSION)
    )
