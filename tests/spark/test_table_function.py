"""Queries as table functions: SQL that Spark runs alone returns the matches of `cep.match`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep

EVENTS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5, 6, 7, None],
        "type": ["A", "A", "B", "B", "A", "B", "B", "B"],
        "tag": ["x", "y", "x", "y", "z", "z", "z", "x"],
        "n": [5, 6, 7, 1, 2, 3, 4, 9],
        "at": [{"shop": s} for s in "ppqqrrqp"],
    }
)
QUERY = """PATTERN A a ; B b WHERE [tag] AND b.n > a.n AND b.at.shop <> 'r' WITHIN 10
    RETURN a.tag, b.n AS high"""
CALLS = (
    "stolen(TABLE(readings) PARTITION BY tag ORDER BY ts)",
    "stolen(TABLE(readings) PARTITION BY pmod(hash(tag), 2) ORDER BY ts)",
    "stolen(TABLE(readings) WITH SINGLE PARTITION)",
)


def registered(spark: Any) -> Any:
    rows = EVENTS.to_pylist()
    frame = spark.createDataFrame(
        rows, "ts long, type string, tag string, n long, at struct<shop string>"
    )
    frame.createOrReplaceTempView("readings")
    cep.register(spark, "stolen", QUERY, like=frame, time="ts", type="type", jit=False)
    return frame


@pytest.mark.parametrize("call", CALLS)
def test_matches_are_those_of_match(spark: Any, call: str) -> None:
    frame = registered(spark)
    found = spark.sql(f"SELECT tag, high, match_end FROM {call} ORDER BY tag, high").collect()
    assert [tuple(row) for row in found] == [("x", 7, 3), ("z", 4, 7)]
    wanted = cep.match(frame, QUERY, time="ts", type="type", jit=False).collect()
    assert {(row.tag, row.high, row.match_end) for row in wanted} == {tuple(row) for row in found}


def test_what_is_refused(spark: Any) -> None:
    frame = registered(spark)
    options: dict[str, Any] = {"like": frame, "time": "ts", "type": "type"}
    with pytest.raises(cep.OptionError, match="called by a name like `stolen`, not 'my query'"):
        cep.register(spark, "my query", QUERY, **options)
    with pytest.raises(cep.UnsupportedError, match=r"aggregate in SQL, as in `SELECT count\(\*\)"):
        cep.register(spark, "many", "PATTERN A a RETURN count(*) AS n", **options)
    with pytest.raises(cep.QueryError, match="no attribute `m`"):
        cep.register(spark, "wrong", "PATTERN A a WHERE a.m > 1", **options)
    with pytest.raises(Exception, match="called with a table without the column `n`"):
        spark.sql(
            "SELECT * FROM stolen(TABLE(SELECT ts, type, tag, at FROM readings) PARTITION BY tag)"
        ).collect()
