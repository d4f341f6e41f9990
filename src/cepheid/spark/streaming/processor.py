"""What runs in Spark's stateful operator: buckets, opened from the state store and saved there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any, assert_never

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cepheid.spark.streaming.packing import DATA, VERSION
from cepheid.spark.streaming.reports import NO_REPORT, report_row
from cepheid.spark.streaming.time import Watermark
from cepheid.streaming import Bucket, Job, RuleBucket, RulesJob, Version, open_bucket, open_rules
from cepheid.streaming.cells import arrow_bytes, table_of

WARM = 256
"""Buckets that a worker keeps in memory."""

_warm: OrderedDict[tuple[str, object], Any] = OrderedDict()


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
    """The buckets of one partition, in one batch: of a query, or of rules, of which new versions
    come with the rows. `schema` is that of the rows, `run` names the run whose buckets are warm."""

    def __init__(
        self, job: Job | RulesJob, schema: pa.Schema, watermark: Watermark, run: str
    ) -> None:
        self.job, self.schema, self.watermark, self.run = job, schema, watermark, run

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._cells = StateCells(handle)
        self._done: set[object] = set()

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        packed, rules = _arrived(rows)
        batches = chain.from_iterable(table_of(data).to_batches() for data in packed)
        yield from self._step(key[0], batches, timerValues.getCurrentWatermarkInMs(), rules)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        # What came with this batch has already met the time that has passed.
        if key[0] not in self._done:
            yield from self._step(key[0], (), timerValues.getCurrentWatermarkInMs())

    def _step(
        self,
        number: object,
        batches: Iterable[pa.RecordBatch],
        reached: int,
        rules: Version | None = None,
    ) -> Iterator[pd.DataFrame]:
        self._done.add(number)
        place, cells = (self.run, number), self._cells
        rows = (batch.cast(self.schema) for batch in batches)
        ticks = self.watermark.ticks(reached)
        bucket: Bucket | RuleBucket
        match self.job:
            case Job() as job:
                bucket = own = open_bucket(job, cells, _warm.get(place))
                found = own.step(rows, ticks)
            case RulesJob() as job:
                bucket = every = open_rules(job, cells, _warm.get(place))
                found = every.step(cells, rows, ticks, rules)
            case _:
                assert_never(self.job)
        _keep(place, bucket)
        for matches in found:
            yield pd.DataFrame({DATA: [arrow_bytes(matches)], **NO_REPORT})
        bucket.save(cells)
        if bucket.waits:
            self._handle.registerTimer(reached + 1)
        yield report_row(number, bucket.report())


def _arrived(frames: Iterator[pd.DataFrame]) -> tuple[list[Any], Version | None]:
    """What is packed in the rows: events, and the newest version of rules, if one came."""
    packed: list[Any] = []
    newest: Version | None = None
    for frame in frames:
        versions = frame[VERSION] if VERSION in frame else repeat(None, len(frame))
        for version, data in zip(versions, frame[DATA], strict=True):
            if not isinstance(version, str):
                packed.append(data)
            elif newest is None or version > newest.name:
                newest = Version(version, bytes(data))
    return packed, newest


def _keep(place: tuple[str, object], bucket: Bucket | RuleBucket) -> None:
    """In memory, and of those beyond the limit forget the one used longest ago."""
    _warm[place] = bucket
    _warm.move_to_end(place)
    if len(_warm) > WARM:
        _warm.popitem(last=False)
