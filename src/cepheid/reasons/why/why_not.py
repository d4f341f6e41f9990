"""The report on given events: whether they match together, and if not, why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cepheid.explain.markup import element, escape
from cepheid.explain.page import STYLE, document, section
from cepheid.language.diagnostics import printable
from cepheid.reasons.columns_of_text import columns
from cepheid.reasons.saved import save
from cepheid.reasons.why.report_page import table


@dataclass(frozen=True, slots=True)
class CheckedCondition:
    """A condition on the given events: `true`, `false`, `unknown` or `not checked`, and the values
    that it saw."""

    text: str
    outcome: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class WhyNot:
    """Whether events match together, and if not, why: print it, or save it as .txt, .json or .html.

    query       its text
    rows        the events, by the rows of their variables
    matches     whether a match binds them
    conditions  every condition of WHERE, with the values that it saw
    problems    what else is wrong: types, order, window, negations, events taken instead, clauses
    change      the smallest single change with which they match, None if there is none
    changed     the query with this change
    sample      which events were looked at, if not all
    """

    query: str
    rows: Mapping[str, tuple[int, ...]]
    matches: bool
    conditions: tuple[CheckedCondition, ...]
    problems: tuple[str, ...]
    change: str | None
    changed: str | None
    sample: str | None = None

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        return f"WhyNot({_rows(self)}: {'a match' if self.matches else 'no match'})"

    def to_dict(self) -> dict[str, Any]:
        return {"version": 1, **asdict(self)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_html(self) -> str:
        """A page that needs nothing else."""
        return document(_headline(self), self._repr_html_())

    def _repr_html_(self) -> str:
        change = "" if self.change is None else element("p", escape(self.change))
        changed = "" if self.changed is None else element("pre", escape(self.changed))
        return element(
            "div",
            element("style", STYLE),
            section("Query", element("pre", escape(self.query))),
            section("Events", element("p", escape(_headline(self)))),
            section("Conditions", table(("condition", "", "values"), _conditions(self))),
            section("Problems", "".join(element("p", escape(p)) for p in self.problems)),
            section("The smallest change", change + changed),
            class_="cepheid",
        )

    def save(self, path: str | Path) -> None:
        """Write it as what the name says: .txt, .json or .html."""
        save(path, {".txt": lambda: f"{self}\n", ".json": self.to_json, ".html": self.to_html})


def _rows(verdict: WhyNot) -> str:
    return ", ".join(f"{v} {' '.join(map(str, rows))}" for v, rows in verdict.rows.items())


def _headline(verdict: WhyNot) -> str:
    seen = "" if verdict.sample is None else f", in {verdict.sample}"
    return f"rows {_rows(verdict)}: {'a match' if verdict.matches else 'no match'}{seen}"


def _conditions(verdict: WhyNot) -> list[tuple[str, str, str]]:
    return [
        (c.text, c.outcome, ", ".join(f"{name} is {value}" for name, value in c.values))
        for c in verdict.conditions
    ]


def _lines(verdict: WhyNot) -> Iterator[str]:
    yield verdict.query
    yield ""
    yield _headline(verdict)
    if verdict.conditions:
        yield ""
        yield from columns([("condition", "", "values"), *_conditions(verdict)])
    if verdict.problems:
        yield ""
        yield from map(printable, verdict.problems)
    if not verdict.matches:
        yield ""
        yield f"smallest change: {verdict.change or 'no single one is enough'}"
