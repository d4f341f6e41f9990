"""Which windows are over, and what is in them.

Matches are put into *slices* of time that every window either contains or doesn't touch, so that a
window costs by the slices that it has, however many matches those have. `HOP(s, r)` begins a
window at every multiple of s, and ends one s·k + r later, so there are two slices for each k: slice
2k begins at s·k, and slice 2k + 1 at s·k + r mod s. Window k has the slices from 2k to
2(k + r div s). `TUMBLE(r)` is `HOP(r, r)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cepheid.algebra.answer_shape import AnswerWindow, MatchAggregate
from cepheid.answers.partial_groups import PartialGroups

Ints: TypeAlias = NDArray[np.int64]

FOREVER = 1 << 62
MOST_AT_ONCE = 1 << 20
"""Answers that are made at once."""


@dataclass(frozen=True)
class Closed:
    """Groups that are complete, in any order, and the ends of their windows. `copies`: so many rows
    of each."""

    cells: PartialGroups
    start: Ints
    end: Ints
    copies: Ints | None = None


class Windows(Protocol):
    """A kind of window. `due` is the time from which on something may be complete. `first_open`
    says which answers are out; where cells are dropped with their answers, nothing."""

    first_open: int

    def places(self, ends: Ints) -> Ints:
        """Where a match belongs that has this end."""
        ...

    def closes(self, end: int) -> int:
        """The time from which on something may be complete that has matches from this end on."""
        ...

    def due(self, cells: PartialGroups) -> int: ...

    def close(
        self, cells: PartialGroups, aggregates: Sequence[MatchAggregate], time: int
    ) -> Iterator[Closed]:
        """What is complete once every match that ends before this time is known, in the order of
        the ends of windows. `cells` are in order, without those that were dropped."""
        ...

    def drop(self, cells: PartialGroups, time: int) -> PartialGroups:
        """What still matters after that."""
        ...


@dataclass
class HoppingWindows:
    """TUMBLE and HOP. `first_open` is the number of the first window that is not out yet."""

    slide: int
    size: int
    first_open: int = -FOREVER

    def places(self, ends: Ints) -> Ints:
        return 2 * (ends // self.slide) + (ends % self.slide >= self.size % self.slide)

    def _numbers(self, place: Ints) -> tuple[Ints, Ints]:
        """The first and the last window that a slice is in; none, if the last is before."""
        return (place + 1) // 2 - self.size // self.slide, place // 2

    def closes(self, end: int) -> int:
        first, _ = self._numbers(self.places(np.array([end])))
        return int(first[0]) * self.slide + self.size

    def due(self, cells: PartialGroups) -> int:
        first = int(np.maximum(self._numbers(cells.place)[0], self.first_open).min())
        return first * self.slide + self.size

    def close(
        self, cells: PartialGroups, aggregates: Sequence[MatchAggregate], time: int
    ) -> Iterator[Closed]:
        last = (time - self.size) // self.slide
        first, final = self._numbers(cells.place)
        low, high = np.maximum(first, self.first_open), np.minimum(final, last)
        some = np.flatnonzero(low <= high)
        self.first_open = max(self.first_open, last + 1)
        if len(some):
            yield from self._closed(cells.take(some), aggregates, low[some], high[some])

    def _closed(
        self, cells: PartialGroups, aggregates: Sequence[MatchAggregate], low: Ints, high: Ints
    ) -> Iterator[Closed]:
        """The windows from the least to the greatest, as many at once as fit."""
        if not len(cells):
            return
        new = np.append(True, np.diff(cells.group) != 0)
        # A window belongs to the first cell that it contains.
        first = np.where(new, low, np.maximum(low, np.append(low[:1], high[:-1] + 1)))
        count = high - first + 1
        least, greatest = int(low.min()), int(high.max())
        if least < greatest and int(count.sum()) > MOST_AT_ONCE:
            middle = (least + greatest) // 2
            early = np.flatnonzero(low <= middle)
            late = np.flatnonzero(high > middle)
            before = np.minimum(high[early], middle)
            yield from self._closed(cells.take(early), aggregates, low[early], before)
            after = np.maximum(low[late], middle + 1)
            yield from self._closed(cells.take(late), aggregates, after, high[late])
            return
        begins = np.repeat(np.arange(len(cells)), count)
        numbers = np.arange(len(begins)) + np.repeat(first - np.cumsum(count) + count, count)
        ends = _ends(np.cumsum(new), low, begins, numbers)
        windows = replace(cells.ranges(aggregates, begins, ends - begins), place=numbers)
        start = numbers * self.slide
        yield Closed(windows, start, start + self.size)

    def drop(self, cells: PartialGroups, time: int) -> PartialGroups:
        return cells.take(np.flatnonzero(self._numbers(cells.place)[1] >= self.first_open))


@dataclass
class SessionWindows:
    """SESSION: cells are sessions that may still grow."""

    gap: int
    first_open: int = -FOREVER

    def places(self, ends: Ints) -> Ints:
        return ends

    def closes(self, end: int) -> int:
        return end + 1  # it may belong to a session that is open

    def due(self, cells: PartialGroups) -> int:
        return int(cells.last.min()) + self.gap

    def close(
        self, cells: PartialGroups, aggregates: Sequence[MatchAggregate], time: int
    ) -> Iterator[Closed]:
        over = np.flatnonzero(cells.last <= time - self.gap)
        over = over[np.argsort(cells.last[over], kind="stable")]
        if len(over):
            sessions = cells.take(over)
            yield Closed(sessions, sessions.first, sessions.last + self.gap)

    def drop(self, cells: PartialGroups, time: int) -> PartialGroups:
        return cells.take(np.flatnonzero(cells.last > time - self.gap))

    def grown(self, cells: PartialGroups, aggregates: Sequence[MatchAggregate]) -> PartialGroups:
        """Sessions that have met are one, wherever their parts come from. `cells` are in the order
        of their places, which are their first ends."""
        if not len(cells):
            return cells
        apart = cells.first[1:] - _latest(cells)[:-1] >= self.gap
        new = (np.diff(cells.group) != 0) | apart
        sessions = cells.merged(aggregates, np.flatnonzero(np.append(True, new)))
        return replace(sessions, place=sessions.first)


def _latest(cells: PartialGroups) -> Ints:
    """For each cell, the latest end of it and of those before it in its group."""
    new = np.diff(cells.group) != 0
    if (new | (np.diff(cells.last) >= 0)).all():
        return cells.last
    values, ranks = np.unique(cells.last, return_inverse=True)
    groups = np.append(0, np.cumsum(new))
    latest: Ints = values[np.maximum.accumulate(groups * len(values) + ranks) % len(values)]
    return latest


@dataclass
class RangeWindows:
    """RANGE: cells are the matches of a group that end together. `first_open` is the first end
    whose answers are not out yet."""

    size: int
    first_open: int = -FOREVER

    def places(self, ends: Ints) -> Ints:
        return ends

    def closes(self, end: int) -> int:
        return end + 1

    def due(self, cells: PartialGroups) -> int:
        fresh = cells.place[cells.place >= self.first_open]
        return int(fresh.min()) + 1 if len(fresh) else FOREVER

    def close(
        self, cells: PartialGroups, aggregates: Sequence[MatchAggregate], time: int
    ) -> Iterator[Closed]:
        due = np.flatnonzero((cells.place >= self.first_open) & (cells.place < time))
        self.first_open = max(self.first_open, time)
        due = due[np.argsort(cells.place[due], kind="stable")]
        begins = _begins(cells, self.size)
        for part in range(0, len(due), MOST_AT_ONCE):
            batch = due[part : part + MOST_AT_ONCE]
            answers = cells.ranges(aggregates, begins[batch], batch - begins[batch] + 1)
            ends = cells.place[batch]
            yield Closed(answers, ends - self.size, ends, cells.matches[batch])

    def drop(self, cells: PartialGroups, time: int) -> PartialGroups:
        return cells.take(np.flatnonzero(cells.place > time - self.size))


def _ends(groups: Ints, low: Ints, begins: Ints, numbers: Ints) -> Ints:
    """For each of these windows, the end of its cells: those of its group that it is not before.
    Cells are in order, and `begins` has the window's first one."""
    values = np.unique(low)
    codes = groups * (len(values) + 1) + np.searchsorted(values, low, "right")
    wanted = groups[begins] * (len(values) + 1) + np.searchsorted(values, numbers, "right")
    return np.searchsorted(codes, wanted, "right")


