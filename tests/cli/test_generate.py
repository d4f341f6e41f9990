from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cepheid.workloads import fraud, rfid, stocks, weblog
from tests.cli.running import run


@pytest.mark.parametrize("name", ["stocks", "weblog", "fraud", "rfid"])
def test_parquet_has_the_workload(name: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / "events.parquet"
    assert run("generate", name, "--rows", "2_000", "--output", str(path), "--seed", "5") == 0
    workload = {"stocks": stocks, "weblog": weblog, "fraud": fraud, "rfid": rfid}[name]
    assert pq.read_table(path) == workload.generate(2000, 5)
    assert [file.name for file in path.parent.iterdir()] == ["events.parquet"]


def test_csv_and_json_by_name_and_by_option(tmp_path: Path) -> None:
    events = stocks.generate(50, 1).to_pylist()
    as_csv, as_json, odd = tmp_path / "e.csv", tmp_path / "e.jsonl", tmp_path / "events.txt"
    common = ("generate", "stocks", "--rows", "50", "--seed", "1", "--output")
    assert run(*common, str(as_csv)) == 0
    assert run(*common, str(as_json)) == 0
    assert run(*common, str(odd), "--format", "csv") == 0
    rows = list(csv.DictReader(as_csv.read_text().splitlines()))
    assert [(int(r["id"]), r["name"], float(r["price"])) for r in rows] == [
        (e["id"], e["name"], e["price"]) for e in events
    ]
    assert [json.loads(line) for line in as_json.read_text().splitlines()] == events
    assert odd.read_text() == as_csv.read_text()


def test_json_has_times_and_nulls(tmp_path: Path) -> None:
    path = tmp_path / "rfid.json"
    assert run("generate", "rfid", "--rows", "300", "--output", str(path)) == 0
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    truth = rfid.generate(300).to_pylist()
    assert [row["ts"] for row in rows] == [row["ts"].isoformat() for row in truth]
    assert [row["shelf_id"] for row in rows] == [row["shelf_id"] for row in truth]


def test_knobs_of_stocks(tmp_path: Path) -> None:
    path = tmp_path / "stocks.parquet"
    knobs = ("--rate", "IBM=1", "--rate", "Sun = 3", "--selectivity", "IBM > Sun = 1/4")
    assert run("generate", "stocks", "--rows", "1000", "--output", str(path), *knobs) == 0
    assert pq.read_table(path) == stocks.generate(
        1000, rates={"IBM": 1, "Sun": 3}, selectivity={("IBM", "Sun"): 0.25}
    )


@pytest.mark.parametrize(
    "knobs",
    [
        ("--rate", "IBM"),
        ("--rate", "IBM=fast"),
        ("--rate", "=1"),
        ("--selectivity", "IBM=1"),
        ("--selectivity", "IBM>Sun=1/0"),
        ("--selectivity", "IBM>Sun=3"),
        ("--seed", "-1"),
        ("--rows", "many"),
        ("--format", "xml"),
    ],
)
def test_wrong_options(
    knobs: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "stocks.parquet"
    assert run("generate", "stocks", "--rows", "10", "--output", str(path), *knobs) == 2
    error = capsys.readouterr().err
    assert "Invalid value" in error and "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "events.parquet"
    assert run("generate", "rfid", "--rows", "10", "--output", str(target)) == 2
    error = capsys.readouterr().err
    assert "error: " in error and str(tmp_path / "file") in error and "Traceback" not in error


def test_a_run_cut_short_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Iterator[pa.RecordBatch]:
        yield rfid.generate(10).to_batches()[0]
        raise RuntimeError("the power went out")

    monkeypatch.setattr("cepheid.cli.commands.generate.rfid_workload.batches", broken)
    (tmp_path / "kept.parquet").write_text("what was there before")
    output = ("--output", str(tmp_path / "kept.parquet"), "--overwrite")
    assert run("generate", "rfid", "--rows", "10", *output) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["kept.parquet"]
    assert (tmp_path / "kept.parquet").read_text() == "what was there before"
