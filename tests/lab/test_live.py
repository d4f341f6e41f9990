"""The page beside a stream, from what a stream leaves in its folders."""

from __future__ import annotations

import json
import re
import stat
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from cepheid.cli.stream.stream_page import ADDRESS, batch_figures, page_beside
from cepheid.cli.stream.stream_status import Totals
from cepheid.errors import OptionError
from cepheid.lab.gate import Gate
from cepheid.lab.journal import FILE, KEPT, Journal, lines
from cepheid.lab.live import Live, committed
from cepheid.lab.pages import live_app
from cepheid.spark.streaming.clock.time import MOVED
from cepheid.spark.streaming.status.reports import status
from tests.cli.running import run, unwrapped
from tests.lab.test_pages import MEAN, TOKEN

TOTALS = {"batches": 1, "events": 7, "matches": 2, "late": 0, "rejected": 1, "future": 0, "shed": 0}


def batch(number: int, **more: Any) -> dict[str, Any]:
    return {"batch": number, "events": 7, "seconds": 0.5, "totals": TOTALS, **more}


def commit(output: Path, number: int, *rows: dict[str, Any], compact: bool = False) -> None:
    """As Spark's sink of files does: the file, then its name in the log."""
    log = output / "_spark_metadata"
    log.mkdir(parents=True, exist_ok=True)
    file = output / f"part {number}.parquet"
    pq.write_table(pa.Table.from_pylist([*rows]), file)
    entry = json.dumps({"path": file.as_uri(), "size": 1, "action": "add"})
    before = [] if not compact else [
        line for p in sorted(log.iterdir()) for line in p.read_text().splitlines()[1:]
    ]  # fmt: skip
    name = f"{number}.compact" if compact else str(number)
    (log / name).write_text("\n".join(["v1", *before, entry]))


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "found"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


def test_batches_and_matches_as_they_come(checkpoint: Path, output: Path) -> None:
    live = Live(checkpoint)
    assert "no batch yet" in live.state()["waiting"]
    journal = Journal(checkpoint, {"output": str(output), "query": "PATTERN A"})
    journal.add(batch(0))
    commit(output, 0, {"id": 1, "n": 5}, {"id": 2, "n": 6})
    state = live.state()
    assert [b["batch"] for b in state["batches"]] == [0]
    assert state["matches"] == [{"id": "2", "n": "6"}, {"id": "1", "n": "5"}]
    (output / "part 9.parquet").write_bytes(b"of a batch that failed")
    commit(output, 1, {"id": 3, "n": 7}, compact=True)
    again = live.state(after=state["batches"][-1]["at"])
    assert again["batches"] == [] and [m["id"] for m in again["matches"]] == ["3", "2", "1"]
    assert [p.name for p in committed(output)] == ["part 0.parquet", "part 1.parquet"]


def test_it_goes_on_after_a_restart(checkpoint: Path, output: Path) -> None:
    live = Live(checkpoint)
    run_ = {"output": str(output), "query": "PATTERN A"}
    first = Journal(checkpoint, run_)
    first.add(batch(0))
    first.end()
    assert live.state()["ended"]
    second = Journal(checkpoint, run_)
    second.add(batch(1))
    state = live.state()
    assert (state["runs"], state["ended"]) == (2, False)
    assert [b["batch"] for b in state["batches"]] == [0, 1]


def test_matches_by_rule(checkpoint: Path, output: Path) -> None:
    Journal(checkpoint, {"output": str(output), "query": ""})
    commit(output, 0, *({"rule": name, "match": "{}"} for name in ("big", "fast", "big")))
    rules = Live(checkpoint).state()["rules"]
    assert rules == [{"name": "big", "matches": 2}, {"name": "fast", "matches": 1}]


def test_the_journal_stays_small(checkpoint: Path) -> None:
    journal = Journal(checkpoint, {"output": "found", "query": ""})
    for number in range(2 * KEPT + 10):
        journal.add(batch(number))
    kept = lines(checkpoint)
    assert KEPT <= len(kept) <= 2 * KEPT and kept[-1]["batch"] == 2 * KEPT + 9
    with (checkpoint / FILE).open("a") as file:
        file.write('{"kind": "batch", "at')  # it is being written
    assert len(lines(checkpoint)) == len(kept)
    state = Live(checkpoint).state()
    assert state["run"]["output"] == "found" and len(state["batches"]) == 400


