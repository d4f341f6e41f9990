"""What the stateful operator does with a bucket: open it, make a step, save it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any, assert_never

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.spark.partitions.worker import COPY_COLUMN
from cepheid.spark.streaming.clock.time import Watermark
from cepheid.spark.streaming.letters import Letters, late_among
from cepheid.spark.streaming.stateful.packed_rows import (
    CLOCK,
    DATA,
    REJECTED,
    UNREAD,
    VERSION,
    kind_of,
)
from cepheid.spark.streaming.status.reports import NO_REPORT, report_row
from cepheid.streaming.buckets.bucket import Bucket, Job, end_quietly, open_bucket
from cepheid.streaming.buckets.rule_bucket import RuleBucket, RulesJob, RulesVersion, open_rules
from cepheid.streaming.cells import Cells, arrow_bytes, table_of
from cepheid.streaming.report import NOTHING
from cepheid.streaming.silence import SilenceLimit, time_passed

WARM = 256
"""How many buckets a worker keeps in memory."""

_warm: OrderedDict[tuple[str, object], Any] = OrderedDict()

Wakes = int | None
"""The watermark, in milliseconds, at which a bucket must be processed, even without rows."""


@dataclass(frozen=True)
class BucketWork:
    """The work of a query, or of rules, whose new versions come with the rows. `schema` is the
    rows' schema; `run` names the run, whose buckets are kept in memory; `letters` says what is kept
    of late and rejected rows, if wanted. With a `heartbeat`, rows without data carry the clock."""

    job: Job | RulesJob
    schema: pa.Schema
    watermark: Watermark
    run: str
    letters: Letters | None = None
    heartbeat: SilenceLimit | None = None

    def step(
        self, number: object, cells: Cells, frames: Iterator[pd.DataFrame], reached: int
    ) -> Generator[pd.DataFrame, None, Wakes]:
        """Yield a bucket's matches, dead letters and report; return when it wakes."""
        packed, rules, clock = arrived(frames)
        batches = chain.from_iterable(table.to_batches() for table in packed[None])
        rows = (batch.cast(self.schema) for batch in batches)
        place, ticks = (self.run, number), self.watermark.ticks(reached)
        if not any(packed.values()) and self._ends_quietly(cells, ticks):
            _warm.pop(place, None)
            yield report_row(number, NOTHING)
            return None
        if self.heartbeat is not None:
            heard = any(packed.values())
            ticks = time_passed(cells, self.heartbeat, ticks, heard, clock)
        bucket: Bucket | RuleBucket
        warm = kept_bucket(place)
        match self.job:
            case Job() as job:
                bucket = single = open_bucket(job, cells, warm)
                results = single.step(rows, ticks)
            case RulesJob() as job:
                bucket = every = open_rules(job, cells, warm)
                results = every.step(cells, rows, ticks, rules)
            case _:
                assert_never(self.job)
        for matches in results:
            yield pd.DataFrame({DATA: [arrow_bytes(matches)], **NO_REPORT})
        late = _once(bucket.late_rows)
        for letters in self._dead_letters(late, packed[REJECTED]):
            yield pd.DataFrame({DATA: [arrow_bytes(letters)], **NO_REPORT})
        if isinstance(bucket, Bucket) and bucket.over:
            bucket.remove(cells)
        else:
            bucket.save(cells)
            keep(place, bucket)
        unread = late_among(packed[UNREAD], ticks)
        report = replace(bucket.report(), late=late.num_rows + unread)
        figures = bucket.figures().to_json() if isinstance(bucket, RuleBucket) else None
        yield report_row(number, report, figures)
        return self._wakes(bucket, reached)

    def _ends_quietly(self, cells: Cells, ticks: int) -> bool:
        return isinstance(self.job, Job) and end_quietly(self.job, cells, ticks)

    def _wakes(self, bucket: Bucket | RuleBucket, reached: int) -> Wakes:
        if bucket.waits:
            return reached + 1
        expires = bucket.expires if isinstance(bucket, Bucket) and not bucket.over else None
        return None if expires is None else self.watermark.milliseconds(expires)

    def _dead_letters(self, late: pa.Table, rejected: list[pa.Table]) -> Iterator[pa.RecordBatch]:
        if self.letters is not None:
            yield from self.letters.late(late)
            for rows in rejected:
                yield from self.letters.rejected(rows)


def _once(rows: pa.Table) -> pa.Table:
    """Drop the copies that other buckets have, too."""
    if COPY_COLUMN not in rows.column_names:
        return rows
    return rows.filter(pc.equal(rows[COPY_COLUMN], 0))


def arrived(
    frames: Iterator[pd.DataFrame],
) -> tuple[dict[bytes | None, list[pa.Table]], RulesVersion | None, int | None]:
    """The unpacked rows by kind; the newest version of the rules, and the clock, if either came."""
    packed: dict[bytes | None, list[pa.Table]] = {None: [], REJECTED: [], UNREAD: []}
    newest: RulesVersion | None = None
    clock: int | None = None
    for frame in frames:
        if CLOCK in frame:
            beats = frame[CLOCK].notna()
            if beats.any():
                latest = int(frame.loc[beats, CLOCK].max())
                clock = latest if clock is None else max(clock, latest)
            frame = frame[~beats]
        versions = frame[VERSION] if VERSION in frame else repeat(None, len(frame))
        for version, data in zip(versions, frame[DATA], strict=True):
            if not isinstance(version, str):
                table = table_of(data)
                packed[kind_of(table)].append(table)
            elif newest is None or version > newest.name:
                newest = RulesVersion(version, bytes(data))
    return packed, newest, clock


def kept_bucket(place: tuple[str, object]) -> Any:
    """The bucket in memory, which isn't there any more if what follows fails."""
    return _warm.pop(place, None)


def keep(place: tuple[str, object], bucket: Any) -> None:
    """Keep the bucket in memory; beyond the limit, drop the least recently used one."""
    _warm[place] = bucket
    if len(_warm) > WARM:
        _warm.popitem(last=False)
