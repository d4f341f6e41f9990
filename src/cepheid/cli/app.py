"""The `cepheid` command: its options, its subcommands, and the one way out on errors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, TextIO

import typer

from cepheid.cli.commands import generate, import_rules
from cepheid.cli.commands.analyze import analyze
from cepheid.cli.commands.check import check
from cepheid.cli.commands.explain import explain
from cepheid.cli.commands.help import show_help
from cepheid.cli.commands.lab import lab
from cepheid.cli.commands.run import run
from cepheid.cli.commands.sql import sql
from cepheid.cli.commands.warm import warm
from cepheid.cli.commands.why import funnel, why
from cepheid.cli.output.command_words import in_command_words
from cepheid.cli.output.failure import Interruptible, exit_cleanly
from cepheid.cli.output.help_text import help_of
from cepheid.spark.start.session import PANDAS_NOTICE

app = typer.Typer(
    name="cepheid",
    cls=Interruptible,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (run, check, explain, why, funnel, lab, analyze, warm, sql):
    app.command(help=help_of(command))(command)
app.command("help", help=help_of(show_help))(show_help)
app.add_typer(generate.app, name="generate")
app.add_typer(import_rules.app, name="import")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Ends the process: 0 done, 1 the run failed, 2 used wrongly,
    3 a stream is done, but what came in was set aside (see `failure.SET_ASIDE`), 130 ended by
    Ctrl-C."""
    warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
    warnings.showwarning = _show
    with exit_cleanly():
        app(args=arguments, prog_name="cepheid")


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning on its own line, without its place in the code."""
    typer.echo(f"warning: {in_command_words(str(message))}", err=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cepheid {version('cepheid')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Find patterns of events, on a laptop and on a Spark cluster.

    [bold]Try it:[/bold] make readings of a shop's RFID tags, and find what was stolen

        cepheid generate rfid --rows 100_000 --output rfid.parquet

        cepheid check examples/shoplifting.cep

        cepheid explain examples/shoplifting.cep

        cepheid run examples/shoplifting.cep
            --input rfid.parquet --time ts --type type

        cepheid analyze examples/shoplifting.cep
            --input rfid.parquet --time ts --type type --output stats.json

    Exit codes: 0 success, 1 the run failed, 2 the query or an option is wrong,
    3 a stream ended, but files couldn't be read or no event could be matched,
    130 Ctrl-C.
    CEPHEID_DEBUG=1 in the environment shows the traceback of an error.
    """
