"""The report of `why` as a page, and as a fragment of one for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cepheid.explain.markup import element, escape
from cepheid.explain.page import STYLE, document, section
from cepheid.reasons.why.report_text import (
    headline,
    matches_words,
    miss_words,
    misses_are,
    step_rows,
    variable_rows,
    without_rows,
)

if TYPE_CHECKING:
    from cepheid.reasons.why.report import Why


def page_of_report(report: Why) -> str:
    return document(f"Why: {matches_words(report)}", report_markup(report))


def report_markup(report: Why) -> str:
    """What the text says, as tables."""
    return element(
        "div",
        element("style", STYLE),
        *(element("p", escape(note), class_="warning") for note in report.notes),
        section("Query", element("pre", escape(report.query))),
        section("Steps", element("p", escape(headline(report))) + _steps(report)),
        section("Events", table(("variable", "events", ""), variable_rows(report), (1,))),
        section("Changes", table(("change", "matches"), without_rows(report))),
        section(
            "Nearest misses",
            table((misses_are(report), ""), [miss_words(m) for m in report.misses]),
        ),
        class_="cepheid",
    )


def _steps(report: Why) -> str:
    return table(("step", "reached", "lost"), step_rows(report), (1,))


_FEW = 4
"""Columns that a phone has room for, side by side."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Rows of text; the columns of `numbers` are right-aligned. On a phone, a table of many columns
    has its numbers in a line, and its texts above and below."""
    if not rows:
        return ""

    def kind(n: int, cell: str) -> str:
        return "number" if n in numbers else "text" if cell else "blank"

    def cells(name: str, row: Sequence[str]) -> str:
        return "".join(
            element(name, escape(cell) or " ", class_=kind(n, cell)) for n, cell in enumerate(row)
        )

    lines = [element("tr", cells("th", head)), *(element("tr", cells("td", r)) for r in rows)]
    many = " many" if len(head) > _FEW else ""
    return element("div", element("table", *lines), class_=f"wide{many}")
