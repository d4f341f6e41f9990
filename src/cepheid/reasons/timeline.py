"""`timeline`: the events of a query on a time axis, with the matches below."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cepheid.algebra.query import Clock
from cepheid.explain.markup import element, escape
from cepheid.explain.page import STYLE, document, section
from cepheid.language import ast
from cepheid.language.render import render, render_pattern
from cepheid.plan.amounts import count
from cepheid.reasons.anatomy import Anatomy, anatomy
from cepheid.reasons.local_trials import LocalTrials
from cepheid.reasons.saved import save
from cepheid.reasons.steps import WrittenNegation
from cepheid.reasons.timeline_picture import timeline_picture
from cepheid.reasons.trials import Binding

SHOWN = 40
"""Matches that are drawn."""

LANES = 20
"""Lanes of a column's values."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The events of a variable, or of a value of a column: their rows and times in order."""

    name: str
    negated: bool
    rows: tuple[int, ...]
    times: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DrawnMatch:
    """A match: its start and end, where its window ends, the places of its events as (lane, time,
    row), and, as (lane, from, to), its groups and the times in which a negation allows no event."""

    start: int
    end: int
    closes: int | None
    events: tuple[tuple[int, int, int], ...]
    groups: tuple[tuple[int, int, int], ...]
    free: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Timeline:
    """Events and matches on a time axis: save it as .svg or .html.

    query    its text
    lanes    the events
    matches  those that are drawn, of `found`
    sample   which events these are, if not all
    ticks    whether times are integers without a unit
    """

    query: str
    lanes: tuple[Lane, ...]
    matches: tuple[DrawnMatch, ...]
    found: int
    complete: bool
    events: int
    sample: str | None
    ticks: bool

    def __repr__(self) -> str:
        return f"Timeline({self._words})"

    __str__ = __repr__

    @property
    def _words(self) -> str:
        found = f"{'' if self.complete else 'more than '}{count(self.found)}"
        shown = f", {len(self.matches)} drawn" if len(self.matches) < self.found else ""
        seen = self.sample or f"{count(self.events)} events"
        return f"{found} {'match' if self.found == 1 else 'matches'}{shown}, in {seen}"

    def to_svg(self) -> str:
        """The drawing."""
        return timeline_picture(self)

    def to_html(self) -> str:
        """A page that needs nothing else."""
        return document("Timeline", self._repr_html_())

    def _repr_html_(self) -> str:
        drawing = element("div", self.to_svg(), class_="drawing")  # scrolls on a phone
        return element(
            "div",
            element("style", STYLE),
            section("Query", element("pre", escape(self.query))),
            section("Timeline", element("p", escape(self._words)) + drawing),
            class_="cepheid",
        )

    def save(self, path: str | Path) -> None:
        """Write it as what the name says: .svg or .html."""
        save(path, {".svg": self.to_svg, ".html": self.to_html})


def timeline_of(query: ast.Query, trials: LocalTrials, lanes: str | None) -> Timeline:
    """The timeline of a query, with a lane for each variable, or for each value of a column."""
    parts = anatomy(query, trials)
    outcome = trials.run(parts.syntax)
    drawn = outcome.matches[:SHOWN]
    drawn_lanes, places = _by_variable(parts, trials) if lanes is None else ((), {})
    if lanes is not None:
        drawn_lanes, places = _by_value(parts, trials, lanes, drawn)
    matches = tuple(_drawn(parts, trials, m, places, lanes is None) for m in drawn)
    return Timeline(
        render(query),
        drawn_lanes,
        matches,
        outcome.number,
        outcome.complete,
        trials.count,
        trials.sample,
        parts.ticks,
    )


Places = dict[tuple[str, int], int]
"""The lane of a variable's row."""


def _rows_of(leaf: ast.Atom | ast.AnyOf, parts: Anatomy, trials: LocalTrials) -> list[int]:
    outcome = trials.run(ast.Query(leaf, streams=parts.syntax.streams), most=None)
    return [row for match in outcome.matches for rows in match.rows.values() for row in rows]


