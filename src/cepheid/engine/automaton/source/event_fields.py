"""Source of what a kernel reads of events: from lists and arrays, or of their numbers alone."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.engine.automaton.source.places import Extent


@dataclass(frozen=True)
class EventFields:
    """An event is known by its row. A class lists rows and their positions.

    `numbered`: the kernel is for the whole stream at once, whose rows are numbered key by key. The
    number of a row is then its position and its place in every list, so that no array is read.
    Where nothing depends on times (not `timed`), it stands for the row's time, too.
    """

    numbered: bool = False
    timed: bool = True

    def row(self, n: int, place: str) -> str:
        """The row at a place in the list of class n."""
        return self._position(f"rows{n}", place)

    def listed(self, n: int, place: str) -> str:
        """The position at a place in the list of class n."""
        return self._position(f"at{n}", place)

    def position(self, row: str) -> str:
        return self._position("pos", row)

    def begin(self, row: str) -> str:
        """The position at which the event begins."""
        return self._position("begin", row)

    def clock(self, row: str) -> str:
        """What the window's clock reads at the event's end."""
        return self._time("clock", row)

    def clock_start(self, row: str) -> str:
        return self._time("clock0", row)

    def extent(self, first: str, last: str | None = None, some: str | None = None) -> Extent:
        """Of an event, or of a group from its first to its last."""
        last = last or first
        return Extent(
            self.begin(first),
            self.position(last),
            self.clock_start(first),
            self.clock(last),
            self._time("time0", first),
            self._time("time", last),
            self.position(first),
            some,
        )

    def _position(self, array: str, index: str) -> str:
        return f"({index})" if self.numbered else f"{array}[u({index})]"

    def _time(self, array: str, row: str) -> str:
        return f"({row})" if self.numbered and not self.timed else f"{array}[u({row})]"
