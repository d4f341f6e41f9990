"""`cepheid run --stream`: a query or rules over the files of a folder, and over those that come.

Three streaming queries, each with its own checkpoint: the matches, what was rejected, and if wanted
for the partial matches that expired. They are started and stopped together, and a run with the same
checkpoint resumes where they were.
"""

from __future__ import annotations

import shutil
import signal
import sys
import threading
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa
import typer

import cepheid as cep
from cepheid.cli.arguments import InputSource
from cepheid.cli.inputs import input_options
from cepheid.cli.output.failure import SET_ASIDE
from cepheid.cli.queries import WatchedRules
from cepheid.cli.spark_session import EXACT_NAMES, errors_to
from cepheid.cli.stream.checkpoint_lock import locked
from cepheid.cli.stream.dead_letters import divert
from cepheid.cli.stream.stream_columns import Folder, open_folders
from cepheid.cli.stream.stream_page import batch_figures, journal_of, page_beside
from cepheid.cli.stream.stream_queries import StreamQueries
from cepheid.cli.stream.stream_rules import running_rules
from cepheid.cli.stream.stream_source import read_error, read_folder, read_rejected
from cepheid.cli.stream.stream_status import PLAIN_WIDTH, Show, Totals, many, screen, wrapped
from cepheid.cli.stream.unreadable import Unreadable
from cepheid.cli.stream.waiting_files import WaitingFiles
from cepheid.cli.target import refuse_nested, refuse_nested_places
from cepheid.errors import CepheidError, OptionError
from cepheid.files.formats import Format, is_local, is_pattern, spark_format
from cepheid.files.guard import guard_of, mark_stream
from cepheid.options import AUTO, DURATION, Options
from cepheid.query import Query
from cepheid.spark.columns.schema import arrow_schema
from cepheid.spark.event_files.text_values import for_text
from cepheid.spark.start.session import local_session
from cepheid.spark.streaming.clock.ahead import WITHOUT_ZONE
from cepheid.spark.streaming.status.checkpoint import last_finished
from cepheid.spark.streaming.status.reports import NewReports, status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ONCE, OFF = "once", "off"
LINES, ROWS, FILES = "lines", "rows", "files.jsonl"
"""The folders of dead letters: lines that are no events, rows that are late or ahead of the clock,
and files that couldn't be read."""

_POLL_SECONDS = 0.3


class Stop(threading.Event):
    """A requested stop."""

    exit_code = 0
    """That of a process which the same signal has ended."""


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """The options of a stream run; `queries` are the files."""

    output: Path
    format: Format
    checkpoint: Path
    rejected: Path
    timeouts: Path | None
    trigger: str | None
    watermark: str | None
    future: str | None
    idle: str | None
    heartbeat: str | None
    max_files: int | None
    queries: Sequence[Path] = ()
    page: bool = False

    def __post_init__(self) -> None:
        for name, text, word in (
            ("--trigger", self.trigger, ONCE),
            ("--watermark", self.watermark, None),
            ("--future", self.future, OFF),
            ("--idle", self.idle, None),
            ("--heartbeat", self.heartbeat, None),
        ):
            if text is not None and text != word and not DURATION.fullmatch(text):
                also = "" if word is None else f" or {word}"
                raise typer.BadParameter(f"{name} is like '10 seconds'{also}, not {text!r}")

    def places(self) -> dict[str, Path]:
        """The output folders by option. The folder of rejected rows may be inside the
        checkpoint."""
        named = {"--output": self.output, "--checkpoint": self.checkpoint}
        if not self.rejected.resolve().is_relative_to(self.checkpoint.resolve()):
            named["--rejected"] = self.rejected
        return named if self.timeouts is None else {**named, "--timeouts": self.timeouts}

    def place(self, query: str) -> Path:
        """The checkpoint of one of the queries."""
        return self.checkpoint / "queries" / query

    @property
    def versions(self) -> Path:
        """The folder of rule versions, if rules run."""
        return self.checkpoint / "rules"


def run_stream(
    query: Query | WatchedRules,
    sources: Sequence[InputSource],
    options: Options,
    target: StreamTarget,
    master: str,
) -> tuple[str, int]:
    """Run until the files are done, or until the stream is stopped; return the summary and the exit
    code."""
    for source in sources:  # what is wrong with them, before Spark starts
        input_options(source, options.time)
    _refuse_places(sources, target)
    _refuse_other(query, target)
    with (
        marked(target),
        locked(target.checkpoint),
        page_beside(target.checkpoint, target.page),
    ):
        return _run_alone(query, sources, options, target, master)


