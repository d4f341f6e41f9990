"""MATCH_RECOGNIZE over a streaming DataFrame: partitions in buckets, as for other streams."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import chain
from uuid import uuid4

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.options import Options
from cepheid.row_patterns.bound import BoundRecognition
from cepheid.spark.columns.column_names import named, types_of
from cepheid.spark.columns.schema import spark_schema, spark_type
from cepheid.spark.partitions.arrange import key_columns
from cepheid.spark.streaming.clock.ahead import AHEAD
from cepheid.spark.streaming.clock.time import Watermark, watermark_of
from cepheid.spark.streaming.letters import Letters, wanted_letters
from cepheid.spark.streaming.pipeline import use_rocksdb
from cepheid.spark.streaming.stateful.bucket_work import Wakes, arrived
from cepheid.spark.streaming.stateful.buckets import DEFAULT, in_time_rows, spread
from cepheid.spark.streaming.stateful.packed_rows import (
    BUCKET,
    BUCKET_COLUMN,
    DATA,
    FIRST,
    REJECTED,
    packing,
    unpacking,
)
from cepheid.spark.streaming.stateful.processor import Processor
from cepheid.spark.streaming.status.reports import (
    NO_REPORT,
    RESULT,
    observe_read,
    observe_results,
    report_row,
)
from cepheid.streaming.buckets.row_bucket import RowsJob, open_rows
from cepheid.streaming.buckets.row_pages import PLACE
from cepheid.streaming.cells import Cells, arrow_bytes

ONE_BUCKET = (
    "MATCH_RECOGNIZE without PARTITION BY runs in one bucket, on one core: Spark can't divide the "
    "work"
)


@dataclass(frozen=True)
class RowBucketWork:
    """What the stateful operator does with a bucket: open it, make a step, save it. `letters` says
    what is kept of late and rejected rows, if wanted."""

    job: RowsJob
    watermark: Watermark
    letters: Letters | None

    def step(
        self, number: object, cells: Cells, frames: Iterator[pd.DataFrame], reached: int
    ) -> Generator[pd.DataFrame, None, Wakes]:
        packed, _, _ = arrived(frames)
        batches = chain.from_iterable(table.to_batches() for table in packed[None])
        arriving, watermark = self.job.arriving, self.watermark.ticks(reached)
        rows = (batch.select(arriving.names).cast(arriving) for batch in batches)
        bucket = open_rows(self.job, cells)
        matches = bucket.step(cells, rows, watermark)
        for batch in matches.to_batches():
            yield pd.DataFrame({DATA: [arrow_bytes(batch)], **NO_REPORT})
        if self.letters is not None and bucket.late_rows is not None:
            rejected = chain.from_iterable(map(self.letters.rejected, packed[REJECTED]))
            for letters in chain(self.letters.late(bucket.late_rows), rejected):
                yield pd.DataFrame({DATA: [arrow_bytes(letters)], **NO_REPORT})
        alarm = bucket.save(cells, watermark)
        yield report_row(number, bucket.report())
        return None if alarm is None else self.watermark.milliseconds(alarm)


def recognize_stream(
    bound: BoundRecognition,
    events: DataFrame,
    schema: pa.Schema,
    result: pa.Schema,
    text: str,
    dead_letters: bool,
) -> DataFrame:
    """The matches as a streaming DataFrame. `events` have a watermark; `schema` is that of the
    columns that are read; `text` is that of the clause."""
    run, time = uuid4().hex[:12], bound.order[0].column
    use_rocksdb(events.sparkSession)
    watermark = watermark_of([events], time)
    ahead = [AHEAD] if AHEAD in events.columns else []
    rows = events.select(*(named(name) for name in (*bound.reads, *ahead)))
    rows = observe_read(rows, run, named(time).isNotNull())
    options = Options(time=time, dead_letters=dead_letters)
    letters = wanted_letters(events, bound.reads, result, options)
    if letters is not None:
        result = result.append(letters.field)
    rows, in_time = in_time_rows(rows, bound.schema, letters is not None)
    rows = _bucketed(rows.drop(*ahead), in_time, bound)
    buckets = DEFAULT if bound.partition else 1
    columns = ", ".join(f"{field.name} {field.type}" for field in schema)
    job = RowsJob(bound, schema, f"{text} over {columns}", buckets)
    packed = t.StructType(
        [t.StructField(BUCKET, spark_type(pa.int32())), t.StructField(DATA, t.BinaryType())]
    )
    whole = rows.mapInArrow(packing(pa.int32(), time), packed)
    matches = whole.groupBy(BUCKET).transformWithStateInPandas(
        Processor(RowBucketWork(job, watermark, letters)),
        outputStructType=RESULT,
        outputMode="Append",
        timeMode="EventTime",
    )
    matches = observe_results(matches, run).filter(F.col(DATA).isNotNull())
    return matches.mapInArrow(unpacking(result), spark_schema(result))


def _bucketed(rows: DataFrame, in_time: Column, bound: BoundRecognition) -> DataFrame:
    """Each row with its bucket, and the place of its partition; rows without a valid time have no
    bucket."""
    if not bound.partition:
        warnings.warn(ONE_BUCKET, stacklevel=7)
        bucket, place = F.lit(FIRST), F.lit(0)
    else:
        hashed = F.xxhash64(*key_columns(types_of(rows), bound.schema, bound.partition))
        bucket, place = spread(hashed, DEFAULT), F.shiftright(hashed, 32).cast("int")
    return rows.withColumns({BUCKET_COLUMN: F.when(in_time, bucket), PLACE: place})
