"""A bucket that returns answers about its matches: one whose groups are complete in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from cepheid.algebra.answer_shape import Answers
from cepheid.answers import AnswerFold
from cepheid.answers.last_answers import last_answers
from cepheid.engine.run import Engine
from cepheid.engine.settled_time import settled_time
from cepheid.options import Limit
from cepheid.planner import Prepared
from cepheid.streaming.bucket import Bucket, Job
from cepheid.streaming.cells import Cells
from cepheid.streaming.report import Report
from cepheid.streaming.saved import Saved
from cepheid.streaming.saved_fold import fold_bytes, fold_of

FOLD = (1 << 31) - 1
"""The number of the segment of open groups: no row gets so far."""


@dataclass(frozen=True)
class FoldedJob(Job):
    """See `Job`; `limit` bounds the open groups."""

    limit: Limit | None = field(default=None, kw_only=True)

    def new_bucket(self) -> FoldedBucket:
        return FoldedBucket(self)


class FoldedBucket(Bucket):
    """See `Bucket`: in place of matches come the answers that are complete with them."""

    def __init__(self, job: FoldedJob) -> None:
        super().__init__(job)
        self.fold = AnswerFold(shape_of(job), self._engine.schema, job.limit)

    @property
    def match_schema(self) -> pa.Schema:
        return self.fold.schema

    def match(self, rows: pa.Table, watermark: int) -> Iterator[pa.RecordBatch]:
        for matches in super().match(rows, watermark):
            self.fold.push(matches)
        yield from self.fold.advance(settled_time(self._whole_engine))

    def finish(self, until: int | None) -> Iterator[pa.RecordBatch]:
        yield from last_answers(self.fold, self._whole_engine, super().finish(until), until)

    @property
    def _whole_engine(self) -> Engine:
        assert isinstance(self._engine, Engine)  # merged rules and counted keys return matches
        return self._engine

    @property
    def waits(self) -> bool:
        return super().waits or self.fold.held > 0

    @property
    def due(self) -> int:
        return self.fold.due

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
        self.fold = AnswerFold(shape_of(self.job), self._engine.schema, self.job.limit)
        self.fold.resume(parts, progress)


def shape_of(job: Job) -> Answers:
    assert isinstance(job.prepared, Prepared) and job.prepared.query.answers is not None
    return job.prepared.query.answers
