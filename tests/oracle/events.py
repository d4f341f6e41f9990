"""Events, their order, and the stream."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Position = tuple[int, tuple[Any, ...]]
"""A time, then the rank of the tie-break value. Equal positions are simultaneous."""

UNTIED: tuple[Any, ...] = (-1,)
"""The rank where there is no tie-break value."""

Binding = int | tuple[int, ...] | None
"""Index of an event; a group (also of an optional event): a tuple of them; absent: None."""


@dataclass(frozen=True)
class Event:
    """A row of the input. `index` is its place there; values are plain Python. Its time is its
    end; `start` is None if it is instantaneous. Without a time among its values it is rejected,
    and `time` is never looked at."""

    index: int
    time: int
    values: Mapping[str, Any]
    start: int | None = None


@dataclass(frozen=True)
class Match:
    """The branch not taken binds None, an empty group (or optional event) binds ().

    `rounds` are those of closures over a pattern, for RETURN expressions that read several of
    their variables."""

    bindings: Mapping[str, Binding]
    start: int
    end: int
    rounds: Mapping[Any, Any] = field(default_factory=dict, compare=False, repr=False)


def instant(time: int) -> Position:
    """Just before the events of this time: it has been reached."""
    return (time, ())


def rank(value: Any) -> tuple[Any, ...]:
    """Sorts as Spark does, NULL first and NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, value)


class Stream:
    """ "all its input: every row of the data given, of every type, all streams merged in order;
    with a partition key, the part of it with that key"."""

    def __init__(self, events: Iterable[Event], tie: str | None) -> None:
        self._tie = tie
        self.events = sorted(events, key=self.order)
        self.positions = sorted({self.position(e) for e in self.events})
        # "It counts per partition, simultaneous rows in tie-break, then input order."
        self.ordinal = {e.index: n for n, e in enumerate(self.events)}

    def position(self, event: Event) -> Position:
        """ "its time, then its tie-break value if the caller names a tie-break column"."""
        return (event.time, UNTIED if self._tie is None else rank(event.values[self._tie]))

    def begin(self, event: Event) -> Position:
        """The position of its start."""
        return self.position(event) if event.start is None else (event.start, UNTIED)

    def order(self, event: Event) -> tuple[Any, ...]:
        """An event stands where it ends; simultaneous ones by start, then in input order."""
        return self.position(event), self.begin(event), event.index

    def next_position(self, position: Position) -> Position | None:
        """The next position at which the stream has an event."""
        n = bisect_right(self.positions, position)
        return self.positions[n] if n < len(self.positions) else None
