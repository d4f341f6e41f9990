"""What a run prints: a sample of its matches as a table, and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

PIPED_WIDTH = 160
"""Columns of a table that isn't printed on a terminal, whose width would be a guess."""

MOST_FREQUENT = 10
"""Rules whose matches are counted one by one."""


def console() -> Console:
    """Stdout as a console, wide enough for a table when it is piped."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=PIPED_WIDTH)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run amounts to. `rejected` are the rows without a time, if they were counted."""

    events: int
    matches: int
    seconds: float
    rejected: int | None = None

    def table(self, extra: Mapping[str, str] | None = None) -> Table:
        table = Table(show_header=False, box=None)
        table.add_row("events", f"{self.events:,}")
        table.add_row("matches", f"{self.matches:,}")
        if self.rejected is not None:
            note = " (no time)" if self.rejected else ""
            table.add_row("rejected", f"{self.rejected:,}{note}")
        table.add_row("seconds", f"{self.seconds:.2f}")
        table.add_row("events/s", f"{self.events / self.seconds:,.0f}" if self.seconds else "–")
        for name, value in (extra or {}).items():
            table.add_row(name, value)
        return table


@dataclass(frozen=True, slots=True)
class PerRule:
    """How many matches the rules of a set have. In `counts` are those that have some."""

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


def sample(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Table:
    """Matches as a table, one line each; numbers to the right."""
    table = Table()
    for name in names:
        numbers = any(isinstance(row[name], int | float) for row in rows)
        table.add_column(Text(name), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(row[name])) for name in names))
    return table


def cell(value: object) -> str:
    """A value as short as it can be read.

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
