"""What runs in Spark's stateful operator: buckets, opened from the state store and saved there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

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


class _Processor(StatefulProcessor):
    """The buckets of one partition, in one batch. `run` names the run whose buckets are warm."""

    def __init__(self, watermark: Watermark, run: str) -> None:
        self.watermark, self.run = watermark, run

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._cells = StateCells(handle)
        self._done: set[object] = set()

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        # What came with this batch has already met the time that has passed.
        if key[0] not in self._done:
            reached = timerValues.getCurrentWatermarkInMs()
            bucket = self._opened(key[0])
            yield from self._out(key[0], bucket, reached, self._found(bucket, (), reached))

    def _opened(self, number: object) -> Any:
        """The bucket, as it was saved, and for the next batch in memory; of those beyond the limit
        the one used longest ago is forgotten."""
        self._done.add(number)
        place = (self.run, number)
        _warm[place] = bucket = self._open(_warm.get(place))
        _warm.move_to_end(place)
        if len(_warm) > WARM:
            _warm.popitem(last=False)
        return bucket

    def _open(self, warm: Any) -> Any:
        raise NotImplementedError

    def _found(
        self, bucket: Any, batches: Iterable[pa.RecordBatch], reached: int
    ) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def _out(
        self, number: object, bucket: Any, reached: int, found: Iterable[pa.RecordBatch]
    ) -> Iterator[pd.DataFrame]:
        """What is found; then the bucket is saved, and reports."""
        for matches in found:
            yield pd.DataFrame({DATA: [arrow_bytes(matches)], **NO_REPORT})
        bucket.save(self._cells)
        if bucket.waits:
            self._handle.registerTimer(reached + 1)
        yield report_row(number, bucket.report())


class Processor(_Processor):
    """Buckets of one query."""

    def __init__(self, job: Job, watermark: Watermark, run: str) -> None:
        super().__init__(watermark, run)
        self.job = job

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        reached = timerValues.getCurrentWatermarkInMs()
        bucket = self._opened(key[0])
        packed = chain.from_iterable(frame[DATA] for frame in rows)
        yield from self._out(
            key[0], bucket, reached, self._found(bucket, _unpacked(packed), reached)
        )

    def _open(self, warm: Bucket | None) -> Bucket:
        return open_bucket(self.job, self._cells, warm)

    def _found(
        self, bucket: Bucket, batches: Iterable[pa.RecordBatch], reached: int
    ) -> Iterator[pa.RecordBatch]:
        rows = (batch.cast(self.job.schema) for batch in batches)
        return bucket.step(rows, self.watermark.ticks(reached))


class RulesProcessor(_Processor):
    """Buckets of rules; new rules come with the rows. `schema` is that of the rows."""

    def __init__(self, job: RulesJob, schema: pa.Schema, watermark: Watermark, run: str) -> None:
        super().__init__(watermark, run)
        self.job, self.schema = job, schema

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        reached = timerValues.getCurrentWatermarkInMs()
        bucket = self._opened(key[0])
        packed: list[bytes] = []
        versions: list[Version] = []
        for frame in rows:
            for version, data in zip(frame[VERSION], frame[DATA], strict=True):
                if isinstance(version, str):
                    versions.append(Version(version, bytes(data)))
                else:
                    packed.append(data)
        newest = max(versions, key=lambda version: version.name, default=None)
        found = self._found(bucket, _unpacked(packed), reached, newest)
        yield from self._out(key[0], bucket, reached, found)

    def _open(self, warm: RuleBucket | None) -> RuleBucket:
        return open_rules(self.job, self._cells, warm)

    def _found(
        self,
        bucket: RuleBucket,
        batches: Iterable[pa.RecordBatch],
        reached: int,
        rules: Version | None = None,
    ) -> Iterator[pa.RecordBatch]:
        rows = (batch.cast(self.schema) for batch in batches)
        return bucket.step(self._cells, rows, self.watermark.ticks(reached), rules)


def _unpacked(packed: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    return chain.from_iterable(table_of(data).to_batches() for data in packed)