def test_figures_of_a_batch() -> None:
    report = {
        "batchId": 3,
        "batchDuration": 500,
        "eventTime": {"max": "2026-01-31T12:00:05.000Z", "watermark": "2026-01-31T12:00:00.000Z"},
        "observedMetrics": {"cepheid read x": {"events": 7, "rejected": 1, "future": 0}},
    }
    totals = Totals()
    totals.add(status(report))
    figures = batch_figures(report, totals)
    assert (figures["batch"], figures["events"], figures["seconds"]) == (3, 7, 0.5)
    assert figures["newest"] - figures["watermark"] == 5000
    assert figures["totals"]["rejected"] == 1
    text = str(np.datetime64(MOVED + 17, "ms"))  # how Spark has an integer time of 17
    moved = batch_figures({**report, "eventTime": {"max": text}}, Totals(integers=True))
    assert moved["newest"] == 17


def test_over_http(checkpoint: Path, output: Path) -> None:
    journal = Journal(checkpoint, {"output": str(output), "query": MEAN})
    journal.add(batch(0))
    commit(output, 0, {"s": MEAN})
    with TestClient(live_app(Live(checkpoint), TOKEN), base_url="http://127.0.0.1") as client:
        assert client.get(f"/{TOKEN}/").status_code == 200
        for after in ("", "?after=0", "?after=x", "?after=-1", "?after=" + "9" * 40):
            state = client.get(f"/{TOKEN}/state{after}").json()
            assert state["matches"] == [{"s": MEAN}]
        assert client.get("/state").status_code == 403
        assert client.get(f"/{TOKEN}/state", headers={"host": "evil.example"}).status_code == 403


def test_the_page_keeps_its_address(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = []
    for _ in range(2):
        with page_beside(checkpoint, True):
            place = capsys.readouterr().err.split()[-1]
            with urllib.request.urlopen(place) as answer:
                assert b"Cepheid stream" in answer.read()
        places.append(place)
    assert places[0] == places[1]
    assert stat.S_IMODE((checkpoint / ADDRESS).stat().st_mode) == 0o600
    with page_beside(checkpoint, False):
        assert capsys.readouterr().err == ""


def test_what_the_command_refuses(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OptionError, match="there is no checkpoint"):
        Live(checkpoint / "none")
    wrong = {
        "leave out the query": ["lab", "-q", "PATTERN A", "--stream", str(checkpoint)],
        "there is no checkpoint": ["lab", "--stream", str(checkpoint / "none")],
        "one --input": ["lab", "--input", "a=x.csv", "--input", "b=y.csv"],
        "leave out --start": ["lab", "--input", "x.csv", "--time", "t", "--start", "s"],
        "not standard input": ["lab", "--input", "-"],
        "--page is for --stream": ["run", "-q", "PATTERN A", "-i", "x", "--time", "t", "--page"],
    }
    for sentence, command in wrong.items():
        assert run(*command) == 2
        assert sentence in unwrapped(capsys.readouterr().err), sentence


def test_a_link_of_another_lab(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address has this lab's port and token, and that one's situation."""
    opened: list[str] = []
    monkeypatch.setattr("cepheid.lab.server.serve", lambda app, at, started: started())
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert run("lab", "--link", "http://127.0.0.1:1/other/#q-_8") == 0
    (place,) = opened
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/#q-_8", place)
    assert capsys.readouterr().out == f"{place}\n"


def test_the_command_shows_a_file_with_a_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that is wrong: the page is there to mend it."""
    apps: list[Gate] = []
    monkeypatch.setattr("cepheid.lab.server.serve", lambda app, at, started: apps.append(app))
    events = tmp_path / "events.csv"
    events.write_text("at,kind,x\n" + "".join(f"{n},{'AB'[n % 2]},{n}\n" for n in range(50)))
    (tmp_path / "q.cep").write_text("PATTERN A a ; B b WHERE b.y > 1 WITHIN 5")
    options = ["--input", events, "--time", "at", "--type", "kind", "--rows", "20"]
    assert run("lab", tmp_path / "q.cep", *options, "--no-browser") == 0
    assert run("lab", *options, "--no-browser") == 0
    monkeypatch.setattr("cepheid.lab.pages.Desk.open", lambda _: None)
    starts = []
    for app in apps:
        place = f"/{app._token.decode()}/start"
        with TestClient(app, base_url="http://localhost") as client:
            starts.append(client.get(place).json())
    wrong, none = (start["situation"] for start in starts)
    assert wrong["query"].endswith("WITHIN 5") and wrong["time"] == "at"
    assert wrong["sample"] == "the first 20 of 50 events"
    assert [c["name"] for c in wrong["events"]["columns"]] == ["at", "kind", "x"]
    assert none["query"] == "PATTERN A a ; B b\nWITHIN 10"
    assert [w["name"] for w in starts[0]["words"]["types"]] == ["A", "B"]
