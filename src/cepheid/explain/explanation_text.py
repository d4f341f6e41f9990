"""An explanation as text: a contract, stable and without ids.

plan: right-deep, the cheapest; estimated cost 12 µs per window
window: 10 units
                       ─── per window ───
                       rows   cost  share
SEQ                      20  10 µs    83 %
├── A a                  10  50 ns   <1 %
└── SEQ  b.x < c.x       50   2 µs    16 %
    ├── B b              10  50 ns   <1 %
    └── C c              10  50 ns   <1 %
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from cepheid.explain.markup import shorten
from cepheid.explain.sections import (
    replan_text,
    rivals,
    run_lines,
    settings_lines,
    statistics_lines,
    verdict,
)
from cepheid.explain.shown_tree import Shown, show
from cepheid.plan.amounts import amount, count, duration, ratio, share
from cepheid.plan.states import State

if TYPE_CHECKING:
    from cepheid.explain.explanation import Explanation

WIDTH = 72
"""Columns of the tree after which further conditions go to lines of their own."""

LONG = 100
"""Letters after which a rewrite takes several lines."""


def explanation_text(explanation: Explanation) -> str:
    """The whole explanation, from the query to the run."""
    parts = (
        explanation.query.splitlines(),
        _section("warnings", explanation.warnings),
        _section("rewrites", _rewrites(explanation)),
        _plan(explanation),
        _section("other plans", _others(explanation)),
        _section("statistics", _table(_statistics(explanation))),
        _section(explanation.where, _table(explanation.distribution)),
        _section("run", _table(_run(explanation))),
        _section("replans", _replans(explanation)),
    )
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _section(name: str, lines: Iterable[str]) -> list[str]:
    indented = [f"  {line}" for line in lines]
    return [name, *indented] if indented else []


def _table(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return (f"{name:<{width}}  {text}" for name, text in rows)


def _rewrites(explanation: Explanation) -> Iterator[str]:
    for applied in explanation.rewrites:
        line = f"{applied.rule}: {applied.before} → {applied.after}"
        if len(line) <= LONG and "\n" not in line:
            yield line
        else:
            yield f"{applied.rule}:"
            yield from (f"    {part}" for part in applied.before.splitlines())
            first, *others = applied.after.splitlines() or [""]
            yield f"  → {first}"
            yield from (f"    {part}" for part in others)


def _plan(explanation: Explanation) -> list[str]:
    planned = explanation.planned
    return [
        *([] if explanation.answers is None else [f"answers: {explanation.answers}"]),
        f"plan: {verdict(planned)}",
        *(f"{name}: {text}" for name, text in settings_lines(planned)),
        *_tree(show(planned, explanation.profile), explanation.profile is not None),
    ]


def _others(explanation: Explanation) -> Iterator[str]:
    others = [rival for rival in rivals(explanation.planned) if not rival.chosen]
    rows = [(ratio(other.times), other.name) for other in others]
    width = max((len(times) for times, _ in rows), default=0)
    return (f"{times:>{width}}  {name}" for times, name in rows)


def _statistics(explanation: Explanation) -> list[tuple[str, str]]:
    return statistics_lines(explanation.planned.plan, explanation.planned.statistics)


def _run(explanation: Explanation) -> list[tuple[str, str]]:
    if explanation.profile is None:
        return []
    return run_lines(explanation.planned.plan, explanation.profile)


def _replans(explanation: Explanation) -> Iterator[str]:
    if explanation.profile is not None:
        for replan in explanation.profile.replans:
            when, text = replan_text(explanation.planned.plan, replan)
            yield f"{when}: {text}"


def _tree(shown: Shown, analyzed: bool) -> list[str]:
    """The tree, and beside it the figures, in columns."""
    groups: list[tuple[str, tuple[str, ...]]] = [("per window", ("rows", "cost", "share"))]
    if analyzed:
        groups.append(("in this run", ("rows", "time", "share", "peak")))
    names = [name for _, columns in groups for name in columns]
    rows = [(lines, _cells(node, analyzed)) for node, lines in _lines(shown, "", "")]
    left = max(len(first) for (first, *_), _ in rows)
    widths = [max(map(len, column)) for column in zip(names, *(c for _, c in rows), strict=True)]
    heading = " " * left
    done = 0
    for title, columns in groups:
        room = sum(widths[done : done + len(columns)]) + 2 * (len(columns) - 1)
        heading += "  " + f" {title} ".center(room, "─")
        done += len(columns)
    table = [heading, " " * left + _row(names, widths)]
    for (first, *others), cells in rows:
        table += [f"{first:<{left}}{_row(cells, widths)}", *others]
    return [line.rstrip() for line in table]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _cells(node: Shown, analyzed: bool) -> list[str]:
    cells = ["", "", ""]
    if node.estimate is not None:
        cells = [amount(node.estimate.rows), duration(node.estimate.cost), share(node.share)]
    if not analyzed:
        return cells
    actual = node.actual
    if actual is None:
        return [*cells, "", "", "", ""]
    time = [duration(actual.seconds * 1e9), share(node.busy)] if actual.seconds else ["–", "–"]
    return [*cells, count(actual.rows), *time, count(actual.peak)]


def _lines(node: Shown, first: str, rest: str) -> Iterator[tuple[Shown, list[str]]]:
    """Each node, and its lines: the first begins with the branch that leads to it."""
    below = rest + ("│   " if node.inputs else "    ")
    yield node, _wrapped(node, first, below)
    for n, part in enumerate(node.inputs):
        last = n == len(node.inputs) - 1
        branch, trunk = ("└── ", "    ") if last else ("├── ", "│   ")
        yield from _lines(part, rest + branch, rest + trunk)


def _wrapped(node: Shown, first: str, below: str) -> list[str]:
    """The node's name and conditions, on more lines if one would be too long."""
    lines = [first + node.title + (f" (shared by {node.uses})" if node.uses > 1 else "")]
    for n, condition in enumerate(node.conditions):
        piece = condition + ("," if n < len(node.conditions) - 1 else "")
        if node.states:
            piece = shorten(piece, WIDTH - len(lines[-1]))  # the query stands above
        glue = "  " if n == 0 else " "
        if n and len(lines[-1]) + len(glue) + len(piece) > WIDTH:
            lines.append(f"{below} {piece}")
        else:
            lines[-1] += glue + piece
    return [*lines, *(line for state in node.states for line in _state(state, below))]


def _state(state: State, below: str) -> Iterator[str]:
    """A state of an automaton, and what doesn't fit on its line below it."""
    first, *others = wrap(str(state), max(WIDTH - len(below), 40), subsequent_indent="  ")
    yield f"{below.removesuffix('   ')} {first}"
    yield from (f"{below.removesuffix('   ')} {line}" for line in others)
