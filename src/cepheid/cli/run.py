"""`cepheid run`: the matches of a query in files of events."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli import arguments
from cepheid.cli.files import Format, format_of
from cepheid.cli.show import console, sample
from cepheid.cli.target import Target
from cepheid.options import Options


class EngineName(StrEnum):
    LOCAL = "local"
    SPARK = "spark"


def run(
    query: arguments.QueryFile,
    input: arguments.Inputs,
    time: arguments.TimeColumn,
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
        Path | None,
        typer.Option("--output", "-o", help="Where the matches go: a file, from Spark a folder."),
    ] = None,
    format: Annotated[
        Format | None,
        typer.Option(help="Of the output: by default what its name ends with, or else Parquet."),
    ] = None,
    rejected: Annotated[
        Path | None, typer.Option(help="Where rows without a time go; they are always counted.")
    ] = None,
    input_format: arguments.InputFormat = None,
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
) -> None:
    """Find a query's matches in files of events.

    Parquet, CSV (with a header) and lines of JSON are read. Without --output the
    first matches are printed, and always the figures.

        cepheid run theft.cep --input rfid.parquet --time ts --type type

        cepheid run news.cep --input trades=trades.csv --input news=news.jsonl
            --time ts --param limit=5 --output found.parquet

        cepheid run fraud.cep --input s3a://bank/cards/ --time ts --tie id
            --master 'local[8]' --output found/

    The plan is chosen by its estimated cost, and changed during the run if the
    data turn out otherwise. --stats tells what `cepheid analyze` has found out
    before; --evaluation, --plan, --negation and --propagation decide instead, and
    never change what is found. `cepheid explain` shows the plan.

    The local engine uses one thread and reads the columns that it needs into
    memory; Spark takes what is larger. The matches are the same.
    """
    sources = arguments.parse_inputs(input, input_format)
    target = Target(output, format_of(output or Path(), format), rejected, limit)
    # Imported when needed, so that --help comes at once.
    from cepheid.cli.inputs import make_options, read_query

    options = make_options(
        time, type, tie, unit, param, plan, negation, propagation, stats, evaluation
    )
    if engine is EngineName.SPARK or (engine is None and master is not None):
        from cepheid.cli.run_spark import run_on_spark

        result = run_on_spark(read_query(query), sources, options, target, master or "local[*]")
    elif master is not None:
        raise typer.BadParameter("--master is for --engine spark")
    else:
        from cepheid.cli.run_local import run_here

        result = run_here(read_query(query), sources, options, target)
    screen = console()
    if output is not None:
        screen.print(f"matches in {output} ({target.format.value})", highlight=False)
    elif limit:
        screen.print(sample(result.names, result.rows) if result.rows else "no matches")
    screen.print(result.figures.table())
