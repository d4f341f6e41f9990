"""What colors, lines and borders of a drawing mean: only of those that it has."""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.explain.markup import element, escape
from cepheid.explain.paint import EDGE, OUTLINE, ground, thickness
from cepheid.explain.shown_tree import Shown

_ROW = 26
_LETTER = 6.8
_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
_FLOWS = (1, 100, 10_000)


def legend(nodes: Sequence[Shown], analyzed: bool, width: float) -> tuple[str, float]:
    """The legend in a given width, and its height."""
    of = "share of the time, 0 to 100 %" if analyzed else "share of the cost, 0 to 100 %"
    entries = [(_ramp(), 92.0, of), (_flow(), 92.0, "rows: 1, 100, 10 k")]
    if any(node.negated for node in nodes):
        entries.append((_dashed(), 34.0, "negated"))
    if any(node.uses > 1 for node in nodes):
        entries.append((_stacked(), 34.0, "shared: runs once"))
    if any(node.actual is not None and node.actual.peak for node in nodes):
        entries.append(("", -8.0, "peak: the most records in its buffer at once"))
    if any(node.states for node in nodes):
        entries.append((_state(), 34.0, "loop above: skip; below: take one more"))
    x, y = 0.0, 0.0
    parts = []
    for sign, room, text in entries:
        wide = room + 8 + _LETTER * len(text)
        if x and x + wide > width:
            x, y = 0.0, y + _ROW
        words = element("text", escape(text), x=room + 8, y=12, class_="soft")
        parts.append(element("g", sign, words, transform=f"translate({x:g} {y:g})"))
        x += wide + 24
    return "".join(parts), y + _ROW - 8


def _ramp() -> str:
    return "".join(
        element("rect", x=18 * n, y=1, width=18, height=14, fill=ground(part), stroke=OUTLINE)
        for n, part in enumerate(_STEPS)
    )


def _flow() -> str:
    return "".join(
        element("path", d=f"M{32 * n} 8h26", stroke=EDGE, stroke_width=thickness(rows))
        for n, rows in enumerate(_FLOWS)
    )


def _dashed() -> str:
    shape = {"width": 32, "height": 14, "rx": 5, "stroke_width": 2}
    return element(
        "rect", x=1, y=1, fill=ground(0), stroke=OUTLINE, stroke_dasharray="5 4", **shape
    )


def _stacked() -> str:
    return "".join(
        element("rect", x=x, y=x, width=27, height=11, rx=4, fill=ground(0), stroke=OUTLINE)
        for x in (5, 1)
    )


def _state() -> str:
    ring = element("circle", cx=16, cy=11, r=6, fill=ground(0), stroke=OUTLINE)
    loop = element("path", d="M13 6A4 4 0 1 1 19 6", fill="none", stroke=OUTLINE)
    return ring + loop
