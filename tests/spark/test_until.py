"""The end of a batch on Spark: with `until`, time passes only to there, in every partition."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.cli.arguments import InputSource
from cepheid.cli.batch.run_spark import run_in_session
from cepheid.cli.target import Target
from cepheid.errors import OptionError
from cepheid.files.formats import Format
from cepheid.files.guard import Guard
from cepheid.options import Options

EVENTS = pa.table(
    {
        # The last event is of no type that is asked for, and of a key of its own.
        "ts": [1, 2, 5, 7, 9, 30, 31, 34, 36, 41],
        "type": ["A", "A", "B", "A", "C", "A", "A", "B", "A", "X"],
        "k": [1, 2, 1, 2, 1, 1, 2, 1, 3, 4],
    }
)
COLUMNS = {"time": "ts", "type": "type"}
QUERIES = {
    "by key": ("PATTERN A a ; !B b WHERE [k] WITHIN 10 RETURN a.ts AS a", {}),
    "in slices": ("PATTERN A a ; !B b WITHIN 10 RETURN a.ts AS a", {}),
    "in one partition": (
        "PATTERN A a ; !B b WITHIN 10 RETURN a.ts AS a",
        {"partitioning": "single"},
    ),
    "negation with a time": ("PATTERN A a ; !B b FOR 8 WHERE [k] RETURN a.ts AS a", {}),
    "group at the end": ("PATTERN A a ; B+ b WHERE [k] WITHIN 13 RETURN a.ts, count(b) AS n", {}),
    "one match for each key": (
        "PATTERN A a ; !B b WHERE [k] WITHIN 10 RETURN a.ts AS a LIMIT 1 PER KEY",
        {},
    ),
    "answers": (
        "PATTERN A a ; !B b WHERE [k] WITHIN 10 GROUP BY TUMBLE(10) RETURN count(*) AS n",
        {},
    ),
}


def in_process(query: Any, until: Any) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted_rows(query.match(EVENTS, **COLUMNS, until=until).to_pylist())


def sorted_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: sorted(map(repr, row.items())))


@pytest.mark.parametrize("name", QUERIES)
def test_a_batch_ends_as_in_process(spark: SparkSession, name: str) -> None:
    text, options = QUERIES[name]
    query = cep.Query(text)
    events = spark.createDataFrame(EVENTS.to_pandas())
    for until in ("last event", 43):
        found = query.match(events, **COLUMNS, **options, until=until).collect()
        assert sorted_rows([row.asDict(recursive=True) for row in found]) == in_process(
            query, until
        )
    assert in_process(query, "last event") != in_process(query, None)


def test_rules(spark: SparkSession) -> None:
    rules = cep.RuleSet.of({"left": QUERIES["by key"][0], "single": "PATTERN X x RETURN x.ts AS a"})
    events = spark.createDataFrame(EVENTS.to_pandas())
    found = rules.match(events, **COLUMNS, until="last event").collect()
    rows = [row.asDict(recursive=True) for row in found]
    assert sorted_rows(rows) == in_process(rules, "last event")
    assert len(rows) < len(in_process(rules, None))


def test_what_is_refused(spark: SparkSession) -> None:
    query = cep.Query(QUERIES["by key"][0])
    with pytest.raises(OptionError, match="until= is a time like those of `ts`"):
        query.match(spark.createDataFrame(EVENTS.to_pandas()), **COLUMNS, until="soon")
    stream = (
        spark.readStream.format("rate").load().selectExpr("value AS ts", "'A' AS type", "1 AS k")
    )
    for each in (query, cep.RuleSet.of({"left": query.text})):
        with pytest.raises(OptionError, match="until= is for data that end"):
            each.match(stream, **COLUMNS, until=5)


def test_the_command_line_counts_what_is_undecided(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "e.csv"
    file.write_text("ts,type,k\n1,A,1\n2,B,1\n8,A,2\n9,A,3\n")
    options = Options("ts", type="type", until="last event")
    target = Target(None, Format.PARQUET, None, 5, Guard())
    query = cep.Query(QUERIES["by key"][0])
    with pytest.warns(UserWarning, match="2 matches were left out: they were undecided"):
        found = run_in_session(spark, query, (InputSource(None, str(file)),), options, target)
    assert found.rows == []
