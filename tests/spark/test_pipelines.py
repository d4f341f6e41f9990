"""Spark Declarative Pipelines: a materialized view and a streaming table of matches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.spark.start.java import ensure_java
from cepheid.spark.streaming.pipeline import PROVIDER, ROCKSDB

SPEC = f"""
name: alarms
storage: {{place}}/storage
libraries:
  - glob:
      include: definitions/**
configuration:
  {PROVIDER}: {ROCKSDB}
  spark.sql.shuffle.partitions: "2"
"""

DEFINITIONS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

import cepheid as cep

spark = SparkSession.getActiveSession()
columns = "ts timestamp, kind string, id long"
query = "PATTERN A a ; B b WHERE [id] WITHIN 1 hour RETURN a.id AS id"
named = {{"time": "ts", "type": "kind", "jit": False}}
stored = cep.match(spark.read.schema(columns).parquet("{place}/events"), query, **named)
coming = cep.match(spark.readStream.schema(columns).parquet("{place}/events"), query, **named)


@dp.materialized_view
def pairs():
    return stored


@dp.table
def new_pairs():
    return coming
"""


def ids(table: Path) -> list[int]:
    files = table.glob("*.parquet")
    return sorted(n for file in files for n in pq.read_table(file)["id"].to_pylist())


@pytest.mark.slow
def test_a_pipeline(tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="spark-pipelines needs PyYAML")
    place = tmp_path.as_uri()
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(place=place))
    (tmp_path / "definitions").mkdir()
    (tmp_path / "definitions" / "alarms.py").write_text(DEFINITIONS.format(place=place))
    (tmp_path / "events").mkdir()
    times = pa.array([1, 2, 3], pa.int64()).cast(pa.timestamp("us", "UTC"))
    events = pa.table({"ts": times, "kind": ["A", "B", "A"], "id": [1, 1, 2]})
    pq.write_table(events, tmp_path / "events" / "0.parquet")
    run = subprocess.run(
        [Path(sys.executable).with_name("spark-pipelines"), "run"],
        cwd=tmp_path,
        env=_environment(),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert ids(tmp_path / "spark-warehouse" / "pairs") == [1]
    assert ids(tmp_path / "spark-warehouse" / "new_pairs") == [1]


def _environment() -> dict[str, str]:
    """With this interpreter, for the program and for its workers."""
    ensure_java()
    own = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    path = [str(Path(cepheid.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, **own, "PYTHONPATH": os.pathsep.join(filter(None, path))}
