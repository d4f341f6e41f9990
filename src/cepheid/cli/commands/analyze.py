"""`cepheid analyze`: what a planner should know of files of events."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli import arguments
from cepheid.files.bad_rows import UTF_8, BadRows
from cepheid.files.formats import STANDARD
from cepheid.files.guard import guard_of


def analyze(
    input: arguments.Inputs,
    time: arguments.TimeColumn,
    file: arguments.QueryFile = None,
    query: arguments.QueryText = None,
    type: arguments.TypeColumn = None,
    tie: arguments.TieColumn = None,
    unit: arguments.Unit = None,
    param: arguments.Parameters = None,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="About how many rows to read.", show_default="200,000"),
    ] = None,
    output: arguments.TextOutput = Path(STANDARD),
    overwrite: arguments.Overwrite = False,
    input_format: arguments.InputFormat = None,
    schema: arguments.Schemas = None,
    bad_rows: arguments.BadRowsChoice = BadRows.REJECT,
    time_format: arguments.TimeFormatText = None,
    encoding: arguments.Encoding = UTF_8,
) -> None:
    """Find out what the planner should know of the data, and print it as JSON.

    rates: how often the events of each variable come, per second (per unit of an
    integer time). selectivities: the share of events, or of combinations, that
    satisfy a condition. distinct: how many values a column has, as an equality
    sees them. heavy: values that many events have.

        cepheid analyze theft.cep --input rfid.parquet --time ts --type type
            --output stats.json

        cepheid run theft.cep --input rfid.parquet --time ts --type type
            --stats stats.json

    A few stretches of time are looked at, and the same file always gives the same answer. A run
    measures the same while it runs; with --stats it knows from the first event. The file can be
    edited, and whatever is missing is assumed.
    """
    sources = arguments.parse_inputs(input, input_format, schema, time_format, encoding, bad_rows)
    from cepheid.cli.inputs import make_options, read_events
    from cepheid.cli.queries import read_query, refuse_unknown
    from cepheid.files.output import write_text
    from cepheid.query.analysis import ROWS
    from cepheid.query.analysis import analyze as analyzed

    parsed = read_query(file, query)
    guard = guard_of([*(source.path for source in sources), file], overwrite)
    guard.check_file(output, "--output")
    options = make_options(time, type, tie, unit, param)
    refuse_unknown(options.params, (parsed,))
    events = read_events(parsed, sources, options)
    written = analyzed(events, parsed, options, rows=rows or ROWS).to_json()
    write_text(written, output, guard)
