"""Buckets: who has which rows, and that their number can't change unnoticed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.spark.salts import salts
from cepheid.spark.streaming.packing import BUCKET, DATA, FIRST, packing
from cepheid.streaming.cells import table_of
from tests.spark.streaming_harness import one_partition, read, write

QUERY = "PATTERN A a ; B b WHERE [id] WITHIN 100 RETURN a.id"


def test_rows_are_packed_by_bucket_in_their_order() -> None:
    batch = pa.record_batch({"ts": [1, 2, 3, 4], BUCKET: pa.array([7, 0, 7, 0], pa.int32())})
    (packed,) = packing(pa.int32())(iter([batch]))
    rows = {row[BUCKET]: table_of(row[DATA]).to_pydict() for row in packed.to_pylist()}
    assert rows == {7: {"ts": [1, 3]}, 0: {"ts": [2, 4]}}


def test_the_first_bucket_hears_of_every_batch() -> None:
    batch = pa.record_batch({"ts": [1], BUCKET: pa.array([7], pa.int32())})
    (packed,) = packing(pa.int32())(iter([batch]))
    assert packed[BUCKET].to_pylist() == [7, FIRST]
    assert all(FIRST in salts(count) for count in range(1, 100))


def test_keys_that_are_buckets_have_no_first_one() -> None:
    batch = pa.record_batch({"ts": [1], BUCKET: ["a"]})
    (packed,) = packing(pa.string())(iter([batch]))
    assert packed[BUCKET].to_pylist() == ["a"]


@pytest.mark.classic
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
