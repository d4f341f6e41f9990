"""What Spark does before the engine: filters in the scan, few columns, one shuffle."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from cepheid.engine.rows.classes import CLASS_COLUMN
from cepheid.options import Options
from cepheid.plan.nodes import LeafNode
from cepheid.spark import batch
from cepheid.spark.partitions import worker
from cepheid.spark.partitions.salts import murmur3, partition_of, salts

COLUMNS = {
    "ts": pa.array([1, 2, 3, None]),
    "name": ["A", "B", "X", "A"],
    "card": [1, 1, 1, 1],
    "amount": [5.0, 500.0, 7.0, 9.0],
    "text": ["p", "q", "r", "s"],
    "payload": ["w", "x", "y", "z"],
}
QUERY = "PATTERN A a ; B b WHERE [card] AND a.amount < 100 AND b.amount > 250 WITHIN 9 "


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> DataFrame:
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    return spark.read.parquet(str(path))


def physical_plan(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    frame.explain("formatted")
    return capsys.readouterr().out


def scanned(plan: str) -> set[str]:
    (schema,) = re.findall(r"ReadSchema: struct<(.*)>", plan)
    return set(re.findall(r"(\w+):", schema))


def test_filters_and_columns_reach_the_scan(
    events: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    result = cep.match(events, QUERY + "RETURN a.text AS t", time="ts", type="name")
    plan = physical_plan(result, capsys)
    (pushed,) = re.findall(r"PushedFilters: \[(.*)\]", plan)
    for part in (
        "IsNotNull(ts)",
        "IsNotNull(card)",
        "EqualTo(name,A)",
        "LessThan(amount,100.0)",
        "EqualTo(name,B)",
        "GreaterThan(amount,250.0)",
    ):
        assert part in pushed
    assert scanned(plan) == {"ts", "name", "card", "amount", "text"}


def test_only_what_the_engine_needs_is_shuffled(
    events: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns that only class filters read stay in Spark."""
    result = cep.match(events, QUERY + "RETURN a.text AS t", time="ts", type="name")
    plan = physical_plan(result, capsys)
    exchanges = re.findall(r"\) Exchange\nInput \[\d+\]: \[(.*)\]", plan)
    assert len(exchanges) == 1
    names = set(re.findall(r"(\w+)#", exchanges[0]))
    assert names == {"ts", "card", "text", CLASS_COLUMN}
    assert "Sort" in plan
    assert "MapInArrow" in plan


def test_a_single_event_needs_no_shuffle(
    events: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    result = cep.match(events, "PATTERN A a WHERE a.amount > 5", time="ts", type="name")
    assert "Exchange" not in physical_plan(result, capsys)


def test_what_cannot_be_translated(events: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    """The rest of the class is still pushed, and the engine gets the column to decide."""
    query = "PATTERN A a WHERE upper(a.text) = 'P' AND a.amount < 6 RETURN a.amount AS x"
    result = cep.match(events, query, time="ts", type="name", jit=False)
    plan = physical_plan(result, capsys)
    assert "LessThan(amount,6.0)" in plan
    assert scanned(plan) == {"ts", "name", "amount", "text"}
    assert [row.x for row in result.collect()] == [5.0]


def test_explain(events: DataFrame) -> None:
    found = cep.Query(QUERY).explain(events, time="ts", type="name", partitions=7)
    assert found.distribution == (
        ("partitioning", "key card (7 partitions)"),
        ("why", "WHERE connects all variables by the key, so matches never cross keys"),
        ("hot keys", "cut into slices of time, if a first look finds any"),
        ("columns", "ts, name, card, amount, text, payload"),
        ("pushed to Spark", "a: name = 'A' AND a.amount < 100"),
        ("pushed to Spark", "b: name = 'B' AND b.amount > 250"),
    )
    query = "PATTERN A a ; B b WHERE upper(a.text) = 'P' WITHIN 5 RETURN a.ts AS a"
    found = cep.Query(query).explain(events, time="ts", type="name", partitions=7)
    assert found.distribution == (
        ("partitioning", "slices of time (at most 7)"),
        ("why", "no key connects all variables; each slice has a copy of the window before it"),
        ("columns", "ts, text"),
        ("pushed to Spark", "a: name = 'A'; left to the engine: upper(a.text) = 'P'"),
        ("pushed to Spark", "b: name = 'B'"),
    )
    found = cep.Query(query).explain(events, time="ts", type="name", partitioning="single")
    assert found.distribution[:2] == (("partitioning", "single"), ("why", "forced"))
    assert re.search(r"partitioning +single\n", str(found))


def test_analyze(events: DataFrame) -> None:
    """What happened in all partitions together."""
    found = cep.Query(QUERY).explain(
        events, time="ts", type="name", partitions=3, jit=False, analyze=True
    )
    assert found.profile is not None
    assert found.profile.matches == 1
    rows = {
        node.variable: p.rows
        for node, p in found.profile.nodes.items()
        if isinstance(node, LeafNode)
    }
    assert set(rows) == {"a", "b"} and all(rows.values())


def test_a_query_that_can_match_nothing(events: DataFrame) -> None:
    query = "PATTERN A a ; B b WHERE a.amount > 5 AND a.amount < 3 WITHIN 5 RETURN a.ts AS a"
    with pytest.warns(UserWarning, match="matches nothing"):
        found = cep.match(events, query, time="ts", type="name")
    assert found.columns == ["a", "match_start", "match_end"]
    assert found.count() == 0


def test_an_engine_that_does_nothing(events: DataFrame) -> None:
    """The floor of the benchmarks: the same rows reach the workers, none comes back."""
    options = Options(time="ts", type="name", jit=False)
    query = cep.Query(QUERY)
    assert batch.match(query, events, options).count() == 1
    assert batch.match(query, events, options, runner=worker.discard).count() == 0


def test_workers_load_no_parser(spark: SparkSession, events: DataFrame) -> None:
    def modules(task: worker.Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(found.num_rows for found in worker.run(task, batches))
        if rows:
            loaded = [m for m in sys.modules if m.split(".")[0] in ("cepheid", "lark")]
            yield pa.record_batch(
                {"t": loaded, "match_start": [0] * len(loaded), "match_end": [0] * len(loaded)}
            )

    query = cep.Query(QUERY + "RETURN a.text AS t")
    rows = batch.match(query, events, Options(time="ts", type="name", jit=False), modules)
    loaded = {row.t for row in rows.collect()}
    assert "cepheid.engine.run" in loaded
    assert not {m for m in loaded if re.match(r"lark|cepheid\.language\.parser", m)}


def test_salts(spark: SparkSession) -> None:
    """Spark puts the numbers where we expect it, so that sections spread evenly."""
    numbers = [0, 1, -7, 2**31 - 1, *salts(5)]
    frame = spark.createDataFrame([(n,) for n in numbers], "n int")
    hashes = {row.n: row.h for row in frame.select("n", F.hash("n").alias("h")).collect()}
    assert hashes == {n: murmur3(n) for n in numbers}
    assert sorted(partition_of(salt, 5) for salt in salts(5)) == [0, 1, 2, 3, 4]
    spread = frame.filter(F.col("n").isin(*salts(5))).distinct().repartition(5, "n")
    counts = spread.groupBy(F.spark_partition_id()).count().collect()
    assert [row["count"] for row in counts] == [1] * 5
