"""`cepheid check`: is a query right, and can this version run it?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli import arguments
from cepheid.cli.failure import USED_WRONGLY, message
from cepheid.errors import CepheidError, UnsupportedError


def check(
    queries: Annotated[
        list[Path],
        typer.Argument(
            metavar="QUERY.cep...",
            exists=True,
            dir_okay=False,
            help="Files with a query each.",
            show_default=False,
        ),
    ],
    input: arguments.OptionalInputs = None,
    time: arguments.AssumedTime = "ts",
    type: arguments.TypeColumn = None,
    tie: arguments.TieColumn = None,
    unit: arguments.Unit = None,
    param: arguments.Parameters = None,
    input_format: arguments.InputFormat = None,
) -> None:
    """Check queries without running them: syntax, names, types, window.

    Without --input every attribute is taken to exist: as text if it is compared
    with text, and else as a number. All findings are printed; the exit code is 2
    if there are any. A query that is right but can't match is warned of.

        cepheid check theft.cep fraud.cep

        cepheid check theft.cep --input rfid.parquet --time ts --type type
    """
    from cepheid.cli.inputs import columns_for, make_options, read_query
    from cepheid.planner import prepare

    options = make_options(time, type, tie, unit, param)
    wrong = False
    for path in queries:
        try:
            query = read_query(path)
            columns, fitting = columns_for(query, input, input_format, options)
            prepared = prepare(query.bind(columns, fitting), fitting)
        except UnsupportedError as error:
            typer.echo(f"{path}: OK, but {error}")
        except CepheidError as error:
            wrong = True
            typer.echo(message(error), err=True)
        else:
            typer.echo(f"{path}: OK")
            for warning in prepared.query.warnings:
                typer.echo(f"warning: {path}: {warning}", err=True)
    if wrong:
        raise typer.Exit(USED_WRONGLY)
