"""Text files on Spark: the same rows, and the same are rejected, as in a local run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from cepheid.files.events import EventFiles, InputOptions, row_format
from cepheid.files.formats import Format, data_files
from cepheid.spark.event_files.text_files import lines_of, read_text_events, read_text_rejected

_SPLIT = "spark.sql.files.maxPartitionBytes"


@pytest.fixture
def small_pieces(spark: SparkSession) -> Iterator[None]:
    """Files are read in pieces of a few lines."""
    before = spark.conf.get(_SPLIT)
    spark.conf.set(_SPLIT, "400")
    yield
    spark.conf.set(_SPLIT, before or "128m")


def csv_file(name: str) -> str:
    lines = [f"2026-01-31T12:{n:02}:00Z,{n},{name}" for n in range(40)]
    lines[20:20] = ["", "soon,1,x", f"{lines[0]},more", ",5,y", '2026-01-31 12:00,7,"open', "Ü"]
    return "\n".join(["t,x,name", *lines, "2026-01-31T13:00,oops,z"])


def json_file(name: str) -> str:
    lines = [f'{{"t": "2026-01-31T12:{n:02}:00Z", "x": {n}, "name": "{name}"}}' for n in range(40)]
    lines[20:20] = ["", '{"t": "soon"}', "null", '{"t": 5', '{"x": 5}', '{"t": "2026-01-31"}']
    return "\n".join([*lines, '{"t": "2026-01-31", "x": "oops"}'])


def multiline_file(name: str) -> str:
    rows = [f'2026-01-31,{n},"{name}\n{n}, ""a"""' for n in range(4)]
    return "\n".join(["t,x,name", *rows])


@pytest.mark.parametrize(
    ("write", "ending", "bad"),
    [(csv_file, "csv", 12), (json_file, "jsonl", 10), (multiline_file, "csv", 0)],
)
@pytest.mark.usefixtures("small_pieces")
def test_spark_reads_what_is_read_here(
    write: Callable[[str], str], ending: str, bad: int, spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.{ending}").write_text(write(name))
    (tmp_path / f"empty.{ending}").write_text("")
    if ending == "csv":
        (tmp_path / "other.csv").write_text("\ufeffname,x,t\nthree,1,2026-01-31T12:00:00+02:00\n")
    format = Format.JSON if ending == "jsonl" else Format.CSV
    given = InputOptions("t")
    files = EventFiles(str(tmp_path), format, given)
    here = files.read(files.schema)
    assert here.rejected.num_rows == bad
    form = row_format(format, files.columns, files.schema, given)
    lines = lines_of(spark.read.text([str(f) for f in data_files(str(tmp_path))]))
    events = read_text_events(lines, form, files.columns.header).toArrow()
    assert events["t"].null_count == here.rejected.num_rows
    order = [("t", "ascending"), ("x", "ascending"), ("name", "ascending")]
    placed = events.filter(pc.is_valid(events["t"])).cast(here.table.schema)
    assert placed.sort_by(order).to_pylist() == here.table.sort_by(order).to_pylist()
    lost = read_text_rejected(lines, form, files.columns.header).toArrow()
    columns = ("file", "line", "reason")
    seen, known = (sorted(zip(*(t[c].to_pylist() for c in columns), strict=True))
                   for t in (lost, here.rejected))  # fmt: skip
    assert seen == known
    numbers = {row["line"]: row["number"] for row in here.rejected.to_pylist()}
    assert all(row["number"] in (None, numbers[row["line"]]) for row in lost.to_pylist())
