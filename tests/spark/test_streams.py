"""Streams of matches, and events with a duration, on Spark: as in process."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import cepheid as cep
from tests.spark.harness import frame, in_process, on_spark

LASTING: dict[str, Any] = {"time": "end", "start": "begin", "type": "name"}


def stream(rows: int = 300, seed: int = 3) -> pa.Table:
    """Events that last up to 20, some of which begin after they end; no two end together."""
    random = np.random.default_rng(seed)
    end = np.arange(0, 3 * rows, 3)
    return pa.table(
        {
            "row": np.arange(rows),
            "begin": end - random.integers(-1, 20, rows),
            "end": end,
            "name": random.choice(["A", "B", "C"], rows),
            "id": random.integers(0, 3, rows),
        }
    )


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("query", "partitionings"),
    [
        ("PATTERN A a ; !C c ; B b WITHIN 60", ("auto", "slices", "single")),
        ("PATTERN A a ; C+ c ; B b WHERE [id] WITHIN 90", ("key", "partial", "slices")),
        ("PATTERN A a ; !B b WITHIN 30", ("slices", "single")),
        ("PATTERN A a ; B b WHERE [id] WITHIN 3 EVENTS", ("key", "single")),
    ],
)
def test_durations(spark: SparkSession, query: str, partitionings: tuple[str, ...]) -> None:
    data = stream()
    with pytest.warns(UserWarning, match="start after their end"):
        want = in_process(data, query, jit=False, **LASTING)
    assert want
    got = on_spark(frame(spark, data), query, partitionings, partitions=3, **LASTING)
    assert got == dict.fromkeys(partitionings, want)


def test_dead_letters(spark: SparkSession) -> None:
    data = stream(50)
    data = pa.concat_tables([data, data.slice(0, 1).set_column(1, "begin", pa.array([None], "i8"))])
    want = cep.rejected(data, time="end", start="begin").to_pylist()
    got = cep.rejected(frame(spark, data), time="end", start="begin").collect()
    assert len(want) > 1
    assert sorted(map(str, (row.asDict() for row in got))) == sorted(map(str, want))


def rows(matches: Any) -> Counter[tuple[Any, ...]]:
    listed = matches.to_pylist() if isinstance(matches, pa.Table) else matches.collect()
    return Counter(tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in listed)


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ["typed", "named", "nameless"])
def test_queries_read_what_others_find(spark: SparkSession, kind: str) -> None:
    table = stream().drop_columns(["begin"])
    parts = {
        name: table.filter(pa.compute.equal(table["name"], name)).drop_columns(["name"])
        for name in "ABC"
    }
    options: dict[str, Any] = {"time": "end"}
    types = ("A", "B", "C")
    data: Any = table
    if kind == "typed":
        options["type"] = "name"
    elif kind == "named":
        data = parts
    else:
        types = ("events",) * 3
    first, second = "PATTERN {} a ; {} b" if kind != "nameless" else "PATTERN a ; b", "PATTERN {} c"
    queries = [
        f"{second.format(types[2])} ; Pair p WHERE c.id = p.x WITHIN 60 RETURN p.y AS y, c.row",
        f"INTO Pair {first.format(*types)} WHERE [id] WITHIN 30 RETURN a.id AS x, b.row AS y",
        "PATTERN Pair p ; Pair q FROM Pair WHERE p.x <> q.x WITHIN 40 RETURN p.y AS a, q.y AS b",
    ]
    want = cep.match(data, queries, jit=False, **options)
    frames: Any = (
        {name: frame(spark, part) for name, part in data.items()}
        if isinstance(data, dict)
        else frame(spark, data)
    )
    got = cep.match(frames, queries, jit=False, partitions=3, **options)
    assert list(got) == ["query 1", "Pair", "query 3"]
    for name, matches in want.items():
        assert matches.num_rows
        assert rows(got[name]) == rows(matches)
