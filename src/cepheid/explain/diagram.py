"""An automaton as Cayuga's figures draw it: states in a row, forward edges between them, filter
edges as loops above a state, rebind edges as loops below. The last state has a double ring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cepheid.explain.markup import element, escape, shorten
from cepheid.explain.paint import FAINT, INK, MONO, extent
from cepheid.plan.states import State

WIDEST = 640
"""Past that the row of states is broken."""

SIZE = 11
_RADIUS = 15.0
_LOOP = 20.0
_LETTERS = (60, 40, 28, 18)
"""Letters of a label: the first number with which all states fit in a row."""
_INSIDE = 3
_AROUND = 14.0
"""Room of an edge beside its label, on each side."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A state in its place: its middle, and how long the edge is that leaves it."""

    state: State
    x: float
    row: int
    edge: float


@dataclass(frozen=True)
class Diagram:
    """The states in their places; `above` and `below` is the room that loops take in every row."""

    placed: tuple[_Placed, ...]
    width: float
    above: float
    below: float
    letters: int

    @property
    def height(self) -> float:
        return self._row * (self.placed[-1].row + 1)

    @property
    def _row(self) -> float:
        return self.above + 2 * _RADIUS + self.below

    def drawn(self, left: float, top: float) -> str:
        """The diagram with its corner there."""
        parts: list[str] = []
        for n, place in enumerate(self.placed):
            x, y = left + place.x, top + self._row * place.row + self.above + _RADIUS
            begins = n == 0 or self.placed[n - 1].row < place.row
            parts.append(_state(place.state, x, y, begins, self.letters))
            if place.state.binds is not None:
                parts += _forward(place.state, x + _RADIUS, y, place.edge, self.letters)
        return element("g", *parts, class_="automaton", font_size=SIZE)


def diagram(states: Sequence[State]) -> Diagram:
    """Each state as close to the one before as the labels allow. Labels are cut only if the states
    wouldn't fit in a row otherwise."""
    tried = [_arranged(states, letters) for letters in _LETTERS]
    return next((d for d in tried if d.placed[-1].row == 0), tried[-1])


def _arranged(states: Sequence[State], letters: int) -> Diagram:
    placed: list[_Placed] = []
    x, row, width = _AROUND, 0, 0.0
    for n, state in enumerate(states):
        half = max(_RADIUS, *(extent(text, SIZE, mono=True) / 2 for text in _loops(state, letters)))
        after = states[n + 1] if n + 1 < len(states) else None
        label = extent(_label(state, letters), SIZE, mono=True)
        edge = label + 2 * _AROUND if state.binds is not None else 0.0
        if after is not None:
            beside = max(_RADIUS, *(extent(t, SIZE, mono=True) / 2 for t in _loops(after, letters)))
            edge = max(edge, half + beside - 2 * _RADIUS + 6)
        if placed and x + half + edge > WIDEST:
            x, row = _AROUND, row + 1
        if x == _AROUND:
            x += half
        placed.append(_Placed(state, x, row, edge))
        width = max(width, x + max(half, _RADIUS + edge))
        x += 2 * _RADIUS + edge
    above = _LOOP + SIZE + 6 if any(state.filter for state in states) else 4.0
    below = _LOOP + SIZE + 4 if any(state.rebind for state in states) else 4.0
    return Diagram(tuple(placed), width, above, below, letters)


def _loops(state: State, letters: int) -> tuple[str, str]:
    return state.filter or "", shorten(state.rebind or "", letters)


def _label(state: State, letters: int) -> str:
    return shorten(state.binds or "", letters)


def _state(state: State, x: float, y: float, begins: bool, letters: int) -> str:
    ring: dict[str, str | float] = {"fill": "none", "stroke": INK, "stroke_width": 1.2}
    parts = [element("title", escape(str(state)))]
    if begins:
        parts += _arrow(x - _RADIUS - _AROUND, y, _AROUND)
    parts.append(element("circle", cx=x, cy=y, r=_RADIUS, **ring))
    if state.binds is None:
        parts.append(element("circle", cx=x, cy=y, r=_RADIUS - 3, **ring))
    if state.name != "start":
        name = shorten(state.name, _INSIDE)
        parts.append(_text(name, x, y + 4, mono=True))
    filter_, rebind = _loops(state, letters)
    if filter_:
        parts += _loop(x, y - _RADIUS + 2, up=True)
        parts.append(_text(filter_, x, y - _RADIUS - _LOOP, faint=True))
    if rebind:
        parts += _loop(x, y + _RADIUS - 2, up=False)
        parts.append(_text(rebind, x, y + _RADIUS + _LOOP + SIZE - 2, mono=True))
    return element("g", *parts)


def _forward(state: State, x: float, y: float, length: float, letters: int) -> Iterator[str]:
    yield from _arrow(x, y, length)
    yield _text(_label(state, letters), x + length / 2, y - 5, mono=True)


def _arrow(x: float, y: float, length: float) -> Iterator[str]:
    end = x + length
    yield element("path", d=f"M{x:g} {y:g}H{end - 1:g}", stroke=INK, stroke_width=1.2)
    yield element("path", d=f"M{end:g} {y:g}l-6 -3.5v7z", fill=INK)


def _loop(x: float, y: float, up: bool) -> Iterator[str]:
    """From one side of a state's rim around to the other, with a head where it comes back."""
    sweep, tip = (1, -6.0) if up else (0, 6.0)
    way = f"M{x - 7:g} {y:g}A9 9 0 1 {sweep} {x + 7:g} {y:g}"
    yield element("path", d=way, fill="none", stroke=INK, stroke_width=1.2)
    yield element("path", d=f"M{x + 7:g} {y:g}l-3.5 {tip:g}h7z", fill=INK)


def _text(text: str, x: float, y: float, mono: bool = False, faint: bool = False) -> str:
    style: dict[str, str | float] = {"fill": INK, "text_anchor": "middle"}
    if mono:
        style["font_family"] = MONO
    if faint:
        style["fill_opacity"] = FAINT
    return element("text", escape(text), x=x, y=y, **style)
