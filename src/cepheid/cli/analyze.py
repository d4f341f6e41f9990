"""`cepheid analyze`: what a planner should know of files of events."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli import arguments


def analyze(
    query: arguments.QueryFile,
    input: arguments.Inputs,
    time: arguments.TimeColumn,
    type: arguments.TypeColumn = None,
    tie: arguments.TieColumn = None,
    unit: arguments.Unit = None,
    param: arguments.Parameters = None,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="How many rows to look at, about.", show_default="200,000"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where it goes instead of the screen.", dir_okay=False),
    ] = None,
    input_format: arguments.InputFormat = None,
) -> None:
    """Find out what the planner should know of the data, and print it as JSON.

    rates: how often the events of each variable come, per second (per unit of an
    integer time). selectivities: the share of events, or of combinations, that
    satisfy a condition. distinct: how many values a column has, as an equality
    sees them. heavy: values that many events have.

        cepheid analyze theft.cep --input rfid.parquet --time ts --type type
            --out stats.json

        cepheid run theft.cep --input rfid.parquet --time ts --type type
            --stats stats.json

    A few stretches of time are looked at, and the same file always gives the same
    answer. A run finds out the same while it goes on; with --stats it knows from
    the first event. The file can be edited, and whatever is missing is assumed.
    """
    sources = arguments.parse_inputs(input, input_format)
    from cepheid.analysis import ROWS
    from cepheid.analysis import analyze as analyzed
    from cepheid.cli.inputs import make_options, read_events
    from cepheid.cli.queries import read_query

    parsed = read_query(query)
    options = make_options(time, type, tie, unit, param)
    events = read_events(parsed, sources, options)
    written = analyzed(events, parsed, options, rows=rows or ROWS).to_json()
    if out is None:
        typer.echo(written)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(f"{written}\n", encoding="utf-8")
