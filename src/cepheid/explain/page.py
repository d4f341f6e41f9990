"""An explanation as a page, and as a fragment of one for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cepheid.explain.markup import element, escape
from cepheid.explain.paint import DARK, LIGHT, MONO, SANS
from cepheid.explain.picture import picture
from cepheid.explain.sections import (
    replan_text,
    rivals,
    run_lines,
    statistics_lines,
    verdict,
)
from cepheid.explain.shown_tree import Shown, figure_lines, show
from cepheid.plan.amounts import duration, ratio

if TYPE_CHECKING:
    from cepheid.explain.explanation import Explanation

# Colors come from the page around it, which may be a notebook's, light or dark.
STYLE = f"""
.cepheid {{ font: 14px/1.5 {SANS}; max-width: 1080px; }}
.cepheid h2 {{ font-size: 15px; margin: 28px 0 8px; }}
.cepheid pre, .cepheid code {{ font: 13px/1.5 {MONO}; background: none; color: inherit; }}
.cepheid pre {{ margin: 0; padding: 12px 16px; border-left: 3px solid #76ade2;
  white-space: pre-wrap; overflow-wrap: anywhere; }}
.cepheid table {{ border-collapse: collapse; margin: 0; font-size: 14px; }}
.cepheid th, .cepheid td {{ text-align: left; vertical-align: top; padding: 4px 20px 4px 0;
  border-bottom: 1px solid rgba(128, 144, 160, .3); font-weight: normal;
  overflow-wrap: break-word; background: none; }}
