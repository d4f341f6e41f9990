"""`cepheid run`: the matches of a query in files of events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cepheid.cli import arguments
from cepheid.cli.output.show import console, rejected_text, sample, shown
from cepheid.cli.target import Result, Target, file_target, folder_target
from cepheid.extras import require
from cepheid.files.bad_rows import UTF_8, BadRows
from cepheid.files.formats import STANDARD, Format, is_local, output_format
from cepheid.files.guard import guard_of
from cepheid.options import Limit, Options

if TYPE_CHECKING:
    from cepheid.query import Query
    from cepheid.rules import RuleSet


class RuntimeName(StrEnum):
    LOCAL = "local"
    SPARK = "spark"


def run(
    input: arguments.Inputs,
    time: arguments.TimeColumn,
    queries: arguments.QueryFiles = None,
    query: arguments.QueryText = None,
    type: arguments.TypeColumn = None,
    tie: arguments.TieColumn = None,
    unit: arguments.Unit = None,
    param: arguments.Parameters = None,
    engine: arguments.EngineKind = None,
    plan: arguments.PlanShape = Options.plan,
    negation: arguments.NegationPlace = None,
    propagation: arguments.PropagationKind = None,
    stats: arguments.StatisticsFile = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Where to write the matches: a file, - for standard output, or a folder (Spark, "
            "several queries).",
        ),
    ] = None,
    format: Annotated[
        Format | None,
        typer.Option(
            help="By default it follows from the name of --output: Parquet without an ending, CSV "
            "on standard output."
        ),
    ] = None,
    overwrite: arguments.Overwrite = False,
    rejected: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Where to write rejected rows, with their file and the reason; they are always "
            "counted. For a stream the default is CHECKPOINT/rejected.",
        ),
    ] = None,
    input_format: arguments.InputFormat = None,
    schema: arguments.Schemas = None,
    bad_rows: arguments.BadRowsChoice = BadRows.REJECT,
    time_format: arguments.TimeFormatText = None,
    encoding: arguments.Encoding = UTF_8,
    runtime: Annotated[
        RuntimeName | None,
        typer.Option(help="By default local; spark if --master is given."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark's master.", show_default="local[*]")
    ] = None,
    show: Annotated[
        int, typer.Option(min=0, help="How many matches to print if there is no --output.")
    ] = 20,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Read --input as a folder to which files are added, until Ctrl-C.",
            rich_help_panel="Streams",
        ),
    ] = False,
    checkpoint: arguments.Checkpoint = None,
    trigger: arguments.Trigger = None,
    watermark: arguments.WatermarkDelay = None,
    future: arguments.Future = None,
    idle: arguments.Idle = None,
    heartbeat: arguments.Heartbeat = None,
    buckets: arguments.Buckets = None,
    max_files: arguments.MaxFiles = None,
    limit: arguments.StateLimit = None,
    shed: arguments.Shed = None,
    timeouts: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where to write expired partial matches, with what was missing.",
            rich_help_panel="Streams",
        ),
    ] = None,
    no_watch: Annotated[
        bool | None,
        typer.Option(
            "--no-watch",
            help="Keep the rules as they are at the start; ignore changes of their files.",
            rich_help_panel="Streams",
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
    Rules read events, never each other's matches.

        cepheid run rules/ --input cards.parquet --time ts --output found.parquet

    The plan is chosen by estimated cost, and revised during the run. --stats takes
    statistics from `cepheid analyze`. --engine, --plan, --negation and
    --propagation force a plan, and never change the matches. `cepheid explain` shows
    the plan.

    The local engine uses one thread and reads the columns that it needs into memory;
    use Spark for larger data. The matches are the same.

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
    """
    streaming = {
        "--checkpoint": checkpoint,
        "--trigger": trigger,
        "--watermark": watermark,
        "--future": future,
        "--idle": idle,
        "--heartbeat": heartbeat,
        "--buckets": buckets,
        "--max-files": max_files,
        "--limit": limit,
        "--shed": shed,
        "--timeouts": timeouts,
        "--no-watch": no_watch,
    }
    files = queries or []
    on_spark = stream or runtime is RuntimeName.SPARK or (runtime is None and master is not None)
    if not stream and (given := [name for name, value in streaming.items() if value is not None]):
        raise typer.BadParameter(f"{given[0]} is for --stream")
    if stream:
        _check_stream(output, checkpoint, overwrite, runtime, files, shed and limit is None)
    elif master is not None and not on_spark:
        raise typer.BadParameter("--master is for --runtime spark")
    elif len(files) > 1 and on_spark:
        raise typer.BadParameter("this command runs several queries in process, not on Spark")
    if on_spark and arguments.reads_standard_input(input):
        raise typer.BadParameter("Spark reads files, not standard input: --input PATH")
    if on_spark:
        require("spark")
    # Imported when needed, so that --help comes at once.
    from cepheid.cli.inputs import make_options
    from cepheid.cli.queries import (
        WatchedRules,
        files_read,
        read_queries,
        read_stream,
        refuse_unknown,
    )
    from cepheid.query import Query

    sources = arguments.parse_inputs(input, input_format, schema, time_format, encoding, bad_rows)
    options = make_options(time, type, tie, unit, param, plan, negation, propagation, stats, engine)
    if output is not None and checkpoint is not None:
        from cepheid.cli.stream.run_stream import StreamTarget, run_stream

        endless = StreamTarget(
            Path(output),
            output_format(Path(output), format),
            checkpoint,
            checkpoint / "rejected" if rejected is None else Path(rejected),
            timeouts,
            trigger,
            watermark,
            future,
            idle,
            heartbeat,
            max_files,
            files,
        )
        only = files[0] if files else None
        running = read_stream(only, query, options.params, endless.versions, not no_watch)
        if isinstance(running, WatchedRules) and timeouts is not None:
            raise typer.BadParameter("--timeouts is for a single query: rules have none")
        if no_watch and not isinstance(running, WatchedRules):
            raise typer.BadParameter("--no-watch is for a set of rules")
        if isinstance(running, Query):
            refuse_unknown(options.params, (running,))
        policy: Literal["fail", "drop-oldest"] = "drop-oldest" if shed else "fail"
        limited = None if limit is None else Limit(total=limit, policy=policy)
        options = replace(options, buckets=buckets, limit=limited)
        text, code = run_stream(running, sources, options, endless, master or "local[*]")
        typer.echo(text)
        raise typer.Exit(code)
    wanted = read_queries(files, query, options.params)
    refuse_unknown(options.params, wanted)
    guard = guard_of([*(s.path for s in sources), *files_read(files, wanted), stats], overwrite)
    if on_spark:
        target = folder_target(output, format, rejected, show, guard)
        results = _run_on_spark(wanted, sources, options, target, master or "local[*]")
    else:
        target = file_target(output, format, rejected, show, guard, several=len(files) > 1)
        results = _run_here(wanted, sources, options, target)
    _print(results, target)
    if not next(iter(results.values())).figures.events:
        paths = ", ".join(source.path for source in sources)
        typer.echo(f"{paths} has no events: there is nothing to match", err=True)


