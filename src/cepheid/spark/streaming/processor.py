"""What runs in Spark's stateful operator: buckets, opened from the state store and saved there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cepheid.spark.streaming.packing import DATA
from cepheid.spark.streaming.reports import NO_REPORT, report_row
from cepheid.spark.streaming.time import Watermark
from cepheid.streaming import Bucket, Job, open_bucket
from cepheid.streaming.cells import arrow_bytes, table_of

WARM = 256
"""Buckets that a worker keeps in memory."""

_warm: OrderedDict[tuple[str, object], Bucket] = OrderedDict()


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

    def segment(self, number: int) -> bytes | None:
        value = self._segments.getValue((number,))
        return None if value is None else bytes(value[0])

    def set_segment(self, number: int, data: bytes) -> None:
        self._segments.updateValue((number,), (data,))

    def remove_segment(self, number: int) -> None:
        self._segments.removeKey((number,))


class Processor(StatefulProcessor):
    """The buckets of one partition, in one batch. `run` names the run whose buckets are warm."""

    def __init__(self, job: Job, watermark: Watermark, run: str) -> None:
        self.job, self.watermark, self.run = job, watermark, run

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._cells = StateCells(handle)
        self._done: set[object] = set()

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        packed = chain.from_iterable(frame[DATA] for frame in rows)
        batches = chain.from_iterable(table_of(data).to_batches() for data in packed)
        yield from self._step(key[0], batches, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        # What came with this batch has already met the time that has passed.
        if key[0] not in self._done:
            yield from self._step(key[0], (), timerValues.getCurrentWatermarkInMs())

    def _step(
        self, number: object, batches: Iterable[pa.RecordBatch], reached: int
    ) -> Iterator[pd.DataFrame]:
        self._done.add(number)
        bucket = open_bucket(self.job, self._cells, _warm.get((self.run, number)))
        _keep((self.run, number), bucket)
        schema = self.job.schema
        rows = (batch.cast(schema) for batch in batches)
        for matches in bucket.step(rows, self.watermark.ticks(reached)):
            yield pd.DataFrame({DATA: [arrow_bytes(matches)], **NO_REPORT})
        bucket.save(self._cells)
        if bucket.waits:
            self._handle.registerTimer(reached + 1)
        yield report_row(number, bucket.report())


def _keep(place: tuple[str, object], bucket: Bucket) -> None:
    """In memory, and of those beyond the limit forget the one used longest ago."""
    _warm[place] = bucket
    _warm.move_to_end(place)
    if len(_warm) > WARM:
        _warm.popitem(last=False)
