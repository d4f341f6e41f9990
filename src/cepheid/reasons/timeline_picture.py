"""A timeline as a drawing: lanes of events, or of their density if there are many; lines through
the events of a match; and below, a bar for each match with its window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cepheid.explain.markup import element, escape, shorten
from cepheid.explain.paint import SANS, extent

if TYPE_CHECKING:
    from cepheid.reasons.timeline import DrawnMatch, Lane, Timeline

_LEFT, _RIGHT, _TOP = 150.0, 20.0, 8.0
_SMALL, _FEW = 480, 12
"""The width of a drawing that a phone shows as a whole, and how many events a lane of it has."""
_LANE, _BAND, _AXIS, _LEGEND = 40.0, 14.0, 34.0, 26.0
DOTS = 150
"""Events of a lane that are drawn one by one; of more, their density is."""
_BINS = 166
_LETTERS = 20
_PHONE = 440
"""What a phone shows of a drawing that scrolls: the legend stays within it."""
_STEPS = [n * 10**p for p in range(-1, 6) for n in (1, 2, 5)]
_SPANS = [
    *(round(n * 1_000_000) for n in (0.001, 0.01, 0.1, 1, 2, 5, 10, 30)),
    *(n * 60_000_000 for n in (1, 2, 5, 10, 30)),
    *(n * 3_600_000_000 for n in (1, 2, 6, 12)),
    *(n * 86_400_000_000 for n in (1, 2, 7, 14, 30, 90, 365, 3650)),
]

STYLE = """
.timeline { color: #13202c; }
.timeline text { fill: currentColor; } .timeline .soft { opacity: .8; }
.timeline .rule { stroke: #8494a4; stroke-opacity: .35; }
.timeline .event { fill: #8494a4; } .timeline .many { fill: #8494a4; fill-opacity: .55; }
.timeline .bound { fill: #1f6fb5; }
.timeline .line { stroke: #1f6fb5; stroke-opacity: .5; fill: none; }
.timeline .band { fill: #1f6fb5; } .timeline .window { stroke: #8494a4; fill: none; }
.timeline .group { stroke: #1f6fb5; stroke-width: 2; fill: none; }
.timeline .free { fill: #d9942b; fill-opacity: .28; }
@media (prefers-color-scheme: dark) {
  .timeline { color: #dbe4ec; }
  .timeline .bound, .timeline .band { fill: #76ade2; }
  .timeline .line, .timeline .group { stroke: #76ade2; }
}
"""


@dataclass(frozen=True, slots=True)
class _Area:
    """Where times are drawn. Few events take a narrow drawing, with no more room for the names of
    lanes than they need."""

    first: int
    last: int
    left: float
    width: int

    @property
    def room(self) -> float:
        return self.width - self.left - _RIGHT

    @property
    def small(self) -> bool:
        return self.width == _SMALL

    def x(self, time: int) -> float:
        inside = min(max(time, self.first), self.last)
        return self.left + self.room * (inside - self.first) / max(self.last - self.first, 1)


def _area(timeline: Timeline) -> _Area:
    first, last = span_of(timeline)
    if any(len(lane.rows) > _FEW for lane in timeline.lanes):
        return _Area(first, last, _LEFT, 1000)
    names = ["matches", *(shorten(lane.name, _LETTERS) for lane in timeline.lanes)]
    return _Area(first, last, min(_LEFT, 24 + max(extent(n, 13) for n in names)), _SMALL)


def timeline_picture(timeline: Timeline) -> str:
    frame = _area(timeline)
    rows = _packed(timeline.matches)
    below = _TOP + _LANE * len(timeline.lanes) + 10
    ground = below + _BAND * (max(rows, default=-1) + 1) + _AXIS
    legend, high = _legend(timeline, ground + 12)
    height = ground + high
    parts = [
        *(_axis(timeline.ticks, frame, ground)),
        *(p for n, lane in enumerate(timeline.lanes) for p in _lane(lane, n, frame)),
        *_free(timeline.matches, frame.x),
        *(p for m in timeline.matches for p in _match(m, frame.x)),
        *(
            _bar(m, below + _BAND * row, frame.x, frame.last)
            for m, row in zip(timeline.matches, rows, strict=True)
        ),
        element("g", *legend, class_="legend") if legend else "",
    ]
    if timeline.matches:
        parts.append(_text("matches", frame.left - 12, below + 10, "end", soft=True))
    return element(
        "svg",
        element("style", STYLE),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {frame.width} {height:g}",
        width=frame.width,
        height=height,
        style=f"width: 100%; min-width: {340 if frame.small else 760}px; "
        f"max-width: {frame.width}px; height: auto",
        font_family=SANS,
        font_size=13,
        class_="timeline",
        role="img",
    )


def _middle(lane: int) -> float:
    return _TOP + _LANE * lane + _LANE / 2


def _lane(lane: Lane, number: int, frame: _Area) -> Iterator[str]:
    y, room = _middle(number), frame.room
    name = element("title", escape(lane.name)) + escape(shorten(lane.name, _LETTERS))
    yield element("text", name, x=frame.left - 12, y=y + 4, text_anchor="end")
    yield element("path", d=f"M{frame.left:g} {y:g}h{room:g}", class_="rule")
    if len(lane.rows) <= DOTS:
        for row, time in zip(lane.rows, lane.times, strict=True):
            title = element("title", escape(f"row {row}"))
            yield element("circle", title, cx=frame.x(time), cy=y, r=3.5, class_="event")
        return
    counts = density(lane.times, frame.first, frame.last, _BINS)
    most, wide = max(counts), room / _BINS
    for n, events in enumerate(counts):
        if events:
            high = max(1.0, 30 * events / most)
            title = element("title", escape(f"{events:,} events"))
            place = {"x": frame.left + n * wide, "y": y - high / 2, "width": wide, "height": high}
            yield element("rect", title, class_="many", **place)


def _free(matches: tuple[DrawnMatch, ...], x: Callable[[int], float]) -> Iterator[str]:
    """In one shade, also where several matches allow no event."""
    ends: dict[int, float] = {}
    for lane, begin, end in sorted(stretch for match in matches for stretch in match.free):
        left, right = max(x(begin), ends.get(lane, 0.0)), max(x(end), x(begin) + 1)
        if right > left:
            place = {"x": left, "y": _middle(lane) - 12, "width": right - left, "height": 24}
            yield element("rect", class_="free", **place)
            ends[lane] = right


def _match(match: DrawnMatch, x: Callable[[int], float]) -> Iterator[str]:
    for lane, begin, end in match.groups:
        y = _middle(lane) - 9
        way = f"M{x(begin) - 4:g} {y + 4:g}v-4H{x(end) + 4:g}v4"
        yield element("path", d=way, class_="group")
    points = [(x(time), _middle(lane)) for lane, time, _ in match.events]
    if len(points) > 1:
        way = "M" + "L".join(f"{px:.1f} {py:g}" for px, py in points)
        yield element("path", d=way, class_="line", stroke_width=1.2)
    for (px, py), (_, _, row) in zip(points, match.events, strict=True):
        title = element("title", escape(f"row {row}"))
        yield element("circle", title, cx=px, cy=py, r=4.5, class_="bound")


def _bar(match: DrawnMatch, y: float, x: Callable[[int], float], last: int) -> str:
    """A window that is longer than the axis stays open."""
    left, right = x(match.start), x(match.end)
    rows = ", ".join(str(row) for _, _, row in match.events)
    parts = [element("title", escape(f"rows {rows}"))]
    if match.closes is not None and x(match.closes) > right:
        closed = "v-7" if match.closes <= last else ""
        way = f"M{left:g} {y + 9:g}v2H{x(match.closes):g}{closed}"
        parts.append(element("path", d=way, class_="window"))
    parts.append(
        element("rect", x=left, y=y + 3, width=max(right - left, 2), height=6, class_="band")
    )
    return element("g", *parts)


def _legend(timeline: Timeline, top: float) -> tuple[list[str], float]:
    """What the marks say that this drawing has, and the height of that."""
    matches = timeline.matches
    many = any(len(lane.rows) > DOTS for lane in timeline.lanes)
    rect, path = partial(element, "rect"), partial(element, "path")
    entries: tuple[tuple[bool, str, Callable[[float, float], str]], ...] = (
        (
            many,
            "how many events",
            lambda x, y: rect(x=x, y=y - 7, width=12, height=14, class_="many"),
        ),
        (
            bool(matches),
            "events of a match",
            lambda x, y: element("circle", cx=x + 6, cy=y, r=4.5, class_="bound"),
        ),
        (
            any(m.groups for m in matches),
            "group",
            lambda x, y: path(d=f"M{x:g} {y + 2:g}v-4h12v4", class_="group"),
        ),
        (
            any(m.free for m in matches),
            "none may be here",
            lambda x, y: rect(x=x, y=y - 7, width=12, height=14, class_="free"),
        ),
        (
            any(m.closes is not None for m in matches),
            "window",
            lambda x, y: path(d=f"M{x:g} {y - 2:g}v4h12v-7", class_="window"),
        ),
    )
    drawn: list[str] = []
    x, y = 12.0, top
    for words, mark in ((words, mark) for shown, words, mark in entries if shown):
        wide = 19 + 7.2 * len(words)
        if drawn and x + wide > _PHONE:
            x, y = 12.0, y + _LEGEND - 4
        drawn += [mark(x, y), _text(words, x + 19, y + 4, "start", soft=True)]
        x += wide + 22
    return drawn, y - top + _LEGEND if drawn else 0


def _packed(matches: tuple[DrawnMatch, ...]) -> list[int]:
    """The row of each bar, so that none covers another's window."""
    ends: list[int] = []
    rows: list[int] = []
    for match in matches:
        until = max(match.end, match.closes or match.end)
        row = next((n for n, end in enumerate(ends) if end < match.start), len(ends))
        ends[row : row + 1] = [until]
        rows.append(row)
    return rows


# ── the axis ─────────────────────────────────────────────────────────────────


def _axis(ticks: bool, frame: _Area, height: float) -> Iterator[str]:
    first, last, most = frame.first, frame.last, 3 if frame.small and not ticks else 7
    bottom = height - _AXIS + 8
    spans = [int(s) for s in _STEPS if s >= 1] if ticks else _SPANS
    step = next((s for s in spans if (last - first) / s <= most), max(1, (last - first) // most))
    for time in range(first + (-first) % step, last + 1, step):
        at = frame.x(time)
        yield element("path", d=f"M{at:g} {_TOP:g}V{bottom:g}", class_="rule")
        label = f"{time:,}" if ticks else _moment(time, step)
        half = 3.6 * len(label)  # the last one stays inside
        yield _text(label, min(at, frame.width - half), bottom + 16, "middle", soft=True)


def _moment(time: int, step: int) -> str:
    try:
        moment = datetime.fromtimestamp(time // 1_000_000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(time)
    if step >= 86_400_000_000:
        return f"{moment:%Y-%m-%d}"
    if step >= 60_000_000:
        return f"{moment:%m-%d %H:%M}"
    return f"{moment:%H:%M:%S}" + (f".{time % 1_000_000:06d}"[:4] if step < 1_000_000 else "")


def _text(text: str, x: float, y: float, anchor: str, soft: bool = False) -> str:
    style = {"class_": "soft"} if soft else {}
    return element("text", escape(text), x=x, y=y, text_anchor=anchor, **style)


def span_of(timeline: Timeline) -> tuple[int, int]:
    """The earliest and the latest time of the drawing."""
    times = [t for lane in timeline.lanes for t in (lane.times[:1] + lane.times[-1:])]
    times += [t for m in timeline.matches for t in (m.start, m.end)]
    return (min(times), max(times)) if times else (0, 1)


def density(times: tuple[int, ...], first: int, last: int, bins: int) -> list[int]:
    """How many events are in each of so many equal stretches."""
    counts, _ = np.histogram(np.asarray(times) - first, bins=bins, range=(0, max(last - first, 1)))
    return [int(n) for n in counts]
