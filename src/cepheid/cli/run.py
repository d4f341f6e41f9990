"""`cepheid run`: the matches of a query in files of events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cepheid.cli import arguments
from cepheid.cli.show import console, rejected_text, sample, shown
from cepheid.cli.target import Result, Target, file_target, folder_target
from cepheid.extras import require
from cepheid.files.bad_rows import UTF_8, BadRows
from cepheid.files.formats import STANDARD, Format, is_local, output_format
from cepheid.files.guard import guard_of
from cepheid.options import Limit, Options

if TYPE_CHECKING:
    from cepheid.query import Query
    from cepheid.rules import RuleSet


class EngineName(StrEnum):
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
    evaluation: arguments.EvaluationKind = None,
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
            help="Where the matches go: a file, or - for standard output; from Spark or of several "
            "queries a folder.",
        ),
    ] = None,
    format: Annotated[
        Format | None,
        typer.Option(
            help="Of the output: by default what its name ends with, Parquet if it has no ending, "
            "and CSV on standard output."
        ),
    ] = None,
    overwrite: arguments.Overwrite = False,
    rejected: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Where rows go that aren't events, with their file and the reason; they are "
            "always counted. Of a stream, by default CHECKPOINT/rejected.",
        ),
    ] = None,
    input_format: arguments.InputFormat = None,
    schema: arguments.Schemas = None,
    bad_rows: arguments.BadRowsChoice = BadRows.REJECT,
    time_format: arguments.TimeFormatText = None,
    encoding: arguments.Encoding = UTF_8,
    engine: Annotated[
        EngineName | None,
        typer.Option(help="By default local; spark if --master is given."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark's master.", show_default="local[*]")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, help="How many matches to print if there is no --output.")
    ] = 20,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Take the --input as a folder to which files are added, and go on for ever.",
            rich_help_panel="Streams",
        ),
    ] = False,
    checkpoint: arguments.Checkpoint = None,
    trigger: arguments.Trigger = None,
    watermark: arguments.WatermarkDelay = None,
    future: arguments.Future = None,
    buckets: arguments.Buckets = None,
    max_files: arguments.MaxFiles = None,
    state_limit: arguments.StateLimit = None,
    shed: arguments.Shed = None,
    timeouts: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where partial matches go that expired, with what was missing.",
            rich_help_panel="Streams",
        ),
    ] = None,
    no_watch: Annotated[
        bool | None,
        typer.Option(
            "--no-watch",
            help="Keep a set of rules as it is at the start, whatever changes in its files.",
            rich_help_panel="Streams",
        ),
    ] = None,
) -> None:
    """Find the matches of a query, or of a set of rules, in files of events.

    Parquet, CSV (with a header), TSV and lines of JSON are read, by what the names
    end with; text may be .gz or .bz2. Without --output the first matches are
    printed, and always the figures. Nothing that exists is replaced without
    --overwrite, and what is read never is.

        cepheid run theft.cep --input rfid.parquet --time ts --type type

        cepheid run news.cep --input trades=trades.csv --input news=news.jsonl
            --time ts --param limit=5 --output found.parquet

        cepheid run fraud.cep --input s3a://bank/cards/ --time ts --tie id
            --master 'local[8]' --output found/

        cepheid run -q 'PATTERN a ; b WHERE a.x < b.x WITHIN 5 minutes' --time ts
            --input 'logs/*.csv.gz' --output - --format json

    Of several queries, one may read what another finds under its INTO label, in
    whatever order they are given; each then has a file in the --output folder.

        cepheid run low.cep high.cep double-top.cep --input stocks.csv --time ts

    A folder is a set of rules, and so is a single file with several queries, or
    with a table of its parameters beside it (big.csv for INTO big or big.cep).
    All rules have one table of matches: rule, match_start, match_end, what the
    rule returns as JSON in match, and what else the tables of parameters have.
    Rules read events, never each other's matches.

        cepheid run rules/ --input cards.parquet --time ts --output found.parquet

    The plan is chosen by its estimated cost, and changed during the run if the
    data turn out otherwise. --stats tells what `cepheid analyze` has found out
    before; --evaluation, --plan, --negation and --propagation decide instead, and
    never change what is found. `cepheid explain` shows the plan.

    The local engine uses one thread and reads the columns that it needs into
    memory; Spark takes what is larger. The matches are the same.

    With --stream the files of a folder are read as they come, until Ctrl-C. The
    same command goes on where it was stopped; every match is found once. What
    can't be read as an event is counted, and kept in CHECKPOINT/rejected.

        cepheid run fraud.cep --stream --input cards/ --time ts
            --output found/ --checkpoint state/ --watermark '10 seconds'

    Rules may change while the stream runs: their files are watched, and what has
    changed holds from the next batch on. Rules that stay the same aren't touched.
    What is wrong is told, and goes on as it was.

        cepheid run rules/ --stream --input cards/ --time ts
            --output found/ --checkpoint state/ --trigger '10 seconds'
    """
    streaming = {
        "--checkpoint": checkpoint,
        "--trigger": trigger,
        "--watermark": watermark,
        "--future": future,
        "--buckets": buckets,
        "--max-files": max_files,
        "--state-limit": state_limit,
        "--shed": shed,
        "--timeouts": timeouts,
        "--no-watch": no_watch,
    }
    files = queries or []
    on_spark = stream or engine is EngineName.SPARK or (engine is None and master is not None)
    if not stream and (given := [name for name, value in streaming.items() if value is not None]):
        raise typer.BadParameter(f"{given[0]} is for --stream")
    if stream:
        batch_only = {
            "--bad-rows": bad_rows is not BadRows.REJECT,
            "--time-format": time_format is not None,
            "--encoding": encoding != UTF_8,
        }
        for option in (name for name, chosen in batch_only.items() if chosen):
            raise typer.BadParameter(f"{option} isn't for --stream, which reads UTF-8 and ISO 8601")
        _check_stream(output, checkpoint, overwrite, engine, files, shed and state_limit is None)
    elif master is not None and not on_spark:
        raise typer.BadParameter("--master is for --engine spark")
    elif len(files) > 1 and on_spark:
        raise typer.BadParameter("several queries are run here, not on Spark, by this command")
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
    options = make_options(
        time, type, tie, unit, param, plan, negation, propagation, stats, evaluation
    )
    if output is not None and checkpoint is not None:
        from cepheid.cli.run_stream import StreamTarget, run_stream

        endless = StreamTarget(
            Path(output),
            output_format(Path(output), format),
            checkpoint,
            checkpoint / "rejected" if rejected is None else Path(rejected),
            timeouts,
            trigger,
            watermark,
            future,
            max_files,
            input_format,
            {s.name or "": s.declared for s in sources if s.declared is not None},
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
        limited = None if state_limit is None else Limit(total=state_limit, policy=policy)
        options = replace(options, buckets=buckets, limit=limited)
        text, code = run_stream(running, sources, options, endless, master or "local[*]")
        typer.echo(text)
        raise typer.Exit(code)
    wanted = read_queries(files, query, options.params)
    refuse_unknown(options.params, wanted)
    guard = guard_of([*(s.path for s in sources), *files_read(files, wanted), stats], overwrite)
    if on_spark:
        target = folder_target(output, format, rejected, limit, guard)
        results = _run_on_spark(wanted, sources, options, target, master or "local[*]")
    else:
        target = file_target(output, format, rejected, limit, guard, several=len(files) > 1)
        results = _run_here(wanted, sources, options, target)
    _print(results, target)
    if not next(iter(results.values())).figures.events:
        paths = ", ".join(source.path for source in sources)
        typer.echo(f"{paths} has no events: there is nothing to match", err=True)


def _check_stream(
    output: str | None,
    checkpoint: Path | None,
    overwrite: bool,
    engine: EngineName | None,
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
        raise typer.BadParameter("--shed needs --state-limit")
    if engine is EngineName.LOCAL or len(files) > 1:
        local = engine is EngineName.LOCAL
        reason = "is for Spark" if local else "runs one query, or a folder of rules"
        raise typer.BadParameter(f"--stream {reason}")


def _run_on_spark(
    wanted: tuple[Query, ...] | RuleSet,
    sources: tuple[arguments.Input, ...],
    options: Options,
    target: Target,
    master: str,
) -> dict[str, Result]:
    from cepheid.cli.run_spark import run_on_spark

    one = wanted[0] if isinstance(wanted, tuple) else wanted
    return {"": run_on_spark(one, sources, options, target, master)}


def _run_here(
    wanted: tuple[Query, ...] | RuleSet,
    sources: tuple[arguments.Input, ...],
    options: Options,
    target: Target,
) -> dict[str, Result]:
    """The results by their names; one alone has none."""
    from cepheid.cli.run_local import run_here
    from cepheid.cli.run_rules import run_rules_here
    from cepheid.cli.run_several import run_several

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
