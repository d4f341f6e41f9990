"""A bucket that returns answers about its matches: one whose groups are complete in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from cepheid.algebra.answer_shape import Answers
from cepheid.answers.counted.counting_engine import CountingEngine
from cepheid.answers.engine_answers import (
    AnsweringEngine,
    fold_found,
    known_answers,
    last_answers,
    new_fold,
)
from cepheid.engine.operators.base import FOREVER
from cepheid.engine.run import Engine
from cepheid.options import Limit
from cepheid.streaming.buckets.bucket import Bucket, Job
from cepheid.streaming.cells import Cells
from cepheid.streaming.counted_keys import HeldKeys
from cepheid.streaming.report import Report
from cepheid.streaming.saved import Saved
from cepheid.streaming.saved_fold import fold_bytes, fold_of

FOLD = (1 << 31) - 1
"""The number of the segment of open groups: no row gets so far."""


@dataclass(frozen=True)
class FoldedJob(Job):
    """See `Job`; `shape` says what is made of the matches, and `limit` bounds the open groups."""

    shape: Answers = field(kw_only=True)
    limit: Limit | None = field(default=None, kw_only=True)

    def new_bucket(self) -> FoldedBucket:
        return FoldedBucket(self)


class FoldedBucket(Bucket):
    """See `Bucket`: in place of matches come the answers that are complete with them."""

    def __init__(self, job: FoldedJob) -> None:
        super().__init__(job)
        self.fold = new_fold(job.shape, self._answering, job.limit)

    @property
    def match_schema(self) -> pa.Schema:
        return self.fold.schema

    def match(self, rows: pa.Table, watermark: int) -> Iterator[pa.RecordBatch]:
        for found in super().match(rows, watermark):
            fold_found(self.fold, self._answering, found)
        yield from known_answers(self.fold, self._answering)

    def finish(self, until: int | None) -> Iterator[pa.RecordBatch]:
        yield from last_answers(self.fold, self._answering, until)

    @property
    def _answering(self) -> AnsweringEngine:
        assert isinstance(self._engine, Engine | CountingEngine | HeldKeys)  # not merged rules
        return self._engine

    @property
    def waits(self) -> bool:
        return super().waits or self.fold.held > 0

    @property
    def due(self) -> int:
        engine = self._answering
        rounds = engine.due if isinstance(engine, CountingEngine) else FOREVER
        return min(self.fold.due, rounds)

    def report(self) -> Report:
        report = super().report()
        return replace(report, rows=report.rows + self.fold.held)

    # ── saving and opening ──

    def save(self, cells: Cells) -> None:
        super().save(cells)
        cells.set_segment(FOLD, fold_bytes(self.fold, {}))

    def remove(self, cells: Cells) -> None:
        super().remove(cells)
        cells.remove_segment(FOLD)

    def _take(self, saved: Saved, cells: Cells, begin: int) -> None:
        super()._take(saved, cells, begin)
        data = cells.segment(FOLD)
        assert data is not None and isinstance(self.job, FoldedJob)
        _, parts, progress = fold_of(data)
        self.fold = new_fold(self.job.shape, self._answering, self.job.limit)
        self.fold.resume(parts, progress)
