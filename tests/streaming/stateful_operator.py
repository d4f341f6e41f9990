"""Spark's stateful operator in memory, with its timers: the keys of one partition, batch by batch.

As in Spark, a timer expires in the batch whose watermark has reached it. It is deleted after it was
handled, also if it was set again meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from cepheid.spark.streaming.stateful.packed_rows import DATA
from cepheid.spark.streaming.stateful.processor import Processor, Work
from cepheid.streaming.cells import arrow_bytes, table_of

Key = int


class Operator:
    """With `always`, every key that was ever seen is processed in every batch."""

    def __init__(self, work: Work, always: bool = False) -> None:
        self._work, self._always = work, always
        self._values: dict[tuple[Key, str], tuple[Any, ...]] = {}
        self._maps: dict[tuple[Key, str], dict[tuple[Any, ...], tuple[Any, ...]]] = {}
        self._timers: dict[Key, set[int]] = {}
        self._key: Key = 0

    def batch(self, rows: Mapping[Key, pa.Table], watermark: int) -> list[dict[str, Any]]:
        """The rows that come out, in some order."""
        processor, times = Processor(self._work), _Times(watermark)
        processor.init(cast(StatefulProcessorHandle, self))
        found: list[pd.DataFrame] = []
        for key in sorted({*rows, *(self._timers if self._always else ())}):
            self._key = key
            self._timers.setdefault(key, set())
            frames = [pd.DataFrame({DATA: [arrow_bytes(rows[key])]})] if key in rows else []
            found += processor.handleInputRows((key,), iter(frames), times)
        timers = [(time, key) for key, own in self._timers.items() for time in own]
        for time, key in sorted(timer for timer in timers if timer[0] <= watermark):
            self._key = key
            found += processor.handleExpiredTimer((key,), times, None)
            self._timers[key].discard(time)
        return sorted(_rows(found), key=str)

    # ── what Spark hands to a processor ──

    def registerTimer(self, time: int) -> None:
        self._timers[self._key].add(time)

    def getValueState(self, name: str, _schema: str) -> _Value:
        return _Value(self, name)

    def getMapState(self, name: str, _key: str, _value: str) -> _Map:
        return _Map(self, name)


class _Times:
    def __init__(self, watermark: int) -> None:
        self._watermark = watermark

    def getCurrentWatermarkInMs(self) -> int:
        return self._watermark


class _Value:
    def __init__(self, operator: Operator, name: str) -> None:
        self._operator, self._name = operator, name

    def get(self) -> tuple[Any, ...] | None:
        return self._operator._values.get((self._operator._key, self._name))

    def update(self, value: tuple[Any, ...]) -> None:
        self._operator._values[self._operator._key, self._name] = value

    def clear(self) -> None:
        self._operator._values.pop((self._operator._key, self._name), None)


class _Map:
    def __init__(self, operator: Operator, name: str) -> None:
        self._operator, self._name = operator, name

    def _own(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        return self._operator._maps.setdefault((self._operator._key, self._name), {})

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        return self._own().get(key)

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:
        self._own()[key] = value

    def removeKey(self, key: tuple[Any, ...]) -> None:
        self._own().pop(key, None)


def _rows(frames: list[pd.DataFrame]) -> Iterator[dict[str, Any]]:
    for frame in frames:
        for data in frame[DATA]:
            if isinstance(data, bytes):
                yield from table_of(data).to_pylist()
