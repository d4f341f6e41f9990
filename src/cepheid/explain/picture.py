"""The plan as a drawing: SVG without scripts, fonts or anything else from outside.

Boxes have their own light ground. Text outside of them has the color of the page, and lines are in
a gray that can be seen on white and on black, since nobody knows on what page the drawing will be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cepheid.explain.boxes import PAGE, Box, Item, Layout, arrange
from cepheid.explain.diagram import diagram
from cepheid.explain.legend import legend
from cepheid.explain.markup import element, escape, shorten
from cepheid.explain.paint import (
    EDGE,
    FAINT,
    INK,
    MONO,
    OUTLINE,
    SANS,
    STYLE,
    extent,
    ground,
    thickness,
)
from cepheid.explain.sections import settings_lines, statistics_lines, verdict
from cepheid.explain.shown_tree import Shown, figure_lines, show, walk_shown
from cepheid.explain.time_bar import time_bar
from cepheid.plan.amounts import amount, duration, share
from cepheid.plan.profile import Profile
from cepheid.planner.planned import Planned

MARGIN = 24
PADDING = 12
ROOM = 28
"""Letters of a condition in a box; the tooltip has all of it."""
WIDER = 56
"""Letters of a pattern above the states of its automaton."""
MOST = 3
"""Conditions in a box."""
NARROWEST = 112
TITLE, SMALL = 14, 12
SMALLEST = 0.9
"""A drawing that is wider than its page is made so small, and scrolls in its frame."""
LINE = 17


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of text in a box."""

    text: str
    mono: bool = False
    bold: bool = False
    muted: bool = False

    @property
    def width(self) -> float:
        return extent(self.text, TITLE if self.bold else SMALL, self.bold, self.mono)


def picture(planned: Planned, profile: Profile | None = None) -> str:
    """The plan's tree, its figures in the boxes, the flow of records in the lines."""
    root = show(planned, profile)
    analyzed = profile is not None
    nodes = tuple(walk_shown(root))
    layout = arrange(_item(root, analyzed))
    heading = _heading(planned)
    width = max(layout.width, min(PAGE - 2 * MARGIN, 560)) + 2 * MARGIN
    spent, high = ("", 0.0) if profile is None else time_bar(nodes, profile, width - 2 * MARGIN)
    above = LINE * len(heading) + high
    below = above + 2 * MARGIN + layout.height + 6
    key, height = legend(nodes, analyzed, width - 2 * MARGIN)
    left = (width - layout.width) / 2
    drawn = element(
        "g",
        *_edges(layout, nodes),
        *(_box(box, node, analyzed) for box, node in zip(layout.boxes, nodes, strict=True)),
        transform=f"translate({left:g} {above + MARGIN + 14:g})",
    )
    total = below + height + 2 * MARGIN
    return element(
        "svg",
        element("title", escape(f"Plan: {verdict(planned)}")),
        element("style", STYLE),
        *_written(heading, width - 2 * MARGIN),
        element("g", spent, transform=f"translate({MARGIN} {MARGIN + LINE * len(heading)})"),
        drawn,
        element("g", key, transform=f"translate({MARGIN} {below + MARGIN:g})"),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {math.ceil(width)} {math.ceil(total)}",
        width=math.ceil(width),
        height=math.ceil(total),
        style=f"max-width: 100%; min-width: {math.ceil(SMALLEST * width)}px; height: auto",
        role="img",
        font_family=SANS,
        font_size=SMALL,
    )


def _heading(planned: Planned) -> list[str]:
    """With what was assumed, since the costs rest on it."""
    given = statistics_lines(planned.plan, planned.statistics)
    assumed = [line for line in given if line[0] == "assumed"]
    lines = [*settings_lines(planned), *assumed]
    return [verdict(planned), *(f"{name}: {text}" for name, text in lines)]


def _written(lines: Sequence[str], width: float) -> list[str]:
    room = int(width / (SMALL * 0.6))
    return [
        element(
            "text",
            escape(shorten(line, room)),
            element("title", escape(line)),
            x=MARGIN,
            y=MARGIN + SMALL + LINE * n,
            class_="soft",
        )
        for n, line in enumerate(lines)
    ]


def _item(node: Shown, analyzed: bool) -> Item:
    lines = _lines(node, analyzed)
    share_room = 48 if _shares(node, analyzed) else 0
    widest = max(lines[0].width + share_room, *(line.width for line in lines))
    width = max(NARROWEST, math.ceil(widest) + 2 * PADDING)
    height = LINE * len(lines) + 2 * PADDING - 4
    if node.states:
        states = diagram(node.states)
        width = max(width, math.ceil(states.width) + 2 * PADDING)
        height += math.ceil(states.height)
    return Item(width, height, tuple(_item(part, analyzed) for part in node.inputs))


