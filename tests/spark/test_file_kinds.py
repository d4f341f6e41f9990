"""Files on Spark by kind: as in this process (`tests/files/test_kinds.py`), read and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.cli.arguments import InputSource
from cepheid.cli.batch.spark_inputs import open_spark_inputs, sampled_lines
from cepheid.cli.inputs import input_options, open_inputs
from cepheid.files.events import file_columns
from cepheid.files.formats import Format, spark_format
from cepheid.options import Options
from cepheid.spark.event_files.text_files import lines_of
from cepheid.spark.event_files.text_values import for_text
from tests.files.kinds import KINDS, read_value, write_kinds, write_parquet

UNKNOWN_TO_SPARK = ("clock", "finer")
"""Kinds of Parquet that Spark's reader doesn't take."""

Rows = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def read(spark: SparkSession, source: InputSource, time: str = "t") -> Rows:
    """The events that have a time, and what is rejected."""
    (one,) = open_spark_inputs(spark, [source], [], Options(time=time)).values()
    columns = one.columns.schema
    rows = one.events(columns).toArrow().to_pylist()
    events = [{n: read_value(v) for n, v in row.items()} for row in rows if row[time] is not None]
    return events, one.rejected(columns).toArrow().to_pylist()


def read_here(source: InputSource, time: str = "t") -> Rows:
    found = open_inputs([source], [], Options(time=time)).read()
    return found.tables[""].to_pylist(), found.rejected.drop_columns(["stream"]).to_pylist()


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_text(spark: SparkSession, ending: str, tmp_path: Path) -> None:
    rows, rejected = read(spark, InputSource(None, str(write_kinds(tmp_path / f"a.{ending}"))))
    assert rows[0] == {"t": 1} | {n: k.text for n, k in KINDS.items()}
    assert not rejected


def test_parquet(spark: SparkSession, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", *UNKNOWN_TO_SPARK)
    (row,), _ = read(spark, InputSource(None, str(path)))
    kinds = {n: k for n, k in KINDS.items() if n not in UNKNOWN_TO_SPARK}
    assert row == {"t": 1} | {
        name: kind.value if kind.on_spark is None else kind.on_spark for name, kind in kinds.items()
    }


@pytest.mark.parametrize("name", UNKNOWN_TO_SPARK)
def test_parquet_that_spark_does_not_read(spark: SparkSession, name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": [1], "c": KINDS[name].stored}), path)
    with pytest.raises(cep.DataError, match="neither times of day nor nanoseconds"):
        read(spark, InputSource(None, str(path)))


def test_text_in_parquet(spark: SparkSession, tmp_path: Path) -> None:
    """Times and numbers that are text become what they should be, or the row is rejected."""
    rows = {
        "t": ["31.01.2026", "01.02.2026", "soon", None, "02.02.2026"],
        "x": ["1", "two", "3", "4", None],
        "y": [1, 2, 3, 4, 5],
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(rows), path)
    source = InputSource(None, str(path), declared="x long", time_format="%d.%m.%Y")
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
    source = InputSource(None, str(path), encoding="latin-1")
    assert read(spark, source) == read_here(source) == ([{"t": 1, "größe": "süß"}], [])
    path = tmp_path / "mark.csv"
    path.write_bytes("t,x\n1,2\n".encode("utf-8-sig"))
    assert read(spark, InputSource(None, str(path))) == ([{"t": 1, "x": 2}], [])
    path = tmp_path / "header.csv"
    path.write_text("t,x\n")
    assert read(spark, InputSource(None, str(path))) == ([], [])


@pytest.mark.parametrize("format", [Format.CSV, Format.JSON])
def test_samples_of_files_elsewhere(spark: SparkSession, format: Format, tmp_path: Path) -> None:
    """Files that only Spark can look into have the columns that they would have here."""
    ending = "csv" if format is Format.CSV else "jsonl"
    for name in ("one", "two"):
        write_kinds(tmp_path / f"{name}.{ending}")
    source = InputSource(None, str(tmp_path), format)
    given = input_options(source, "t")
    lines = lines_of(spark.read.text(str(tmp_path)))
    found = {c.name: c.type for c in sampled_lines(lines, source, given).columns}
    here = file_columns(str(tmp_path), sorted(tmp_path.iterdir()), format, given)
    assert found == {f.name: f.type for f in here.schema}


@pytest.mark.parametrize("format", [Format.CSV, Format.JSON])
def test_values_written(spark: SparkSession, format: Format, tmp_path: Path) -> None:
    """As in this process (`tests/files/test_output.py`); and nothing is cut off."""
    nested = "array(INTERVAL '1' HOUR) AS spans, named_struct('b', X'00FF', 'p', 1.50BD) AS parts"
    frame = spark.sql(f"""
        SELECT INTERVAL '1 02:03:04.000005' DAY TO SECOND AS span, INTERVAL '-1' SECOND AS back,
            X'00FF' AS bytes, 12.30BD AS price, ' a "b" ' AS text, CAST(NULL AS int) AS none,
            TIMESTAMP_NTZ'2026-01-31 12:00:00.000005' AS wall,
            TIMESTAMP_LTZ'2026-01-31 12:00:00.000005Z' AS moment
            {f", {nested}" if format is Format.JSON else ""}
    """)
    name, settings = spark_format(format, "found")
    for_text(frame, format).write.format(name).options(**settings).save(str(tmp_path / "found"))
    (file,) = (tmp_path / "found").glob("part-*")
    expected: dict[str, object] = {
        "span": 93784000005,
        "back": -1000000,
        "bytes": "AP8=",
        "price": "12.30" if format is Format.JSON else 12.3,
        "text": ' a "b" ',
        "none": None,
        "wall": "2026-01-31T12:00:00.000005",
        "moment": KINDS["naive"].text,
    }
    if format is Format.JSON:
        row = json.loads(file.read_text())
        assert row.pop("spans") == [3600000000]
        assert row.pop("parts") == {"b": "AP8=", "p": "1.50"}
        row["moment"] = KINDS["naive"].text.fromisoformat(row["moment"])
        assert row == expected
    else:
        (row,), _ = read_here(InputSource(None, str(file), Format.CSV), "wall")
        assert row == {**expected, "wall": KINDS["naive"].text}


def test_not_a_number_is_no_time(spark: SparkSession) -> None:
    frame = spark.sql("SELECT explode(array(1D, double('NaN'), NULL)) AS ts")
    assert cep.rejected(frame, time="ts").count() == 2
    assert cep.rejected(frame, time="ts", start="ts").count() == 2
