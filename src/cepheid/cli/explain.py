"""`cepheid explain`: how a query is run, and with --analyze, how it went."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from cepheid.cli import arguments
from cepheid.options import Options

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.cli.files import Format
    from cepheid.explain import Explanation
    from cepheid.query import Query


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    SVG = "svg"
    HTML = "html"


_SUFFIXES = {".txt": Form.TEXT, ".json": Form.JSON, ".svg": Form.SVG, ".html": Form.HTML}


def explain(
    query: arguments.QueryFile,
    input: arguments.OptionalInputs = None,
    time: arguments.AssumedTime = "ts",
    type: arguments.TypeColumn = None,
    tie: arguments.TieColumn = None,
    unit: arguments.Unit = None,
    param: arguments.Parameters = None,
    evaluation: arguments.EvaluationKind = None,
    plan: arguments.PlanShape = Options.plan,
    negation: arguments.NegationPlace = None,
    propagation: arguments.PropagationKind = None,
    stats: arguments.StatisticsFile = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run it over --input, and show what happened.")
    ] = False,
    format: Annotated[
        Form | None,
        typer.Option(help="By default what the name of --out ends with, or else text."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where it goes instead of the screen.", dir_okay=False),
    ] = None,
    input_format: arguments.InputFormat = None,
) -> None:
    """Show how a query is run and why: rewrites, plan, estimates, the plans that lost.

    Conditions stand at the operator that tests them. Without --input every
    attribute is taken to exist; without --stats rates are assumed.
    With --analyze the query is run, and actual rows, times and changes of
    plan stand beside the estimates.

        cepheid explain theft.cep

        cepheid explain theft.cep --input rfid.parquet --time ts --type type --analyze

        cepheid explain stocks.cep --plan '((IBM Sun) (Oracle Google))'

        cepheid explain stocks.cep --stats rates.json --out plan.html
    """
    form = _form(format, out)
    if analyze and not input:
        raise typer.BadParameter("--analyze runs the query: say over what, --input events.parquet")
    from cepheid.cli.inputs import make_options
    from cepheid.cli.queries import read_query

    parsed = read_query(query)
    options = make_options(
        time, type, tie, unit, param, plan, negation, propagation, stats, evaluation
    )
    data, options = _data(parsed, input, input_format, options, analyze)
    written = _written(parsed.explain(data, options, analyze=analyze), form)
    if out is None:
        typer.echo(written)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(f"{written}\n", encoding="utf-8")


def _form(chosen: Form | None, out: Path | None) -> Form:
    if chosen is not None or out is None:
        return chosen or Form.TEXT
    form = _SUFFIXES.get(out.suffix.lower())
    if form is None:
        names = ", ".join(_SUFFIXES)
        raise typer.BadParameter(f"{out} is none of {names}: say which --format it is to have")
    return form


def _data(
    query: Query,
    inputs: list[str] | None,
    format: Format | None,
    options: Options,
    analyze: bool,
) -> tuple[pa.Table | Mapping[str, pa.Table], Options]:
    """The events to run over; if it isn't run, no events, with the columns that there would be."""
    from cepheid.cli.inputs import columns_for, read_events

    if analyze:
        return read_events(query, arguments.parse_inputs(inputs or (), format), options), options
    schemas, options = columns_for(query, inputs, format, options)
    if isinstance(schemas, Mapping):
        return {name: schema.empty_table() for name, schema in schemas.items()}, options
    return schemas.empty_table(), options


def _written(explanation: Explanation, form: Form) -> str:
    match form:
        case Form.TEXT:
            return str(explanation)
        case Form.JSON:
            return explanation.to_json()
        case Form.SVG:
            return explanation.to_svg()
        case Form.HTML:
            return explanation.to_html()
        case _:
            assert_never(form)
