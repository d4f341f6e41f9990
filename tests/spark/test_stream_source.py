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

from cepheid.cli.arguments import InputSource
from cepheid.cli.stream.stream_columns import Folder, open_folders
from cepheid.cli.stream.stream_source import read_error, read_folder, read_rejected
from cepheid.errors import DataError, OptionError
from cepheid.files.bad_rows import BadRows
from cepheid.files.events import EventFiles, InputOptions
from cepheid.files.formats import Format
from cepheid.files.time_format import TimeFormat
from cepheid.options import Options
from cepheid.query import Query

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
    (folder / "2.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode())[:20])


MISFIT = "`id` is 'three', not an integer"
FORMATS = {
    Format.PARQUET: (write_parquet, {'{"ts":null,"id":3,"x":0.5}': "`ts` is empty"}),
    Format.JSON: (
        write_json,
        {
            '{"ts": null, "id": 3, "x": 0.5}': "`ts` is empty",
            '{"ts": "2026-01-31T12:00:02Z", "id": "three"}': MISFIT,
            '{"ts": "2026-': "it isn't a JSON object",
            '{"ts": "soon"}': "`ts` is 'soon', not a time",
        },
    ),
    Format.CSV: (
        write_csv,
        {
            ",3,0.5": "`ts` is empty",
            "2026-01-31T12:00:02Z,three,0.5": MISFIT,
            "soon,4,0.5": "`ts` is 'soon', not a time",
        },
    ),
}
CUT = "Unexpected end of input stream"
WRONG = {
    Format.PARQUET: ".*2.parquet.*column \\[id\\]. Expected Spark type bigint, actual .* BINARY\\.",
    Format.JSON: CUT,
    Format.CSV: CUT,
}
"""What Spark says of the files after the first, in one sentence each."""

COLUMNS = "ts timestamp, id long, x double"
READS = Query("PATTERN a ; b WHERE b.x > a.x WITHIN 10 seconds RETURN a.id")
OPTIONS = Options(time="ts")


def collected(stream: DataFrame, place: Path) -> list[Row]:
    """All rows that a stream has now."""
    checkpoint = str(place / "checkpoint")
    writer = stream.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(str(place / "rows")).awaitTermination()
    return stream.sparkSession.read.parquet(str(place / "rows")).collect()


@pytest.mark.some(1)
@pytest.mark.parametrize("format", FORMATS)
def test_events_and_what_is_rejected(format: Format, spark: SparkSession, tmp_path: Path) -> None:
    write, lines = FORMATS[format]
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder)
    source = InputSource(None, str(folder), declared=COLUMNS)
    (opened,) = open_folders(spark, [source], [READS], OPTIONS, tmp_path / "inputs.json")
    assert opened.format is format
    events = collected(read_folder(spark, opened, None, 1), tmp_path / "events")
    placed = sorted((r.id, r.x) for r in events if r.ts is not None)
    assert events[0].asDict().keys() == {"ts", "id", "x"}
    assert [i for i, _ in placed] == [1, 2] and placed[0][1] == 2.5 and placed[1][1] is None
    assert len(events) - len(placed) == len(lines)
    rejected = collected(read_rejected(spark, [opened], 1, whole=False), tmp_path / "rejected")
    assert {json_or_line(r.line): r.reason for r in rejected} == {
        json_or_line(line): reason for line, reason in lines.items()
    }
    first, *bad = sorted(folder.iterdir())
    assert {r.file for r in rejected} == {str(first)}
    assert read_error(spark, opened, str(first)) is None
    found = " ".join(read_error(spark, opened, str(file)) or "read" for file in bad)
    assert re.fullmatch(WRONG[format], found)


def json_or_line(line: str) -> str:
    """Spark leaves NULL out of the rows of Parquet."""
    try:
        found = json.loads(line)
    except ValueError:
        return line
    return json.dumps({name: value for name, value in found.items() if value is not None})


# ── as in a local run ────────────────────────────────────────────────────────

NUMBERS = "t,x,name\n" + "".join(f"31.01.2026 12:{n:02},{n},Jörg\n" for n in range(40))
BAD = "31.01.2026 13:00,n.n.,Jörg\nsoon,5,Jörg\n31.01.2026 13:01,6\n31.01.2026 13:02,7,Jörg\n"
DIFFER = Query("PATTERN a ; b WHERE b.x != a.x WITHIN 10 minutes RETURN a.name")


@pytest.mark.parametrize("bad_rows", [BadRows.REJECT, BadRows.KEEP, BadRows.NULL])
def test_rows_of_a_stream_are_those_of_a_local_run(
    bad_rows: BadRows, spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "1.csv").write_bytes((NUMBERS + BAD).encode("latin-1"))
    (folder / "deep" / "2.csv").write_text("name,more,t,x\nAnna,1,31.01.2026 14:00,7\n")
    (folder / "3.csv").write_text("t,y,name\n31.01.2026 14:00,7,Anna\n")
    form, encoding = "%d.%m.%Y %H:%M", "latin-1"
    given = InputOptions("t", pa.schema([]), TimeFormat.of(form), encoding, bad_rows)
    local = EventFiles(str(folder), Format.CSV, given)
    wanted = pa.schema([f for f in local.schema if f.name in ("t", "x", "name")])
    here = local.read(wanted)
    source = InputSource(None, str(folder), time_format=form, encoding=encoding, bad_rows=bad_rows)
    (opened,) = open_folders(spark, [source], [DIFFER], Options(time="t"), tmp_path / "inputs.json")
    assert opened.form.columns == wanted
    kind = pa.string() if bad_rows is BadRows.KEEP else pa.int64()
    assert wanted.field("x").type == kind
    events = collected(read_folder(spark, opened, None, None), tmp_path / "events")
    placed = sorted((r.t, str(r.x), r["name"]) for r in events if r.t is not None)
    rows = here.table.to_pylist()
    assert placed == sorted((r["t"].replace(tzinfo=None), str(r["x"]), r["name"]) for r in rows)
    assert len(events) - len(placed) == here.rejected.num_rows
    rejected = collected(read_rejected(spark, [opened], None, whole=False), tmp_path / "rejected")
    known = [tuple(row.values()) for row in here.rejected.to_pylist()]
    assert sorted((r.file, r.number, r.line, r.reason) for r in rejected) == sorted(known)


