"""Answers on DataFrames of Spark: the same rows as in process."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.spark import group_parts
from cepheid.spark.group_parts import GroupParts
from cepheid.streaming.cells import table_of
from tests.answers.test_match import PAIRS, TABLE

QUERIES = [
    f"{PAIRS} GROUP BY a.x, TUMBLE(10) RETURN a.x, window_end, count(*) AS n, avg(b.x) AS m",
    f"{PAIRS} GROUP BY HOP(5, 10) RETURN window_end, count(*) AS n, collect(b.x) AS every",
    f"{PAIRS} GROUP BY b.x / 2.0 RETURN b.x / 2.0 AS half, count(*) AS n LIMIT 2",
    "FROM Z z RETURN count(*) AS n, sum(z.x) AS total",
]

KEYED = pa.table(
    {
        "ts": list(range(60)),
        "name": ["A", "B"] * 30,
        "k": [n // 2 % 7 for n in range(60)],
        "g": [[0.0, -0.0, 1.5, float("nan"), None][n % 5] for n in range(60)],
    }
)
CROSSING = """
    PATTERN A a ; B b WHERE [k] WITHIN 20 GROUP BY b.g, HOP(10, 15)
    RETURN b.g, window_end, count(*) AS n, last(a.k) AS k, count(DISTINCT a.k) AS keys
"""


PLAIN: dict[str, Any] = {"time": "ts", "type": "name", "jit": False}
"""Workers have compiled kernels below, in `test_groups_of_many_keys`."""


@pytest.mark.some(2)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.filterwarnings("ignore:no event is of type")
def test_as_in_process(spark: SparkSession, query: str) -> None:
    expected = cep.match(TABLE, query, **PLAIN).to_pylist()
    found = cep.match(spark.createDataFrame(TABLE), query, **PLAIN)
    rows = [row.asDict() for row in found.collect()]
    assert sorted(map(str, rows)) == sorted(map(str, expected))


def test_single_events_with_a_key(spark: SparkSession) -> None:
    """Spark checks that there is a key; they are counted key by key all the same."""
    query = "PATTERN A a WHERE [k] RETURN count(*) AS n"
    rows = cep.match(spark.createDataFrame(KEYED), query, **PLAIN).select("n").collect()
    assert [row.n for row in rows] == [30]


def test_groups_of_many_keys(spark: SparkSession) -> None:
    """Matches of one group are found by several tasks."""
    expected = cep.match(KEYED, CROSSING, time="ts", type="name").to_pylist()
    assert len(expected) > 20
    found = cep.match(spark.createDataFrame(KEYED), CROSSING, time="ts", type="name")
    rows = [row.asDict() for row in found.collect()]
    assert sorted(map(str, rows)) == sorted(map(str, expected))


def test_what_is_shuffled_is_explained(spark: SparkSession) -> None:
    frame = spark.createDataFrame(KEYED)
    text = str(cep.Query(CROSSING).explain(frame, time="ts", type="name"))
    assert "partial aggregates, a row for each group and slice of time" in text
    assert "merged in 2 tasks by a hash of the group" in text


def test_a_task_sends_parts_not_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a group go to one bucket, and a task that holds many sends them before its end."""
    query = cep.Query("FROM a GROUP BY a.g, TUMBLE(30) RETURN a.g, count(*) AS n")
    bound = query.bind(KEYED.schema, time="ts")
    assert bound.answers is not None
    matches = KEYED.select(["ts", "ts", "g"]).rename_columns(["match_start", "match_end", "g"])
    (name,) = bound.answers.groups
    matches = matches.rename_columns(["match_start", "match_end", name])
    parts = GroupParts(bound.answers, matches.schema, 4)
    sent = [*parts.packed(iter(matches.to_batches()))]
    assert sum(table_of(data).num_rows for data in sent[0].column("data").to_pylist()) == 8
    monkeypatch.setattr(group_parts, "MOST", 0)
    often = [*parts.packed(iter(matches.to_batches(max_chunksize=7)))]
    assert len(often) > len(sent) == 1
    places: dict[object, set[object]] = {}
    for batch in often:
        for row in batch.to_pylist():
            for value in table_of(row["data"])["group 0"].to_pylist():
                places.setdefault(str(value), set()).add(row["bucket"])
    assert places.keys() == {"0.0", "1.5", "nan", "None"}
    assert all(len(buckets) == 1 for buckets in places.values())


def test_rules(spark: SparkSession) -> None:
    rules = cep.RuleSet.of(
        {"many": CROSSING, "pairs": "PATTERN A a ; B b WHERE [k] WITHIN 3 RETURN a.k"}
    )
    expected = rules.match(KEYED, **PLAIN).to_pylist()
    found = rules.match(spark.createDataFrame(KEYED), **PLAIN)
    rows = [row.asDict() for row in found.collect()]
    assert sorted(map(_numbers, rows)) == sorted(map(_numbers, expected))


def _numbers(row: dict[str, Any]) -> str:
    """The row with all numbers of its JSON as doubles: 0 and 0.0 are the same."""
    return str({**row, "match": json.loads(row["match"], parse_int=float)})