@contextmanager
def marked(target: StreamTarget) -> Iterator[None]:
    """The folders that the stream writes to. New ones are removed if it can't begin, since its
    query doesn't fit the files, or since it is interrupted."""
    new = [folder for folder in target.places().values() if mark_stream(folder)]
    try:
        yield
    except (CepheidError, KeyboardInterrupt):
        if not target.place("matches").exists():
            for folder in new:
                shutil.rmtree(folder)
        raise


def _run_alone(
    query: Query | WatchedRules,
    sources: Sequence[InputSource],
    options: Options,
    target: StreamTarget,
    master: str,
) -> tuple[str, int]:
    with errors_to(target.checkpoint / "spark.log"):
        spark = local_session(master, app="cepheid run --stream", config=EXACT_NAMES)
    totals = Totals()
    with stop_signals() as stopped:
        try:
            with ends_with(stopped):
                _run(spark, query, sources, options, target, stopped, totals)
        finally:
            with ends_with(stopped):
                spark.stop()
    code = stopped.exit_code or (0 if totals.complete else SET_ASIDE)
    grouped = isinstance(query, Query) and query.syntax.group_by is not None
    what = "answers" if grouped else "matches"
    return _summary(totals, target, what, stopped.is_set()), code


def _summary(totals: Totals, target: StreamTarget, what: str, stopped: bool) -> str:
    batches = many(totals.batches, "batch", "es")
    summary = f"{'stopped' if stopped else 'done'} after {batches}: {totals.counts()}"
    lines = [wrapped(summary, PLAIN_WIDTH)]
    lines += [f"{what} in {target.output} ({target.format.value})"]
    if target.timeouts is not None:
        lines += [f"timeouts in {target.timeouts} ({target.format.value})"]
    if totals.rejected:
        lines += [f"rejected lines in {target.rejected / LINES} (json)"]
    if (totals.late or totals.future) and (target.rejected / ROWS).exists():
        lines += [f"rows that were late or ahead of the clock in {target.rejected / ROWS} (json)"]
    if totals.files:
        lines += [f"unreadable files in {target.rejected / FILES}"]
    return "\n".join([*lines, "resume with the same command"] if stopped else lines)


def _refuse_places(sources: Sequence[InputSource], target: StreamTarget) -> None:
    for source in sources:
        if not is_local(source.path) or is_pattern(source.path):
            continue
        if not Path(source.path).exists():
            raise FileNotFoundError(2, "No such folder", source.path)
        if not Path(source.path).is_dir():
            raise OptionError(
                f"--input {source.path}: a stream is a folder to which files are added, or a "
                "pattern of names"
            )
    guard = guard_of([*(s.path for s in sources), *target.queries], overwrite=False)
    places = target.places()
    refuse_nested_places({option: str(path) for option, path in places.items()})
    for option, path in places.items():
        guard.check_stream(path, option)
    for query, folder in _sinks(target).items():
        # Spark would take the batches for those that the folder has, and write nothing.
        if (folder / "_spark_metadata").exists() and not target.place(query).exists():
            raise OptionError(
                f"{folder} has the output of another run, with another checkpoint: use that "
                "checkpoint, or write to another folder"
            )


def _refuse_other(query: Query | WatchedRules, target: StreamTarget) -> None:
    """Refuse the checkpoint of another query."""
    if not target.place("matches").exists():
        return
    rules = isinstance(query, WatchedRules)
    if rules != target.versions.exists():
        was, now = ("a query", "a set of rules") if rules else ("a set of rules", "a query")
        raise OptionError(
            f"{target.checkpoint} is the checkpoint of {was}, and this is {now}: start with "
            "another checkpoint and another output"
        )


def _sinks(target: StreamTarget) -> dict[str, Path]:
    sinks = {"matches": target.output, "rejected": target.rejected / LINES}
    return sinks if target.timeouts is None else {**sinks, "timeouts": target.timeouts}


