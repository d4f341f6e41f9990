"""`cepheid run --stream`, on matches that were worked out by hand."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cepheid.cli.arguments import InputSource
from cepheid.cli.output.failure import INTERRUPTED, SET_ASIDE, message
from cepheid.cli.stream.checkpoint_lock import locked
from cepheid.cli.stream.dead_letters import diverted
from cepheid.cli.stream.stream_columns import Folder, refuse_other_inputs
from cepheid.cli.stream.stream_queries import ATTEMPTS, BUSY, StreamQueries
from cepheid.cli.stream.stream_status import PLAIN_SECONDS, Plain, Totals
from cepheid.cli.stream.stream_target import StreamTarget, marked
from cepheid.cli.stream.stream_watch import Stop, WatchedOutput, watch
from cepheid.cli.stream.unreadable import GONE, Unreadable
from cepheid.cli.stream.waiting_files import WaitingFiles
from cepheid.errors import OptionError
from cepheid.files.formats import Format
from cepheid.files.guard import mark_stream
from cepheid.files.text_rows import RowFormat
from cepheid.spark.streaming.status.reports import Status
from tests.cli.running import run, unwrapped

RISE = """\
PATTERN A a ; B b WHERE [id] AND b.x > a.x WITHIN 10 seconds
RETURN a.id, a.x AS low, b.x AS high
"""
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "type": pa.string(), "id": pa.int64(), "x": pa.int64()}
)
Event = tuple[int, str, int, int]


def table(*events: Event) -> pa.Table:
    """Events of which each has its second after noon, its type, id and x."""
    rows = [
        {"ts": NOON + timedelta(seconds=second), "type": kind, "id": id_, "x": x}
        for second, kind, id_, x in events
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def add_parquet(folder: Path, name: str, *events: Event) -> Path:
    """In one piece, as files must come to a folder that is read."""
    hidden = folder / f".{name}"
    pq.write_table(table(*events), hidden)
    return hidden.rename(folder / name)


def cut(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rise.cep").write_text(RISE)
    (tmp_path / "in").mkdir()
    return tmp_path


COMMON = ("--stream", "--input", "in", "--time", "ts", "--type", "type")
PLACES = ("--output", "out", "--checkpoint", "state")
COMMAND = (sys.executable, "-m", "cepheid.cli", "run", "rise.cep", *COMMON, *PLACES)
ON_ONE_CORE = ("--master", "local[1]", "--buckets", "2")


# ── used wrongly ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--output", "out"), 2, "--stream needs --checkpoint, a folder to write to"),
        (("--checkpoint", "state"), 2, "--stream needs --output, a folder to write to"),
        ((*PLACES, "--runtime", "local"), 2, "--stream is for Spark"),
        ((*PLACES, "--trigger", "soon"), 2, "--trigger is like '10 seconds' or once, not 'soon'"),
        ((*PLACES, "--watermark", "once"), 2, "--watermark is like '10 seconds', not 'once'"),
        ((*PLACES, "--future", "never"), 2, "--future is like '10 seconds' or off, not 'never'"),
        ((*PLACES, "--idle", "long"), 2, "--idle is like '10 seconds', not 'long'"),
        ((*PLACES, "--heartbeat", "off"), 2, "--heartbeat is like '10 seconds', not 'off'"),
        ((*PLACES, "--shed"), 2, "--shed needs --limit"),
        ((*PLACES, "--encoding", "klingon"), 2, "--encoding klingon isn't known"),
        ((*PLACES, "--schema", "x number"), 2, "--schema 'x number' isn't like 'ts timestamp, us"),
        ((*PLACES, "--schema", "a=x long"), 2, "--schema a=... is for no --input of that name"),
        ((*PLACES, "--rejected", "in/bad"), 2, "--rejected in/bad: this is inside in, all of wh"),
        (("--output", "out", "--checkpoint", "out/state"), 2, "--checkpoint out/state is in --out"),
        (("--output", ".", "--checkpoint", "../state"), 2, "the working folder is never replaced"),
        (
            ("--output", "notes", "--checkpoint", "state"),
            2,
            "notes: the folder holds files that",
        ),
        ((*PLACES, "--overwrite"), 2, "--overwrite isn't for --stream, which adds to its output"),
        ((*PLACES, "-i", "-"), 2, "Spark reads files, not standard input"),
    ],
)
def test_what_makes_no_sense(
    arguments: tuple[str, ...],
    code: int,
    text: str,
    place: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (place / "notes").mkdir()
    (place / "notes" / "a.txt").touch()
    assert run("run", "rise.cep", *COMMON, *arguments) == code
    error = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert text in error and "Traceback" not in error
    assert not (place / "out").exists()


def test_a_stream_is_a_folder(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = add_parquet(place, "e.parquet", (0, "A", 1, 1))
    common = ("run", "rise.cep", "--stream", "--time", "ts", *PLACES)
    assert run(*common, "--input", str(file)) == 2
    assert "a stream is a folder to which files are added" in capsys.readouterr().err
    assert run(*common, "--input", "missing") == 2
    assert capsys.readouterr().err == "error: missing: No such folder\n"


def test_options_of_streams_need_a_stream(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = add_parquet(place, "e.parquet", (0, "A", 1, 1))
    assert run("run", "rise.cep", "-i", str(file), "--time", "ts", "--trigger", "once") == 2
    assert "--trigger is for --stream" in capsys.readouterr().err


def test_matches_of_another_run_are_not_added_to(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark would skip as many batches as the folder has had."""
    mark_stream(place / "out")
    (place / "out" / "_spark_metadata").mkdir()
    assert run("run", "rise.cep", *COMMON, *PLACES) == 2
    assert "out has the output of another run, with another checkpoint" in capsys.readouterr().err


