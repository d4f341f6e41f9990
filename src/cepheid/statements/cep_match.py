"""`cep_match(TABLE(events), 'PATTERN …', time => 'ts')`: a query of our own language in SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from cepheid.algebra.binding.findings import did_you_mean
from cepheid.errors import QueryError
from cepheid.explain import Explanation
from cepheid.language.ast import Span
from cepheid.options import Options
from cepheid.query import Query, match
from cepheid.statements.statement import Matching, Statement, literal_value, places_of
from cepheid.statements.tokens import Token

Result = TypeVar("Result")


def matched(
    statement: Statement, clause: Matching, frame: Any, params: Mapping[str, object]
) -> Any:
    options = {**_options(statement, clause), "params": params}
    query = str(literal_value(clause.query))
    return _placed(statement, clause.query, lambda: match(frame, query, **options))


def explained(
    statement: Statement,
    clause: Matching,
    frame: Any,
    params: Mapping[str, object],
    analyze: bool,
) -> Explanation:
    options = {**_options(statement, clause), "params": params}
    text = str(literal_value(clause.query))
    return _placed(
        statement, clause.query, lambda: Query(text).explain(frame, analyze=analyze, **options)
    )


def _options(statement: Statement, clause: Matching) -> dict[str, Any]:
    known = [option.name for option in fields(Options) if option.name != "params"]
    options: dict[str, Any] = {}
    for token, value in clause.options:
        name = token.name.lower()
        if name not in known:
            hint = did_you_mean(name, known, f"there are {', '.join(known)}")
            message = f"cep_match has no option `{token.name}`"
            raise statement.wrong("CEP608", message, token.span, hint)
        if name in options:
            message = f"cep_match has the option `{name}` already"
            raise statement.wrong("CEP608", message, token.span)
        options[name] = literal_value(value)
    if "time" not in options:
        hint = "say which column is the time: `time => 'ts'`"
        raise statement.wrong("CEP608", "cep_match needs the time", clause.span, hint)
    return options


def _placed(statement: Statement, query: Token, run: Callable[[], Result]) -> Result:
    """Findings get their places in the whole statement."""
    try:
        return run()
    except QueryError as error:
        source = statement.source
        places = [query.span.start + place for place in places_of(query)]
        raise QueryError(
            [
                replace(finding, source=source, span=_moved(finding.span, places))
                for finding in error.diagnostics
            ]
        ) from None


def _moved(span: Span, places: list[int]) -> Span:
    last = len(places) - 1
    return Span(places[min(span.start, last)], places[min(span.end, last)])
