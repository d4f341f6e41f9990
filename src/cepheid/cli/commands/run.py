"""`cepheid run`: the matches of a query in files of events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from cepheid.cli import arguments
from cepheid.cli.option_groups import (
    EventOptions,
    FileOptions,
    OutputOptions,
    PlanOptions,
    StreamOptions,
    flat,
)
from cepheid.cli.output.command_words import in_command_words
from cepheid.cli.output.show import console, rejected_text, sample, shown
from cepheid.cli.target import Result, Target, file_target, folder_target
from cepheid.extras import require
from cepheid.files.formats import STANDARD, is_local, output_format
from cepheid.files.guard import guard_of
from cepheid.options import Limit, Options

if TYPE_CHECKING:
    from cepheid.query import Query
    from cepheid.rules import RuleSet


class RuntimeName(StrEnum):
    LOCAL = "local"
    SPARK = "spark"


@flat
def run(
    events: EventOptions,
    read: FileOptions,
    forced: PlanOptions,
    results: OutputOptions,
    endless: StreamOptions,
    queries: arguments.QueryFiles = None,
    query: arguments.QueryText = None,
    runtime: Annotated[
        RuntimeName | None,
        typer.Option(help="By default local; spark if --master is given."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark's master.", show_default="local[*]")
    ] = None,
    until: arguments.Until = None,
    threads: arguments.Threads = Options.threads,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Read --input as a folder to which files are added, until Ctrl-C.",
            rich_help_panel="Streams",
        ),
    ] = False,
    timeline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw events and matches on a time axis, as .html or .svg: of a query that runs "
            "in process.",
        ),
    ] = None,
) -> None:
    """Find the matches of a query, or of a set of rules, in files of events.

    Parquet, CSV (with a header), TSV and lines of JSON are read, according to the file
    names; text may be .gz or .bz2. Without --output the first matches are printed.
    Figures are always printed. Existing files are replaced only with --overwrite,
    and inputs never.

        cepheid run theft.cep --input rfid.parquet --time ts --type type

        cepheid run news.cep --input trades=trades.csv --input news=news.jsonl
            --time ts --param limit=5 --output found.parquet

        cepheid run fraud.cep --input s3a://bank/cards/ --time ts --tie id
            --master 'local[8]' --output found/

        cepheid run -q 'PATTERN a ; b WHERE a.x < b.x WITHIN 5 minutes' --time ts
            --input 'logs/*.csv.gz' --output - --format json

    With several queries, one may read the matches of another by its INTO label, in
    any order; each then has a file in the --output folder.

        cepheid run low.cep high.cep double-top.cep --input stocks.csv --time ts

    A folder is a set of rules, and so is a single file with several queries, or
    with a table of its parameters beside it (big.csv for INTO big or big.cep).
    All rules have one table of matches: rule, match_start, match_end, the columns
    that the rule returns as JSON in match, and other columns of the parameter tables.
    A rule may read the matches of another one, by its name.

        cepheid run rules/ --input cards.parquet --time ts --output found.parquet

    The plan is chosen by estimated cost, and revised during the run. --stats takes
    statistics from `cepheid analyze`. --engine, --plan, --negation and
    --propagation force a plan, and never change the matches. `cepheid explain` shows
    the plan.

    The local engine reads the columns that it needs into memory, and matches them in
    one thread, or in --threads; use Spark for larger data. The matches are the same.

    With --stream the files of a folder are read as they arrive, until Ctrl-C. The same
    command resumes where it stopped; every match is written once. Lines that aren't
    events are counted, and kept in CHECKPOINT/rejected.

        cepheid run fraud.cep --stream --input cards/ --time ts
            --output found/ --checkpoint state/ --watermark '10 seconds'

    Rules may change while the stream runs: their files are watched, and a change takes
    effect with the next batch. Unchanged rules keep their state. Errors are reported;
    the old rules keep running.

        cepheid run rules/ --stream --input cards/ --time ts
            --output found/ --checkpoint state/ --trigger '10 seconds'

    Several queries may read each other's matches here, too. Each has a folder in --output,
    and they resume together.

        cepheid run low.cep high.cep double-top.cep --stream --input stocks/ --time ts
            --output found/ --checkpoint state/
    """
    files = queries or []
    if stream:
        _check_stream(results, endless, runtime)
    elif endless.given:
        raise typer.BadParameter(f"{endless.given[0]} is for --stream")
    on_spark = stream or _is_on_spark(runtime, master, files)
    if on_spark and arguments.reads_standard_input(events.input):
        raise typer.BadParameter("Spark reads files, not standard input: --input PATH")
    if on_spark and threads != Options.threads:
        raise typer.BadParameter("--threads is for a run in process; on Spark, --master 'local[4]'")
    if on_spark:
        require("spark")
    if endless.page:
        require("lab")
    if timeline is not None:
        _check_timeline(timeline, on_spark, arguments.reads_standard_input(events.input))
    # Imported when needed, so that --help comes at once.
    from cepheid.cli.inputs import input_sources, make_options

    sources = input_sources(events, read)
    options = replace(make_options(events, forced), until=until, threads=threads)
    if stream:
        _run_stream(files, query, sources, options, results, endless, master or "local[*]")
    spark = (master or "local[*]") if on_spark else None
    _run_batch(files, query, sources, options, results, forced.stats, spark, timeline)


def _is_on_spark(runtime: RuntimeName | None, master: str | None, files: list[Path]) -> bool:
    on_spark = runtime is RuntimeName.SPARK or (runtime is None and master is not None)
    if master is not None and not on_spark:
        raise typer.BadParameter("--master is for --runtime spark")
    if len(files) > 1 and on_spark:
        raise typer.BadParameter("this command runs several queries in process, not on Spark")
    return on_spark


def _check_timeline(path: Path, on_spark: bool, piped: bool) -> None:
    if on_spark:
        raise typer.BadParameter("--timeline is for a run in process: leave Spark out")
    if piped:
        raise typer.BadParameter("--timeline reads the events again: --input FILE")
    if path.suffix.lower() not in (".html", ".svg"):
        raise typer.BadParameter(f"a timeline is .html or .svg, not {path.name}")


def _run_batch(
    files: list[Path],
    query: str | None,
    sources: tuple[arguments.InputSource, ...],
    options: Options,
    results: OutputOptions,
    stats: Path | None,
    master: str | None,
    timeline: Path | None,
) -> None:
    """Run over finite data: on Spark if there is a master."""
    from cepheid.cli.queries import files_read, read_queries, refuse_unknown

    wanted = read_queries(files, query, options.params)
    refuse_unknown(options.params, wanted)
    inputs = [*(source.path for source in sources), *files_read(files, wanted), stats]
    guard = guard_of(inputs, results.overwrite)
    if timeline is not None:
        if not isinstance(wanted, tuple) or len(wanted) > 1:
            raise typer.BadParameter("--timeline is for one query")
        guard.check_file(timeline, "--timeline")
    output, format, rejected, show = results.output, results.format, results.rejected, results.show
    if master is not None:
        target = folder_target(output, format, rejected, show, guard)
        by_name = _run_on_spark(wanted, sources, options, target, master)
    else:
        target = file_target(output, format, rejected, show, guard, several=len(files) > 1)
        by_name = _run_here(wanted, sources, options, target)
    if timeline is not None and isinstance(wanted, tuple):
        from cepheid.cli.batch.run_timeline import write_timeline

        write_timeline(wanted[0], sources, options, timeline, guard)
    _print(by_name, target)
    if not next(iter(by_name.values())).figures.events:
        paths = ", ".join(source.path for source in sources)
        empty = f"{paths} has no events: there is nothing to match"
        typer.echo(in_command_words(empty), err=True)


def _check_stream(
    results: OutputOptions, endless: StreamOptions, runtime: RuntimeName | None
) -> None:
    output, checkpoint = results.output, endless.checkpoint
    if output is None or checkpoint is None:
        missing = "--output" if output is None else "--checkpoint"
        raise typer.BadParameter(f"--stream needs {missing}, a folder to write to")
    if not is_local(output) or output == STANDARD:
        raise typer.BadParameter("--stream writes to a folder on this machine: --output found/")
    if results.overwrite:
        raise typer.BadParameter(
            "--overwrite isn't for --stream, which adds to its output; remove --output and "
            "--checkpoint to begin again"
        )
    if endless.shed and endless.limit is None:
        raise typer.BadParameter("--shed needs --limit")
    if runtime is RuntimeName.LOCAL:
        raise typer.BadParameter("--stream is for Spark")


def _run_stream(
    files: list[Path],
    query: str | None,
    sources: tuple[arguments.InputSource, ...],
    options: Options,
    results: OutputOptions,
    endless: StreamOptions,
    master: str,
) -> NoReturn:
    from cepheid.cli.queries import (
        SeveralQueries,
        WatchedRules,
        output_names,
        read_stream,
        refuse_unknown,
    )
    from cepheid.cli.stream.run_stream import run_stream
    from cepheid.cli.stream.stream_target import StreamTarget
    from cepheid.query import Query

    output, checkpoint, rejected = results.output, endless.checkpoint, results.rejected
    assert output is not None and checkpoint is not None  # _check_stream sees to that
    target = StreamTarget(
        Path(output),
        output_format(Path(output), results.format),
        checkpoint,
        checkpoint / "rejected" if rejected is None else Path(rejected),
        endless.timeouts,
        endless.trigger,
        endless.watermark,
        endless.future,
        endless.idle,
        endless.heartbeat,
        endless.max_files,
        files,
        endless.page is True,
    )
    running = read_stream(files, query, options.params, target.versions, not endless.no_watch)
    if not isinstance(running, Query) and endless.timeouts is not None:
        raise typer.BadParameter("--timeouts is for a single query")
    if endless.no_watch and not isinstance(running, WatchedRules):
        raise typer.BadParameter("--no-watch is for a set of rules")
    match running:
        case Query():
            refuse_unknown(options.params, (running,))
        case SeveralQueries(queries):
            refuse_unknown(options.params, queries)
            target = replace(target, several=tuple(output_names(queries).values()))
            if endless.page:
                raise typer.BadParameter("--page is for a single query, or a set of rules")
        case WatchedRules():
            pass
    policy: Literal["fail", "drop-oldest"] = "drop-oldest" if endless.shed else "fail"
    limited = None if endless.limit is None else Limit(total=endless.limit, policy=policy)
    options = replace(options, buckets=endless.buckets, limit=limited)
    text, code = run_stream(running, sources, options, target, master)
    typer.echo(text)
    raise typer.Exit(code)


def _run_on_spark(
    wanted: tuple[Query, ...] | RuleSet,
    sources: tuple[arguments.InputSource, ...],
    options: Options,
    target: Target,
    master: str,
) -> dict[str, Result]:
    from cepheid.cli.batch.run_spark import run_on_spark

    query = wanted[0] if isinstance(wanted, tuple) else wanted
    return {"": run_on_spark(query, sources, options, target, master)}


def _run_here(
    wanted: tuple[Query, ...] | RuleSet,
    sources: tuple[arguments.InputSource, ...],
    options: Options,
    target: Target,
) -> dict[str, Result]:
    """The results by their names; one alone has none."""
    from cepheid.cli.batch.run_local import run_here
    from cepheid.cli.batch.run_rules import run_rules_here
    from cepheid.cli.batch.run_several import run_several

    match wanted:
        case (query,):
            return {"": run_here(query, sources, options, target)}
        case tuple():
            return run_several(wanted, sources, options, target)
        case _:
            return {"": run_rules_here(wanted, sources, options, target)}


def _print(results: Mapping[str, Result], target: Target) -> None:
    screen = console(stderr=target.piped)
    if target.output is not None and target.output != STANDARD:
        screen.print(f"matches in {target.output} ({target.format.value})", highlight=False)
    for name, result in results.items():
        if name:
            screen.print(f"{name}:", highlight=False)
        if target.output is None and target.limit:
            screen.print(sample(result.names, result.rows, screen.width))
            if len(result.rows) < result.figures.matches:
                screen.print(shown(len(result.rows), result.figures.matches), highlight=False)
        rules = result.rules
        screen.print(result.figures.table(None if rules is None else rules.figures()))
        if rules is not None and rules.counts:
            screen.print()
            screen.print(rules.table())
    first = next(iter(results.values()))
    if first.rejected:
        # Not where the matches are, which may be piped.
        text = rejected_text(first.rejected, first.figures.rejected or 0, target.rejected)
        typer.echo(text, err=True)
