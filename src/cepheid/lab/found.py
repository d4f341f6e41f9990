"""What the page shows after every change: the matches of the query, or what is wrong with it."""

from __future__ import annotations

import json
import time as clock
import warnings
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.algebra import patterns
from cepheid.algebra.query import Clock, Kind
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.engine.rows.clock import times
from cepheid.errors import CepheidError, QueryError
from cepheid.inprocess.runtime import InProcess
from cepheid.lab.situations.situation import Situation
from cepheid.language import ast
from cepheid.language.diagnostics import Diagnostic, shown
from cepheid.language.render import render_pattern
from cepheid.reasons.anatomy import Anatomy, anatomy
from cepheid.reasons.local_trials import LocalTrials
from cepheid.reasons.trials import Variation
from cepheid.reasons.why.spelling import misspelled_types, misspelled_values

SHOWN = 1000
"""Matches that are looked for."""

_LONGEST = 200
"""Characters of a value that are shown."""


def found(situation: Situation) -> dict[str, Any]:
    """The matches with the events that they bind, or the diagnostics of the query."""
    began = clock.perf_counter()
    try:
        answer = _matches(situation)
    except QueryError as error:
        answer = {"diagnostics": [_diagnostic(d) for d in error.diagnostics]}
    except CepheidError as error:
        answer = {"problem": str(error)}
    return {**answer, "milliseconds": round(1000 * (clock.perf_counter() - began), 1)}


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    length = len(diagnostic.source.text)
    # At the end of the text its last character is marked.
    start = min(diagnostic.span.start, max(length - 1, 0))
    return {
        "code": diagnostic.code,
        "message": shown(diagnostic.message),
        "hint": shown(diagnostic.hint),
        "start": start,
        "end": min(max(diagnostic.span.end, start + 1), length),
    }


def _matches(situation: Situation) -> dict[str, Any]:
    query = situation.query
    bound = query.bind(situation.events.schema, situation.options)
    trials = situation.trials()
    parts = anatomy(query.syntax, trials)
    written = () if bound.answers is not None else query.syntax.returns
    table = _rows_and_returns(parts.syntax, written, parts, trials)
    complete = table.num_rows <= SHOWN
    table = table.slice(0, SHOWN)
    names = patterns.positive(parts.bound.pattern)
    answers = bound.answers is not None
    return {
        "variables": _variables(parts),
        "matches": _bindings(table, names, parts),
        "complete": complete,
        "answers": answers,
        "returned": _answers(situation) if answers else _returned(table, bool(written)),
        "notes": [
            *bound.warnings,
            *misspelled_types(parts, trials),
            *misspelled_values(parts, trials),
        ],
    }


def _rows_and_returns(
    syntax: ast.Query, written: tuple[ast.ReturnItem, ...], parts: Anatomy, trials: LocalTrials
) -> pa.Table:
    """One run for both: what RETURN says, and the rows that each variable binds."""
    rows = tuple(
        ast.ReturnItem(ast.Attribute(name, trials.row), _column(name))
        for name in patterns.positive(parts.bound.pattern)
    )
    window = parts.bound.window
    counted = window is not None and window.clock is Clock.EVENTS and bool(parts.bound.key)
    limited = syntax.limit is None and not counted
    limit = ast.MatchLimit(ast.EventCount(SHOWN + 1)) if limited else syntax.limit
    query = replace(syntax, into=None, returns=(*written, *rows), limit=limit)
    return _run(query, trials)


def _run(query: ast.Query, trials: LocalTrials) -> pa.Table:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page shows the warnings of the query itself
        matches = InProcess().match(Variation(query), trials.data, trials.options)
    return matches if isinstance(matches, pa.Table) else pa.table(matches)


def _column(variable: str) -> str:
    return f"rows of {variable}"


def _variables(parts: Anatomy) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "text": render_pattern(parts.leaves[name]),
            "types": list(variable.types),
            "negated": variable.negation is not None,
            "group": variable.kind is Kind.GROUP,
        }
        for name, variable in parts.bound.variables.items()
    ]


def _bindings(table: pa.Table, names: tuple[str, ...], parts: Anatomy) -> list[dict[str, Any]]:
    columns = [table[_column(name)].to_pylist() for name in names]
    start, end = (_ticks(table[name]) for name in (MATCH_START, MATCH_END))
    window = parts.bound.window
    size = window.size if window is not None and window.clock is Clock.TIME else None
    return [
        {
            "rows": {name: _listed(column[n]) for name, column in zip(names, columns, strict=True)},
            "start": start[n],
            "end": end[n],
            "closes": None if size is None else start[n] + size,
        }
        for n in range(table.num_rows)
    ]


def _ticks(column: pa.ChunkedArray) -> list[int]:
    return [int(t) for t in np.asarray(times(column.combine_chunks()))]


def _listed(value: Any) -> list[int]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def _returned(table: pa.Table, written: bool) -> dict[str, Any]:
    """The columns of RETURN; none if the query has no RETURN, since the page knows the events."""
    if not written:
        return {"columns": [], "rows": []}
    names = [n for n in table.column_names if not n.startswith("rows of ")]
    return _texts(table.select([n for n in names if n not in (MATCH_START, MATCH_END)]))


def _answers(situation: Situation) -> dict[str, Any]:
    answers = situation.query.match(situation.events, situation.run_options)
    return _texts(answers.slice(0, SHOWN))


def _texts(table: pa.Table) -> dict[str, Any]:
    rows = [[_text(row[name]) for name in table.column_names] for row in table.to_pylist()]
    return {"columns": table.column_names, "rows": rows}


def _text(value: Any) -> str:
    match value:
        case None:
            text = ""
        case str():
            text = value
        case list() | dict():
            text = json.dumps(value, default=str, ensure_ascii=False)
        case float():
            text = f"{value:.6g}"
        case datetime():
            text = str(value).removesuffix("+00:00")
        case _:
            text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
