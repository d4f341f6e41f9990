"""Answers on DataFrames of Spark: the same rows as in process."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from tests.answers.test_match import PAIRS, TABLE

QUERIES = [
    f"{PAIRS} GROUP BY a.x, TUMBLE(10) RETURN a.x, window_end, count(*) AS n, avg(b.x) AS m",
    f"{PAIRS} GROUP BY HOP(5, 10) RETURN window_end, count(*) AS n, collect(b.x) AS every",
    f"{PAIRS} GROUP BY b.x / 2.0 RETURN b.x / 2.0 AS half, count(*) AS n LIMIT 2",
    "FROM Z z RETURN count(*) AS n, sum(z.x) AS total",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.filterwarnings("ignore:no event is of type")
def test_as_in_process(spark: SparkSession, query: str) -> None:
    expected = cep.match(TABLE, query, time="ts", type="name").to_pylist()
    found = cep.match(spark.createDataFrame(TABLE), query, time="ts", type="name")
    rows = [row.asDict() for row in found.collect()]
    assert sorted(map(str, rows)) == sorted(map(str, expected))


def test_streams_refuse_them(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().withColumn("x", F.lit(1))
    query = "FROM a GROUP BY TUMBLE(1 hour)"
    with pytest.raises(cep.UnsupportedError, match="don't run on streams of Spark"):
        cep.match(stream, query, time="timestamp")