def _begins(cells: PartialGroups, size: int) -> Ints:
    """For each cell, the first one of its group that ends less than `size` before it."""
    begins = np.empty(len(cells), np.int64)
    bounds = np.flatnonzero(np.append(True, np.diff(cells.group) != 0))
    for begin, end in zip(bounds, np.append(bounds[1:], len(cells)), strict=True):
        places = cells.place[begin:end]
        begins[begin:end] = begin + np.searchsorted(places, places - size, "right")
    return begins


@dataclass
class NoWindow:
    """All matches of a group, however long it takes."""

    first_open: int = -FOREVER

    def places(self, ends: Ints) -> Ints:
        return np.zeros(len(ends), np.int64)

    def closes(self, end: int) -> int:
        return FOREVER

    def due(self, cells: PartialGroups) -> int:
        return FOREVER

    def close(
        self, cells: PartialGroups, aggregates: Sequence[MatchAggregate], time: int
    ) -> Iterator[Closed]:
        if time >= FOREVER and len(cells):
            yield Closed(cells, cells.last, cells.last)

    def drop(self, cells: PartialGroups, time: int) -> PartialGroups:
        return cells.take(np.arange(0)) if time >= FOREVER else cells


def windows_of(window: AnswerWindow | None) -> Windows:
    match window:
        case None:
            return NoWindow()
        case AnswerWindow(kind=kind):
            match kind.value:
                case "SESSION":
                    return SessionWindows(window.size)
                case "RANGE":
                    return RangeWindows(window.size)
                case _:
                    return HoppingWindows(window.slide or window.size, window.size)
