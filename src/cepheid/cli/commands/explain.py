"""`cepheid explain`: how a query or a set of rules is run, and with --analyze, how it went."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from cepheid.cli import arguments
from cepheid.cli.option_groups import AssumedEventOptions, FileOptions, PlanOptions, flat
from cepheid.files.formats import STANDARD
from cepheid.files.guard import guard_of

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.explain import Explanation
    from cepheid.options import Options
    from cepheid.query import Query
    from cepheid.rules import RuleSet


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    SVG = "svg"
    HTML = "html"


_SUFFIXES = {".txt": Form.TEXT, ".json": Form.JSON, ".svg": Form.SVG, ".html": Form.HTML}


@flat
def explain(
    events: AssumedEventOptions,
    read: FileOptions,
    forced: PlanOptions,
    file: arguments.QueryOrRules = None,
    query: arguments.QueryText = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run it over --input, and show what happened.")
    ] = False,
    format: Annotated[
        Form | None,
        typer.Option(help="By default it follows from the name of --output, or else text."),
    ] = None,
    output: arguments.TextOutput = Path(STANDARD),
    overwrite: arguments.Overwrite = False,
) -> None:
    """Show how a query is run and why: rewrites, plan, estimates, the plans that lost.

    Conditions stand at the operator that checks them. Without --input every attribute
    is assumed to exist; without --stats rates are assumed. --analyze runs the query,
    and shows actual rows, times and changes of plan beside the estimates.

        cepheid explain theft.cep

        cepheid explain theft.cep --input rfid.parquet --time ts --type type --analyze

        cepheid explain stocks.cep --plan '((IBM Sun) (Oracle Google))'

        cepheid explain stocks.cep --stats rates.json --output plan.html

    A folder is a set of rules, and so is a file with several queries, or with a
    table of its parameters beside it. For a set it shows which rules share a pass over the events,
    what they share, and which run alone and why; with --analyze also how often each matched, how
    long each pass took, and how much it held. If rules are wrong, it reports all errors instead.

        cepheid explain rules/ --input cards.parquet --time ts --type kind --analyze
    """
    form = form_of(format, output)
    if analyze and not events.input:
        raise typer.BadParameter(
            "--analyze runs the query and needs events: --input events.parquet"
        )
    from cepheid.cli.inputs import input_sources, make_options
    from cepheid.cli.queries import files_read, read_queries, refuse_unknown
    from cepheid.files.output import write_text
    from cepheid.rules import RuleSet

    options = make_options(events, forced)
    paths = [] if file is None else [file]
    wanted = read_queries(paths, query, options.params)
    refuse_unknown(options.params, wanted)
    sources = input_sources(events, read)
    inputs = [*(source.path for source in sources), *files_read(paths, wanted), forced.stats]
    guard = guard_of(inputs, overwrite)
    guard.check_file(output, "--output")
    if isinstance(wanted, RuleSet):
        _refuse_for_rules(form, sources)
        written = _rules(wanted, sources, options, form, analyze)
    else:
        (parsed,) = wanted
        data, options = _data(parsed, sources, options, analyze)
        written = _written(parsed.explain(data, options, analyze=analyze), form)
    write_text(written, output, guard)


def form_of(chosen: Form | None, output: Path) -> Form:
    """The form that was chosen, or that the name of the output says."""
    if chosen is not None or str(output) == STANDARD:
        return chosen or Form.TEXT
    form = _SUFFIXES.get(output.suffix.lower())
    if form is None:
        names = ", ".join(_SUFFIXES)
        raise typer.BadParameter(f"{output} has none of the endings {names}: name its --format")
    return form


def _data(
    query: Query, sources: Sequence[arguments.InputSource], options: Options, analyze: bool
) -> tuple[pa.Table | Mapping[str, pa.Table], Options]:
    """The events to run over; if it isn't run, no events, with the columns that there would be."""
    from cepheid.cli.inputs import columns_for, read_events

    if analyze:
        return read_events(query, sources, options), options
    schemas, options = columns_for(query, sources, options)
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


# ── rules ────────────────────────────────────────────────────────────────────


def _refuse_for_rules(form: Form, sources: Sequence[arguments.InputSource]) -> None:
    """A set has no columns that would fit all of its rules, and no single plan to draw."""
    if form not in (Form.TEXT, Form.JSON):
        raise typer.BadParameter(f"a set of rules is explained as text or json, not as {form}")
    if not sources:
        raise typer.BadParameter(
            "rules are explained for the columns of events: --input events.parquet"
        )


def _rules(
    rules: RuleSet,
    sources: Sequence[arguments.InputSource],
    options: Options,
    form: Form,
    analyze: bool,
) -> str:
    """How the set is run, and what it did, if it is; `RuleSetError` with all that is wrong with any
    of its rules."""
    from cepheid.cli.inputs import open_inputs
    from cepheid.errors import RuleSetError

    queries = [template.query.syntax for template in rules.templates]
    inputs = open_inputs(sources, queries, options)
    findings = rules.check(inputs.columns, options)
    if findings:
        raise RuleSetError(findings)
    explanation = rules.explain(inputs.columns, options)
    profile = rules.profile(inputs.read().data, options) if analyze else None
    if form is Form.JSON:
        content = explanation.to_dict()
        if profile is not None:
            content["profile"] = profile.to_arrow().to_pylist()
        return json.dumps(content, indent=2, ensure_ascii=False)
    return str(explanation) if profile is None else f"{explanation}\n\n{profile}"
