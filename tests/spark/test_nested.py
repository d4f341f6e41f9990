"""Nested columns on Spark: what is read and checked there, and what comes out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import cepheid as cep
from tests.spark.test_pushdown import physical_plan
from tests.spark.test_rule_streams import Folder

REQUEST = pa.struct([("ip", pa.string()), ("Port", pa.int64()), ("body", pa.string())])
EVENTS = pa.table(
    {
        "ts": pa.array([1, 2, 3, 4, 5], pa.int64()).cast(pa.timestamp("s", "UTC")),
        "type": ["A", "B", "B", "B", "A"],
        "request": pa.array(
            [
                {"ip": "u", "Port": 80, "body": "1"},
                {"ip": "v", "Port": 80, "body": "2"},
                {"ip": "u", "Port": 22, "body": "3"},
                None,
                {"ip": "u", "Port": None, "body": "5"},
            ],
            REQUEST,
        ),
        "tags": [["x", "y"], [], ["x"], None, ["y", None]],
        "m.n": pa.array([[("k", 1)], [], [("k", 3)], [], None], pa.map_(pa.string(), pa.int64())),
    }
)  # fmt: skip
OPTIONS: dict[str, Any] = {"time": "ts", "type": "type"}
QUERY = """
    PATTERN A a ; B b WHERE [request.ip] AND a.tags CONTAINS 'y' AND b.request.port < 80
    WITHIN 10 seconds
"""
RETURN = "RETURN b.request.ip, b.tags[0] AS tag, b.tags[7] AS none, b.`m.n`['k'] AS k, a.request"


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> DataFrame:
    path = tmp_path / "events.parquet"
    pq.write_table(EVENTS, path)
    return spark.read.parquet(str(path))


def test_the_same_comes_out_as_in_process(spark: SparkSession, events: DataFrame) -> None:
    want = cep.match(EVENTS, QUERY + RETURN, **OPTIONS).to_pylist()
    assert [{**row, "match_start": None, "match_end": None} for row in want] == [
        {
            **{"ip": "u", "tag": "x", "none": None, "k": 3, "match_start": None},
            **{"request": {"ip": "u", "Port": 80, "body": "1"}, "match_end": None},
        }
    ]
    for ansi in ("true", "false"):
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        assert cep.match(events, QUERY + RETURN, **OPTIONS).toArrow().to_pylist() == want
    spark.conf.unset("spark.sql.ansi.enabled")


def test_only_the_fields_that_are_read_are_scanned_and_shipped(
    events: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    compared = QUERY.replace("a.tags CONTAINS 'y' AND", "")
    found = cep.match(events, compared + "RETURN b.request.port", **OPTIONS)
    plan = physical_plan(found, capsys)
    (schema,) = re.findall(r"ReadSchema: struct<(.*)>", plan)
    assert "request:struct<ip:string,Port:bigint>" in schema
    assert "body" not in schema
    (pushed,) = re.findall(r"PushedFilters: (.*)", plan)
    assert "LessThan(request.Port,80)" in pushed and "IsNotNull(request.ip)" in pushed
    text = str(cep.Query(QUERY + "RETURN b.request.port").explain(events, **OPTIONS))
    assert "pushed to Spark  a: type = 'A' AND a.tags CONTAINS 'y'" in text
    assert "columns          ts, request.ip, request.Port" in text


RULES = cep.RuleSet.of(
    {
        "port": "PATTERN A a ; B b WHERE [request.ip] AND b.request.port < 80 WITHIN 10 seconds "
        "RETURN b.request.port",
        "tags": "PATTERN B b WHERE b.tags CONTAINS 'x' RETURN b.tags[0] AS tag",
        "prefix": "PATTERN A a -> B+ b PREFIXES WHERE [request.ip] AND b.tags[0] <> a.tags[1] "
        "WITHIN 10 seconds RETURN b.request.port",
    }
)
FOUND = {("port", '{"Port":22}'), ("tags", '{"tag":"x"}'), ("prefix", '{"Port":[22]}')}


def told(rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    matches = [json.dumps(json.loads(row["match"]), separators=(",", ":")) for row in rows]
    return {(row["rule"], match) for row, match in zip(rows, matches, strict=True)}


@pytest.mark.slow
def test_rules(events: DataFrame) -> None:
    assert told(RULES.match(EVENTS, **OPTIONS).to_pylist()) == FOUND
    assert told(RULES.match(events, **OPTIONS).toArrow().to_pylist()) == FOUND


@pytest.mark.filterwarnings("ignore:no key connects")
def test_rules_over_a_stream(spark: SparkSession, tmp_path: Path, events: DataFrame) -> None:
    folder = Folder(spark, tmp_path)
    folder.add(EVENTS.slice(0, 2))
    folder.add(EVENTS.slice(2))
    end = pa.array([10**6], pa.int64()).cast(pa.timestamp("s", "UTC"))
    folder.add(EVENTS.slice(4).set_column(0, "ts", end))
    stream = spark.readStream.schema(events.schema).parquet(str(tmp_path / "in"))
    folder.run(RULES.match(stream, buckets=2, **OPTIONS))
    found = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert told(found.to_pylist()) == FOUND
