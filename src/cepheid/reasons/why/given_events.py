"""The events that a question is about: rows by their numbers, or by a condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from heapq import nsmallest
from itertools import islice, product
from operator import index
from typing import Any

import numpy as np

from cepheid.algebra.query import BoundQuery
from cepheid.errors import DataError
from cepheid.language import ast, parse
from cepheid.language.diagnostics import nearest
from cepheid.language.render import render_pattern
from cepheid.reasons.anatomy import Anatomy, anatomy, leaves_of
from cepheid.reasons.local_trials import LocalTrials
from cepheid.reasons.why.chosen_events import ChosenEvents
from cepheid.reasons.why.why_not import WhyNot

Given = Mapping[str, int | Sequence[int] | str]
"""By variable: the number of a row, those of a group, or a condition such as `"b.x > 5"`."""

COMBINATIONS = 10
"""Combinations of events whose reasons are compared, if conditions name them."""

PAIRED = 10_000
"""Combinations among which those are looked for."""


def why_not(query: ast.Query, trials: LocalTrials, given: Given) -> WhyNot:
    """The verdict on the events. If conditions name several, on those that match, or else on the
    ones that come nearest among those that lie closest together, with the same key if there is
    one."""
    parts = anatomy(query, trials)
    _check(parts.bound, given)
    choices = {v: list(_rows(parts, trials, v, named)) for v, named in given.items()}
    matching = _matching(parts, trials, choices)
    if matching is not None:
        return ChosenEvents(parts, trials, matching).verdict(query)
    combined = islice(product(*choices.values()), PAIRED)
    named = (dict(zip(choices, rows, strict=True)) for rows in combined)
    closest = nsmallest(COMBINATIONS, named, key=lambda rows: _apart(parts, trials, rows))
    verdicts = [ChosenEvents(parts, trials, rows).verdict(query) for rows in closest]
    return min(verdicts, key=_distance)


def _matching(
    parts: Anatomy, trials: LocalTrials, choices: Mapping[str, list[tuple[int, ...]]]
) -> dict[str, tuple[int, ...]] | None:
    """Those of the choices that a match binds. Groups are given by their rows alone."""
    if not any(len(rows) > 1 for rows in choices.values()):
        return None
    some = {v: tuple(row for each in rows for row in each) for v, rows in choices.items()}
    for match in ChosenEvents(parts, trials, some).matches_of(parts.syntax):
        taken = {v: set(match.rows.get(v, ())) for v in choices}
        bound = {
            v: next((each for each in rows if taken[v] >= set(each)), None)
            for v, rows in choices.items()
        }
        if all(each is not None for each in bound.values()):
            return {v: each for v, each in bound.items() if each is not None}
    return None


def _apart(
    parts: Anatomy, trials: LocalTrials, rows: Mapping[str, tuple[int, ...]]
) -> tuple[int, int]:
    """How many keys the events have, and how long they take."""
    keys = {
        tuple(trials.cell(each[0], part.columns[v]) for part in parts.bound.key)
        for v, each in rows.items()
    }
    moments = [int(trials.moments[row]) for each in rows.values() for row in each]
    return len(keys), max(moments) - min(moments)


def named_events(query: ast.Query, bound: BoundQuery, given: Given) -> dict[str, ast.Query]:
    """For each variable, a query that finds the events that a condition names."""
    _check(bound, given)
    leaves = leaves_of(query.pattern, bound)
    return {
        name: _events_query(query, leaves[name], named)
        for name, named in given.items()
        if isinstance(named, str)
    }


def given_rows(given: Given) -> list[int]:
    """Those that are given by their numbers."""
    named = (_numbers(v, rows) for v, rows in given.items() if not isinstance(rows, str))
    return [number for numbers in named for number in numbers]


def _numbers(variable: str, named: Any) -> tuple[int, ...]:
    """Rows in order; also numbers of numpy."""
    numbers: list[int] = []
    with suppress(TypeError):
        rows = [named] if np.ndim(named) == 0 else named
        numbers = sorted({index(row) for row in rows if not isinstance(row, bool)})
    if not numbers:
        raise DataError(
            f"events= names `{variable}` by {named!r}: pass the number of a row, a list of them, "
            f"or a condition such as '{variable}.x > 5'"
        )
    return tuple(numbers)


def _distance(verdict: WhyNot) -> tuple[bool, int]:
    wrong = sum(c.outcome in ("false", "unknown") for c in verdict.conditions)
    return not verdict.matches, wrong + len(verdict.problems)


def _check(bound: BoundQuery, given: Given) -> None:
    known = [n for n, v in bound.variables.items() if v.negation is None]
    for name in given:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean `{close}`?" if close else f"there are {', '.join(known)}"
            raise DataError(f"events= names `{name}`, which no match binds; {hint}")
    if not given:
        raise DataError("events= names no event: pass rows, as in events={'a': 17, 'b': 23}")


def _rows(
    parts: Anatomy, trials: LocalTrials, variable: str, named: int | Sequence[int] | str
) -> Iterator[tuple[int, ...]]:
    if isinstance(named, str):
        outcome = trials.run(_events_query(parts.syntax, parts.leaves[variable], named))
        if outcome.refused is not None:
            raise DataError(f"events of `{variable}`: {outcome.refused}")
        if not outcome.matches:
            raise DataError(f"no event of `{variable}` satisfies {named}")
        for match in outcome.matches:
            yield match.rows[variable]
        return
    rows = _numbers(variable, named)
    for row in rows:
        if not 0 <= row < trials.total:
            raise DataError(f"there is no row {row}: the data have {trials.total}, from 0")
    yield rows


def _events_query(query: ast.Query, leaf: ast.Atom | ast.AnyOf, named: str) -> ast.Query:
    parsed = parse(f"PATTERN {render_pattern(leaf)} WHERE {named}")
    found = ast.Query(leaf, streams=query.streams, where=parsed.where)
    if replace(parsed, pattern=leaf, streams=query.streams) != found:
        raise DataError(f"events= names events by a condition, which `{named}` isn't alone")
    return found