.cepheid td:last-child {{ overflow-wrap: anywhere; }}
.cepheid th {{ opacity: .72; white-space: nowrap; }}
.cepheid code {{ white-space: pre-wrap; }}
.cepheid .number {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
.cepheid .chosen td {{ font-weight: 600; }}
.cepheid .bar {{ display: inline-block; height: 10px; background: #76ade2; border-radius: 2px; }}
.cepheid .drawing, .cepheid .wide {{ overflow-x: auto; }}
.cepheid .wide td:first-child {{ min-width: 84px; }}
.cepheid .wide td:last-child {{ min-width: 200px; overflow-wrap: break-word; }}
.cepheid .wide td {{ overflow-wrap: normal; }}
.cepheid ul {{ margin: 0; padding-left: 18px; }}
.cepheid li {{ overflow-wrap: anywhere; padding: 2px 0; }}
@media (max-width: 600px) {{
  .cepheid .bar {{ display: none; }}
  .cepheid th, .cepheid td {{ padding-right: 12px; }}
  .cepheid th {{ white-space: normal; }}
  .cepheid .many tr {{ display: grid; grid-template-columns: 1fr 1fr 1fr 1.3fr 1.3fr;
    column-gap: 10px; padding: 4px 0; border-bottom: 1px solid rgba(128, 144, 160, .3); }}
  .cepheid .many th, .cepheid .many td {{ border: 0; padding: 2px 0; font-size: 13px;
    grid-column: 1 / -1; }}
  .cepheid .many td:first-child {{ font-weight: 600; }}
  .cepheid .many .number {{ grid-column: auto; white-space: normal; }}
  .cepheid .many .blank {{ display: none; }}
}}
.cepheid .warning {{ margin: 0 0 6px; padding: 6px 12px; border-left: 3px solid #d9942b; }}
"""
_PAGE_STYLE = f"""
:root {{ color-scheme: light dark; }}
h1 {{ font: 600 22px/1.3 system-ui, sans-serif; margin: 0 0 8px; }}
body {{ margin: 32px auto; max-width: 1080px; padding: 0 24px; }}
body {{ color: {LIGHT[0]}; background: {LIGHT[1]}; }}
@media (prefers-color-scheme: dark) {{ body {{ color: {DARK[0]}; background: {DARK[1]}; }} }}
"""
_BAR = 220
"""Pixels of the bar of the dearest plan."""


def page(explanation: Explanation) -> str:
    """A self-contained page."""
    return document(f"Plan: {explanation.planned.winner.name}", fragment(explanation))


def document(title: str, body: str) -> str:
    """A page around markup; it needs nothing but itself."""
    head = element(
        "head",
        '<meta charset="utf-8"/>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        element("title", escape(title)),
        element("style", _PAGE_STYLE),
    )
    page = element("body", element("h1", escape(title)), body)
    return f"<!DOCTYPE html>\n{element('html', head, page, lang='en')}\n"


def fragment(explanation: Explanation) -> str:
    """The drawing, and the sections of the text."""
    planned, profile = explanation.planned, explanation.profile
    drawing = element("div", picture(planned, profile), class_="drawing")
    run = [] if profile is None else run_lines(planned.plan, profile)
    replans = () if profile is None else profile.replans
    return element(
        "div",
        element("style", STYLE),
        *(element("p", escape(w), class_="warning") for w in explanation.warnings),
        section("Query", element("pre", escape(explanation.query))),
        section("Answers", escape(explanation.answers or "")),
        section("Returns", _returns(explanation)),
        section("Plan", drawing),
        section("Operators", _operators(show(planned, profile))),
        section("Plans", _plans(explanation)),
        section("Rewrites", _rewrites(explanation)),
        section("Statistics", _table(statistics_lines(planned.plan, planned.statistics))),
        section(
            explanation.where[0].upper() + explanation.where[1:], _table(explanation.distribution)
        ),
        section("Run", _table(run)),
        section("Replans", _table(replan_text(planned.plan, replan) for replan in replans)),
        class_="cepheid",
    )


def query_markup(text: str, wrong: str) -> str:
    """A query that has no plan yet, and why."""
    return element(
        "div",
        element("style", STYLE),
        section("Query", element("pre", escape(text))),
        section("Findings", element("pre", escape(wrong))),
        class_="cepheid",
    )


def _returns(explanation: Explanation) -> str:
    return element("pre", escape(explanation.returns)) if explanation.returns else ""


def _operators(node: Shown) -> str:
    """The tree as a list, with every condition in full: boxes cut long ones, and the drawing is
    small on a phone."""
    conditions = "".join(" " + element("code", escape(c)) + ";" for c in node.conditions)
    figures = "".join(element("br") + escape(text) for text in figure_lines(node))
    inputs = "".join(map(_operators, node.inputs))
    line = element("b", escape(node.title)) + conditions.removesuffix(";")
    return element("ul", element("li", line, figures, inputs))


def section(name: str, content: str) -> str:
    return element("h2", escape(name)) + content if content else ""


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = [
        element("tr", element("th", escape(name)), element("td", escape(text)))
        for name, text in rows
    ]
    return element("table", *lines) if lines else ""


def _rewrites(explanation: Explanation) -> str:
    lines = []
    for applied in explanation.rewrites:
        before, after = (element("code", escape(t)) for t in (applied.before, applied.after))
        text = f"{before} → {after}"
        lines.append(element("tr", element("th", escape(applied.rule)), element("td", text)))
    return element("table", *lines) if lines else ""


def _plans(explanation: Explanation) -> str:
    """The plans as bars. The longest is of the dearest one that is listed."""
    planned = explanation.planned
    if not planned.losers:
        return element("p", escape(verdict(planned)))
    listed = rivals(planned)
    most = max(rival.cost for rival in listed)
    lines = []
    for rival in listed:
        long = _BAR * rival.cost / most if 0 < most < float("inf") else 0
        cells = (
            element("td", escape(rival.name)),
            element("td", escape(duration(rival.cost)), class_="number"),
            element("td", escape(ratio(rival.times)), class_="number"),
            element("td", f'<span class="bar" style="width:{long:.0f}px"></span>'),
        )
        lines.append(element("tr", *cells, **{"class_": "chosen"} if rival.chosen else {}))
    return element("table", *lines)
