"""A quiet source: with `heartbeat=`, what waits for time comes without another event."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import cepheid as cep
from tests.spark.streaming_harness import one_partition, write

pytestmark = pytest.mark.classic

SCHEMA = "ts timestamp, name string, id long"


def events(*rows: tuple[int, str, int]) -> pa.Table:
    times, names, ids = zip(*rows, strict=True)
    stamps = pa.array([t * 10**6 for t in times], pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": stamps, "name": names, "id": pa.array(ids, pa.int64())})


def wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 240
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_an_absence_is_released_without_events(spark: SparkSession, tmp_path: Path) -> None:
    """No B follows the A of id 1. What comes afterwards with an older time is late."""
    write([events((1, "A", 1), (2, "A", 2), (3, "B", 2))], tmp_path)
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path))
    query = "PATTERN A a ; !B b WHERE [id] WITHIN 4 seconds RETURN a.id AS id"
    found = cep.match(
        stream, query, time="ts", type="name", heartbeat="1 second", buckets=2, jit=False
    )
    name = f"rows_{uuid4().hex}"
    with one_partition(spark):
        sink = found.writeStream.format("memory").queryName(name).outputMode("append")
        running = sink.trigger(processingTime="1 second").start()

        def late() -> int:
            return sum(cep.status(p).late for p in running.recentProgress)

        try:
            wait_for(lambda: spark.table(name).count() > 0 or not running.isActive)
            assert [row["id"] for row in spark.table(name).collect()] == [1]
            write([events((4, "A", 3))], tmp_path, 1)
            wait_for(lambda: late() > 0 or not running.isActive)
            assert late() == 1
        finally:
            running.stop()
    assert running.exception() is None


@pytest.mark.slow
def test_an_absence_in_a_rule_is_released_without_events(
    spark: SparkSession, tmp_path: Path
) -> None:
    """`gone` can't be merged with other rules, `pair` can; only A of id 1 has no B."""
    write([events((1, "A", 1), (2, "A", 2), (3, "B", 2))], tmp_path)
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path))
    rules = cep.RuleSet.of(
        {
            "gone": "PATTERN A a ; !B b WHERE [id] WITHIN 4 seconds RETURN a.id AS id",
            "pair": "PATTERN A a ; B b WHERE [id] WITHIN 4 seconds RETURN b.id AS id",
        }
    )
    found = rules.match(stream, time="ts", type="name", heartbeat="1 second", buckets=2, jit=False)
    name = f"rows_{uuid4().hex}"

    def rows() -> list[tuple[str, str]]:
        return sorted((row["rule"], row["match"]) for row in spark.table(name).collect())

    with one_partition(spark):
        sink = found.writeStream.format("memory").queryName(name).outputMode("append")
        running = sink.trigger(processingTime="1 second").start()
        try:
            wait_for(lambda: len(rows()) > 1 or not running.isActive)
            assert rows() == [("gone", '{"id":1}'), ("pair", '{"id":2}')]
        finally:
            running.stop()
    assert running.exception() is None


def test_a_checkpoint_without_one(spark: SparkSession, tmp_path: Path) -> None:
    """A heartbeat is a source, and Spark asserts that a checkpoint has as many as the query."""
    write([events((1, "A", 1))], tmp_path / "events")
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "events"))
    query = "PATTERN A a ; !B b WHERE [id] WITHIN 4 seconds RETURN a.id AS id"
    named = {"time": "ts", "type": "name", "buckets": 2, "jit": False}

    def start(**more: str) -> StreamingQuery:
        sink = cep.match(stream, query, **named, **more).writeStream.format("noop")
        place = sink.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return place.trigger(availableNow=True).start()

    with one_partition(spark):
        cep.wait(start())
        with pytest.raises(cep.StateError, match="written with 1 sources, and now there are 2: "):
            cep.wait(start(heartbeat="1 second"))


def test_where_no_time_decides(spark: SparkSession, tmp_path: Path) -> None:
    write([events((1, "A", 1))], tmp_path)
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path))
    query = "PATTERN A a ; !B b WHERE [id] WITHIN 4 EVENTS RETURN a.id AS id"
    with pytest.raises(
        cep.OptionError, match="heartbeat= lets time pass, and with WITHIN n EVENTS"
    ):
        cep.match(stream, query, time="ts", type="name", heartbeat="1 second")
