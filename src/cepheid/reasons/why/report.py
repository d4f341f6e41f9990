"""The report of `why`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from cepheid.reasons.saved import save
from cepheid.reasons.why.report_page import page_of_report, report_markup
from cepheid.reasons.why.report_text import matches_words, report_text

VERSION = 1


@dataclass(frozen=True, slots=True)
class Lost:
    """How many partial matches a part of the query stopped at a step. `kind` is `candidate` (no
    event of the type), `condition`, `negation`, `window` (its text says which would be long
    enough), `having`, `after match`, `limit` or `together`."""

    kind: str
    text: str
    count: int


@dataclass(frozen=True, slots=True)
class ReportedStep:
    """A step of the pattern, or `match` at the end: how many first events got that far, None if
    that can't be known, and what stopped those that got to the step before."""

    text: str
    reached: int | None
    lost: tuple[Lost, ...]


@dataclass(frozen=True, slots=True)
class VariableEvents:
    """How many events have the types of a variable, how many of them pass each condition that is
    about it alone, and how many pass all of those."""

    variable: str
    negated: bool
    events: int | None
    conditions: tuple[tuple[str, int | None], ...]
    passing: int | None


@dataclass(frozen=True, slots=True)
class WithoutPart:
    """The matches there would be without a part of the query, or with a longer window, all else as
    it is; `more` than now, None if those now were too many to count. `complete`: there are no more
    than that."""

    kind: str
    text: str
    matches: int
    complete: bool
    more: int | None


@dataclass(frozen=True, slots=True)
class Miss:
    """Events that nearly matched: the rows of each variable, none if the data don't number theirs,
    and their times; how many steps they reached, what stopped them, and if that is a condition, the
    values that it saw."""

    rows: Mapping[str, tuple[int, ...]]
    times: Mapping[str, tuple[str, ...]]
    reached: int
    steps: int
    kind: str
    text: str
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Why:
    """Why a query matched, or didn't: print it, or save it as .txt, .json or .html.

    query      its text
    events     how many were looked at, of `total`; `sample` says which, if not all
    matches    how many there are; `complete` says whether all were counted
    steps      how many first events reached each step, and what stopped the others
    variables  the events of each variable, and how many pass its conditions
    without    the matches there would be without each part, and with a longer window
    misses     the events that came nearest
    notes      types and values that don't occur, and what could not be tried
    """

    query: str
    events: int
    total: int
    sample: str | None
    matches: int
    complete: bool
    steps: tuple[ReportedStep, ...]
    variables: tuple[VariableEvents, ...]
    without: tuple[WithoutPart, ...]
    misses: tuple[Miss, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return report_text(self)

    def __repr__(self) -> str:
        words = shorten(self.query, 60, placeholder=" …")
        return f"Why({words!r}, {matches_words(self)})"

    def to_dict(self) -> dict[str, Any]:
        return {"version": VERSION, **asdict(self)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_html(self) -> str:
        """A page that needs nothing else."""
        return page_of_report(self)

    def _repr_html_(self) -> str:
        return report_markup(self)

    def save(self, path: str | Path) -> None:
        """Write it as what the name says: .txt, .json or .html."""
        save(path, {".txt": lambda: f"{self}\n", ".json": self.to_json, ".html": self.to_html})
