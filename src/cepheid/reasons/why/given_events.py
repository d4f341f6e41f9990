"""The events that a question is about: rows by their numbers, or by a condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

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
"""Combinations of events that are compared, if conditions name them."""


def why_not(query: ast.Query, trials: LocalTrials, given: Given) -> WhyNot:
    """The verdict on the events. If conditions name several, on those that match, or else that come
    nearest."""
    parts = anatomy(query, trials)
    _check(parts.bound, given)
    choices = {v: list(_rows(parts, trials, v, named)) for v, named in given.items()}
    verdicts = [
        ChosenEvents(parts, trials, dict(zip(choices, rows, strict=True))).verdict(query)
        for rows in islice(product(*choices.values()), COMBINATIONS)
    ]
    return min(verdicts, key=_distance)


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
    numbers: list[int] = []
    for named in given.values():
        if isinstance(named, int):
            numbers.append(named)
        elif not isinstance(named, str):
            numbers += named
    return numbers


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
    rows = (named,) if isinstance(named, int) else tuple(named)
    for row in rows:
        if not 0 <= row < trials.total:
            raise DataError(f"there is no row {row}: the data have {trials.total}, from 0")
    yield rows


def _events_query(query: ast.Query, leaf: ast.Atom | ast.AnyOf, named: str) -> ast.Query:
    condition = parse(f"PATTERN {render_pattern(leaf)} WHERE {named}").where
    return ast.Query(leaf, streams=query.streams, where=condition)
