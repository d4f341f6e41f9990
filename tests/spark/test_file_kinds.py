"""Files on Spark by kind: as in this process (`tests/files/test_kinds.py`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.cli.arguments import Input
from cepheid.cli.inputs import input_options, open_inputs
from cepheid.cli.spark_inputs import open_spark_inputs, sampled_lines
from cepheid.files.events import file_columns
from cepheid.files.formats import Format
from cepheid.options import Options
from cepheid.spark.text_files import lines_of
from tests.files.kinds import KINDS, read_value, write_kinds, write_parquet

UNKNOWN_TO_SPARK = ("clock", "finer")
"""Kinds of Parquet that Spark's reader doesn't take."""

Rows = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def read(spark: SparkSession, source: Input, time: str = "t") -> Rows:
    """The events that have a time, and what is rejected."""
    (one,) = open_spark_inputs(spark, [source], [], Options(time=time)).values()
    columns = one.columns.schema
    rows = one.events(columns).toArrow().to_pylist()
    events = [{n: read_value(v) for n, v in row.items()} for row in rows if row[time] is not None]
    return events, one.rejected(columns).toArrow().to_pylist()


def read_here(source: Input, time: str = "t") -> Rows:
    found = open_inputs([source], [], Options(time=time)).read()
    return found.tables[""].to_pylist(), found.rejected.drop_columns(["stream"]).to_pylist()


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_text(spark: SparkSession, ending: str, tmp_path: Path) -> None:
    rows, rejected = read(spark, Input(None, str(write_kinds(tmp_path / f"a.{ending}"))))
    assert rows[0] == {"t": 1} | {n: k.text for n, k in KINDS.items()}
    assert not rejected


def test_parquet(spark: SparkSession, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", *UNKNOWN_TO_SPARK)
    (row,), _ = read(spark, Input(None, str(path)))
    kinds = {n: k for n, k in KINDS.items() if n not in UNKNOWN_TO_SPARK}
    assert row == {"t": 1} | {
        name: kind.value if kind.on_spark is None else kind.on_spark for name, kind in kinds.items()
    }


def test_text_in_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """Times and numbers that are text become what they should be, or the row is rejected."""
    rows = {
        "t": ["31.01.2026", "01.02.2026", "soon", None, "02.02.2026"],
        "x": ["1", "two", "3", "4", None],
        "y": [1, 2, 3, 4, 5],
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(rows), path)
    source = Input(None, str(path), declared="x long", time_format="%d.%m.%Y")
    events, rejected = read(spark, source)
    here, rejected_here = read_here(source)
    assert events == here
    assert [(row["x"], row["y"]) for row in events] == [(1, 1), (None, 5)]
    reasons = [(row["file"], row["reason"]) for row in rejected]
    assert reasons == [(row["file"], row["reason"]) for row in rejected_here]
    assert [reason for _, reason in reasons] == [
        "`x` is 'two', not an integer",
        "`t` is 'soon', not a time",
        "`t` is empty",
    ]
    assert json.loads(rejected[1]["line"]) == {"t": "soon", "x": "3", "y": 3}


def test_letters_and_headers(spark: SparkSession, tmp_path: Path) -> None:
    """Latin-1, a byte order mark, and a header without rows."""
    path = tmp_path / "latin.csv"
    path.write_bytes("t,größe\n1,süß\n".encode("latin-1"))
    source = Input(None, str(path), encoding="latin-1")
    assert read(spark, source) == read_here(source) == ([{"t": 1, "größe": "süß"}], [])
    path = tmp_path / "mark.csv"
    path.write_bytes("t,x\n1,2\n".encode("utf-8-sig"))
    assert read(spark, Input(None, str(path))) == ([{"t": 1, "x": 2}], [])
    path = tmp_path / "header.csv"
    path.write_text("t,x\n")
    assert read(spark, Input(None, str(path))) == ([], [])


@pytest.mark.parametrize("format", [Format.CSV, Format.JSON])
def test_samples_of_files_elsewhere(spark: SparkSession, format: Format, tmp_path: Path) -> None:
    """Files that only Spark can look into have the columns that they would have here."""
    ending = "csv" if format is Format.CSV else "jsonl"
    for name in ("one", "two"):
        write_kinds(tmp_path / f"{name}.{ending}")
    source = Input(None, str(tmp_path), format)
    given = input_options(source, "t")
    lines = lines_of(spark.read.text(str(tmp_path)))
    found = {c.name: c.type for c in sampled_lines(lines, source, given).columns}
    here = file_columns(str(tmp_path), sorted(tmp_path.iterdir()), format, given)
    assert found == {f.name: f.type for f in here.schema}


def test_not_a_number_is_no_time(spark: SparkSession) -> None:
    frame = spark.sql("SELECT explode(array(1D, double('NaN'), NULL)) AS ts")
    assert cep.rejected(frame, time="ts").count() == 2
    assert cep.rejected(frame, time="ts", start="ts").count() == 2
