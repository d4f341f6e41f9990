"""`cepheid run rules/ --stream`, on matches that were worked out by hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cepheid.cli.output.failure import INTERRUPTED
from cepheid.cli.queries import WatchedRules, read_stream
from cepheid.cli.stream.stream_rules import FIRST, LATER, change_text
from cepheid.errors import RuleSetError
from cepheid.files.guard import mark_stream
from cepheid.query import Query
from cepheid.rules import LiveRules, RuleSet
from cepheid.rules.findings import Finding
from cepheid.rules.live.watch import Change
from tests.cli.test_stream import BUSY, COMMON, ON_ONE_CORE, PLACES, add_parquet, run

RISE = "INTO rise PATTERN A a ; B b WHERE [id] AND b.x > a.x WITHIN 1 minute RETURN b.x AS x"
FALL = "INTO fall PATTERN A a -> B b WHERE [id] AND b.x < a.x WITHIN 1 minute RETURN b.x AS x"
SECONDS = 240
"""How long something may take on a machine that is busy."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "rise.cep").write_text(RISE)
    return tmp_path


# ── used wrongly ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("rules", *PLACES, "--timeouts", "late"), "--timeouts is for a single query"),
        (("rules/rise.cep", *PLACES, "--no-watch"), "--no-watch is for a set of rules"),
        (("rules", "rules", *PLACES), "rules is a folder of rules: run it alone"),
    ],
)
def test_what_makes_no_sense(
    arguments: tuple[str, ...], text: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", *arguments, *COMMON) == 2
    assert text in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not (place / "state").exists()


def test_a_stream_does_not_begin_without_rules(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "rules" / "rise.cep").write_text("INTO rise PATTERN A a ;")
    (place / "rules" / "fall.cep").write_text("INTO fall PATTERN")
    assert run("run", "rules", *COMMON, *PLACES) == 2
    error = capsys.readouterr().err
    assert "rules/rise.cep:1:" in error and "rules/fall.cep:1:" in error
    assert not (place / "state").exists()


def test_the_checkpoint_is_of_the_same_kind(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark_stream(place / "state")
    (place / "state/queries/matches").mkdir(parents=True)
    assert run("run", "rules", *COMMON, *PLACES) == 2
    assert "state is the checkpoint of a query, and this is a set" in capsys.readouterr().err
    (place / "state/rules").mkdir()
    assert run("run", "rules/rise.cep", *COMMON, *PLACES) == 2
    assert "state is the checkpoint of a set of rules, and this is a" in capsys.readouterr().err


def test_rules_that_are_wrong_go_on_if_there_were_some(place: Path) -> None:
    rules, versions = place / "rules", place / "versions"
    (rules / "rise.cep").write_text("INTO rise PATTERN A a ;")
    with pytest.raises(RuleSetError):
        read_stream([rules], None, {}, versions, watched=True)
    LiveRules(str(versions)).publish(RuleSet.of({"rise": RISE}))
    assert read_stream([rules], None, {}, versions, watched=True) == WatchedRules(rules, versions)


def test_a_file_may_be_a_query_or_rules(place: Path) -> None:
    file = place / "rules" / "rise.cep"
    assert isinstance(read_stream([file], None, {}, place / "versions", watched=True), Query)
    file.write_text(f"{RISE}\n{FALL}")
    assert isinstance(read_stream([file], None, {}, place / "versions", watched=True), WatchedRules)


# ── what is printed ─────────────────────────────────────────────────────────────


def test_a_change_is_printed_in_a_line() -> None:
    names = tuple("abcde")
    told = change_text(Change("00000007", names, ("f",), ("g", "h"), ()), LATER)
    assert told == (
        "rules version 00000007: 5 added (a, b, c and 2 more), 1 removed (f), 2 changed (g, h)"
    )
    assert change_text(Change(None, (), (), (), ()), LATER) == ""


def test_what_is_wrong_is_told_first() -> None:
    findings = (Finding("a.cep", "it is empty", "write one"), Finding("b.csv", "no name", "", (2,)))
    told = change_text(Change("00000001", ("c",), (), (), findings), FIRST)
    assert told == (
        "a.cep: it is empty\n  write one\n\nb.csv, row 2: no name\n"
        "these rules are left out until they are corrected\nrules version 00000001: 1 added (c)"
    )


# ── on Spark ─────────────────────────────────────────────────────────────────


class Stream:
    """The command, while it runs."""

    def __init__(self, place: Path) -> None:
        self.place, self.log = place, place / "log"
        command = [sys.executable, "-m", "cepheid.cli", "run", "rules", *COMMON, *PLACES]
        command += [*ON_ONE_CORE, "--trigger", "1 second"]
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(
                command, stdout=file, stderr=file, start_new_session=True
            )

    def told(self) -> str:
        return self.log.read_text()

    def wait(self, seen: Callable[[], bool]) -> bool:
        """Until it is so; whether it came to be."""
        end = time.monotonic() + SECONDS
        while not (found := seen()) and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.2)
        return found

    def tells(self, text: str) -> bool:
        return self.wait(lambda: text in self.told())

    def takes(self, version: str) -> bool:
        """Into a batch: what comes now is in the same one, or later."""
        logs = self.place / "state/queries/matches/sources"
        return self.wait(lambda: any(version in f.read_text() for f in logs.glob("*/[0-9]*")))

    def finds(self, *rows: tuple[str, int]) -> bool:
        return self.wait(lambda: self.found() == sorted(rows))

    def found(self) -> list[tuple[str, int]]:
        """Names of rules, and what they return, as committed."""
        commits = (self.place / "out" / "_spark_metadata").glob("[0-9]*")
        paths = [
            json.loads(line)["path"].removeprefix("file://")
            for commit in commits
            if not commit.name.endswith(".compact")
            for line in commit.read_text().splitlines()[1:]
        ]
        rows = [row for path in paths for row in pq.read_table(path).to_pylist()]
        return sorted((row["rule"], json.loads(row["match"])["x"]) for row in rows)

    def interrupt(self) -> int:
        """Ctrl-C, as the terminal sends it: to the JVM and its workers, too."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(SECONDS)

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def started(place: Path, attempts: int = 3) -> Stream:
    """A stream that has found its first match."""
    stream = Stream(place)
    if stream.finds(("rise", 6)):
        return stream
    told = stream.told()
    stream.end()
    assert BUSY in told and attempts > 1, told
    return started(place, attempts - 1)


@pytest.mark.slow
def test_rules_change_while_a_stream_runs(place: Path) -> None:
    add_parquet(place / "in", "1.parquet", (0, "A", 1, 5), (1, "B", 1, 6))
    stream = started(place)
    try:
        assert "rules version 00000001: 1 added (rise)\n" in stream.told()

        # What began before it came isn't for the new rule: A@0 with B@3 would be a fall. The last
        # event lets time pass, since another B could still come with the time of B@5.
        (place / "rules" / "fall.cep").write_text(FALL)
        assert stream.tells("rules version 00000002: 1 added (fall)\n"), stream.told()
        assert stream.takes("00000002"), stream.told()
        add_parquet(
            place / "in", "2.parquet",
            (3, "B", 1, 4), (4, "A", 1, 9), (5, "B", 1, 8), (6, "A", 2, 0),
        )  # fmt: skip
        assert stream.finds(("rise", 6), ("fall", 8), ("rise", 8)), stream.told()

        # What is wrong stays as it was: A@4 is still there for rise.
        (place / "rules" / "rise.cep").write_text(RISE.replace("b.x >", "b.y >"))
        assert stream.tells("these rules stay as they were\n"), stream.told()
        assert "CEP204: B has no attribute `y`\n  rules/rise.cep:1:44\n" in stream.told()
        (place / "rules" / "fall.cep").unlink()
        assert stream.tells("rules version 00000003: 1 removed (fall)\n"), stream.told()
        assert stream.takes("00000003"), stream.told()
        add_parquet(
            place / "in", "3.parquet",
            (7, "B", 1, 10), (8, "A", 3, 3), (9, "B", 3, 2), (10, "A", 2, 0),
        )  # fmt: skip
        before = [("rise", 6), ("fall", 8), ("rise", 8)]
        assert stream.finds(*before, ("rise", 10), ("rise", 10)), stream.told()
        # Spark reports on a batch after it has committed it.
        assert stream.tells(" · 10 events, 5 matches, 0 late, "), stream.told()

        assert stream.interrupt() == INTERRUPTED, stream.told()
    finally:
        stream.end()
    told = stream.told()
    assert ": 10 events, 5 matches, 0 late, 0 rejected\n" in told
    assert "stopped after " in told and told.endswith("\nresume with the same command\n")
    assert "Traceback" not in told
