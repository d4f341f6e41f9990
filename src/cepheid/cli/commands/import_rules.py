"""`cepheid import`: rules of other systems as rules of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cepheid.cli import arguments
from cepheid.cli.output.failure import USED_WRONGLY
from cepheid.extras import require
from cepheid.files.guard import guard_of

if TYPE_CHECKING:
    from cepheid.sigma.imports import Imported

_SHOWN = 50
"""How many problems are printed."""

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""Write rules of other systems as files of rules and tables.

        cepheid import sigma rules/ --output desk --fields fields.yml

    [bold]cepheid import sigma --help[/bold] says what is imported.""",
)


@app.callback()
def _systems() -> None:
    """With one command alone, typer would leave out its name."""


@app.command()
def sigma(
    rules: Annotated[
        Path,
        typer.Argument(exists=True, metavar="FILE|DIR", help="Sigma's rules, as YAML."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write, for `cepheid run`.")
    ],
    fields: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="YAML: the names of columns by Sigma's fields, the column of keywords, and the "
            "types of events by log sources.",
        ),
    ] = None,
    overwrite: arguments.Overwrite = False,
) -> None:
    """Write Sigma's rules and correlations as rules and tables that a person would keep.

    A detection becomes a query of one event; event_count becomes `{n}`,
    temporal `&`, temporal_ordered `->`, and value_count, value_sum and value_avg
    a group over RANGE. All windows slide. Three or more rules that differ only
    in constants become one query and a table. What can't be said is listed.

        cepheid import sigma rules/ --output desk --fields fields.yml

        cepheid check desk --input events.parquet --time ts

    --fields names a file such as

        fields:
          TargetUserName: user
        keywords: message
        log_sources:
          - {product: windows, service: security, type: Security}
    """
    require("sigma")
    from cepheid.sigma.field_names import Mapped, read_mapping
    from cepheid.sigma.folder import write_rules
    from cepheid.sigma.imports import imported

    guard = guard_of((rules, fields), overwrite)
    guard.check_folder(output, "--output")
    made = imported(rules, Mapped() if fields is None else read_mapping(fields))
    if made.count:
        with guard.new_folder(output, "--output", "cepheid import sigma") as partial:
            write_rules(partial, made.drafts, made.families)
    _report(made, output)
    if not made.count:
        raise typer.Exit(USED_WRONGLY)


def _report(made: Imported, output: Path) -> None:
    files = len(made.drafts) + len(made.families)
    tables = len(made.families)
    within = f"; {made.parts} more stand only inside of correlations" if made.parts else ""
    if made.count:
        typer.echo(
            f"{_counted(made.count, 'rule')} in {output}: {_counted(files, 'file')} of queries, "
            f"{_counted(tables, 'table')}{within}"
        )
    for source, number in made.unchecked:
        typer.echo(
            f"warning: {_counted(number, 'rule')} for {source} take any event: --fields gives a "
            "log source its type",
            err=True,
        )
    if made.problems:
        typer.echo(f"not imported, {len(made.problems)}:", err=True)
    for problem in made.problems[:_SHOWN]:
        typer.echo(f"  {problem}", err=True)
    if len(made.problems) > _SHOWN:
        typer.echo(f"  {_SHOWN} of {len(made.problems)} shown", err=True)


def _counted(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"
