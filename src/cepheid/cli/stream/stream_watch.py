"""Watches the streaming queries of a run, and shows what they have done."""

from __future__ import annotations

import sys
import threading
import time as clock
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cepheid.cli.stream.stream_queries import StreamQueries
from cepheid.cli.stream.stream_status import Show, Totals
from cepheid.cli.stream.stream_target import TIMEOUTS
from cepheid.cli.stream.unreadable import Unreadable
from cepheid.cli.stream.waiting_files import WaitingFiles
from cepheid.spark.streaming.status.reports import NewReports, status

_POLL_SECONDS = 0.3


class Stop(threading.Event):
    """A requested stop."""

    exit_code = 0
    """That of a process which the same signal has ended."""


@dataclass
class WatchedOutput:
    """A streaming query that finds matches, what it has done so far, and the files that wait for
    it. One of several has a `title`. `write` is given Spark's report on each batch."""

    name: str
    title: str
    totals: Totals
    waiting: WaitingFiles
    write: Callable[[Mapping[str, Any]], None] = lambda report: None
    reports: NewReports = field(default_factory=NewReports)

    def look(self, running: StreamQueries) -> None:
        for report in self.reports.of(running[self.name]):
            self.totals.add(status(report))
            self.totals.waiting = self.waiting.count()
            self.write(report)

    def line(self, now: float) -> str:
        return f"{self.title}{self.totals.line(now)}"


def watch(
    running: StreamQueries,
    outputs: Sequence[WatchedOutput],
    unreadable: Unreadable,
    stopped: Stop,
    show: Show,
) -> None:
    """Show progress until all queries are done, one fails, or the run is stopped."""
    reading, timeouts = NewReports(), NewReports()
    every = [output.totals for output in outputs]
    ended = False
    while not ended:
        ended = stopped.wait(_POLL_SECONDS) or not running.active
        for output in outputs:
            output.look(running)
        for report in reading.of(running[unreadable.query]):
            tell_unreadable(unreadable.look(report), every)
        if TIMEOUTS in running:
            new = timeouts.of(running[TIMEOUTS])
            every[0].timeouts += sum(status(report).matches for report in new)
        if batches := sum(totals.batches for totals in every):
            show("\n".join(output.line(clock.time()) for output in outputs), batches)
        again = running.check()
        ended = ended and (stopped.is_set() or not again)


def tell_unreadable(files: Mapping[str, str], every: Iterable[Totals]) -> None:
    for totals in every:
        totals.files += len(files)
    for file, reason in files.items():
        # A terminal's status line stays below what is printed.
        print(f"couldn't read {file} to its end: {reason}", file=sys.stderr, flush=True)
