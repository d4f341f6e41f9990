"""`cepheid check`: are queries and rules right, and can this version run them?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cepheid.cli import arguments
from cepheid.cli.option_groups import AssumedEventOptions, FileOptions, flat
from cepheid.cli.output.failure import USED_WRONGLY, message
from cepheid.errors import CepheidError, UnsupportedError

if TYPE_CHECKING:
    from cepheid.options import Options
    from cepheid.query import Query
    from cepheid.rules.load.files import LoadedFiles


@flat
def check(
    events: AssumedEventOptions,
    read_as: FileOptions,
    queries: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RULES...",
            exists=True,
            help="Files with queries, and folders of rules.",
            show_default=False,
        ),
    ] = None,
    query: arguments.QueryText = None,
) -> None:
    """Check queries without running them: syntax, names, types, window.

    Without --input every attribute is taken to exist: as text if it is compared
    with text, and else as a number. All findings are printed; the exit code is 2
    if there are any. A query that is right but can't match is warned of, and so
    is one that names a type which no event of --input has.

        cepheid check theft.cep fraud.cep

        cepheid check theft.cep --input rfid.parquet --time ts --type type

    Of a folder, all queries are checked, with the tables of their parameters:
    big.csv and big.parquet are for the query that begins with INTO big.

        cepheid check rules/ --input cards.parquet --time ts
    """
    from cepheid.cli.inputs import input_sources, make_options
    from cepheid.cli.queries import alone, read_query
    from cepheid.rules.load.files import read

    options = make_options(events)
    sources = input_sources(events, read_as)

    def check_file(path: Path) -> bool:
        loaded = read(path, options.params)
        parsed = alone(path, loaded)
        if parsed is None:
            return _check_rules(path, loaded, sources, options)
        return _check_query(parsed, sources, options)

    if query is not None or not queries:
        only = queries[0] if queries else None
        right = _reported("query", lambda: _check_query(read_query(only, query), sources, options))
    else:
        right = all([_reported(str(path), partial(check_file, path)) for path in queries])
    if not right:
        raise typer.Exit(USED_WRONGLY)


def _reported(name: str, check: Callable[[], bool]) -> bool:
    """Check a query and print its findings; return whether it is valid."""
    try:
        return check()
    except UnsupportedError as error:
        typer.echo(f"{name}: OK, but {error}")
        return True
    except CepheidError as error:
        typer.echo(message(error), err=True)
        return False


def _check_query(query: Query, sources: Sequence[arguments.InputSource], options: Options) -> bool:
    from cepheid.cli.inputs import columns_for
    from cepheid.planner import prepare

    columns, fitting = columns_for(query, sources, options)
    prepared = prepare(query.bind(columns, fitting), fitting)
    typer.echo(f"{query.name}: OK")
    for warning in prepared.query.warnings:
        typer.echo(f"warning: {query.name}: {warning}", err=True)
    _check_types([query], sources, options)
    return True


def _check_types(
    queries: Iterable[Query], sources: Sequence[arguments.InputSource], options: Options
) -> None:
    """Warn of types that no event of the file has."""
    from cepheid.algebra.binding.scope import types_of
    from cepheid.cli.inputs import types_for
    from cepheid.engine.rows.event_types import no_such_type

    present = types_for(sources, options)
    if present is None or options.type is None:
        return
    for query in queries:
        for name in types_of(query.syntax.pattern):
            if name not in present:
                warning = no_such_type(name, present, options.type)
                typer.echo(f"warning: {query.name}: {warning}", err=True)


def _check_rules(
    path: Path,
    loaded: LoadedFiles,
    sources: Sequence[arguments.InputSource],
    options: Options,
) -> bool:
    """Print the rules' findings and how many rules are valid; return whether all are."""
    from cepheid.cli.inputs import columns_for
    from cepheid.rules.compile.compiled_rules import compile_rules
    from cepheid.rules.load.readers import first_and_following
    from cepheid.rules.load.validation import check as check_templates
    from cepheid.rules.load.validation import count_wrong
    from cepheid.rules.run.contradictions import contradictions

    templates, columns = loaded.templates, None
    if sources and templates:
        columns, _ = columns_for(templates[0].query, sources, options)
    elif options.type is None:
        options = replace(options, type="type")
    findings = (*loaded.findings, *check_templates(templates, columns, options))
    _check_types((template.query for template in templates), sources, options)
    if findings:
        typer.echo("\n\n".join(finding.render() for finding in findings), err=True)
    count = sum(map(len, templates))
    right = count - count_wrong(templates, findings)
    if templates:
        rules = "rule" if count == 1 else "rules"
        typer.echo(f"{path}: {f'{right:,} of ' if findings else ''}{count:,} {rules} OK")
    if columns is not None and not findings:
        compiled = compile_rules(first_and_following(templates)[0], columns, options, deals=True)
        for contradiction in contradictions(compiled):
            typer.echo(f"warning: {contradiction}", err=True)
    return not findings
