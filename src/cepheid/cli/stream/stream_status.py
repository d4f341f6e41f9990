"""What a stream has done so far, in one line."""

from __future__ import annotations

import re
import sys
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from rich.console import Console

from cepheid.spark.streaming.clock.time import Watermark
from cepheid.spark.streaming.status.reports import Status, milliseconds
from cepheid.spark.streaming.status.sums import Sums

PLAIN_SECONDS = 10.0
"""The seconds between two status lines where a line can't be overwritten."""

PLAIN_WIDTH = 80
"""The width of a line without a terminal."""

_BETWEEN = re.compile(r"(?<=[,·]) ")
_LIVE_SECONDS = 24 * 3600
"""A watermark farther from now than this is that of events of another time, not one behind."""


@dataclass
class Totals(Sums):
    """The totals of this run's batches, and the state after the last one. `integers`: the time
    column has integers. `waiting` counts files that haven't been taken yet."""

    integers: bool = False
    files: int = 0
    timeouts: int = 0
    rate: float = 0.0
    seconds: float = 0.0
    watermark: int | None = None
    waiting: int = 0

    def add(self, done: Status) -> None:
        super().add(done)
        self.watermark = milliseconds(done.watermark)
        if done.events and done.seconds:
            self.rate, self.seconds = done.events / done.seconds, done.seconds

    @property
    def complete(self) -> bool:
        """Whether all files could be read, and some events matched, if there were any."""
        left_out = self.late + self.rejected + self.future
        return not self.files and (not self.events or left_out < self.events)

    def counts(self) -> str:
        """The figures that never decrease."""
        parts = [many(self.events, "event"), many(self.matches, "match", "es")]
        parts += [many(self.timeouts, "timeout")] if self.timeouts else []
        parts += [f"{self.late:,} late", f"{self.rejected:,} rejected"]
        parts += [f"{self.future:,} ahead of the clock"] if self.future else []
        parts += [f"{self.shed:,} shed"] if self.shed else []
        parts += [f"{self.suppressed:,} throttled"] if self.suppressed else []
        parts += [f"{self.ties:,} in no order (--tie)"] if self.ties else []
        parts += [many(self.files, "unreadable file")] if self.files else []
        return ", ".join(parts)

    def line(self, now: float) -> str:
        """The status line at a time in seconds since 1970."""
        parts = [f"batch {self.batches:,}", self.counts(), f"{self.rate:,.0f} events/s"]
        parts += self._watermark_texts(now)
        parts += [f"{many(self.refused, 'rule')} refused"] if self.refused else []
        parts += [f"state {many(self.rows, 'event')}, {size_text(self.size)}"]
        parts += [f"batch took {self.seconds:.1f} s"]
        parts += [f"{many(self.waiting, 'file')} waiting"] if self.waiting else []
        return " · ".join(parts)

    def _watermark_texts(self, now: float) -> list[str]:
        if self.watermark is None:
            return []
        if self.integers:
            return [f"watermark {Watermark(True, False).ticks(self.watermark)}"]
        text = str(np.datetime64(self.watermark, "ms")).replace("T", " ")
        lag = now - self.watermark / 1000
        return [f"watermark {text}", *([f"lag {lag:,.0f} s"] if abs(lag) < _LIVE_SECONDS else [])]


def many(count: int, name: str, ending: str = "s") -> str:
    """
    >>> many(1, "match", "es"), many(1000, "match", "es")
    ('1 match', '1,000 matches')
    """
    return f"{count:,} {name}{'' if count == 1 else ending}"


def size_text(size: int) -> str:
    """
    >>> size_text(999), size_text(12_345), size_text(7_500_000)
    ('999 B', '12.3 kB', '7.5 MB')
    """
    units = ("B", "kB", "MB", "GB", "TB")
    power = min((len(str(size)) - 1) // 3, len(units) - 1)
    return f"{size / 1000**power:.{1 if power else 0}f} {units[power]}"


def wrapped(text: str, width: int) -> str:
    """Wrap the lines of the text to a width, breaking only between figures.

    >>> print(wrapped("batch 2 · 1,000 events, 6 matches · 500 events/s", 30))
    batch 2 · 1,000 events,
      6 matches · 500 events/s
    """
    lines: list[str] = []
    for line in text.splitlines():
        first, *others = _BETWEEN.split(line)
        lines.append(first)
        for part in others:
            if len(lines[-1]) + 1 + len(part) > width:
                lines.append(f"  {part}")
            else:
                lines[-1] += f" {part}"
    return "\n".join(lines)


Show = Callable[[str, int], None]
"""Shows a status line, given its text and the number of batches."""


@contextmanager
def screen() -> Iterator[Show]:
    """Stderr: on a terminal a line that changes, elsewhere a line now and then."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Plain().show
        return
    with console.status("starting") as spinner:
        room = console.width - 2  # beside the spinner
        yield lambda text, batches: spinner.update(wrapped(text, room))


class Plain:
    """Print a new line after a new batch, but at most one per interval."""

    def __init__(self) -> None:
        self._batches, self._last = 0, -PLAIN_SECONDS

    def show(self, text: str, batches: int) -> None:
        now = clock.monotonic()
        if batches > self._batches and now - self._last >= PLAIN_SECONDS:
            self._batches, self._last = batches, now
            print(wrapped(text, PLAIN_WIDTH), file=sys.stderr, flush=True)
