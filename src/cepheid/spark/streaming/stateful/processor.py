"""The stateful operator as Spark sees it.

When a query starts, Spark makes one in a Python process of its own, only to learn what is stored.
So this module loads nothing else, and what the operator does comes as bytes, which are read with
the first rows: planning a query then takes a fraction of a second, not several.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

    from cepheid.streaming.cells import Cells

QUERIES = 16
"""For how many queries a worker caches the unpickled work."""


class Work(Protocol):
    """What the operator does: `BucketWork`, or that of MATCH_RECOGNIZE."""

    def step(
        self, number: object, cells: Cells, frames: Iterator[pd.DataFrame], reached: int
    ) -> Generator[pd.DataFrame, None, int | None]:
        """The rows that a bucket hands out, and then the watermark with which it wakes."""


class StateCells:
    """A bucket's cells in Spark's state store."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._header = handle.getValueState("header", "data binary")
        self._segments = handle.getMapState("segments", "number long", "data binary")

    def header(self) -> bytes | None:
        value = self._header.get()
        return None if value is None else bytes(value[0])

    def set_header(self, data: bytes) -> None:
        self._header.update((data,))

    def remove_header(self) -> None:
        self._header.clear()

    def segment(self, number: int) -> bytes | None:
        value = self._segments.getValue((number,))
        return None if value is None else bytes(value[0])

    def set_segment(self, number: int, data: bytes) -> None:
        self._segments.updateValue((number,), (data,))

    def remove_segment(self, number: int) -> None:
        self._segments.removeKey((number,))


class Processor(StatefulProcessor):
    """The buckets of one partition, in one batch."""

    def __init__(self, work: Work) -> None:
        self._work = pickle.dumps(work)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._cells = StateCells(handle)
        self._done: set[object] = set()

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        return self._step(key[0], rows, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        # What came with this batch has already met the time that has passed.
        if key[0] in self._done:
            return iter(())
        return self._step(key[0], iter(()), timerValues.getCurrentWatermarkInMs())

    def _step(
        self, bucket: object, rows: Iterator[pd.DataFrame], reached: int
    ) -> Iterator[pd.DataFrame]:
        self._done.add(bucket)
        wakes = yield from _read(self._work).step(bucket, self._cells, rows, reached)
        if wakes is not None:
            # Spark calls when the watermark has reached the timer, and then deletes it, even if it
            # was set again meanwhile: one that the watermark of this batch has reached is lost.
            self._handle.registerTimer(max(wakes, reached + 1))


@lru_cache(maxsize=QUERIES)
def _read(pickled: bytes) -> Work:
    work: Work = pickle.loads(pickled)
    return work
