"""Rows that tell every bucket what the clock is, also when no event comes."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cepheid.options import TICK_US, Options, duration_us
from cepheid.spark.streaming.clock.time import Watermark
from cepheid.spark.streaming.stateful.packed_rows import BUCKET, CLOCK, DATA
from cepheid.streaming.silence import SilenceLimit


def heartbeat_of(options: Options, watermark: Watermark) -> SilenceLimit | None:
    if options.heartbeat is None:
        return None
    watermark.length("heartbeat", options.heartbeat, options.unit)  # which needs a unit, too
    tick = TICK_US[options.unit] if watermark.integers and options.unit else 1
    return SilenceLimit(duration_us(options.heartbeat) // 1000, tick)


def with_clock(packed: DataFrame, buckets: Sequence[int]) -> DataFrame:
    """The packed rows of a stream, plus a row per second for each bucket. Spark's rate source takes
    its times from the offsets in the checkpoint, so a repeated batch has the same ones, and it
    triggers batches when no events come."""
    source = packed.sparkSession.readStream.format("rate")
    seconds = source.option("rowsPerSecond", 1).option("numPartitions", 1).load()
    every = F.explode(F.array(*(F.lit(number).cast("int") for number in buckets)))
    beats = seconds.select(every.alias(BUCKET), F.unix_millis("timestamp").alias(CLOCK))
    beats = beats.withColumn(DATA, F.lit(None).cast("binary"))
    packed = packed.withColumn(CLOCK, F.lit(None).cast("long"))
    return packed.unionByName(beats)
