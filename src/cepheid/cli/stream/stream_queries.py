"""The streaming queries of a run, started and stopped together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

BUSY = "Python worker failed to connect back"
"""The error of a busy machine: Spark waits only 10 seconds for the process that reports what a
query stores, and the query fails before its first batch."""

ATTEMPTS = 10


class StreamQueries:
    """Queries by name, each with the function that starts it."""

    def __init__(self, starts: Mapping[str, Callable[[], StreamingQuery]]) -> None:
        self._starts = starts
        self._attempts = dict.fromkeys(starts, 1)
        self._running: dict[str, StreamingQuery] = {}

    def __enter__(self) -> StreamQueries:
        try:
            for name, start in self._starts.items():
                self._running[name] = start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for query in self._running.values():
            query.stop()

    def __getitem__(self, name: str) -> StreamingQuery:
        return self._running[name]

    def __contains__(self, name: str) -> bool:
        return name in self._running

    @property
    def active(self) -> bool:
        return any(query.isActive for query in self._running.values())

    def check(self) -> bool:
        """Raise the error of a failed query. A query that failed because the machine was busy is
        restarted; returns whether there was one."""
        again = False
        for name, query in self._running.items():
            error = query.exception()
            if error is None:
                continue
            if BUSY not in str(error) or self._attempts[name] == ATTEMPTS:
                raise error
            self._attempts[name] += 1
            print(f"the machine is busy: {name} are started again", file=sys.stderr, flush=True)
            self._running[name] = self._starts[name]()
            again = True
        return again