def _shares(node: Shown, analyzed: bool) -> str:
    """What the color says, in words."""
    if analyzed:
        return share(node.busy) if node.actual is not None and node.actual.seconds else ""
    return share(node.share) if node.estimate is not None else ""


def _lines(node: Shown, analyzed: bool) -> list[_Line]:
    lines = [_Line(shorten(node.title, ROOM - 8), bold=True)]
    if node.uses > 1:
        lines.append(_Line(f"shared by {node.uses}", muted=True))
    shown = node.conditions if len(node.conditions) <= MOST else node.conditions[: MOST - 1]
    room = WIDER if node.states else ROOM
    lines += [_Line(shorten(condition, room), mono=True) for condition in shown]
    if len(shown) < len(node.conditions):
        lines.append(_Line(f"and {len(node.conditions) - len(shown)} more", muted=True))
    return lines + [_Line(text, muted=text.startswith("≈")) for text in figure_lines(node)]


def _box(box: Box, node: Shown, analyzed: bool) -> str:
    part = node.busy if analyzed else node.share
    shape: dict[str, str | float] = {
        "width": box.width,
        "height": box.height,
        "rx": 14 if node.leaf else 5,
        "stroke": OUTLINE,
        "stroke_width": 1.2,
    }
    if node.negated:
        shape |= {"stroke_dasharray": "5 4", "stroke_width": 2}  # on a dark page, too
    stacked = [element("rect", x=box.x + 5, y=box.y + 5, fill=ground(part), **shape)]
    return element(
        "g",
        element("title", escape(_tooltip(node))),
        *(stacked if node.uses > 1 else []),
        element("rect", x=box.x, y=box.y, fill=ground(part), class_="box", **shape),
        *_contents(box, node, analyzed),
    )


def _contents(box: Box, node: Shown, analyzed: bool) -> list[str]:
    parts = []
    for n, line in enumerate(_lines(node, analyzed)):
        style: dict[str, str | float] = {"fill": INK}
        if line.bold:
            style |= {"font_weight": 600, "font_size": TITLE}
        if line.mono:
            style["font_family"] = MONO
        if line.muted:
            style["fill_opacity"] = FAINT
        y = box.y + PADDING + LINE * n + 11
        parts.append(element("text", escape(line.text), x=box.x + PADDING, y=y, **style))
    said = _shares(node, analyzed)
    if said:
        x, y = box.x + box.width - PADDING, box.y + PADDING + 11
        parts.append(element("text", escape(said), x=x, y=y, fill=INK, text_anchor="end"))
    if node.states:
        states = diagram(node.states)
        left = box.x + (box.width - states.width) / 2
        parts.append(states.drawn(left, box.y + box.height - PADDING - states.height))
    return parts


def _tooltip(node: Shown) -> str:
    lines = [node.title, *node.conditions, *map(str, node.states)]
    if node.estimate is not None:
        estimate = node.estimate
        lines.append(
            f"per window: {amount(estimate.rows)} rows of {amount(estimate.tried)} tried, "
            f"{duration(estimate.cost)}, {share(node.share)} of the cost"
        )
    if node.actual is not None:
        done = node.actual
        lines.append(
            f"in this run: {done.rows:,} rows, {duration(done.seconds * 1e9)}, "
            f"{share(node.busy)} of the time, at most {done.peak:,} in the buffer"
        )
    return "\n".join(lines)


def _edges(layout: Layout, nodes: Sequence[Shown]) -> list[str]:
    lines = []
    for box, node in zip(layout.boxes, nodes, strict=True):
        if box.parent is None:
            continue
        style: dict[str, str | float] = {"stroke_width": thickness(_rows(node))}
        if node.negated:
            style["stroke_dasharray"] = "5 4"
        way = _way(layout.boxes[box.parent], box, layout.sideways)
        lines.append(element("path", d=way, fill="none", stroke=EDGE, **style))
    return lines


def _rows(node: Shown) -> float:
    if node.actual is not None:
        return node.actual.rows
    return 0.0 if node.estimate is None else node.estimate.rows


def _way(parent: Box, box: Box, sideways: bool) -> str:
    """From parent to input: straight through the parent's band, then a curve to the input."""
    if sideways:
        x, y = parent.x + parent.width, parent.y + parent.height / 2
        end = box.y + box.height / 2
        half = (parent.band + box.x) / 2
        return f"M{x:g} {y:g}H{parent.band:g}C{half:g} {y:g} {half:g} {end:g} {box.x:g} {end:g}"
    x, y = parent.x + parent.width / 2, parent.y + parent.height
    end = box.x + box.width / 2
    half = (parent.band + box.y) / 2
    return f"M{x:g} {y:g}V{parent.band:g}C{x:g} {half:g} {end:g} {half:g} {end:g} {box.y:g}"
