"""The user's files: what the commands read, what they write, and what they never touch."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import run, unwrapped

QUERY = "PATTERN a ; b WHERE b.x > a.x WITHIN 2 RETURN a.x AS low, b.x AS high"
EVENTS = "ts,x\n1,5\n2,7\n3,6\n"
# 5 at 1, then 7 at 2; nothing else rises within 2.
FOUND = [{"low": 5, "high": 7, "match_start": 1, "match_end": 2}]
FOUND_CSV = '"low","high","match_start","match_end"\n5,7,1,2\n'


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "q.cep").write_text(QUERY)
    (tmp_path / "e.csv").write_text(EVENTS)
    (tmp_path / "days").mkdir()
    (tmp_path / "days" / "1.csv").write_text(EVENTS)
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


COMMON = ("--time", "ts")
HERE = ("run", "q.cep", "-i", "e.csv", *COMMON)
FOLDER = ("run", "q.cep", "-i", "days", *COMMON)
PATTERN = ("run", "q.cep", "-i", "*.csv", *COMMON)
GENERATE = ("generate", "rfid", "--rows", "10")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ((*HERE, "-o", "old.csv"), "--output old.csv: the file exists; --overwrite replaces it"),
        ((*HERE, "-o", "e.csv", "--overwrite"), "this is read by the command, and is never"),
        ((*HERE, "-o", "q.cep", "--format", "csv", "--overwrite"), "this is read by the command"),
        ((*HERE, "-o", "link.csv", "--overwrite"), "this is read by the command"),
        ((*HERE, "-o", "/dev/stdout"), "--output - writes to standard output"),
        ((*HERE, "-o", "days"), "--output days: this is a folder; name a file"),
        ((*HERE, "-o", "x.xlsx"), "x.xlsx: the ending .xlsx is unknown. Known are .parquet, .csv"),
        ((*HERE, "-o", "s3a://bank/x"), "only Spark writes there, --runtime spark"),
        ((*HERE, "-o", "a.csv", "--rejected", "a.csv"), "--output a.csv is --rejected a.csv"),
        ((*HERE, "--rejected", "e.csv", "--overwrite"), "--rejected e.csv: this is read by"),
        ((*HERE, "-o", "-", "--format", "parquet"), "--output - writes text: --format csv, tsv"),
        ((*HERE, "-o", "stats.json", "--stats", "stats.json", "--overwrite"), "this is read by"),
        ((*FOLDER, "-o", "days/found.csv"), "this is inside days, all of which is read"),
        ((*PATTERN, "-o", "found.csv"), "the name fits *.csv, which is read"),
        ((*FOLDER, "--runtime", "spark", "-o", "days", "--overwrite"), "this is read by the comm"),
        ((*FOLDER, "--runtime", "spark", "-o", "days/new"), "this is inside days"),
        ((*HERE, "--runtime", "spark", "-o", ".", "--overwrite"), "the working folder is never"),
        ((*HERE, "--runtime", "spark", "-o", "/", "--overwrite"), "the working folder is never"),
        ((*HERE, "--runtime", "spark", "-o", "notes", "--overwrite"), "the folder holds a.txt, wh"),
        ((*HERE, "--runtime", "spark", "-o", "old.csv"), "a folder is written, and this isn't one"),
        ((*HERE, "--runtime", "spark", "-o", "-"), "--output -: Spark writes folders"),
        ((*HERE, "--runtime", "spark", "-o", "x.xlsx"), "the ending .xlsx is unknown"),
        ((*HERE, "--runtime", "spark", "--rejected", "notes"), "--rejected notes: the folder hol"),
        ((*HERE, "--runtime", "spark", "-o", "s3a://b/x", "--overwrite"), "--overwrite can't look"),
        ((*GENERATE, "-o", "old.csv"), "--output old.csv: the file exists"),
        ((*GENERATE, "-o", "x.xlsx"), "the ending .xlsx is unknown"),
        (("explain", "q.cep", "-o", "old.txt"), "--output old.txt: the file exists"),
        (("explain", "q.cep", "-o", "q.cep", "--format", "text", "--overwrite"), "this is read"),
        (("analyze", "q.cep", "-i", "e.csv", *COMMON, "-o", "stats.json"), "the file exists"),
        (("analyze", "q.cep", "-i", "e.csv", *COMMON, "-o", "e.csv", "--overwrite"), "is read by"),
    ],
)
def test_no_file_of_the_users_is_touched(
    command: tuple[str, ...], reason: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "old.csv").write_text("old")
    (place / "old.txt").write_text("old")
    (place / "stats.json").write_text("{}")
    (place / "link.csv").symlink_to("e.csv")
    (place / "notes").mkdir()
    (place / "notes" / "a.txt").write_text("mine")
    before = contents(place)
    assert run(*command) == 2
    error = unwrapped(capsys.readouterr().err)
    assert reason in error and "Traceback" not in error
    assert contents(place) == before


def test_several_outputs_are_all_written_or_none(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "low.cep").write_text("INTO Low PATTERN a WHERE a.x < 6 WITHIN 2 RETURN a.x AS x")
    command = ("run", "q.cep", "low.cep", "-i", "e.csv", *COMMON, "-o", "found", "--format", "csv")
    (place / "found").mkdir()
    (place / "found" / "Low.csv").write_text("old")
    (place / "found" / "mine.txt").write_text("mine")
    before = contents(place)
    assert run(*command) == 2
    assert "found/Low.csv: the file exists; --overwrite" in unwrapped(capsys.readouterr().err)
    assert contents(place) == before
    assert run(*command, "--overwrite") == 0
    found = contents(place / "found")
    assert found.keys() == {"q.csv", "Low.csv", "mine.txt"}
    assert (found["q.csv"].decode(), found["mine.txt"]) == (FOUND_CSV, b"mine")
    (place / "low.cep").write_text("INTO `a/b` PATTERN a WITHIN 2 RETURN a.x AS x")
    assert run(*command, "--overwrite") == 2
    assert "the label `a/b` can't be the name of a file" in capsys.readouterr().err


def test_a_failed_run_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The matches aren't written either, if the dead letters can't be."""
    before = contents(place)
    monkeypatch.setattr("cepheid.cli.batch.run_local.write_rejected", lambda *_: 1 / 0)
    assert run(*HERE, "-o", "new/found.csv", "--rejected", "new/dead.csv") == 1
    assert contents(place) == before and not (place / "new").exists()


