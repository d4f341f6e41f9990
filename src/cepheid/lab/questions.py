"""Answers about a situation besides its matches: why, why not, the funnel and the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from cepheid.errors import DataError
from cepheid.lab.situations.situation import Situation
from cepheid.reasons.anatomy import Anatomy, anatomy
from cepheid.reasons.local_trials import LocalTrials


def why(situation: Situation) -> dict[str, Any]:
    report = situation.query.why(situation.events, situation.run_options, rows="all")
    return {"html": report._repr_html_()}


def funnel(situation: Situation) -> dict[str, Any]:
    figures = situation.query.funnel(situation.events, situation.run_options, rows="all")
    return {"html": figures._repr_html_()}


def plan(situation: Situation) -> dict[str, Any]:
    """The plan with the figures of a run."""
    explanation = situation.query.explain(situation.events, situation.run_options, analyze=True)
    return {"html": explanation._repr_html_()}


def why_not(situation: Situation, rows: Any) -> dict[str, Any]:
    """Why events don't match together: each is given to a variable of its type, in the order of
    their times."""
    if not isinstance(rows, list) or not all(isinstance(r, int) for r in rows) or not rows:
        raise DataError("events are numbers of rows")
    if not all(0 <= row < situation.events.num_rows for row in rows):
        raise DataError(f"the events are the rows 0 to {situation.events.num_rows - 1}")
    trials = situation.trials()
    parts = anatomy(situation.query.syntax, trials)
    given = variables_of(rows, parts, trials)
    verdict = situation.query.why(situation.events, situation.run_options, events=given, rows="all")
    return asdict(verdict)


def variables_of(rows: Sequence[int], parts: Anatomy, trials: LocalTrials) -> dict[str, list[int]]:
    """A variable for each event, in the order of times and of the pattern; groups take several."""
    ordered = sorted(set(rows), key=lambda row: (int(trials.moments[row]), row))
    names = [n for n, v in parts.bound.variables.items() if v.negation is None]
    best = max(_assigned(ordered, names, parts, trials), key=lambda assigned: assigned[0])
    given: dict[str, list[int]] = {}
    for row, name in zip(ordered, best[1], strict=True):
        if name is None:
            column = trials.options.type
            type_ = "" if column is None else f", of type {trials.cell(row, column)},"
            raise DataError(
                f"row {row}{type_} has no variable of the pattern beside the others: it has "
                + ", ".join(names)
            )
        given.setdefault(name, []).append(row)
    return given


def _assigned(
    rows: Sequence[int], names: Sequence[str], parts: Anatomy, trials: LocalTrials
) -> Iterator[tuple[int, list[str | None]]]:
    """How many rows find a variable, and which: first in the order of the pattern, then in any."""
    types = {name: parts.bound.variables[name].types for name in names}
    column = trials.options.type
    for in_order in (True, False):
        place, taken, chosen = 0, set[str](), list[str | None]()
        for row in rows:
            kind = None if column is None else str(trials.cell(row, column))
            later = range(place if in_order else 0, len(names))
            fits = (
                n
                for n in later
                if (not types[names[n]] or kind is None or kind in types[names[n]])
                and (names[n] not in parts.singles or names[n] not in taken)
            )
            n = next(fits, None)
            chosen.append(None if n is None else names[n])
            if n is not None:
                place, taken = n, taken | {names[n]}
        yield len(rows) - chosen.count(None), chosen
