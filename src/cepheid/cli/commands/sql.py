"""`cepheid sql`: a statement with MATCH_RECOGNIZE over files."""

from __future__ import annotations

import time as clock
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cepheid.cli import arguments
from cepheid.cli.commands.run import RuntimeName
from cepheid.cli.option_groups import FileOptions, OutputOptions, flat
from cepheid.cli.output.show import console, rejected_text, sample, shown
from cepheid.cli.target import Target, file_target, folder_target, refuse_nested
from cepheid.extras import require
from cepheid.files.formats import STANDARD
from cepheid.files.guard import guard_of
from cepheid.options import Options

if TYPE_CHECKING:
    import pyarrow as pa

_TABLES = Options(time="")
"""Tables have no event time: no row is rejected for one."""


@dataclass(frozen=True)
class Asked:
    """A statement, its tables and parameters. Without `master` it runs in this process."""

    text: str
    sources: tuple[arguments.InputSource, ...]
    params: dict[str, object]
    master: str | None


@flat
def sql(
    read: FileOptions,
    results: OutputOptions,
    statement: Annotated[
        str, typer.Argument(metavar="QUERY|FILE", help="The statement, or a file that holds it.")
    ],
    table: Annotated[
        list[str],
        typer.Option(
            "--table", "-t", metavar="NAME=PATH", help="A table of the statement, and its files."
        ),
    ],
    param: arguments.Parameters = None,
    runtime: Annotated[
        RuntimeName | None, typer.Option(help="By default local; spark if --master is given.")
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark's master.", show_default="local[*]")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how the clauses are run instead.")
    ] = False,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="With --explain: run them, and show what happened.")
    ] = False,
) -> None:
    """Run a SQL statement in which MATCH_RECOGNIZE may follow any table.

    Tables are files or folders of Parquet, CSV, TSV or lines of JSON. In process, DuckDB
    runs what stands around the clauses; on Spark, Spark does. Without --output the first
    rows are printed.

        cepheid sql 'SELECT * FROM ticker MATCH_RECOGNIZE (
            PARTITION BY symbol ORDER BY day
            MEASURES LAST(DOWN.day) AS bottom
            PATTERN (DOWN+ UP+)
            DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price))'
            --table ticker=ticker.csv

        cepheid sql shapes.sql --table ticker=prices/ --runtime spark --output found/

        cepheid sql shapes.sql --table ticker=ticker.csv --explain --analyze
    """
    on_spark = runtime is RuntimeName.SPARK or (runtime is None and master is not None)
    if master is not None and not on_spark:
        raise typer.BadParameter("--master is for --runtime spark")
    if analyze and not explain:
        raise typer.BadParameter("--analyze goes with --explain")
    if explain and results.output is not None:
        raise typer.BadParameter("--explain returns no rows: leave out --output")
    if on_spark:
        require("spark")
    sources = arguments.parse_inputs(
        table, read.input_format, read.schema, read.time_format, read.encoding, read.bad_rows
    )
    if any(source.name is None for source in sources):
        raise typer.BadParameter("a table needs a name: --table ticker=ticker.csv")
    file = _file_of(statement)
    asked = Asked(
        statement if file is None else file.read_text(encoding="utf-8"),
        sources,
        arguments.parse_parameters(param or ()),
        (master or "local[*]") if on_spark else None,
    )
    if explain:
        typer.echo(_explained(asked, analyze))
        return
    guard = guard_of([*(source.path for source in sources), file], results.overwrite)
    make = folder_target if on_spark else file_target
    target = make(results.output, results.format, results.rejected, results.show, guard)
    if asked.master is not None:
        _run_on_spark(asked, asked.master, target)
    else:
        _run_here(asked, target)


def _file_of(statement: str) -> Path | None:
    """The file that holds the statement; None if it is the statement itself."""
    if not statement.strip():
        raise typer.BadParameter("the statement is empty")
    path = Path(statement)
    if len(statement.split()) > 1 and path.suffix != ".sql":
        return None
    if not path.is_file():
        raise typer.BadParameter(f"there is no file {statement}, and it is no statement either")
    return path


