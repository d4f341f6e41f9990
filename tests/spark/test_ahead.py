"""Events ahead of the clock: which ones they are, and that the watermark doesn't see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cepheid.errors import DataError
from cepheid.options import Options
from cepheid.query.parsed_query import Query
from cepheid.spark.batch import bind
from cepheid.spark.streaming.clock.ahead import AHEAD, hold_back
from cepheid.spark.streaming.clock.time import delay_of

SOON, LATER, FAR = "interval 10 minutes", "interval 5 hours", "interval 3 days"


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("kind", "future", "ahead"),
    [
        ("timestamp", "auto", [False, True, True]),
        ("timestamp", "1 minute", [True, True, True]),
        ("timestamp", "1 day", [False, False, True]),
        ("timestamp_ntz", "auto", [False, False, True]),
        ("date", "auto", [False, False, True]),
        ("long", "6 hours", [False, False, True]),
    ],
)
def test_how_far_ahead_is_too_far(
    kind: str, future: str, ahead: list[bool], spark: SparkSession
) -> None:
    """A time that is too far ahead is kept beside the row, which then has none."""
    given = spark.createDataFrame([(0, SOON), (1, LATER), (2, FAR)], "n int, by string")
    moment = F.current_timestamp() + F.expr(
        f"CASE n WHEN 0 THEN {SOON} WHEN 1 THEN {LATER} ELSE {FAR} END"
    )
    time = F.unix_millis(moment) if kind == "long" else moment.cast(kind)
    options = Options("ts", unit="ms" if kind == "long" else None, future=future)
    rows = hold_back(given.select("n", time.alias("ts")), options).orderBy("n").collect()
    assert [row[AHEAD] is not None for row in rows] == ahead
    assert [row["ts"] is None for row in rows] == ahead
    assert all(
        type(row[AHEAD] or row["ts"]) is type(rows[0][AHEAD] or rows[0]["ts"]) for row in rows
    )


def test_where_there_is_no_limit(spark: SparkSession) -> None:
    numbers = spark.createDataFrame([(1,), (1 << 50,)], "ts long")
    assert hold_back(numbers, Options("ts")).columns == ["ts"]
    times = numbers.select(F.timestamp_micros("ts").alias("ts"))
    assert hold_back(times, Options("ts", future=None)).columns == ["ts"]
    with pytest.raises(DataError, match="say what a tick of it is, as in unit='ms'"):
        hold_back(numbers, Options("ts", future="1 hour"))
    with pytest.raises(ValueError, match="a duration is like '10 seconds', not 'soon'"):
        Options("ts", future="soon")


def test_it_goes_below_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.schema("ts timestamp, id long").parquet(str(tmp_path))
    held = hold_back(stream.withWatermark("ts", "90 seconds"), Options("ts"))
    assert delay_of(held, "ts") == 90_000 and AHEAD in held.columns
    assert "EventTimeWatermark" in _plan(held).split("CASE WHEN")[0]
    behind = stream.withWatermark("ts", "90 seconds").filter("id > 5")
    assert hold_back(behind, Options("ts")).columns == ["ts", "id"]
    with pytest.raises(DataError, match="call withWatermark last"):
        hold_back(behind, Options("ts", future="1 hour"))


def _plan(frame: DataFrame) -> str:
    """The analyzed plan, from the top down."""
    own: Any = frame
    if hasattr(own, "_jdf"):
        return str(own._jdf.queryExecution().analyzed().toString())
    return str(own._explain_string(extended=True)).split("Analyzed Logical Plan")[1]


def test_several_streams_hold_back_theirs(spark: SparkSession) -> None:
    """Each keeps the times that it holds back, so that those rows can be counted and kept."""
    soon, far = (F.current_timestamp() + F.expr(span) for span in (SOON, FAR))
    rows = spark.readStream.format("rate").load()
    frames = {
        "a": rows.select(far.alias("ts"), F.lit(1).alias("x")),
        "b": rows.select(soon.cast("timestamp").alias("ts"), F.lit("y").alias("y")),
    }
    events, _, _ = bind(Query("PATTERN a ; b WITHIN 5 s"), frames, Options("ts"))
    assert AHEAD in events.columns
    assert events.schema[AHEAD].dataType == events.schema["ts"].dataType
