"""MATCH_RECOGNIZE on Spark: the same rows as in process, in statements that Spark runs."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.row_patterns.whole_partitions import whole_partitions

ROWS = {
    "User Id": ["a", "a", "b", "a", "b", None, None],
    "t": [1, 2, 1, 3, 2, 1, 2],
    "x": [3, 1, 5, 2, 4, 7, 6],
}
CLAUSE = """MATCH_RECOGNIZE (PARTITION BY `User Id` ORDER BY t DESC
    MEASURES FIRST(A.x) AS low, count(*) AS n, array_agg(CLASSIFIER()) AS labels {rows}
    PATTERN (A B+) DEFINE B AS B.x > PREV(B.x))"""
STATEMENT = """WITH s AS (SELECT * FROM events)
    SELECT * FROM s {clause} AS m WHERE n > 1 ORDER BY `User Id`, low"""


@pytest.mark.essential
@pytest.mark.parametrize("rows", ["", "ALL ROWS PER MATCH"])
def test_statement(spark: Any, rows: str) -> None:
    statement = STATEMENT.format(clause=CLAUSE.format(rows=rows))
    table = pa.table(ROWS)
    frame = spark.createDataFrame(table.to_pandas())
    wanted = cep.sql(f"{statement} NULLS FIRST", {"events": table}).to_pylist()
    found = [row.asDict() for row in cep.sql(statement, {"events": frame}).collect()]
    assert sorted(map(str, found)) == sorted(map(str, wanted))
    assert wanted


def test_without_partition_by_one_task_runs(spark: Any) -> None:
    frame = spark.range(5).withColumnRenamed("id", "t")
    frame.createOrReplaceTempView("numbers_of_sql")
    with pytest.warns(UserWarning, match="runs in one task"):
        found = cep.sql(
            "SELECT n FROM numbers_of_sql MATCH_RECOGNIZE (ORDER BY t MEASURES count(*) AS n "
            "PATTERN (A+))",
            spark=spark,
        )
    assert [row.n for row in found.collect()] == [5]


def test_mistakes_are_found_before_any_job(spark: Any) -> None:
    frame = spark.range(5)
    with warnings.catch_warnings(), pytest.raises(cep.QueryError, match="there is no column `idd`"):
        cep.sql("SELECT * FROM r MATCH_RECOGNIZE (ORDER BY idd PATTERN (A))", {"r": frame})


def test_streams_are_refused(spark: Any) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(cep.UnsupportedError, match="reads tables, not streams"):
        cep.sql("SELECT * FROM r MATCH_RECOGNIZE (PATTERN (A))", {"r": stream})


def test_batches_are_cut_where_partitions_end() -> None:
    table = pa.table({"k": [None, 1, 1, 1, 2, 2, 3], "x": range(7)})
    for size in range(1, 8):
        cut = list(whole_partitions(iter(table.to_batches(max_chunksize=size)), ["k"]))
        assert pa.concat_tables(cut).equals(table)
        for one, other in pairwise(cut):
            assert not set(one["k"].to_pylist()) & set(other["k"].to_pylist())
