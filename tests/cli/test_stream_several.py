"""`cepheid run --stream` with several queries, on matches that were worked out by hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cepheid.cli.output.failure import INTERRUPTED, SET_ASIDE
from cepheid.cli.stream.stream_status import Totals, wrapped
from cepheid.cli.stream.stream_watch import WatchedOutput
from cepheid.cli.stream.waiting_files import WaitingFiles
from cepheid.files.guard import mark_stream
from tests.cli.running import run, unwrapped
from tests.cli.test_stream import COMMON, ON_ONE_CORE, PLACES, add_parquet, cut

PAIR = """\
INTO Pair PATTERN A a ; B b WHERE [id] WITHIN 10 seconds
RETURN a.id AS id, a.x AS x, b.x AS y
"""
AFTER = """\
PATTERN Pair p ; C c WHERE p.id = c.id AND c.x > p.y WITHIN 20 seconds
RETURN p.id AS id, p.x AS x, c.x AS z
"""
FILES = ("after.cep", "pair.cep")
SECONDS = 240


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "pair.cep").write_text(PAIR)
    (tmp_path / "after.cep").write_text(AFTER)
    return tmp_path


# ── used wrongly ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((*FILES, "--timeouts", "late"), "--timeouts is for a single query"),
        ((*FILES, "--page"), "--page is for a single query, or a set of rules"),
        ((*FILES, "--no-watch"), "--no-watch is for a set of rules"),
        (("pair.cep", "other/Pair.cep"), "two outputs would have the same name: label the queries"),
        (("pair.cep", "other"), "other is a folder of rules: run it alone"),
        ((*FILES, "--param", "low=3"), "no query has a parameter `:low`"),
        (("pair.cep", "pair.cep"), "two outputs would have the same name: label the queries"),
    ],
)
def test_what_makes_no_sense(
    arguments: tuple[str, ...], text: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "other").mkdir()
    (place / "other" / "Pair.cep").write_text("PATTERN A a ; B b WITHIN 5 seconds")
    assert run("run", *arguments, *COMMON, *PLACES) == 2
    assert text in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not (place / "state").exists()


@pytest.mark.parametrize(
    ("begun", "given", "text"),
    [
        ("queries/matches", FILES, "state is the checkpoint of a query, and this is several quer"),
        ("queries/outputs", FILES[1:], "state is the checkpoint of several queries, and this is a"),
    ],
)
def test_the_checkpoint_is_of_the_same_kind(
    begun: str, given: tuple[str, ...], text: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark_stream(place / "state")
    (place / "state" / begun).mkdir(parents=True)
    assert run("run", *given, *COMMON, *PLACES) == 2
    assert text in capsys.readouterr().err


# ── what is shown ────────────────────────────────────────────────────────────


def test_each_query_has_a_line(tmp_path: Path) -> None:
    waiting = WaitingFiles([], tmp_path)
    lines = [WatchedOutput(t, t, Totals(), waiting).line(0) for t in ("Pair: ", "after: ")]
    first, second = wrapped("\n".join(lines), 1000).splitlines()
    assert first.startswith("Pair: batch 0 · 0 events") and second.startswith("after: batch 0")


# ── on Spark ─────────────────────────────────────────────────────────────────


def command(*more: str) -> list[str]:
    python = [sys.executable, "-m", "cepheid.cli", "run", *FILES]
    return [*python, *COMMON, *PLACES, *ON_ONE_CORE, *more]


def finished() -> subprocess.CompletedProcess[str]:
    """The command with the files that are there."""
    return subprocess.run(command("--trigger", "once"), capture_output=True, text=True)


class Stream:
    """The command, while it runs."""

    def __init__(self, place: Path) -> None:
        self.log = place / "log"
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(
                command(), stdout=file, stderr=file, start_new_session=True
            )

    def wait(self, seen: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS
        while not seen() and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)

    def kill(self, number: signal.Signals) -> int:
        """As the terminal or the kernel does: the JVM and its workers, too."""
        os.killpg(self.process.pid, number)
        return self.process.wait(SECONDS)


def committed(folder: Path) -> list[tuple[int, ...]]:
    """The rows of the files that Spark has committed, without their times."""
    commits = [c for c in (folder / "_spark_metadata").glob("[0-9]*") if c.suffix != ".compact"]
    paths = [
        json.loads(line)["path"].removeprefix("file://")
        for commit in commits
        for line in commit.read_text().splitlines()[1:]
    ]
    rows = [row for path in paths for row in pq.read_table(path).to_pylist()]
    return sorted(tuple(v for k, v in row.items() if not k.startswith("match")) for row in rows)


def letters(folder: Path) -> list[tuple[str, int]]:
    """The reasons of the rows that were left out, and their ids."""
    lines = [line for file in folder.iterdir() for line in file.read_text().splitlines()]
    return [(letter["reason"], letter["row"]["id"]) for letter in map(json.loads, lines)]


def offsets(place: Path) -> Iterator[Path]:
    return (place / "state/queries/outputs").glob("*/offsets/[0-9]*")


@pytest.mark.slow
def test_queries_that_read_each_other_resume_together(place: Path) -> None:
    add_parquet(place / "in", "1.parquet", (0, "A", 1, 1), (1, "B", 1, 6), (2, "A", 2, 3))
    first = Stream(place)
    first.wait(lambda: first.log.read_text().count(": batch 1 ·") >= 2)
    assert first.kill(signal.SIGINT) == INTERRUPTED, first.log.read_text()
    told = unwrapped(first.log.read_text())
    assert "after: stopped after " in told and "Pair: stopped after " in told
    assert "matches in out/Pair.parquet (parquet)" in told
    assert told.endswith("resume with the same command")

    # Killed in the middle of a batch, whichever it is, and then once more before any.
    late = (1, "A", 9, 1)
    add_parquet(place / "in", "2.parquet", late, (3, "C", 1, 9), (4, "B", 2, 7), (5, "C", 2, 7))
    second, known = Stream(place), len(list(offsets(place)))
    second.wait(lambda: len(list(offsets(place))) > known)
    second.kill(signal.SIGKILL)
    add_parquet(place / "in", "3.parquet", (6, "C", 1, 2), (8, "C", 2, 8), (200, "D", 0, 0))
    cut(add_parquet(place / "in", "4.parquet", (201, "D", 0, 0)))

    done = finished()
    assert done.returncode == SET_ASIDE, done.stderr
    assert "in/4.parquet to its end: " in done.stderr
    assert (place / "state/rejected/files.jsonl").read_text().count("4.parquet") == 1
    # Whatever the watermark decides, which is that of the last event before this batch.
    again = add_parquet(place / "in", "5.parquet", (400, "D", 0, 0))
    assert again.exists()
    assert finished().returncode == 0
    assert sorted(p.name for p in (place / "out").glob("*.parquet")) == [
        "Pair.parquet",
        "after.parquet",
    ]
    assert committed(place / "out/Pair.parquet") == [(1, 1, 6), (2, 3, 7)]
    assert committed(place / "out/after.parquet") == [(1, 1, 9), (2, 3, 8)]
    assert letters(place / "state/rejected/rows/Pair") == [("late", 9)]
    assert letters(place / "state/rejected/rows/after") == [("late", 9)]

    (place / "pair.cep").write_text(PAIR.replace("10 seconds", "20 seconds"))
    add_parquet(place / "in", "6.parquet", (500, "D", 0, 0))
    refused = finished()
    assert refused.returncode == 1
    assert "error: the query is not the one that the checkpoint was written" in refused.stderr


@pytest.mark.slow
def test_queries_that_read_events_alone_keep_their_late_rows(place: Path) -> None:
    (place / "after.cep").write_text("PATTERN C c WHERE c.x > 5 RETURN c.x AS z")
    add_parquet(place / "in", "1.parquet", (100, "A", 1, 1), (101, "B", 1, 6), (102, "C", 1, 6))
    assert finished().returncode == 0
    add_parquet(place / "in", "2.parquet", (1, "A", 7, 1), (300, "D", 1, 6))
    done = finished()
    assert done.returncode == 0, done.stderr
    assert "Pair: done after " in done.stdout
    assert letters(place / "state/rejected/rows/Pair") == [("late", 7)]
    assert committed(place / "out/Pair.parquet") == [(1, 1, 6)]
    assert committed(place / "out/after.parquet") == [(6,)]
