"""Watermarks: which one a stream has, and what it says in ticks of the query's clock.

Spark's watermarks are timestamps in milliseconds. A stream without one gets one that follows its
events closely: those of one time may still come in any number of batches. Integers become
milliseconds for that, whatever they count, moved so far that none of them is before 1970, where
Spark's first watermark lies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.errors import DataError
from cepheid.options import TICK_US, Unit, duration_us
from cepheid.spark.columns.column_names import given, in_quotes, named, safe, types_of

DELAY = "spark.watermarkDelayMs"
"""Where Spark notes, in a column's metadata, by how much events may be late."""

_COLUMN = "__time"
MOVED = 1 << 52
_FIRST = -(1 << 61)
"""Before all event times, but after the initial time of a bucket (`streaming.buckets.bucket`)."""


@dataclass(frozen=True)
class Watermark:
    """A watermark. `integers`: the time column has integers. `delayed`: events may be late, so they
    wait."""

    integers: bool
    delayed: bool

    def ticks(self, milliseconds: int) -> int:
        """A watermark on the query's clock: all events at or before it have come."""
        if milliseconds <= 0:
            return _FIRST  # Spark knows nothing yet
        return milliseconds - MOVED if self.integers else 1000 * milliseconds

    def milliseconds(self, ticks: int) -> int:
        """The first watermark that is at this time or later."""
        return ticks + MOVED if self.integers else -(-ticks // 1000)

    def length(self, option: str, text: str, unit: Unit | None) -> int:
        """The duration of an option, in ticks of the query's clock."""
        if not self.integers:
            return duration_us(text)
        if unit is None:
            raise DataError(
                f"{option}={text!r} is a duration, and the time column has integers: say what a "
                "tick of it is, as in unit='ms'"
            )
        return duration_us(text) // TICK_US[unit]


def delay_of(frame: DataFrame, time: str) -> int | None:
    """The delay that the caller allows, in milliseconds; None if there is no watermark."""
    for field in frame.schema.fields:
        if DELAY not in field.metadata:
            continue
        if field.name != safe(time):
            raise DataError(
                f"the watermark is on `{given(field.name)}`, and the event time is `{time}` "
                f"(time=): use withWatermark('{time}', ...)"
            )
        return int(field.metadata[DELAY])
    return None


def watermark_of(frames: Iterable[DataFrame], time: str) -> Watermark:
    frames = list(frames)
    integers = isinstance(types_of(frames[0])[time], t.IntegralType)
    return Watermark(integers, any((delay_of(frame, time) or 0) > 0 for frame in frames))


def with_watermark(frame: DataFrame, time: str) -> DataFrame:
    """The stream with a watermark: its own, or a default one."""
    if delay_of(frame, time) is not None:
        return frame
    kind = types_of(frame)[time]
    if isinstance(kind, t.TimestampType):
        return frame.withWatermark(in_quotes(safe(time)), "1 millisecond")
    if isinstance(kind, t.IntegralType):
        value = F.timestamp_millis(named(time).cast("long") + F.lit(MOVED))
    else:
        value = named(time).cast("timestamp")
    return frame.withColumn(_COLUMN, value).withWatermark(_COLUMN, "1 millisecond").drop(_COLUMN)


def below_watermark(frame: DataFrame) -> DataFrame | None:
    """The stream that `withWatermark` was called on, if that was the last thing done to it."""
    session: Any = frame.sparkSession
    if isinstance(session, SparkSession):
        logical = frame._jdf.queryExecution().logical()
        if logical.getClass().getSimpleName() != "EventTimeWatermark":
            return None
        jvm: Any = session._jvm
        dataset = jvm.org.apache.spark.sql.classic.Dataset
        return DataFrame(dataset.ofRows(session._jsparkSession, logical.child()), session)
    plan: Any = frame._plan
    if type(plan).__name__ != "WithWatermark":
        return None
    return type(frame)(plan._child, session)
