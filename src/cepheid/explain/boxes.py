"""Where the boxes of a tree stand, so that none touches another.

Boxes of one depth share a band, and a subtree stands as close to its neighbor as the outlines of
the two allow (Reingold and Tilford 1981). A long plan in one direction is drawn as a spine, with
the lighter inputs beside it; a broad one from left to right. What fits a page comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

PAGE = 1000
"""A width in pixels that every screen has."""


@dataclass(frozen=True, slots=True)
class Item:
    """A box to place."""

    width: float
    height: float
    inputs: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class Box:
    """A box in its place. `band` is where the boxes of its depth end: below it (to its right, if
    sideways) there are only lines. `parent` is the parent's number."""

    x: float
    y: float
    width: float
    height: float
    band: float
    parent: int | None


@dataclass(frozen=True, slots=True)
class Layout:
    """The boxes, each before those below it. `sideways`: the root is at the left."""

    boxes: tuple[Box, ...]
    width: float
    height: float
    sideways: bool = False


def arrange(root: Item, apart: float = 24, between: float = 40) -> Layout:
    """The first arrangement that fits a page; if none does, the narrowest.

    `apart` is the room beside a box, `between` that between one depth and the next.
    """
    layouts = []
    for sideways, spine in ((False, False), (False, True), (True, False)):
        layout = _place(root, apart, between, sideways, spine)
        if layout.width <= PAGE:
            return layout
        layouts.append(layout)
    return min(layouts, key=lambda layout: layout.width)


@dataclass(frozen=True, slots=True)
class _Subtree:
    """The middles of its boxes, seen from its root's, and its outline: from where to where it
    reaches at each depth."""

    middles: list[float]
    outline: list[tuple[float, float]]
    size: int


def _place(root: Item, apart: float, between: float, sideways: bool, spine: bool) -> Layout:
    spread = _spread(root, apart, sideways, spine)
    depths = list(_depths(root, 0, None))
    bands = [0.0] * len(spread.outline)
    for item, depth, _ in depths:
        bands[depth] = max(bands[depth], item.width if sideways else item.height)
    starts = [sum(bands[:depth]) + between * depth for depth in range(len(bands))]
    low = min(start for start, _ in spread.outline)
    high = max(end for _, end in spread.outline)
    boxes = []
    for (item, depth, parent), middle in zip(depths, spread.middles, strict=True):
        across, along = middle - low, starts[depth]
        band = along + bands[depth]
        if sideways:
            y = across - item.height / 2
            boxes.append(Box(along, y, item.width, item.height, band, parent))
        else:
            x = across - item.width / 2
            boxes.append(Box(x, along, item.width, item.height, band, parent))
    length = starts[-1] + bands[-1]
    width, height = (length, high - low) if sideways else (high - low, length)
    return Layout(tuple(boxes), width, height, sideways)


def _depths(item: Item, depth: int, parent: int | None) -> Iterator[tuple[Item, int, int | None]]:
    """The items, each before its inputs, with their depth and their parent's number."""
    waiting: list[tuple[Item, int, int | None]] = [(item, depth, parent)]
    number = 0
    while waiting:
        current, depth, above = waiting.pop()
        yield current, depth, above
        waiting += [(part, depth + 1, number) for part in reversed(current.inputs)]
        number += 1


def _spread(item: Item, apart: float, sideways: bool, spine: bool) -> _Subtree:
    half = (item.height if sideways else item.width) / 2
    if not item.inputs:
        return _Subtree([0.0], [(-half, half)], 1)
    parts = [_spread(part, apart, sideways, spine) for part in item.inputs]
    shifts: list[float] = []
    outline: list[tuple[float, float]] = []
    for part in parts:
        common = zip(outline, part.outline, strict=False)
        shift = max((end - start + apart for (_, end), (start, _) in common), default=0.0)
        shifts.append(shift)
        moved = [(start + shift, end + shift) for start, end in part.outline]
        both = zip(outline, moved, strict=False)
        merged = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in both]
        outline = merged + outline[len(merged) :] + moved[len(merged) :]
    if spine:
        middle = shifts[max(range(len(parts)), key=lambda n: parts[n].size)]
    else:
        middle = (shifts[0] + shifts[-1]) / 2
    middles = [0.0]
    for part, shift in zip(parts, shifts, strict=True):
        middles += [m + shift - middle for m in part.middles]
    below = [(start - middle, end - middle) for start, end in outline]
    return _Subtree(middles, [(-half, half), *below], 1 + sum(part.size for part in parts))
