"""Time that passes while nothing comes.

A watermark follows the events, so when they stop, it stops. With a heartbeat, the time of a bucket
follows the clock after a silence of a given length. Rows of a source of their own carry the
clock. A batch that is repeated reads the same rows again, so it decides the same.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from cepheid.streaming.cells import Cells, framed, unframed

CELL = -1
"""The segment number of the saved silence: buckets number theirs from 0."""

_UNKNOWN = -1
_LAYOUT = struct.Struct("<qqq")


@dataclass(frozen=True)
class SilenceLimit:
    """The milliseconds of silence after which time follows the clock, and the microseconds of a
    tick of the query's clock."""

    silence: int
    tick: int


@dataclass(frozen=True)
class Silence:
    """A bucket's silence: since when (clock, in milliseconds) no event came, the watermark then,
    and the time reached."""

    since: int
    watermark: int
    reached: int

    def after(
        self, heartbeat: SilenceLimit, watermark: int, heard: bool, clock: int | None
    ) -> Silence:
        """The silence after the next batch. `heard`: the batch has events, of any bucket; the batch
        before may have moved the watermark. `clock`: the clock's time, if this batch has it."""
        now = _UNKNOWN if clock is None else clock
        quiet = not heard and watermark == self.watermark and self.since != _UNKNOWN
        since = self.since if quiet else now
        reached = max(self.reached, watermark)
        if quiet and now - since >= heartbeat.silence:
            reached = max(reached, watermark + 1000 * (now - since) // heartbeat.tick)
        return Silence(since, watermark, reached)


def time_passed(
    cells: Cells, heartbeat: SilenceLimit, watermark: int, heard: bool, clock: int | None
) -> int:
    """The time that a bucket reaches with this batch: all events at or before it have come."""
    data = cells.segment(CELL)
    before = Silence(_UNKNOWN, watermark, watermark)
    if data is not None:
        before = Silence(*_LAYOUT.unpack(unframed(data, "the saved state")))
    silence = before.after(heartbeat, watermark, heard, clock)
    if data is None or silence != before:
        packed = _LAYOUT.pack(silence.since, silence.watermark, silence.reached)
        cells.set_segment(CELL, framed(packed))
    return silence.reached
