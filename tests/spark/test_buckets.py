"""Buckets: who has which rows, and that their number can't change unnoticed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.spark.partitions.salts import salts
from cepheid.spark.streaming.letters import Letters, late_among
from cepheid.spark.streaming.stateful.packed_rows import (
    BUCKET,
    BUCKET_COLUMN,
    DATA,
    FIRST,
    FUTURE,
    NO_TIME,
    REASON_COLUMN,
    REJECTED,
    UNREAD,
    filled,
    kind_of,
    packing,
)
from cepheid.streaming.cells import table_of
from tests.spark.streaming_harness import one_partition, read, write

QUERY = "PATTERN A a ; B b WHERE [id] WITHIN 100 RETURN a.id"


def test_rows_are_packed_by_bucket_in_their_order() -> None:
    batch = pa.record_batch({"ts": [1, 2, 3, 4], BUCKET_COLUMN: pa.array([7, 0, 7, 0], pa.int32())})
    (packed,) = packing(pa.int32(), "ts")(iter([batch]))
    rows = {row[BUCKET]: table_of(row[DATA]).to_pydict() for row in packed.to_pylist()}
    assert rows == {7: {"ts": [1, 3]}, 0: {"ts": [2, 4]}}


def test_the_first_bucket_hears_of_every_batch() -> None:
    batch = pa.record_batch({"ts": [1], BUCKET_COLUMN: pa.array([7], pa.int32())})
    (packed,) = packing(pa.int32(), "ts")(iter([batch]))
    assert packed[BUCKET].to_pylist() == [7, FIRST]
    assert all(FIRST in salts(count) for count in range(1, 100))


def test_keys_that_are_buckets_have_no_first_one() -> None:
    batch = pa.record_batch({"ts": [1], BUCKET_COLUMN: ["a"]})
    (packed,) = packing(pa.string(), "ts")(iter([batch]))
    assert packed[BUCKET].to_pylist() == ["a"]


def test_rows_without_a_bucket_are_told_to_the_first_one() -> None:
    """Of those that no variable takes, how many there are of each millisecond, rounded up."""
    times = pa.array([5, 1000, 1001, 2000, None, 9000], pa.int64()).cast(pa.timestamp("us", "UTC"))
    given = {
        "ts": times,
        "x": [1, None, None, None, 5, 6],
        REASON_COLUMN: [None, None, None, None, NO_TIME, FUTURE],
        BUCKET_COLUMN: pa.array([7, None, None, None, None, None], pa.int32()),
    }
    (packed,) = packing(pa.int32(), "ts")(iter([pa.record_batch(given)]))
    tables = [(row[BUCKET], table_of(row[DATA])) for row in packed.to_pylist()]
    assert [(place, kind_of(table)) for place, table in tables] == [
        (7, None),
        (FIRST, None),
        (FIRST, REJECTED),
        (FIRST, UNREAD),
    ]
    (_, own), (_, first), (_, rejected), (_, unread) = tables
    assert own.column_names == first.column_names == ["ts", "x"] and own["x"].to_pylist() == [1]
    assert rejected["x"].to_pylist() == [5, 6]
    assert unread.to_pydict() == {"time": [1000, 2000], "count": [1, 2]}
    assert [late_among([unread], watermark) for watermark in (999, 1000, 1999, 2000)] == [
        0,
        1,
        1,
        3,
    ]


def test_late_rows_are_kept_with_their_columns() -> None:
    letters = Letters(pa.schema({"ts": pa.int64(), "x": pa.string()}))
    rows = pa.table({"x": ["a", "b"], "ts": [1, 2], "__classes": [1, 1]})
    (found,) = letters.late(rows)
    assert found.to_pylist() == [
        {"dead_letter": {"reason": "late", "row": {"ts": 1, "x": "a"}}},
        {"dead_letter": {"reason": "late", "row": {"ts": 2, "x": "b"}}},
    ]
    assert not list(letters.late(rows.slice(0, 0)))
    whole = filled(found, pa.schema({"id": pa.int64(), "dead_letter": letters.field.type}))
    assert whole["id"].null_count == 2 and whole["dead_letter"].null_count == 0


@pytest.mark.classic
@pytest.mark.slow
def test_another_number_of_buckets_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Also by events of a bucket that there was none of before."""
    schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "id": pa.int64()})

    def go_on(buckets: int) -> None:
        events = read(spark, tmp_path / "input", schema)
        found = cep.match(events, QUERY, time="ts", type="type", buckets=buckets, jit=False)
        query = (
            found.writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with one_partition(spark):
        write([pa.table({"ts": [1], "type": ["A"], "id": [3]}, schema)], tmp_path / "input")
        go_on(8)
        write([pa.table({"ts": [2], "type": ["B"], "id": [3]}, schema)], tmp_path / "input", 1)
        with pytest.raises(StreamingQueryException, match="written with 8 buckets"):
            go_on(4)
