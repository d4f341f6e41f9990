"""Folders as streams: what is an event, and what is rejected."""

from __future__ import annotations

import gzip
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from cepheid.cli.arguments import Input
from cepheid.cli.stream_source import (
    open_folders,
    read_error,
    read_folder,
    read_rejected,
)
from cepheid.errors import DataError, OptionError
from cepheid.files.formats import Format

pytestmark = pytest.mark.classic

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
GOOD = [{"ts": "2026-01-31T12:00:00Z", "id": 1, "x": 2.5}, {"ts": "2026-01-31T12:00:01Z", "id": 2}]
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.int64(), "x": pa.float64()})


def write_parquet(folder: Path) -> None:
    rows = [{**row, "ts": datetime.fromisoformat(str(row["ts"]))} for row in GOOD]
    rows.append({"ts": None, "id": 3, "x": 0.5})
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / "1.parquet")
    whole = (folder / "1.parquet").read_bytes()
    (folder / "2.parquet").write_bytes(whole[: len(whole) // 2])
    other = SCHEMA.set(1, pa.field("id", pa.string()))
    pq.write_table(pa.Table.from_pylist([{**rows[0], "id": "one"}], other), folder / "3.parquet")


def write_json(folder: Path) -> None:
    lines = [*map(json.dumps, GOOD), "", '{"ts": null, "id": 3, "x": 0.5}']
    lines += ['{"ts": "2026-01-31T12:00:02Z", "id": "three"}', '{"ts": "2026-', '{"ts": "soon"}']
    (folder / "1.jsonl").write_text("\n".join(lines))
    (folder / "2.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode())[:20])


def write_csv(folder: Path) -> None:
    lines = ["ts,id,x", "2026-01-31T12:00:00Z,1,2.5", "2026-01-31T12:00:01Z,2,", ",3,0.5"]
    lines += ["2026-01-31T12:00:02Z,three,0.5", "soon,4,0.5"]
    (folder / "1.csv").write_text("\n".join(lines))
    (folder / "2.csv").write_text("id,ts,x\n1,2026-01-31T12:00:00Z,2.5\n")


FORMATS = {
    Format.PARQUET: (write_parquet, ['{"id":3,"x":0.5}']),
    Format.JSON: (
        write_json,
        [
            '{"ts": null, "id": 3, "x": 0.5}',
            '{"ts": "2026-01-31T12:00:02Z", "id": "three"}',
            '{"ts": "2026-',
            '{"ts": "soon"}',
        ],
    ),
    Format.CSV: (write_csv, [",3,0.5", "2026-01-31T12:00:02Z,three,0.5", "soon,4,0.5"]),
}
WRONG = {
    Format.PARQUET: ".*2.parquet.*column \\[id\\]. Expected Spark type bigint, actual .* BINARY\\.",
    Format.JSON: "Unexpected end of input stream",
    Format.CSV: "CSV header does not conform to the schema. .*",
}
"""What Spark says of the files after the first, in one sentence each."""

COLUMNS = {"": "ts timestamp, id long, x double"}


def collected(stream: DataFrame, place: Path) -> list[Row]:
    """All rows that a stream has now."""
    checkpoint = str(place / "checkpoint")
    writer = stream.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(str(place / "rows")).awaitTermination()
    return stream.sparkSession.read.parquet(str(place / "rows")).collect()


@pytest.mark.parametrize("format", FORMATS)
def test_events_and_what_is_rejected(format: Format, spark: SparkSession, tmp_path: Path) -> None:
    write, lines = FORMATS[format]
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder)
    source = Input(None, str(folder))
    opened = open_folders(spark, [source], None, COLUMNS, tmp_path / "inputs.json")
    assert [f.format for f in opened] == [format]
    events = collected(read_folder(spark, opened[0], "ts", None, 1), tmp_path / "events")
    placed = sorted((r.id, r.x) for r in events if r.ts is not None)
    assert events[0].asDict().keys() == {"ts", "id", "x"}
    assert [i for i, _ in placed] == [1, 2] and placed[0][1] == 2.5 and placed[1][1] is None
    assert len(events) - len(placed) == len(lines)
    rejected = collected(read_rejected(spark, opened, "ts", 1), tmp_path / "rejected")
    assert sorted(r.line for r in rejected) == sorted(lines)
    first, *bad = sorted(folder.iterdir())
    assert {Path(r.file).name for r in rejected} == {first.name}
    assert read_error(spark, opened[0], str(first)) is None
    found = " ".join(read_error(spark, opened[0], str(file)) or "read" for file in bad)
    assert re.fullmatch(WRONG[format], found)


def test_the_columns_are_those_of_the_first_start(spark: SparkSession, tmp_path: Path) -> None:
    folder, kept = tmp_path / "in", tmp_path / "inputs.json"
    folder.mkdir()
    source = Input(None, str(folder))
    with pytest.raises(DataError, match=r"no parquet file yet .* --schema 'ts timestamp"):
        open_folders(spark, [source], None, {}, kept)
    write_json(folder)
    (first,) = open_folders(spark, [source], None, {}, kept)
    assert first.schema["ts"].dataType.simpleString() == "string"  # "soon" is no time
    assert json.loads(kept.read_text())[""]["path"] == str(folder)
    (folder / "1.jsonl").unlink()
    assert open_folders(spark, [source], None, {}, kept) == (first,)
    (given,) = open_folders(spark, [source], None, COLUMNS, kept)
    assert given.schema.simpleString() == "struct<ts:timestamp,id:bigint,x:double>"
    with pytest.raises(OptionError, match="--schema 'ts time stamp' isn't like"):
        open_folders(spark, [source], None, {"": "ts time stamp"}, kept)


def test_only_timestamps_have_a_watermark(spark: SparkSession, tmp_path: Path) -> None:
    source = Input(None, str(tmp_path))
    kept = tmp_path / "kept" / "inputs.json"
    (folder,) = open_folders(spark, [source], None, {"": "n long"}, kept)
    with pytest.raises(OptionError, match="the time column `n` is bigint"):
        read_folder(spark, folder, "n", "10 seconds", None)
    (folder,) = open_folders(spark, [source], None, {"": "day date"}, kept)
    late = read_folder(spark, folder, "day", "10 seconds", None)
    assert late.schema["day"].metadata == {"spark.watermarkDelayMs": 10_000}