def _explained(asked: Asked, analyze: bool) -> str:
    from cepheid.statements.sql import explain_sql

    text, params = asked.text, asked.params
    if asked.master is None:
        from cepheid.cli.inputs import open_inputs

        inputs = open_inputs(asked.sources, (), _TABLES).read()
        return str(explain_sql(text, inputs.tables, params=params, analyze=analyze))
    from cepheid.cli.batch.spark_inputs import open_spark_inputs
    from cepheid.cli.spark_session import spark_session

    with spark_session(asked.master, app="cepheid sql") as spark:
        tables = open_spark_inputs(spark, asked.sources, (), _TABLES)
        frames = {name: input_.events(input_.columns.schema) for name, input_ in tables.items()}
        return str(explain_sql(text, frames, spark=spark, params=params, analyze=analyze))


def _run_here(asked: Asked, target: Target) -> None:
    from cepheid.cli.batch.run_local import first_rejected, write_results
    from cepheid.cli.inputs import open_inputs
    from cepheid.statements.sql import sql as run

    begin = clock.perf_counter()
    inputs = open_inputs(asked.sources, (), _TABLES).read()
    result: pa.Table = run(asked.text, inputs.tables, params=asked.params)
    refuse_nested(result.schema, target.written)
    write_results(result.to_batches(), result.schema, inputs.rejected, target)
    seconds = clock.perf_counter() - begin
    rows = result.slice(0, target.limit).to_pylist()
    _print(result.schema.names, rows, result.num_rows, seconds, target)
    if inputs.rejected.num_rows:
        rejected = first_rejected(inputs.rejected)
        typer.echo(rejected_text(rejected, inputs.rejected.num_rows, target.rejected), err=True)


def _run_on_spark(asked: Asked, master: str, target: Target) -> None:
    from cepheid.cli.batch.run_spark import rejected_rows, write_folder
    from cepheid.cli.batch.spark_inputs import open_spark_inputs
    from cepheid.cli.spark_session import spark_session
    from cepheid.files.formats import output_format
    from cepheid.spark.columns.schema import arrow_schema
    from cepheid.statements.sql import sql as run

    with spark_session(master, app="cepheid sql") as spark, ExitStack() as stack:
        inputs = open_spark_inputs(spark, asked.sources, (), _TABLES)
        wanted = {name: input_.columns.schema for name, input_ in inputs.items()}
        begin = clock.perf_counter()
        tables = {name: input_.events(wanted[name]) for name, input_ in inputs.items()}
        result = run(asked.text, tables, spark=spark, params=asked.params)
        refuse_nested(arrow_schema(result.schema), target.written)
        result = result.persist()
        count = result.count()
        if target.output is not None:
            write_folder(
                result, target.output, target.format, target.guard, "--output", "sql", stack
            )
        if target.rejected is not None:
            lost, format = rejected_rows(inputs, wanted), output_format(Path(target.rejected))
            option, made_by = "--rejected", "rejected rows"
            write_folder(lost, target.rejected, format, target.guard, option, made_by, stack)
        seconds = clock.perf_counter() - begin
        rows = (
            [] if target.output else [r.asDict(recursive=True) for r in result.head(target.limit)]
        )
        _print(result.columns, rows, count, seconds, target)


def _print(
    names: list[str], rows: list[dict[str, Any]], count: int, seconds: float, target: Target
) -> None:
    screen = console(stderr=target.piped)
    if target.output is not None and target.output != STANDARD:
        screen.print(f"rows in {target.output} ({target.format.value})", highlight=False)
    elif target.output is None and target.limit:
        screen.print(sample(names, rows, screen.width))
        if len(rows) < count:
            screen.print(shown(len(rows), count), highlight=False)
    rows_found = "1 row" if count == 1 else f"{count:,} rows"
    screen.print(f"{rows_found} in {seconds:.2f} s", highlight=False)
