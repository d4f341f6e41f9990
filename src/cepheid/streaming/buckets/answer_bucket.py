"""One bucket of answers: the groups of some matches, whose parts come batch after batch.

An answer is returned when the watermark has passed the end of its window, and so far beyond that
no match can be found any more that belongs to it. The whole state is rewritten with every batch: it
is a row for each open group and slice of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from cepheid.algebra.answer_shape import Answers
from cepheid.answers import AnswerFold
from cepheid.errors import StateError
from cepheid.options import Limit
from cepheid.streaming.cells import Cells
from cepheid.streaming.report import Report
from cepheid.streaming.saved_fold import fold_bytes, fold_of
from cepheid.streaming.signature import Signature, require_same


@dataclass(frozen=True)
class AnswersJob:
    """What all buckets of a run have in common. `matches` is the schema of the matches; `lag` says
    how far time has to pass the end of a match until it is known."""

    shape: Answers
    matches: pa.Schema
    signature: Signature
    buckets: int
    lag: int
    limit: Limit | None = None


class AnswerBucket:
    """The state of a bucket in memory."""

    def __init__(self, job: AnswersJob) -> None:
        self._job = job
        self.fold = AnswerFold(job.shape, job.matches, job.limit)
        self._size = 0

    def step(self, parts: Iterable[pa.Table], watermark: int) -> Iterator[pa.RecordBatch]:
        """Yield the answers that are known now: every event at or before the watermark has come,
        and every match that is known by that."""
        for part in parts:
            self.fold.merge(part)
        yield from self.fold.advance(watermark + 1 - self._job.lag)

    @property
    def wakes(self) -> int | None:
        """The watermark at which something may be known, also without further parts."""
        return self.fold.due - 1 + self._job.lag if self.fold.held else None

    def report(self) -> Report:
        return Report(0, 0, 0, 0, rows=self.fold.held, size=self._size, replans=0)

    def save(self, cells: Cells) -> None:
        notes = {"signature": dict(self._job.signature), "buckets": self._job.buckets}
        data = fold_bytes(self.fold, notes)
        self._size = len(data)
        cells.set_header(data)


def open_answers(job: AnswersJob, cells: Cells) -> AnswerBucket:
    """The bucket as it was saved, or a new one."""
    bucket = AnswerBucket(job)
    header = cells.header()
    if header is None:
        return bucket
    notes, parts, progress = fold_of(header)
    require_same(notes["signature"], job.signature)
    if notes["buckets"] != job.buckets:
        raise StateError(
            f"the checkpoint was written with {notes['buckets']} buckets, and now there are "
            f"{job.buckets}: pass buckets={notes['buckets']}, or start with a new checkpoint"
        )
    bucket.fold.resume(parts, progress)
    return bucket