def _run(
    spark: SparkSession,
    query: Query | WatchedRules,
    sources: Sequence[InputSource],
    options: Options,
    target: StreamTarget,
    stopped: Stop,
    totals: Totals,
) -> None:
    only = query if isinstance(query, Query) else None
    folders = open_folders(spark, sources, only, options, target.checkpoint / "inputs.json")
    columns = [folder.form.columns for folder in folders]
    kinds = [c.field(options.time).type for c in columns if options.time in c.names]
    totals.integers = any(map(pa.types.is_integer, kinds))
    options = replace(options, future=_future(target.future, kinds), idle=target.idle)
    options = replace(options, heartbeat=target.heartbeat)
    data = _events(spark, folders, target)
    with _matching(query, data, replace(options, dead_letters=True)) as frames:
        frames["matches"] = divert(frames["matches"], target.rejected / ROWS)
        if isinstance(query, Query) and target.timeouts is not None:
            again = _events(spark, folders, target)
            frames["timeouts"] = cep.timeouts(again, query, options)
        for frame in frames.values():
            refuse_nested(arrow_schema(frame.schema), target.format)
        frames["rejected"] = read_rejected(spark, folders, target.max_files)
        unreadable = _unreadable(spark, folders, target)
        if (last := last_finished(str(target.place("matches")))) is not None:
            _tell_unreadable(unreadable.look_back(last.offsets), totals)
        starts = {
            name: partial(
                _start, frame, name, Format.JSON if name == "rejected" else target.format, target
            )
            for name, frame in frames.items()
        }
        with StreamQueries(starts) as running, screen() as show:
            waiting = WaitingFiles(folders, target.place("matches") / "sources")
            with journal_of(target, query) as journal:
                _watch(running, unreadable, waiting, stopped, totals, show, journal.add)


def _future(given: str | None, kinds: Sequence[pa.DataType]) -> str | None:
    """How far ahead of the clock events may be, by the types of their times in the files: those
    without a zone get one to have a watermark."""
    if given is not None:
        return None if given == OFF else given
    zoneless = any(
        pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)
        for kind in kinds
    )
    return WITHOUT_ZONE if zoneless else AUTO


@contextmanager
def _matching(
    query: Query | WatchedRules, data: Any, options: Options
) -> Iterator[dict[str, DataFrame]]:
    """The matches, by the name of their query. A folder of rules is watched for the length of the
    block."""
    match query:
        case Query():
            yield {"matches": query.match(data, options)}
        case WatchedRules():
            with running_rules(query, data, options) as matches:
                yield {"matches": matches}
        case _:
            assert_never(query)


def _events(spark: SparkSession, folders: Sequence[Folder], target: StreamTarget) -> Any:
    frames = {f.name: read_folder(spark, f, target.watermark, target.max_files) for f in folders}
    return frames.get("", frames)


def _start(frame: DataFrame, name: str, format: Format, target: StreamTarget) -> StreamingQuery:
    kind, options = spark_format(format, str(_sinks(target)[name]))
    writer = for_text(frame, format).writeStream.format(kind).options(**options).queryName(name)
    writer = writer.option("checkpointLocation", str(target.place(name)))
    match target.trigger:
        case None:
            pass
        case "once":
            writer = writer.trigger(availableNow=True)
        case interval:
            writer = writer.trigger(processingTime=interval)
    return writer.start(str(_sinks(target)[name]))


def _unreadable(spark: SparkSession, folders: Sequence[Folder], target: StreamTarget) -> Unreadable:
    log, listed = target.place("matches") / "sources", target.rejected / FILES
    return Unreadable(
        folders, log, listed, target.checkpoint / "checked.json", partial(read_error, spark)
    )


def _tell_unreadable(files: Mapping[str, str], totals: Totals) -> None:
    totals.files += len(files)
    for file, reason in files.items():
        # A terminal's status line stays below what is printed.
        print(f"couldn't read {file} to its end: {reason}", file=sys.stderr, flush=True)


def _watch(
    running: StreamQueries,
    unreadable: Unreadable,
    waiting: WaitingFiles,
    stopped: Stop,
    totals: Totals,
    show: Show,
    write: Callable[[Mapping[str, Any]], None],
) -> None:
    """Show progress until all queries are done, one fails, or the run is stopped."""
    matches, timeouts = NewReports(), NewReports()
    ended = False
    while not ended:
        ended = stopped.wait(_POLL_SECONDS) or not running.active
        for report in matches.of(running["matches"]):
            totals.add(status(report))
            totals.waiting = waiting.count()
            write(batch_figures(report, totals))
            _tell_unreadable(unreadable.look(report), totals)
        if "timeouts" in running:
            new = timeouts.of(running["timeouts"])
            totals.timeouts += sum(status(report).matches for report in new)
        if totals.batches:
            show(totals.line(clock.time()), totals.batches)
        again = running.check()
        ended = ended and (stopped.is_set() or not again)


@contextmanager
def ends_with(stopped: Stop) -> Iterator[None]:
    """Ignore failures after a stop signal: it often goes to all processes at once, and Spark's may
    end first."""
    try:
        yield
    except Exception:
        if not stopped.is_set():
            raise


@contextmanager
def stop_signals() -> Iterator[Stop]:
    """Ctrl-C and SIGTERM request a stop; a second one ends the process at once."""
    stopped = Stop()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.exit_code = 128 + number
        stopped.set()
        signal.signal(number, signal.SIG_DFL)

    before = {n: signal.signal(n, stop) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