def _check_stream(
    output: str | None,
    checkpoint: Path | None,
    overwrite: bool,
    runtime: RuntimeName | None,
    files: list[Path],
    unlimited: bool | None,
) -> None:
    if output is None or checkpoint is None:
        missing = "--output" if output is None else "--checkpoint"
        raise typer.BadParameter(f"--stream needs {missing}, a folder to write to")
    if not is_local(output) or output == STANDARD:
        raise typer.BadParameter("--stream writes to a folder on this machine: --output found/")
    if overwrite:
        raise typer.BadParameter(
            "--overwrite isn't for --stream, which adds to its output; remove --output and "
            "--checkpoint to begin again"
        )
    if unlimited:
        raise typer.BadParameter("--shed needs --limit")
    if runtime is RuntimeName.LOCAL or len(files) > 1:
        local = runtime is RuntimeName.LOCAL
        reason = "is for Spark" if local else "runs one query, or a folder of rules"
        raise typer.BadParameter(f"--stream {reason}")


def _run_on_spark(
    wanted: tuple[Query, ...] | RuleSet,
    sources: tuple[arguments.InputSource, ...],
    options: Options,
    target: Target,
    master: str,
) -> dict[str, Result]:
    from cepheid.cli.batch.run_spark import run_on_spark

    one = wanted[0] if isinstance(wanted, tuple) else wanted
    return {"": run_on_spark(one, sources, options, target, master)}


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
