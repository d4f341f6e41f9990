"""`cepheid generate`: the seeded workloads, as files."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from cepheid.cli import arguments
from cepheid.cli.output.command_words import in_command_words
from cepheid.cli.output.progress import bar
from cepheid.errors import DataError, OptionError
from cepheid.files.formats import STANDARD, Format
from cepheid.files.guard import Guard
from cepheid.files.output import check_output, open_writer
from cepheid.workloads import fraud as fraud_workload
from cepheid.workloads import rfid as rfid_workload
from cepheid.workloads import stocks as stocks_workload
from cepheid.workloads import weblog as weblog_workload

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""Write events to try queries on. The same options always give the same events.

        cepheid generate stocks --rows 100_000 --output stocks.parquet

        cepheid generate fraud --rows 1_000_000 --output fraud.csv.gz --seed 7

    Each workload has its own options: [bold]cepheid generate stocks --help[/bold].""",
)

Rows = Annotated[int, typer.Option(min=0, help="How many events, such as 1_000_000.")]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="The file to write; - is standard output.")
]
Seed = Annotated[int, typer.Option(min=0, help="Another seed gives other events.")]
FileFormat = Annotated[
    Format | None,
    typer.Option(
        help="By default it follows from the file name: Parquet without an ending, CSV on "
        "standard output."
    ),
]
Share = {"min": 0.0, "max": 1.0}


@app.command()
def stocks(
    rows: Rows,
    output: Output,
    seed: Seed = 0,
    format: FileFormat = None,
    overwrite: arguments.Overwrite = False,
    rate: Annotated[
        list[str] | None,
        typer.Option(help="Relative rate of a stock, as NAME=NUMBER. Repeat it for each stock."),
    ] = None,
    selectivity: Annotated[
        list[str] | None,
        typer.Option(help="How often one price exceeds another: 'IBM>Sun=1/32'. Repeatable."),
    ] = None,
) -> None:
    """Stock ticks with chosen rates and selectivities (ZStream, section 6).

    Columns: id, name, price, volume, ts. One event per time unit; ts is an
    integer. The default is IBM, Sun, Oracle and Google at equal rates.

        cepheid generate stocks --rows 100_000 --output q4.parquet
            --rate IBM=1 --rate Sun=1 --selectivity 'IBM>Sun=1/32'
    """
    rates = dict(map(_rate, rate)) if rate else stocks_workload.DEFAULT_RATES
    pairs = dict(map(_selectivity, selectivity or ()))
    batches = stocks_workload.batches(rows, seed, rates=rates, selectivity=pairs)
    _write("stocks", batches, stocks_workload.SCHEMA, rows, output, format, overwrite)


@app.command()
def weblog(
    rows: Rows,
    output: Output,
    seed: Seed = 0,
    format: FileFormat = None,
    overwrite: arguments.Overwrite = False,
    visitors: Annotated[int, typer.Option(min=1, help="How many IP addresses there are.")] = 20_000,
    skew: Annotated[
        float, typer.Option(min=0.0, help="Zipf's exponent of visits per address; 0 is even.")
    ] = 1.0,
) -> None:
    """A month of a web server's log (ZStream, section 6.5).

    Columns: time, ip, url, category. Of 1.5 million rows, 6775 are for
    publications, 11610 for projects and 16083 for courses, as in the paper's
    Table 4; other sizes in proportion.

        cepheid generate weblog --rows 1_500_000 --output weblog.parquet
    """
    batches = weblog_workload.batches(rows, seed, visitors=visitors, skew=skew)
    _write("weblog", batches, weblog_workload.SCHEMA, rows, output, format, overwrite)


@app.command()
def fraud(
    rows: Rows,
    output: Output,
    seed: Seed = 0,
    format: FileFormat = None,
    overwrite: arguments.Overwrite = False,
    days: Annotated[float, typer.Option(min=0.001, help="The time that the events cover.")] = 30.0,
    cards: Annotated[
        int | None, typer.Option(min=1, help="By default, enough for each to be used once a day.")
    ] = None,
    fraud: Annotated[
        float, typer.Option(**Share, help="Planted frauds per event, about.")
    ] = 0.0005,
) -> None:
    """Card transactions with planted fraud (NEXT CEP, section 1.1).

    Columns: id, ts, card, kind, amount, currency, country, merchant, planted.
    A planted fraud is two small purchases and then a large one, abroad and
    within 3 hours; `planted` tells them apart.

        cepheid generate fraud --rows 1_000_000 --output fraud.parquet
    """
    batches = fraud_workload.batches(rows, seed, days=days, cards=cards, fraud=fraud)
    _write("fraud", batches, fraud_workload.SCHEMA, rows, output, format, overwrite)


@app.command()
def rfid(
    rows: Rows,
    output: Output,
    seed: Seed = 0,
    format: FileFormat = None,
    overwrite: arguments.Overwrite = False,
    stolen: Annotated[
        float, typer.Option(**Share, help="Share of products that leave unpaid.")
    ] = 0.005,
    misplaced: Annotated[float, typer.Option(**Share, help="Share put onto a wrong shelf.")] = 0.01,
    bought: Annotated[float, typer.Option(**Share, help="Share bought.")] = 0.6,
) -> None:
    """Readings of RFID tags in a shop with thieves (SASE, section 2).

    Columns: ts, type, id, category, mid, shelf_id. The types are
    SHELF_READING, COUNTER_READING and EXIT_READING; a stolen product is read
    at a shelf and at an exit, and at no counter.

        cepheid generate rfid --rows 100_000 --output rfid.parquet
    """
    batches = rfid_workload.batches(rows, seed, stolen=stolen, misplaced=misplaced, bought=bought)
    _write("rfid", batches, rfid_workload.SCHEMA, rows, output, format, overwrite)


def write_events(
    name: str,
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    rows: int,
    path: Path,
    format: Format,
    guard: Guard,
) -> None:
    """Write events with a progress bar."""
    with bar() as progress, open_writer(path, schema, format, guard) as writer:
        task = progress.add_task(name, total=rows, unit="events")
        for batch in batches:
            writer.write_batch(batch)
            progress.advance(task, batch.num_rows)


def _write(
    name: str,
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    rows: int,
    output: Path,
    format: Format | None,
    overwrite: bool,
) -> None:
    guard = Guard(overwrite=overwrite)
    chosen = check_output(output, format, guard, "--output")
    try:
        write_events(name, batches, schema, rows, output, chosen, guard)
    except OptionError:
        raise
    except DataError as error:
        # The only data here is what the options ask for.
        raise typer.BadParameter(in_command_words(str(error))) from error
    if str(output) != STANDARD:
        typer.echo(f"{rows:,} events in {output} ({chosen.value})")


def _rate(text: str) -> tuple[str, float]:
    name, equals, number = text.partition("=")
    return name.strip(), _number("--rate", text, number if equals and name.strip() else "")


def _selectivity(text: str) -> tuple[tuple[str, str], float]:
    pair, _, number = text.partition("=")
    left, greater, right = (part.strip() for part in pair.partition(">"))
    complete = left and greater and right
    return (left, right), _number("--selectivity", text, number if complete else "")


def _number(option: str, text: str, number: str) -> float:
    """A decimal or a fraction, as people write rates and selectivities."""
    try:
        return float(Fraction(number.strip().replace(" ", "")))
    except (ValueError, ZeroDivisionError):
        example = "IBM=100" if option == "--rate" else "'IBM>Sun=1/32'"
        raise typer.BadParameter(f"{text!r} isn't like {option} {example}") from None
