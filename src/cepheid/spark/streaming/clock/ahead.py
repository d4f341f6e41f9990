"""Events ahead of the clock.

A watermark follows the latest event, so that one event of the year 9999 would make all others late,
forever. So events that are further ahead of the clock than is allowed lose their time before the
watermark sees it, and are rejected as those without one are. The clock is Spark's for the batch,
which the checkpoint keeps: a batch that is done again decides the same.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.errors import DataError
from cepheid.options import AUTO, TICK_US, Options, duration_us
from cepheid.spark.columns.column_names import in_quotes, named, safe, types_of
from cepheid.spark.streaming.clock.time import below_watermark, delay_of

AHEAD = "__ahead"
"""The column with the original time of an event that is too far ahead; NULL for all others."""

ZONED, WITHOUT_ZONE = "1 hour", "2 days"
"""How far ahead events may be unless the caller says so. A time without a zone is taken as one of
the session's zone, and may be that of any other."""


def hold_back(frame: DataFrame, options: Options) -> DataFrame:
    """Add the column AHEAD, and clear the times of events that are too far ahead."""
    time = options.time
    if safe(time) not in frame.columns:
        return frame  # which is an error that is reported elsewhere
    latest = _latest(types_of(frame)[time], options)
    if latest is None:
        return frame
    delay = delay_of(frame, time)
    if delay is None:
        return _marked(frame, time, latest)
    below = below_watermark(frame)
    if below is not None:
        return _marked(below, time, latest).withWatermark(
            in_quotes(safe(time)), f"{delay} milliseconds"
        )
    if options.future == AUTO:
        return frame
    raise DataError(
        f"future={options.future!r} must come before the watermark, which is further back in this "
        "stream: call withWatermark last, right before it is matched"
    )


def allowed(kind: t.DataType, options: Options) -> str | None:
    """How far ahead of the clock a time of this type may be; None is without a limit."""
    if options.future != AUTO:
        return options.future
    match kind:
        case t.TimestampType():
            return ZONED
        case t.TimestampNTZType() | t.DateType():
            return WITHOUT_ZONE
        case _:
            return None


def _latest(kind: t.DataType, options: Options) -> Column | None:
    """The last time that is allowed, as a value of the time column."""
    text = allowed(kind, options)
    if text is None:
        return None
    latest = F.unix_micros(F.current_timestamp()) + F.lit(duration_us(text))
    if not isinstance(kind, t.IntegralType):
        return F.timestamp_micros(latest)
    if options.unit is None:
        raise DataError(
            f"future={text!r} is a duration, and the time column `{options.time}` is "
            f"{kind.simpleString()}: say what a tick of it is, as in unit='ms'"
        )
    return F.floor(latest / F.lit(TICK_US[options.unit]))


def _marked(frame: DataFrame, time: str, latest: Column) -> DataFrame:
    value = named(time)
    if not isinstance(types_of(frame)[time], t.IntegralType):
        value = value.cast("timestamp")
    ahead = F.coalesce(value > latest, F.lit(False))
    return frame.withColumns(
        {AHEAD: F.when(ahead, named(time)), safe(time): F.when(~ahead, named(time))}
    )
