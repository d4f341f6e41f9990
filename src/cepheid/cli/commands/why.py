"""`cepheid why`: why a query matched or didn't; `cepheid funnel`: how far events got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cepheid.cli import arguments
from cepheid.cli.commands.explain import Form, form_of
from cepheid.cli.option_groups import EventOptions, FileOptions, flat
from cepheid.files.formats import STANDARD
from cepheid.files.guard import Guard, guard_of

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.options import Options
    from cepheid.query import Query
    from cepheid.reasons.funnel import Funnel
    from cepheid.reasons.why.report import Why
    from cepheid.reasons.why.why_not import WhyNot
    from cepheid.rules import RuleSet
    from cepheid.rules.explain.set_funnels import SetFunnels

Rows = Annotated[
    int | None,
    typer.Option(min=1, help="About how many events to look at.", show_default="20,000"),
]
Forms = Annotated[
    Form | None,
    typer.Option(help="By default it follows from the name of --output, or else text."),
]


@flat
def why(
    events: EventOptions,
    read: FileOptions,
    file: arguments.QueryFile = None,
    query: arguments.QueryText = None,
    event: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VARIABLE=ROW",
            help="An event to ask about: a=17 is row 17, from 0; a=17,18 are rows of a group; "
            "a='a.x > 5' is a condition. May be repeated.",
        ),
    ] = None,
    rows: Rows = None,
    misses: Annotated[int, typer.Option(min=0, help="How many of the nearest misses.")] = 5,
    format: Forms = None,
    output: arguments.TextOutput = Path(STANDARD),
    overwrite: arguments.Overwrite = False,
) -> None:
    """Find out why a query matched or didn't.

    How many events got to each step of the pattern, what stopped the others, and how many matches
    there would be without each part of the query.

        cepheid why theft.cep --input rfid.parquet --time ts --type type

        cepheid why theft.cep --input rfid.parquet --time ts --type type
            --event x=17 --event z=23

    With --event the report is about these events: every condition with the values that it saw, and
    the smallest change with which they match.
    """
    form = form_of(format, output)
    if form is Form.SVG:
        raise typer.BadParameter("a report can be text, json or html, not svg")
    given = dict(map(_event, event or ()))
    from cepheid.cli.queries import read_query

    parsed = read_query(file, query)
    data, options, guard = _input(events, read, file, (parsed,), output, overwrite)
    report: Why | WhyNot
    if given:
        report = parsed.why(data, options, events=given, rows=rows)
    else:
        report = parsed.why(data, options, rows=rows, misses=misses)
    _write(report, form, output, guard)


@flat
def funnel(
    events: EventOptions,
    read: FileOptions,
    file: arguments.QueryOrRules = None,
    query: arguments.QueryText = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A funnel for each of its values at the first event, or for each window_start.",
        ),
    ] = None,
    rows: Rows = None,
    format: Forms = None,
    output: arguments.TextOutput = Path(STANDARD),
    overwrite: arguments.Overwrite = False,
) -> None:
    """Count how many events get to each step of a pattern.

    With their shares of the first step and of the step before, the times from step to step, and
    what stopped the others.

        cepheid funnel cart.cep --input shop.parquet --time ts --type type

        cepheid funnel cart.cep --input shop.parquet --time ts --type type
            --by country --output funnel.html

    Of a folder of rules, it counts which never fired, and shows how far those got:

        cepheid funnel rules/ --input cards.parquet --time ts --type kind
    """
    form = form_of(format, output)
    from cepheid.cli.inputs import make_options
    from cepheid.cli.queries import read_queries
    from cepheid.rules import RuleSet

    wanted = read_queries([] if file is None else [file], query, make_options(events).params)
    if isinstance(wanted, RuleSet):
        if by is not None or form is Form.SVG:
            raise typer.BadParameter("the funnels of rules have no --by and no svg")
        data, options, guard = _input(events, read, file, wanted, output, overwrite)
        _write(wanted.funnel(data, options, rows=rows), form, output, guard)
    else:
        data, options, guard = _input(events, read, file, wanted, output, overwrite)
        _write(wanted[0].funnel(data, options, by=by, rows=rows), form, output, guard)


def _event(text: str) -> tuple[str, int | Sequence[int] | str]:
    """A variable and its rows, or a condition."""
    name, sign, named = text.partition("=")
    if not sign or not name.strip() or not named.strip():
        raise typer.BadParameter(f"--event is like a=17, not {text}")
    numbers = [part.strip() for part in named.split(",")]
    if not all(number.isdecimal() for number in numbers):
        return name.strip(), named
    rows = [int(number) for number in numbers]
    return name.strip(), rows[0] if len(rows) == 1 else rows


def _input(
    events: EventOptions,
    read: FileOptions,
    file: Path | None,
    wanted: tuple[Query, ...] | RuleSet,
    output: Path,
    overwrite: bool,
) -> tuple[pa.Table | Mapping[str, pa.Table], Options, Guard]:
    """All columns of the events, the options, and what guards the output."""
    from cepheid.cli.inputs import input_sources, make_options, open_inputs
    from cepheid.cli.queries import files_read, refuse_unknown
    from cepheid.errors import RuleSetError
    from cepheid.rules import RuleSet

    sources = input_sources(events, read)
    files = files_read([] if file is None else [file], wanted)
    guard = guard_of([*(source.path for source in sources), *files], overwrite)
    guard.check_file(output, "--output")
    options = make_options(events)
    refuse_unknown(options.params, wanted)
    queries = [t.query for t in wanted.templates] if isinstance(wanted, RuleSet) else wanted
    inputs = open_inputs(sources, [query.syntax for query in queries], options)
    # What is wrong is raised before all is read.
    if isinstance(wanted, RuleSet):
        findings = wanted.check(inputs.columns, options)
        if findings:
            raise RuleSetError(findings)
    else:
        wanted[0].bind(inputs.columns, options)
    return inputs.read().data, options, guard


def _write(
    report: Why | WhyNot | Funnel | SetFunnels, form: Form, output: Path, guard: Guard
) -> None:
    from cepheid.files.output import write_text
    from cepheid.reasons.funnel import Funnel

    match form, report:
        case Form.JSON, _:
            written = report.to_json()
        case Form.HTML, _:
            written = report.to_html()
        case Form.SVG, Funnel():
            written = report.to_svg()
        case _:
            written = str(report)
    write_text(written, output, guard)
