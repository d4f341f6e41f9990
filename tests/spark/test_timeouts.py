"""Partial matches that expire, on Spark: what is found in process is found there, too."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

import cepheid as cep
from tests.spark.harness import frame

QUERY = """
    PATTERN A a ; B+ b ; C c WHERE {} b.x > a.x WITHIN 9
    RETURN a.row AS a, b.row AS b, count(b) AS n, c.row AS c, c.s AS s"""


def stream(rows: int) -> pa.Table:
    random = np.random.default_rng(5)
    return pa.table(
        {
            "row": np.arange(rows),
            "ts": np.arange(rows),
            "name": random.choice(["A", "B", "C", "X"], rows),
            "id": pa.array(random.integers(0, 3, rows), mask=random.random(rows) < 0.1),
            "x": random.integers(0, 5, rows),
            "s": pa.array(["s"] * rows),
        }
    )


def multiset(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("key", ["[id] AND", ""])
def test_as_in_process(spark: SparkSession, key: str) -> None:
    events, query = stream(300), QUERY.format(key)
    named: dict[str, Any] = {"time": "ts", "type": "name", "jit": False}
    expected = cep.timeouts(events, query, **named)
    found = cep.timeouts(frame(spark, events), query, **named)
    assert found.columns == expected.column_names
    kinds = {f.name: f.dataType for f in found.schema.fields}
    assert kinds["step"] == kinds["steps"] == t.IntegerType()
    assert kinds["s"] == t.StringType() and kinds["b"] == t.ArrayType(t.LongType())
    assert {row["step"] for row in expected.to_pylist()} == {1, 2}
    rows = [row.asDict(True) for row in found.collect()]
    assert multiset(rows) == multiset(expected.to_pylist())


def test_several_streams(spark: SparkSession) -> None:
    orders = spark.createDataFrame([(1, 7), (2, 8)], "ts long, id long")
    payments = spark.createDataFrame([(3, 7)], "ts long, id long")
    query = "PATTERN orders o ; payments p WHERE [id] WITHIN 5 RETURN o.id, p.ts AS paid"
    data = {"orders": orders, "payments": payments}
    found: Any = cep.timeouts(data, query, time="ts", jit=False)
    assert [row.asDict() for row in found.select("missing", "id", "paid").collect()] == [
        {"missing": "payments p", "id": 8, "paid": None}
    ]