# ── standard input and output ────────────────────────────────────────────────


def test_matches_on_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(*HERE, "-o", "-") == 0
    captured = capfd.readouterr()
    assert captured.out == FOUND_CSV
    assert "events/s" in captured.err
    assert run(*HERE, "-o", "-", "--format", "json") == 0
    assert [json.loads(line) for line in capfd.readouterr().out.splitlines()] == FOUND


def test_events_on_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("generate", "stocks", "--rows", "3", "-o", "-") == 0
    rows = list(csv.DictReader(capfd.readouterr().out.splitlines()))
    assert [row["ts"] for row in rows] == ["0", "1", "2"]


def test_events_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("run", "-q", QUERY, "-i", "-", *COMMON, "-o", "found.csv")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(EVENTS.encode())))
    assert run(*command, "--input-format", "csv") == 0
    assert Path("found.csv").read_text() == FOUND_CSV
    assert run(*command) == 2
    assert "--input - needs --input-format" in unwrapped(capsys.readouterr().err)
    header = EVENTS.splitlines()[0].encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(header)))
    assert run(*command, "--input-format", "csv", "--overwrite") == 0
    assert "\nstandard input has no events" in capsys.readouterr().err


# ── a query without a file ───────────────────────────────────────────────────


def test_a_query_without_a_file(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("run", "-q", QUERY, "-i", "e.csv", *COMMON, "-o", "-") == 0
    assert capfd.readouterr().out == FOUND_CSV
    assert run("check", "-q", QUERY) == 0
    assert capfd.readouterr().out == "query: OK\n"
    assert run("check", "-q", "PATTERN") == 2
    assert "query:1:8" in capfd.readouterr().err
    assert run("explain", "-q", QUERY) == 0
    assert "window: 2" in capfd.readouterr().out
    assert run("analyze", "-q", QUERY, "-i", "e.csv", *COMMON) == 0
    assert "selectivities" in capfd.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ("run", "-i", "e.csv", *COMMON),
        ("run", "q.cep", "-q", QUERY, "-i", "e.csv", *COMMON),
        ("check",),
        ("check", "q.cep", "-q", QUERY),
        ("explain",),
        ("explain", "q.cep", "-q", QUERY),
        ("analyze", "-i", "e.csv", *COMMON),
    ],
)
def test_there_is_one_query(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*command) == 2
    error = unwrapped(capsys.readouterr().err)
    assert "name the file of a query, or write the query itself: -q 'PATTERN" in error


# ── endings ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.csv.gz", gzip.compress(EVENTS.encode())),
        ("e.tsv", EVENTS.replace(",", "\t").encode()),
        ("e.ndjson", b'{"ts":1,"x":5}\n{"ts":2,"x":7}\n{"ts":3,"x":6}\n'),
        ("e.jsonl.gz", gzip.compress(b'{"ts":1,"x":5}\n{"ts":2,"x":7}\n{"ts":3,"x":6}\n')),
    ],
)
@pytest.mark.parametrize("way", ["file", "folder", "pattern"])
def test_endings(
    name: str, content: bytes, way: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (place / "in").mkdir()
    (place / "in" / name).write_bytes(content)
    (place / "in" / "_SUCCESS").touch()
    path = {"file": f"in/{name}", "folder": "in", "pattern": "in/e*"}[way]
    assert run("run", "q.cep", "-i", path, *COMMON, "-o", "-") == 0
    assert capfd.readouterr().out == FOUND_CSV


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("x.xlsx", "x.xlsx: the ending .xlsx is unknown"),
        ("mixed", "mixed has files of several formats, such as"),
        ("nothing*", "nothing*: no file has a name that fits"),
        ("empty", "empty: there is no file in this folder"),
    ],
)
def test_what_cannot_be_read(
    path: str, reason: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "x.xlsx").touch()
    (place / "empty").mkdir()
    (place / "mixed").mkdir()
    for name in ("a.csv", "b.json"):
        (place / "mixed" / name).touch()
    assert run("run", "q.cep", "-i", path, *COMMON) == 2
    error = unwrapped(capsys.readouterr().err)
    assert reason in error and "Traceback" not in error


def test_a_folder_that_may_not_be_written_to(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the system answers: it lets root write anywhere, so permissions alone wouldn't do."""
    access = os.access
    denied = (place / "days").resolve()
    monkeypatch.setattr(os, "access", lambda path, mode: path != denied and access(path, mode))
    assert run(*HERE, "-o", "days/found.csv") == 2
    assert "you may not write in" in capsys.readouterr().err
