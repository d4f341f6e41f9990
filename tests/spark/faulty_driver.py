"""A program that matches a folder of files as a stream, and may be killed at any moment.

python -m tests.spark.faulty_driver INPUT OUTPUT CHECKPOINT QUERY

Started again with the same folders, it goes on; it ends when all files are done.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.spark.columns.schema import spark_schema
from cepheid.spark.start.session import local_session

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "type": pa.string(),
        "id": pa.int64(),
        "row": pa.int64(),
    }
)
QUERY = "PATTERN A a ; B b ; !C c WHERE [id] WITHIN 30 seconds RETURN a.row AS a, b.row AS b"
STATEMENT = """SELECT a, b FROM events MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts, row
    MEASURES A.row AS a, B.row AS b PATTERN (A C* B) WITHIN INTERVAL '30' SECONDS
    DEFINE A AS type = 'A', B AS type = 'B', C AS type = 'C')"""
DELAY = 5
"""Seconds by which events may be late."""


def start(
    spark: SparkSession, source: Path, output: Path, checkpoint: Path, query: str = QUERY
) -> Any:
    """The query, with rows that wait for the watermark, rows that are held, and matches that wait
    for time to pass."""
    files = spark.readStream.schema(spark_schema(SCHEMA)).option("maxFilesPerTrigger", 1)
    stream = files.parquet(str(source)).withWatermark("ts", f"{DELAY} seconds")
    if query == STATEMENT:
        matches = cep.sql(query, {"events": stream})
    else:
        matches = cep.match(stream, query, time="ts", type="type", jit=False, buckets=3)
    writer = matches.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).start(str(output))


def main() -> None:
    # A task whose Python worker has died is tried again.
    spark = local_session("local[2, 4]")
    source, output, checkpoint = map(Path, sys.argv[1:4])
    start(spark, source, output, checkpoint, sys.argv[4]).awaitTermination()


if __name__ == "__main__":
    main()
