"""`cepheid run --stream`: queries or rules over the files of a folder, and over those that come.

Streaming queries, each with its own checkpoint: the matches (one for each of several queries),
what was rejected, and if wanted the partial matches that expired. They are started and stopped
together, and a run with the same checkpoint resumes where they were.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa

import cepheid as cep
from cepheid.cli.arguments import InputSource
from cepheid.cli.inputs import input_options
from cepheid.cli.output.failure import SET_ASIDE
from cepheid.cli.queries import Running, SeveralQueries, WatchedRules, output_names
from cepheid.cli.spark_session import EXACT_NAMES, errors_to
from cepheid.cli.stream.checkpoint_lock import locked
from cepheid.cli.stream.dead_letters import divert
from cepheid.cli.stream.stream_columns import Folder, open_folders
from cepheid.cli.stream.stream_page import batch_figures, journal_of, page_beside
from cepheid.cli.stream.stream_queries import StreamQueries
from cepheid.cli.stream.stream_rules import running_rules
from cepheid.cli.stream.stream_source import read_error, read_folder, read_rejected
from cepheid.cli.stream.stream_status import PLAIN_WIDTH, Totals, many, screen, wrapped
from cepheid.cli.stream.stream_target import (
    FILES,
    LINES,
    MATCHES,
    OFF,
    OUTPUTS,
    REJECTED,
    ROWS,
    TIMEOUTS,
    StreamTarget,
    marked,
    refuse_other,
    refuse_places,
)
from cepheid.cli.stream.stream_watch import Stop, WatchedOutput, tell_unreadable, watch
from cepheid.cli.stream.unreadable import Unreadable
from cepheid.cli.stream.waiting_files import WaitingFiles
from cepheid.cli.target import refuse_nested
from cepheid.files.formats import Format, spark_format
from cepheid.options import AUTO, Options
from cepheid.query import Query
from cepheid.query.chains import match_streams
from cepheid.spark.columns.schema import arrow_schema
from cepheid.spark.event_files.text_values import for_text
from cepheid.spark.start.session import local_session
from cepheid.spark.streaming.clock.ahead import WITHOUT_ZONE
from cepheid.spark.streaming.status.checkpoint import last_finished

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def run_stream(
    query: Running,
    sources: Sequence[InputSource],
    options: Options,
    target: StreamTarget,
    master: str,
) -> tuple[str, int]:
    """Run until the files are done, or until the stream is stopped; return the summary and the exit
    code."""
    for source in sources:  # what is wrong with them, before Spark starts
        input_options(source, options.time)
    refuse_places(sources, target)
    refuse_other(query, target)
    with (
        marked(target),
        locked(target.checkpoint),
        page_beside(target.checkpoint, target.page),
    ):
        return _run_alone(query, sources, options, target, master)


def _run_alone(
    query: Running,
    sources: Sequence[InputSource],
    options: Options,
    target: StreamTarget,
    master: str,
) -> tuple[str, int]:
    with errors_to(target.checkpoint / "spark.log"):
        spark = local_session(master, app="cepheid run --stream", config=EXACT_NAMES)
    totals = {name: Totals() for name in target.outputs}
    with stop_signals() as stopped:
        try:
            with ends_with(stopped):
                _run(spark, query, sources, options, target, stopped, totals)
        finally:
            with ends_with(stopped):
                spark.stop()
    complete = all(of.complete for of in totals.values())
    code = stopped.exit_code or (0 if complete else SET_ASIDE)
    grouped = isinstance(query, Query) and query.syntax.group_by is not None
    what = "answers" if grouped else "matches"
    return _summary(totals, target, what, stopped.is_set()), code


def _summary(totals: Mapping[str, Totals], target: StreamTarget, what: str, stopped: bool) -> str:
    lines = list[str]()
    for (name, place), of in zip(target.outputs.items(), totals.values(), strict=True):
        ended = f"{'stopped' if stopped else 'done'} after {many(of.batches, 'batch', 'es')}"
        lines += [wrapped(f"{target.title(name)}{ended}: {of.counts()}", PLAIN_WIDTH)]
        lines += [f"{what} in {place} ({target.format.value})"]
    if target.timeouts is not None:
        lines += [f"timeouts in {target.timeouts} ({target.format.value})"]
    if any(of.rejected for of in totals.values()):
        lines += [f"rejected lines in {target.rejected / LINES} (json)"]
    outside = any(of.late or of.future for of in totals.values())
    if outside and (target.rejected / ROWS).exists():
        lines += [f"rows that were late or ahead of the clock in {target.rejected / ROWS} (json)"]
    if any(of.files for of in totals.values()):
        lines += [f"unreadable files in {target.rejected / FILES}"]
    return "\n".join([*lines, "resume with the same command"] if stopped else lines)


def _run(
    spark: SparkSession,
    query: Running,
    sources: Sequence[InputSource],
    options: Options,
    target: StreamTarget,
    stopped: Stop,
    totals: Mapping[str, Totals],
) -> None:
    folders = open_folders(
        spark, sources, _queries(query), options, target.checkpoint / "inputs.json"
    )
    columns = [folder.form.columns for folder in folders]
    kinds = [c.field(options.time).type for c in columns if options.time in c.names]
    for of in totals.values():
        of.integers = any(map(pa.types.is_integer, kinds))
    options = replace(options, future=_future(target.future, kinds), idle=target.idle)
    options = replace(options, heartbeat=target.heartbeat)
    data = _events(spark, folders, target)
    with _matching(query, data, options, target) as frames:
        if isinstance(query, Query) and target.timeouts is not None:
            again = _events(spark, folders, target)
            frames[TIMEOUTS] = cep.timeouts(again, query, replace(options, dead_letters=True))
        for frame in frames.values():
            refuse_nested(arrow_schema(frame.schema), target.format)
        frames[REJECTED] = read_rejected(spark, folders, target.max_files, bool(target.several))
        unreadable = _unreadable(spark, folders, target)
        if (last := last_finished(str(target.place(unreadable.query)))) is not None:
            tell_unreadable(unreadable.look_back(last.offsets), totals.values())
        starts = {
            name: partial(
                _start, frame, name, Format.JSON if name == REJECTED else target.format, target
            )
            for name, frame in frames.items()
        }
        with (
            StreamQueries(starts) as running,
            screen() as show,
            _outputs(query, folders, target, totals) as outputs,
        ):
            watch(running, outputs, unreadable, stopped, show)


def _queries(query: Running) -> Sequence[Query]:
    """Those whose columns are read; rules may come to read any."""
    match query:
        case Query():
            return (query,)
        case SeveralQueries(queries):
            return queries
        case WatchedRules():
            return ()
        case _:
            assert_never(query)


@contextmanager
def _outputs(
    query: Running, folders: Sequence[Folder], target: StreamTarget, totals: Mapping[str, Totals]
) -> Iterator[list[WatchedOutput]]:
    """What is shown of each streaming query that finds matches. The page has that of one alone."""

    def output(name: str, of: Totals) -> WatchedOutput:
        waiting = WaitingFiles(folders, target.place(name) / "sources")
        return WatchedOutput(name, target.title(name), of, waiting)

    outputs = [output(name, of) for name, of in totals.items()]
    if isinstance(query, SeveralQueries):
        yield outputs
        return
    with journal_of(target, query) as journal:
        (only,) = outputs
        only.write = lambda report: journal.add(batch_figures(report, only.totals))
        yield outputs


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
    query: Running, data: Any, options: Options, target: StreamTarget
) -> Iterator[dict[str, DataFrame]]:
    """The matches, by the name of their streaming query. A folder of rules is watched for the
    length of the block."""
    options, rows = replace(options, dead_letters=True), target.rejected / ROWS
    match query:
        case Query():
            yield {MATCHES: divert(query.match(data, options), rows)}
        case WatchedRules():
            with running_rules(query, data, options) as matches:
                yield {MATCHES: divert(matches, rows)}
        case SeveralQueries(queries):
            yield _several(queries, data, options, target)
        case _:
            assert_never(query)


def _several(
    queries: Sequence[Query], data: Any, options: Options, target: StreamTarget
) -> dict[str, DataFrame]:
    """The matches of each; the rows that are late for each have a folder of their own."""
    found = match_streams(data, queries, options)
    return {
        f"{OUTPUTS}/{title}": divert(found[name], target.rejected / ROWS / title)
        for name, title in output_names(queries).items()
    }


def _events(spark: SparkSession, folders: Sequence[Folder], target: StreamTarget) -> Any:
    frames = {f.name: read_folder(spark, f, target.watermark, target.max_files) for f in folders}
    return frames.get("", frames)


def _start(frame: DataFrame, name: str, format: Format, target: StreamTarget) -> StreamingQuery:
    kind, options = spark_format(format, str(target.sinks[name]))
    writer = for_text(frame, format).writeStream.format(kind).options(**options).queryName(name)
    writer = writer.option("checkpointLocation", str(target.place(name)))
    match target.trigger:
        case None:
            pass
        case "once":
            writer = writer.trigger(availableNow=True)
        case interval:
            writer = writer.trigger(processingTime=interval)
    return writer.start(str(target.sinks[name]))


def _unreadable(spark: SparkSession, folders: Sequence[Folder], target: StreamTarget) -> Unreadable:
    """Of several queries, each may read some of the files, or read them twice: what was rejected is
    looked for in each file once."""
    query = REJECTED if target.several else MATCHES
    return Unreadable(
        folders,
        target.place(query) / "sources",
        target.rejected / FILES,
        target.checkpoint / "checked.json",
        partial(read_error, spark),
        query,
    )


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
