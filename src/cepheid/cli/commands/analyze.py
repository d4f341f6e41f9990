"""`cepheid analyze`: what a planner should know of files of events."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli import arguments
from cepheid.cli.option_groups import EventOptions, FileOptions, flat
from cepheid.files.formats import STANDARD
from cepheid.files.guard import guard_of


@flat
def analyze(
    events: EventOptions,
    read: FileOptions,
    file: arguments.QueryFile = None,
    query: arguments.QueryText = None,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="About how many rows to read.", show_default="200,000"),
    ] = None,
    output: arguments.TextOutput = Path(STANDARD),
    overwrite: arguments.Overwrite = False,
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
    from cepheid.cli.inputs import input_sources, make_options, read_events
    from cepheid.cli.queries import read_query, refuse_unknown
    from cepheid.files.output import write_text
    from cepheid.query.analysis import ROWS
    from cepheid.query.analysis import analyze as analyzed

    sources = input_sources(events, read)
    parsed = read_query(file, query)
    guard = guard_of([*(source.path for source in sources), file], overwrite)
    guard.check_file(output, "--output")
    if str(output) != STANDARD and output.suffix.lower() not in ("", ".json"):
        raise typer.BadParameter(f"statistics are .json, not {output.name}")
    options = make_options(events)
    refuse_unknown(options.params, (parsed,))
    data = read_events(parsed, sources, options)
    written = analyzed(data, parsed, options, rows=rows or ROWS).to_json()
    write_text(written, output, guard)