# ── columns ──────────────────────────────────────────────────────────────────


def first_start(
    spark: SparkSession, folder: Path, query: Query | None = READS, declared: str | None = None
) -> Folder:
    source = InputSource(None, str(folder), declared=declared)
    queries = [] if query is None else [query]
    (opened,) = open_folders(spark, [source], queries, OPTIONS, folder.parent / "inputs.json")
    return opened


def test_columns_are_those_of_most_files(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first files by name are the bad ones."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "0.csv").write_text("what,is,this\n1,2,3\n")
    (folder / "1.csv").write_bytes(b"\xff\xfe\0\0")
    (folder / "2.csv").write_text("ts,id,x\n2026-01-31,one,?\n")
    (folder / "3.csv.gz").write_bytes(gzip.compress(b"ts,id,x\n" * 99)[:15])
    for n in (4, 5, 6):
        (folder / f"{n}.csv").write_text(f"ts,id,x\n2026-01-31T12:00:0{n}Z,{n},{n}.5\n")
    opened = first_start(spark, folder)
    assert opened.form.columns == SCHEMA and opened.header == ("ts", "id", "x")
    told = capsys.readouterr().err
    assert f"{folder}: the columns are those of most of 7 files" in told
    assert "--schema 'ts timestamp, id long, x double'" in told
    assert "`id` is long, but not in 1 of 4 cells, such as 'one'" in told
    # All columns, for rules that may come to read them; but not those of a few files.
    kept = tmp_path / "inputs.json"
    assert first_start(spark, folder, None).form.columns == SCHEMA
    assert not capsys.readouterr().err
    kept.unlink()
    assert first_start(spark, folder, declared=COLUMNS).form.columns == SCHEMA
    assert not capsys.readouterr().err


def test_columns_are_those_of_most_parquet_files(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "0.parquet").write_text("this is none")
    other = SCHEMA.set(1, pa.field("id", pa.string()))
    pq.write_table(other.empty_table(), folder / "1.parquet")
    pq.write_table(SCHEMA.remove(2).empty_table(), folder / "2.parquet")
    pq.write_table(SCHEMA.empty_table(), folder / "3.parquet")
    opened = first_start(spark, folder)
    assert opened.form.columns == SCHEMA and opened.stored is not None
    assert opened.stored.simpleString() == "struct<ts:timestamp,id:bigint,x:double>"
    assert "`id` is long, but not in 1.parquet" in capsys.readouterr().err


def test_the_columns_are_those_of_the_first_start(spark: SparkSession, tmp_path: Path) -> None:
    folder, kept = tmp_path / "in", tmp_path / "inputs.json"
    folder.mkdir()
    with pytest.raises(DataError, match=r"no parquet file yet .* --schema 'ts timestamp"):
        first_start(spark, folder)
    write_json(folder)
    first = first_start(spark, folder)
    assert first.form.columns == SCHEMA  # though "soon" is no time, and "three" no number
    assert json.loads(kept.read_text())[""]["path"] == str(folder)
    (folder / "1.jsonl").unlink()
    assert first_start(spark, folder) == first and first.named
    given = first_start(spark, folder, declared="x string")
    assert given.form.columns == SCHEMA.set(2, pa.field("x", pa.string()))
    assert first_start(spark, folder) == given
    with pytest.raises(OptionError, match="--schema 'ts time stamp' isn't like"):
        first_start(spark, folder, declared="ts time stamp")


def test_a_checkpoint_from_before_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """Version 0.1 kept the types that Spark had inferred."""
    folder = tmp_path / "in"
    folder.mkdir()
    fields = [("ts", "string"), ("id", "integer"), ("x", "double")]
    schema = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields]
    known = {"": {"format": "csv", "schema": {"type": "struct", "fields": schema}}}
    (tmp_path / "inputs.json").write_text(json.dumps(known))
    opened = first_start(spark, folder)
    assert opened.form.columns == SCHEMA.set(1, pa.field("id", pa.int32()))
    assert opened.format is Format.CSV and opened.stored is None


def test_only_timestamps_have_a_watermark(spark: SparkSession, tmp_path: Path) -> None:
    kept = tmp_path / "kept" / "inputs.json"
    source = InputSource(None, str(tmp_path), declared="n long, day date")
    each = Query("PATTERN a RETURN a.n AS n")
    (folder,) = open_folders(spark, [source], [each], Options(time="n"), kept)
    with pytest.raises(OptionError, match="the time column `n` is bigint"):
        read_folder(spark, folder, "10 seconds", None)
    (folder,) = open_folders(spark, [source], [each], Options(time="day"), kept)
    late = read_folder(spark, folder, "10 seconds", None)
    assert late.schema["day"].metadata == {"spark.watermarkDelayMs": 10_000}