def _lane(name: str, negated: bool, rows: list[int], trials: LocalTrials) -> Lane:
    ordered = sorted(rows, key=lambda row: (int(trials.moments[row]), row))
    return Lane(name, negated, tuple(ordered), tuple(int(trials.moments[r]) for r in ordered))


def _by_variable(parts: Anatomy, trials: LocalTrials) -> tuple[tuple[Lane, ...], Places]:
    lanes: list[Lane] = []
    places: Places = {}
    for number, (name, leaf) in enumerate(parts.leaves.items()):
        negated = parts.bound.variables[name].negation is not None
        rows = _rows_of(leaf, parts, trials)
        text = render_pattern(leaf)
        lanes.append(_lane(f"!{text}" if negated else text, negated, rows, trials))
        places.update({(name, row): number for row in rows})
    return tuple(lanes), places


def _by_value(
    parts: Anatomy, trials: LocalTrials, column: str, drawn: tuple[Binding, ...]
) -> tuple[tuple[Lane, ...], Places]:
    """Values of the matches first, then in the order of their first events."""
    trials.check_column(column)
    rows = sorted({r for leaf in parts.leaves.values() for r in _rows_of(leaf, parts, trials)})
    values = {row: str(trials.cell(row, column)) for row in rows}
    bound = [(v, r) for match in drawn for v, rows_ in match.rows.items() for r in rows_]
    names = list(dict.fromkeys([*(values[r] for _, r in bound), *values.values()]))[:LANES]
    lanes = [_lane(n, False, [r for r in rows if values[r] == n], trials) for n in names]
    number = {name: n for n, name in enumerate(names)}
    return tuple(lanes), {(v, r): number[values[r]] for v, r in bound if values[r] in number}


def _drawn(
    parts: Anatomy, trials: LocalTrials, match: Binding, places: Places, by_variable: bool
) -> DrawnMatch:
    window = parts.bound.window
    timed = window is not None and window.clock is Clock.TIME
    closes = match.start + window.size if window is not None and timed else None
    events = sorted(
        (int(trials.moments[row]), row, places[v, row])
        for v, rows in match.rows.items()
        for row in rows
        if (v, row) in places
    )
    groups = []
    for v, rows in match.rows.items():
        if v not in parts.singles and rows and by_variable:
            times = [int(trials.moments[r]) for r in rows]
            groups.append((places[v, rows[0]], min(times), max(times)))
    free = _free(parts, trials, match, closes) if by_variable else ()
    return DrawnMatch(
        match.start,
        match.end,
        closes,
        tuple((lane, time, row) for time, row, lane in events),
        tuple(groups),
        tuple(free),
    )


def _free(
    parts: Anatomy, trials: LocalTrials, match: Binding, closes: int | None
) -> list[tuple[int, int, int]]:
    """Where a negation between two steps, at the start or at the end allows no event."""
    lanes = {name: n for n, name in enumerate(parts.leaves)}
    ranges: list[tuple[int, int, int]] = []
    last: int | None = None

    def add(negations: tuple[WrittenNegation, ...], begin: int | None, end: int | None) -> None:
        if begin is not None and end is not None:
            ranges.extend((lanes[v], begin, end) for n in negations for v in sorted(n.variables))

    for step in parts.steps:
        times = [int(trials.moments[r]) for v in step.variables for r in match.rows.get(v, ())]
        if not times:
            continue
        size = None if closes is None else closes - match.start
        begin = last if last is not None else None if size is None else match.end - size
        add(_negations(step.between), begin, min(times))
        last = max(times)
    for exception in (n for n in parts.negations if isinstance(n.node, ast.Unless)):
        during = [int(trials.moments[r]) for v in exception.guarded for r in match.rows.get(v, ())]
        add((exception,), min(during, default=None), max(during, default=None))
    trailing = _negations(parts.ending)
    timed = tuple(
        n for n in trailing if isinstance(n.node, ast.Negation) and n.node.duration is not None
    )
    add(timed, last, match.end)
    add(tuple(n for n in trailing if n not in timed), last, closes)
    return ranges


def _negations(negations: Iterable[WrittenNegation]) -> tuple[WrittenNegation, ...]:
    """Without exceptions."""
    return tuple(n for n in negations if isinstance(n.node, ast.Negation))