HOLDER = """
import sys, time
from pathlib import Path
from cepheid.cli.stream.checkpoint_lock import locked
with locked(Path("state")):
    print("locked", flush=True)
    time.sleep(600)
"""


def test_a_checkpoint_is_of_one_run_at_a_time(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark_stream(place / "state")
    other = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    try:
        assert other.stdout.readline() == "locked\n"
        assert run("run", "rise.cep", *COMMON, *PLACES) == 2
        told = capsys.readouterr().err
        assert f"checkpoint of a run that hasn't ended (process {other.pid} on " in told
        assert "stop that run first, or start with another checkpoint" in told
    finally:
        other.kill()
        other.communicate()
    with locked(place / "state"):  # its process is gone
        pass


def test_a_stream_that_cannot_begin_leaves_nothing(place: Path) -> None:
    """Neither new folders, nor less than there was in others."""
    (place / "out").mkdir()
    for begun in (False, True):
        target = StreamTarget(
            place / "out", Format.PARQUET, place / "state", place / "rejected", None,
            *[None] * 6,
        )  # fmt: skip
        with pytest.raises(OptionError), marked(target), locked(target.checkpoint):
            assert (place / "rejected").is_dir()
            if begun:
                target.place("matches").mkdir(parents=True)
            raise OptionError("there is no column")
        assert (place / "out").exists()
        assert {name: (place / name).exists() for name in ("state", "rejected")} == {
            "state": begun,
            "rejected": begun,
        }


def test_a_checkpoint_is_of_its_folders(place: Path) -> None:
    state, known = place / "state", {"": {"path": str(place / "in")}}
    refuse_other_inputs([InputSource(None, "in")], known, state)
    refuse_other_inputs([InputSource(None, str(place / "other" / ".." / "in"))], known, state)
    with pytest.raises(
        OptionError, match=r"state was written with events from \S+/in, and now they"
    ):
        refuse_other_inputs([InputSource(None, "in2")], known, state)
    with pytest.raises(
        OptionError, match="now they come from s3a://bank/in: name the same --input"
    ):
        refuse_other_inputs([InputSource(None, "s3a://bank/in")], known, state)
    with pytest.raises(OptionError, match="start with another checkpoint and another output"):
        refuse_other_inputs([InputSource("cards", "in")], known, state)
    before_version_0_2 = {"": {"format": "parquet"}}
    refuse_other_inputs([InputSource(None, "in2")], before_version_0_2, state)


def test_a_run_that_leaves_all_or_files_aside_is_not_complete() -> None:
    assert Totals().complete and Totals(events=5, late=2, rejected=2).complete
    assert not Totals(events=5, late=2, rejected=2, future=1).complete
    assert not Totals(events=5, files=1).complete


def test_dead_letters_are_diverted_to_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "rows"

    def parts(*letters: str | None) -> Iterator[pa.RecordBatch]:
        for n, letter in enumerate(letters):
            yield pa.record_batch({"id": [n], "dead_letter": pa.array([letter], pa.string())})

    given = ('{"reason":"late"}', None, '{"reason":"future"}')
    for _ in range(2):  # a batch that is done again makes the same file
        found = pa.Table.from_batches(diverted(parts(*given), folder, 12, 3))
        assert found.to_pydict() == {"id": [1]}
    (file,) = folder.iterdir()
    assert file.name == "batch-00000012-part-00003.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines == [{"batch": 12, "reason": "late"}, {"batch": 12, "reason": "future"}]
    assert len(list(diverted(parts(None, None), tmp_path / "none", 0, 0))) == 2
    assert not (tmp_path / "none").exists()


def test_a_worker_that_was_given_up_does_no_harm_to_dead_letters(tmp_path: Path) -> None:
    """Its task is done again by another one, while it still writes."""
    parts = [
        pa.record_batch({"id": [n], "dead_letter": pa.array([f'{{"n":{n}}}'])}) for n in (1, 2)
    ]
    slow = diverted(iter(parts), tmp_path, 0, 0)
    next(slow)
    assert len(list(diverted(iter(parts), tmp_path, 0, 0))) == 2
    (file,) = tmp_path.glob("batch-*")
    written = '{"batch":0,"n":1}\n{"batch":0,"n":2}\n'
    assert file.read_text() == written
    slow.close()
    assert file.read_text() == written and list(tmp_path.iterdir()) == [file]


# ── on Spark ─────────────────────────────────────────────────────────────────


def finished(*more: str) -> subprocess.CompletedProcess[str]:
    """The command with the files that are there."""
    command = [*COMMAND, *ON_ONE_CORE, "--trigger", "once", *more]
    return subprocess.run(command, capture_output=True, text=True)


def stopped_after_a_batch(log: Path) -> str:
    """What the command prints if Ctrl-C is pressed after its first batch."""
    with log.open("wb") as file:
        running = subprocess.Popen(
            [*COMMAND, *ON_ONE_CORE], stdout=file, stderr=file, start_new_session=True
        )
    while running.poll() is None and "batch 1 " not in log.read_text():
        time.sleep(0.2)
    os.killpg(running.pid, signal.SIGINT)  # as the terminal does: to the JVM and its workers, too
    assert running.wait(120) == INTERRUPTED, log.read_text()
    return log.read_text()


@pytest.mark.slow
def test_a_stream_is_stopped_and_goes_on(place: Path) -> None:
    add_parquet(place / "in", "1.parquet", (0, "A", 1, 1), (1, "B", 1, 6), (2, "A", 2, 3))
    cut(add_parquet(place / "in", "2.parquet", (3, "B", 2, 9)))
    told = stopped_after_a_batch(place / "log")
    assert ": 3 events, 1 match, 0 late, 0 rejected, 1 unreadable file " in unwrapped(told)
    assert "stopped after " in told and told.endswith("\nresume with the same command\n")
    (listed,) = (place / "state/rejected/files.jsonl").read_text().splitlines()
    assert json.loads(listed)["file"].endswith("/in/2.parquet")

    add_parquet(place / "in", "3.parquet", (4, "B", 2, 7), (5, "B", 1, 4), (1, "A", 3, 1))
    other = table((6, "B", 1, 9)).cast(SCHEMA.set(2, pa.field("id", pa.string())))
    pq.write_table(other, place / "in" / "other.parquet")
    done = finished()
    assert done.returncode == SET_ASIDE, done.stderr
    summary = unwrapped(done.stdout)
    assert ": 3 events, 2 matches, 1 late, 0 rejected, 1 unreadable file " in summary
    assert "/in/other.parquet to its end: [FAILED_READ_FILE.PARQUET_COLUMN" in done.stderr
    assert "\tat " not in done.stderr
    (late,) = (place / "state/rejected/rows").iterdir()
    (letter,) = map(json.loads, late.read_text().splitlines())
    assert letter.pop("batch") > 0 and letter == {
        "reason": "late",
        "row": {"ts": "2026-01-31T12:00:01.000000Z", "type": "A", "id": 3, "x": 1},
    }
    found = pq.read_table(place / "out").to_pylist()
    assert sorted((r["id"], r["low"], r["high"]) for r in found) == [
        (1, 1, 4),
        (1, 1, 6),
        (2, 3, 7),
    ]

    (place / "rise.cep").write_text(RISE.replace("10 seconds", "20 seconds"))
    add_parquet(place / "in", "4.parquet", (9, "B", 2, 7))
    refused = finished()
    assert refused.returncode == 1
    sentence = refused.stderr.splitlines()[-1]
    assert sentence.startswith("error: the query is not the one that the checkpoint was written")
    assert "20 seconds" in sentence and "Traceback" not in refused.stderr


@pytest.mark.slow
def test_answers(place: Path) -> None:
    """Each comes once, when the watermark has passed its window, also if a run ends before that."""
    (place / "rise.cep").write_text(
        """PATTERN A a ; B b WHERE [id] WITHIN 10 seconds
        GROUP BY TUMBLE(1 minute) RETURN count(*) AS n, sum(b.x) AS total"""
    )
    add_parquet(place / "in", "1.parquet", (0, "A", 1, 1), (1, "B", 1, 6), (2, "A", 2, 3))
    done = finished()
    assert "answers in out (parquet)" in done.stdout, done.stderr
    assert pq.read_table(place / "out").num_rows == 0
    add_parquet(place / "in", "2.parquet", (4, "B", 2, 7), (60, "A", 2, 1), (130, "A", 2, 1))
    assert finished().returncode == 0
    (row,) = pq.read_table(place / "out").to_pylist()
    assert (row["n"], row["total"]) == (2, 13)


@pytest.mark.slow
def test_files_of_one_millisecond_have_no_order(place: Path) -> None:
    """Spark reads them as their folder lists them. What then comes too late is kept."""
    for second in range(5):
        path = add_parquet(place / "in", f"{second}.parquet", (second, "A", second, 1))
        os.utime(path, (1_700_000_000, 1_700_000_000))
    order = [int(Path(name).stem) for name in os.listdir("in")]
    late = {s for n, s in enumerate(order) if s < max(order[:n], default=0)}
    done = finished("--max-files", "1")
    assert f" 5 events, 0 matches, {len(late)} late, 0 rejected" in unwrapped(done.stdout)
    rows = [json.loads(line) for file in Path("state/rejected/rows").glob("*.jsonl")
            for line in file.read_text().splitlines()]  # fmt: skip
    assert {row["row"]["id"] for row in rows} == late and len(rows) == len(late)


@pytest.mark.slow
def test_bad_lines_and_timeouts(place: Path) -> None:
    lines = [
        {"ts": "2026-01-31T12:00:00Z", "type": "A", "id": 1, "x": 1},
        {"ts": "2026-01-31T12:00:01Z", "type": "A", "id": 2, "x": 1},
        {"ts": "2026-01-31T12:00:01Z", "type": "B", "id": 1, "x": "much"},
        {"ts": None, "type": "B", "id": 1, "x": 5},
        {"ts": "2026-01-31T12:00:02Z", "type": "B", "id": 1, "x": 2},
        {"ts": "2026-01-31T12:01:00Z", "type": "Z", "id": 9, "x": 0},
    ]
    texts = [*map(json.dumps, lines), '{"ts": "2026-']
    (place / "in" / "1.jsonl").write_text("\n".join(texts))
    done = finished("--format", "json", "--timeouts", "expired")
    assert done.returncode == 0, done.stderr
    assert "--schema 'ts timestamp, type string, id long, x long'" in done.stderr
    assert "`x` is long, but not in 1 of 6 cells, such as 'much'" in done.stderr
    assert ": 7 events, 1 match, 1 timeout, 0 late, 3 rejected " in unwrapped(done.stdout)
    (row,) = json_rows(place / "out")
    assert (row["id"], row["low"], row["high"]) == (1, 1, 2)
    assert run("run", "rise.cep", *COMMON[1:], "-o", "batch.jsonl") == 0
    (same,) = map(json.loads, Path("batch.jsonl").read_text().splitlines())
    assert all(same[name] == row[name] for name in ("id", "low", "high"))
    (row,) = json_rows(place / "expired")
    assert (row["id"], row["step"], row["missing"]) == (2, 1, "B b")
    rejected = json_rows(place / "state/rejected/lines")
    assert sorted(str(row["line"]) for row in rejected) == sorted(texts[n] for n in (2, 3, 6))


def json_rows(folder: Path) -> Iterator[dict[str, object]]:
    for part in folder.glob("part-*"):
        yield from map(json.loads, part.read_text().splitlines())


class FakeQuery:
    """A streaming query that has failed, or runs."""

    def __init__(self, error: str | None) -> None:
        self.error, self.isActive = error, error is None
        self.lastProgress: dict[str, Any] | None = None

    def exception(self) -> Exception | None:
        return None if self.error is None else RuntimeError(self.error)

    def stop(self) -> None:
        self.isActive = False


def test_a_query_that_finds_the_machine_busy_is_started_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcomes = [f"{BUSY}.", f"{BUSY}.", None]
    starts: dict[str, Any] = {
        "matches": lambda: FakeQuery(outcomes.pop(0)),
        "rejected": lambda: FakeQuery(None),
    }
    with StreamQueries(starts) as running:
        other = running["rejected"]
        for _ in range(3):
            running.check()
        assert running.active and not outcomes
        assert capsys.readouterr().err.count("the machine is busy: matches are started") == 2
        assert running["rejected"] is other
    assert not running.active
    for error, attempts in (("the query is not the one", 1), (BUSY, ATTEMPTS)):
        outcomes = [error] * ATTEMPTS
        with pytest.raises(RuntimeError, match=error), StreamQueries(starts) as running:
            for _ in range(ATTEMPTS):
                running.check()
        assert len(outcomes) == ATTEMPTS - attempts


class FinishedQuery(FakeQuery):
    """A streaming query that has done a batch, and ends by itself."""

    def __init__(self, events: int) -> None:
        super().__init__(None)
        self.isActive = False
        self.lastProgress = {
            "batchId": 0,
            "timestamp": "2026-01-31T12:00:00.000Z",
            "durationMs": {"addBatch": 10},
            "sources": [],
            "observedMetrics": {"cepheid read x": {"events": events, "rejected": 1}},
        }
        self.recentProgress = [SimpleNamespace(json=json.dumps(self.lastProgress))]


def test_the_watch_ends_with_its_queries_and_has_counted_their_batches(tmp_path: Path) -> None:
    outcomes = [FakeQuery(f"{BUSY}."), FinishedQuery(7)]
    starts: dict[str, Any] = {
        "matches": lambda: outcomes.pop(0),
        "rejected": lambda: FinishedQuery(0),
    }
    unreadable = Unreadable(
        [], tmp_path, tmp_path / "bad", tmp_path / "checked.json", lambda *_: None
    )
    totals, shown = Totals(), list[str]()
    with StreamQueries(starts) as running:
        written = list[Mapping[str, Any]]()
        waiting = WaitingFiles([], tmp_path)
        output = WatchedOutput("matches", "", totals, waiting, written.append)

        def show(text: str, _: int) -> None:
            shown.append(text)

        watch(running, [output], unreadable, Stop(), show)
    assert [report["batchId"] for report in written] == [0]
    assert (totals.batches, totals.events, totals.rejected) == (1, 7, 1) and totals.complete
    assert shown[-1].startswith("batch 1 · 7 events, 0 matches, 0 late, 1 rejected")


# ── what is shown ────────────────────────────────────────────────────────────


def batch(
    number: int, events: int, watermark: str | None, *buckets: tuple[str, int], refused: int = 0
) -> Status:
    held = tuple({"bucket": name, "rows": rows, "size": 1000 * rows} for name, rows in buckets)
    return Status(
        batch=number, events=events, rejected=1, future=0, relevant=events, late=2, shed=0,
        ties=0, suppressed=0, matches=3, rows=0, size=0, replans=0, refused=refused, buckets=held,
        backlog=None, watermark=watermark, seconds=2.0,
    )  # fmt: skip


def test_the_line_tells_how_it_stands() -> None:
    totals = Totals()
    totals.add(batch(0, 1000, None, ("a", 5), ("b", 7)))
    assert "watermark" not in totals.line(0)
    totals.add(batch(1, 0, "2026-01-31T12:00:00.000Z", ("b", 1)))
    now = (NOON + timedelta(seconds=90)).timestamp()
    assert totals.line(now) == (
        "batch 2 · 1,000 events, 6 matches, 4 late, 2 rejected · 500 events/s · "
        "watermark 2026-01-31 12:00:00.000 · lag 90 s · state 6 events, 6.0 kB · batch took 2.0 s"
    )
    assert "lag" not in totals.line(now + 3 * 24 * 3600)


def test_files_that_wait_are_counted(tmp_path: Path) -> None:
    """Those of the folder that no source has noted in its log; hidden ones aren't read."""
    events, log = tmp_path / "events", tmp_path / "sources"
    (log / "0").mkdir(parents=True)
    events.mkdir()
    for name in ("a 1.json", "b.json", "c.json", "_hidden", ".part"):
        (events / name).write_text("{}")
    waiting = WaitingFiles([Folder("", str(events), RowFormat(Format.JSON, SCHEMA, "ts"))], log)
    assert waiting.count() == 3
    note(log / "0" / "0", [events / "a 1.json"], 0)
    (log / "1").mkdir()
    (log / "1" / "0").write_text("v1\n1700000000000")  # of a heartbeat
    assert waiting.count() == 2
    # Every tenth file of the log repeats the others; and files that were read may be removed.
    note(log / "0" / "9.compact", [events / "a 1.json", events / "b.json"], 9)
    (events / "a 1.json").unlink()
    (events / "d.json").write_text("{}")
    assert waiting.count() == 2
    totals = Totals(waiting=waiting.count())
    assert totals.line(0).endswith(" · 2 files waiting")


def note(log: Path, files: Sequence[Path], batch: int) -> None:
    lines = [{"path": file.as_uri(), "timestamp": 1, "batchId": batch} for file in files]
    log.write_text("\n".join(["v1", *map(json.dumps, lines)]))


def test_rules_that_are_refused_stay_in_sight() -> None:
    totals = Totals()
    totals.add(batch(0, 9, None, ("card 0", 1), refused=1))
    assert " · 1 rule refused · state 1 event, " in totals.line(0)
    totals.add(batch(1, 0, None))
    assert "1 rule refused" in totals.line(0)
    totals.add(batch(2, 9, None, ("card 0", 1)))
    assert "refused" not in totals.line(0)


def test_the_watermark_of_integers_is_one() -> None:
    totals = Totals(integers=True)
    # Integers are milliseconds, moved by 2 ** 52.
    totals.add(batch(0, 1, "+144683-05-23T16:29:30.501Z"))
    assert "watermark 5 ·" in totals.line(0)


def test_lines_that_stay_are_few(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter((0.0, PLAIN_SECONDS / 2, PLAIN_SECONDS, 3 * PLAIN_SECONDS))
    monkeypatch.setattr("cepheid.cli.stream.stream_status.clock.monotonic", lambda: next(moments))
    plain = Plain()
    for text, batches in (("one", 1), ("too soon", 2), ("two", 2), ("nothing new", 2)):
        plain.show(text, batches)
    assert capsys.readouterr().err == "one\ntwo\n"


def test_an_error_of_a_worker_is_told_in_its_own_words() -> None:
    error = RuntimeError(
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted\n"
        'Traceback (most recent call last):\n  File "x.py", line 1\n'
        "cepheid.errors.StateLimitError: too many events\n\n\tat org.apache.spark.Some.thing"
    )
    assert message(error) == "error: too many events"


# ── files that can't be read ─────────────────────────────────────────────────


class Source:
    """A folder and the log of a stream that reads it. `bad` are the files that Spark can't read."""

    def __init__(self, place: Path, format: Format = Format.PARQUET) -> None:
        self.place, self.log = place, place / "sources"
        self.folder = place / "with space"
        self.folder.mkdir()
        (self.log / "0").mkdir(parents=True)
        self.offset: int | None = None
        self.stream = Folder("", str(self.folder), RowFormat(format, SCHEMA, "ts"))
        self.bad: set[str] = set()
        self.asked: list[str] = []

    def take(self, *files: Path, read: int, events: int | None = None) -> dict[str, object]:
        """Spark's report on the batch that reads these files."""
        before = self.offset
        self.offset = 0 if before is None else before + 1
        entries = [{"path": f.as_uri(), "timestamp": 1, "batchId": self.offset} for f in files]
        lines = "\n".join(["v1", *map(json.dumps, entries)])
        (self.log / "0" / str(self.offset)).write_text(lines)
        begin = None if before is None else {"logOffset": before}
        end = {"logOffset": self.offset}
        return {
            "batchId": self.offset,
            "sources": [{"startOffset": begin, "endOffset": end, "numInputRows": read}],
            "observedMetrics": {"cepheid read 1": {"events": read if events is None else events}},
        }

    def ask(self, folder: Folder, file: str) -> str | None:
        assert folder is self.stream
        self.asked.append(Path(file).name)
        return "it is broken" if Path(file).name in self.bad else None

    def unreadable(self) -> Unreadable:
        listed, checked = self.place / "bad.jsonl", self.place / "checked.json"
        return Unreadable([self.stream], self.log, listed, checked, self.ask)

    def look(self, report: dict[str, object]) -> dict[str, str]:
        return {Path(file).name: reason for file, reason in self.unreadable().look(report).items()}

    def listed(self) -> list[str]:
        lines = (self.place / "bad.jsonl").read_text().splitlines()
        return [Path(json.loads(line)["file"]).name for line in lines]


EVENTS: tuple[Event, ...] = tuple((n, "A", n, n) for n in range(1000))


def test_unreadable_files_are_listed_once(tmp_path: Path) -> None:
    source = Source(tmp_path)
    good = add_parquet(source.folder, "good.parquet", *EVENTS)
    short = add_parquet(source.folder, "short.parquet", *EVENTS)
    cut(short)
    source.bad = {"short.parquet"}
    first = source.take(good, short, read=1000)
    assert source.look(first) == {"short.parquet": "it is broken"} and source.look(first) == {}
    assert source.asked == ["short.parquet"]
    gone = source.folder / "gone.parquet"
    # A run that ended before it could look, and the next one.
    source.take(gone, read=0)
    last = source.take(good, read=1000)
    assert source.look(last) == {"gone.parquet": GONE}
    assert source.look(last) == {}
    assert source.listed() == ["short.parquet", "gone.parquet"]


def test_a_heartbeat_reads_no_files(tmp_path: Path) -> None:
    source = Source(tmp_path)
    report = source.take(add_parquet(source.folder, "good.parquet", *EVENTS), read=1000)
    beats = {"startOffset": None, "endOffset": 5, "numInputRows": 5, "description": "RateStreamV2"}
    report["sources"] = [*cast(list[object], report["sources"]), beats]
    assert source.look(report) == {} and not source.asked


def test_files_of_a_batch_that_an_earlier_run_finished_are_looked_at(tmp_path: Path) -> None:
    """It ended before it could look, and no file has come since."""
    source = Source(tmp_path)
    good = add_parquet(source.folder, "good.parquet", *EVENTS)
    short = add_parquet(source.folder, "short.parquet", *EVENTS)
    cut(short)
    source.bad = {"short.parquet"}
    report = source.take(good, short, read=1000)
    assert not source.unreadable().look_back([None])
    found = source.unreadable().look_back([{"logOffset": 0}])
    assert found == {short.as_uri(): "it is broken"} and source.listed() == ["short.parquet"]
    assert source.look(report) == {} and not source.unreadable().look_back([{"logOffset": 0}])


def test_files_of_other_folders_are_not_its_concern(tmp_path: Path) -> None:
    source = Source(tmp_path)
    text = tmp_path / "news.parquet"
    text.write_text("{}")
    assert source.look(source.take(text, read=1)) == {} and not source.asked


def test_if_rows_are_missing_spark_is_asked_for_the_file(tmp_path: Path) -> None:
    """One whose column has another type has its end, and can be read by others."""
    source = Source(tmp_path)
    good = add_parquet(source.folder, "good.parquet", *EVENTS)
    bad = add_parquet(source.folder, "bad.parquet", *EVENTS)
    source.bad = {"bad.parquet"}
    assert source.look(source.take(good, bad, read=2000)) == {}
    # Rules of two keys read every file twice.
    assert source.look(source.take(good, read=2000, events=1000)) == {} and not source.asked
    assert source.look(source.take(good, bad, read=1000)) == {"bad.parquet": "it is broken"}


def test_rows_that_are_missing_for_no_known_reason_are_told(tmp_path: Path) -> None:
    source = Source(tmp_path)
    good = add_parquet(source.folder, "good.parquet", *EVENTS)
    reason = "900 rows of it or of other files of its batch are missing"
    assert source.look(source.take(good, read=200, events=100)) == {"good.parquet": reason}


def test_compressed_files_are_unpacked(tmp_path: Path) -> None:
    source = Source(tmp_path, Format.JSON)
    lines = "".join(f'{{"x": {n}}}\n' for n in range(1000)).encode()
    files = [source.folder / name for name in ("a.json.gz", "b.json.bz2", "c.json.gz", "d.json")]
    for file, pack in zip(files, (gzip.compress, bz2.compress, gzip.compress, bytes), strict=True):
        file.write_bytes(pack(lines))
    assert source.look(source.take(*files, read=4000)) == {} and not source.asked
    cut(files[0])
    cut(files[1])
    source.bad = {"a.json.gz", "b.json.bz2"}
    assert source.look(source.take(*files, read=3000)).keys() == source.bad


def test_a_file_of_another_format_is_listed(tmp_path: Path) -> None:
    """Its first line may have been taken for a header: no row of it is missing."""
    source = Source(tmp_path, Format.CSV)
    files = [source.folder / name for name in ("a.csv", "b.csv.gz", "c.json", "notes.txt", "none")]
    for file in files:
        file.write_bytes(gzip.compress(b"{}") if file.suffix == ".gz" else b"{}")
    assert source.look(source.take(*files, read=0)) == {}  # --input-format said what they are
    source.stream = replace(source.stream, named=True)
    found = source.look(source.take(*files, read=0))
    assert found.keys() == {"c.json", "notes.txt", "none"}
    assert found["c.json"].startswith("it was read as csv, which its name doesn't say: move it")
    assert source.listed() == [*found]
