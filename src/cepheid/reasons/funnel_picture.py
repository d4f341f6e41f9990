"""A funnel as bars: one for each step, as long as the share of the first that reached it."""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.explain.markup import element, escape, shorten
from cepheid.explain.paint import SANS
from cepheid.plan.amounts import count

Bar = tuple[str | None, str, int | None, str]
"""Group, text of the step, how many reached it, and their share in words."""

WIDTH = 460
_ROW, _LABEL, _FIGURES, _SIZE = 30, 140, 110, 13
_LETTERS = 20

STYLE = """
.bars { color: #13202c; }
.bars .reach { fill: #76ade2; } .bars .back { fill: #8494a4; opacity: .18; }
.bars text { fill: currentColor; }
@media (prefers-color-scheme: dark) { .bars { color: #dbe4ec; } }
"""


def funnel_picture(bars: Sequence[Bar]) -> str:
    """The bars of one group below the other."""
    parts: list[str] = []
    y = 0.0
    group: str | None = None
    first = 0
    room = WIDTH - _LABEL - _FIGURES
    for place, (name, text, reached, part) in enumerate(bars):
        if name is not None and (name != group or place == 0):
            y += 8 if place else 0
            parts.append(_text(shorten(name, 60), 0, y + 18, bold=True))
            y += _ROW - 4
        if name != group or place == 0:
            first = reached or 0
        group = name
        long = room * (reached or 0) / first if first else 0.0
        label = shorten(text, _LETTERS)
        back = element("rect", x=_LABEL, y=y + 4, width=room, height=20, rx=3, class_="back")
        bar = element("rect", x=_LABEL, y=y + 4, width=long, height=20, rx=3, class_="reach")
        figures = (
            "?" if reached is None else f"{count(reached)} · {part}" if part else count(reached)
        )
        parts.append(
            element(
                "g",
                element("title", escape(f"{text}: {figures}")),
                _text(label, _LABEL - 10, y + 19, anchor="end"),
                back,
                bar if long else "",
                _text(figures, WIDTH - _FIGURES + 10, y + 19),
            )
        )
        y += _ROW
    return element(
        "svg",
        element("style", STYLE),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {y:g}",
        width=WIDTH,
        height=y,
        style="max-width: 100%; height: auto",
        font_family=SANS,
        font_size=_SIZE,
        class_="bars",
        role="img",
    )


def _text(text: str, x: float, y: float, anchor: str = "start", bold: bool = False) -> str:
    weight = {"font_weight": "600"} if bold else {}
    return element("text", escape(text), x=x, y=y, text_anchor=anchor, **weight)
