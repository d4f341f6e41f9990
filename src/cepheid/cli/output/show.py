"""What a run prints: a sample of its matches as a table, and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

MOST_FREQUENT = 10
"""How many rules are listed with their number of matches."""

REJECTED_SHOWN = 5
"""How many rejected rows are shown; the others are counted."""


def console(stderr: bool = False) -> Console:
    """Standard output or error; what isn't a terminal has 80 columns."""
    return Console(stderr=stderr)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of a run. `rejected` are rows that aren't events: bad ones, and those without a
    time."""

    events: int
    matches: int
    seconds: float
    rejected: int | None = None

    def table(self, extra: Mapping[str, str] | None = None) -> Table:
        table = Table(show_header=False, box=None)
        table.add_row("events", f"{self.events:,}")
        table.add_row("matches", f"{self.matches:,}")
        if self.rejected is not None:
            table.add_row("rejected", f"{self.rejected:,}")
        table.add_row("seconds", f"{self.seconds:.2f}")
        table.add_row("events/s", f"{self.events / self.seconds:,.0f}" if self.seconds else "–")
        for name, value in (extra or {}).items():
            table.add_row(name, value)
        return table


@dataclass(frozen=True, slots=True)
class PerRule:
    """The number of matches of each rule; `counts` has the rules with at least one."""

    rules: int
    counts: Mapping[str, int]

    def figures(self) -> dict[str, str]:
        return {"rules": f"{self.rules:,}, {len(self.counts):,} of them with matches"}

    def table(self) -> Table:
        """The rules that match most often, and the sum of the others."""
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        first, others = ordered[:MOST_FREQUENT], ordered[MOST_FREQUENT:]
        table = Table("rule", Column("matches", justify="right"), box=None)
        for name, count in first:
            table.add_row(Text(name), f"{count:,}")
        if others:
            table.add_row(f"{len(others):,} others", f"{sum(n for _, n in others):,}")
        return table


def sample(names: Sequence[str], rows: Sequence[Mapping[str, Any]], width: int) -> Table | Text:
    """Matches as a table, a line for each. If that is wider than the screen, values are broken at
    spaces, as between a date and a time; if that doesn't help, each column has its own line."""
    if not rows:
        return Text("no matches")
    cells = [[cell(row[name]) for name in names] for row in rows]
    columns = list(zip(names, *cells, strict=True))
    whole = [max(map(len, column)) for column in columns]
    words = [
        max(len(word) for text in column for word in text.split() or [""]) for column in columns
    ]
    nested = any(isinstance(value, dict | list | tuple) for row in rows for value in row.values())
    borders = 3 * len(names) + 1
    if sum(whole) + borders <= width:
        least = whole
    elif sum(words) + borders <= width and not nested:
        least = words
    else:
        return _below_each_other(names, cells)
    table = Table()
    for name, room in zip(names, least, strict=True):
        numbers = any(isinstance(row[name], int | float) for row in rows)
        table.add_column(Text(name), justify="right" if numbers else "left", min_width=room)
    for line in cells:
        table.add_row(*map(Text, line))
    return table


def _below_each_other(names: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    table = Table(show_header=False, box=None)
    table.add_column(no_wrap=True, style="dim")
    table.add_column()
    for number, line in enumerate(cells, 1):
        table.add_row(Text(f"match {number:,}"), "")
        for name, text in zip(names, line, strict=True):
            table.add_row(Text(f"  {name}"), Text(text))
    return table


def shown(count: int, matches: int) -> str:
    """
    >>> shown(20, 1223)
    '20 of 1,223 shown'
    """
    return f"{count:,} of {matches:,} shown"


def cell(value: object) -> str:
    """The shortest readable form of a value.

    >>> cell({"ts": 3, "x": None}), cell([1.5, 2.0]), cell(datetime(2026, 1, 31, 12))
    ('ts=3 x=NULL', '[1.5, 2.0]', '2026-01-31 12:00:00')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ")
        case dict():
            return " ".join(f"{name}={cell(item)}" for name, item in value.items())
        case list() | tuple():
            nested = any(isinstance(item, dict) for item in value)
            return f"[{(' | ' if nested else ', ').join(map(cell, value))}]"
        case _:
            return str(value)


def rejected_text(first: Sequence[Mapping[str, Any]], count: int, kept: str | None) -> str:
    """The text about the first rejected rows, with their places and reasons, and how to see or
    decide more.

    >>> row = {"file": "e.csv", "number": 7, "line": "1,?", "reason": "`x` is '?', not an integer"}
    >>> print(rejected_text([row], 3, None))
    rejected: e.csv:7: `x` is '?', not an integer
    and 2 more; --rejected FILE keeps them; --schema and --bad-rows change this
    """
    lines = []
    for row in first:
        place = row["file"] if row["number"] is None else f"{row['file']}:{row['number']}"
        lines.append(f"rejected: {place}: {row['reason']}")
    more = f"and {count - len(first):,} more; " if count > len(first) else ""
    where = f"all are in {kept}" if kept is not None else "--rejected FILE keeps them"
    return "\n".join([*lines, f"{more}{where}; --schema and --bad-rows change this"])
