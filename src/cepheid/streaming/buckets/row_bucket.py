"""A bucket of MATCH_RECOGNIZE: the partitions of some keys, to which rows come batch after batch.

Rows wait until the watermark has passed them, so that they are matched in the order of ORDER BY
whatever batches they come in. A match is returned when no later row can change it: the search never
tried to take a row that has not come, except beyond WITHIN. Rows before the place where the search
goes on are dropped, but for those that PREV may read. A batch reads and writes what is kept of the
partitions that it touches, and of those in which passing time decides something (`row_pages`).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.engine.arrays.columns import microseconds
from cepheid.engine.rows.clock import times
from cepheid.errors import StateError
from cepheid.row_patterns.arrangement import ArrangedRows, arrange
from cepheid.row_patterns.bound import BoundRecognition
from cepheid.row_patterns.endless import rows_before
from cepheid.row_patterns.recognize import output
from cepheid.row_patterns.row_machine import Ongoing
from cepheid.row_patterns.row_search import search
from cepheid.streaming.buckets.row_pages import (
    NEVER,
    PER_PAGE,
    PLACE,
    Directory,
    PageRows,
    Wakes,
    read_pages,
    write_pages,
)
from cepheid.streaming.cells import Cells, framed, unframed
from cepheid.streaming.report import NOTHING, Report

Numbers = NDArray[np.int64]

_LENGTH = struct.Struct("<I")
_WHAT = "the saved state of a bucket"


@dataclass(frozen=True)
class RowsJob:
    """A clause over rows of this schema. `signature` must be the one that a saved state has."""

    bound: BoundRecognition
    schema: pa.Schema
    signature: str
    buckets: int
    per_page: int = PER_PAGE
    jit: bool | None = None

    @property
    def arriving(self) -> pa.Schema:
        """Rows come with the place of their partition."""
        return self.schema.append(pa.field(PLACE, pa.int32()))

    def times(self, table: pa.Table) -> Numbers:
        if not table.num_rows:
            return np.zeros(0, np.int64)
        return times(table[self.bound.order[0].column].combine_chunks())


@dataclass
class RowBucket:
    """`alarm` is the watermark at which the bucket has to be processed, also without rows, for
    which a timer has been set. `late_rows` are those of the last step; `_read` are the pages that
    it has read, `_kept` is what they have now."""

    job: RowsJob
    directory: Directory
    alarm: int = NEVER
    late_rows: pa.Table | None = None
    _read: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    _kept: tuple[PageRows, Wakes] | None = None
    _batch: Report = NOTHING
    _header: bytes = b""

    def step(self, cells: Cells, batches: Iterable[pa.RecordBatch], watermark: int) -> pa.Table:
        """The matches that are known now: all rows at or before the watermark have come."""
        job = self.job
        arrived = pa.Table.from_batches(batches, job.arriving)
        late = job.times(arrived) <= watermark
        self.late_rows = arrived.filter(pa.array(late))
        arrived_in_time = arrived.filter(pa.array(~late))
        places = arrived_in_time[PLACE].combine_chunks().to_numpy(zero_copy_only=False)
        self._read = self.directory.touched(places, watermark)
        before = read_pages(cells, self._read.tolist(), job.arriving)
        waiting = pa.concat_tables([before.pending, arrived_in_time])
        due = job.times(waiting) <= watermark
        rows = _arranged(job.bound, pa.concat_tables([before.held, waiting.filter(pa.array(due))]))
        # Partitions are numbered as they first appear, so those that were held come first.
        carried = np.zeros((len(rows.begins) - 1, 3), np.int64)
        carried[: len(before.carried)] = before.carried
        matched = search(job.bound, rows, job.jit, ongoing=Ongoing(watermark + 1, carried))
        self._kept = _kept(job, rows, carried, waiting.filter(pa.array(~due)))
        matches = output(job.bound, rows, matched)
        self._batch = replace(
            NOTHING, events=arrived.num_rows, late=int(late.sum()), matches=matches.num_rows
        )
        return matches

    def report(self) -> Report:
        """Of the last batch, after it is saved."""
        size = self.directory.size + len(self._header)
        return replace(self._batch, rows=self.directory.rows, size=size)

    def save(self, cells: Cells, watermark: int) -> int | None:
        """Write what has changed. The watermark of a further alarm, if one has to be set."""
        assert self._kept is not None
        self.directory = write_pages(
            cells, self.directory, self._read, *self._kept, self.job.per_page
        )
        wakes = self.directory.wakes
        is_set = watermark < self.alarm <= wakes
        self.alarm = self.alarm if is_set else wakes
        header = self._encoded()
        if header != self._header:
            cells.set_header(header)
            self._header = header
        return None if is_set or wakes == NEVER else wakes

    def _encoded(self) -> bytes:
        notes = json.dumps(
            {
                "signature": self.job.signature,
                "buckets": self.job.buckets,
                "bits": self.directory.bits,
                "alarm": self.alarm,
            }
        ).encode()
        return framed(_LENGTH.pack(len(notes)) + notes + self.directory.pages.tobytes())


def _arranged(bound: BoundRecognition, table: pa.Table) -> ArrangedRows:
    arrangement = arrange(table, bound.partition, bound.order)
    return ArrangedRows(arrangement.apply(table), arrangement.begins)


def _kept(
    job: RowsJob, rows: ArrangedRows, carried: Numbers, pending: pa.Table
) -> tuple[PageRows, Wakes]:
    """What is kept after a search, which has left in `carried` where it goes on."""
    begins, ends, goes_on = rows.begins[:-1], rows.begins[1:], carried[:, 0]
    first = np.maximum(begins, goes_on - rows_before(job.bound))
    lengths = ends - first
    kept = np.zeros(rows.length + 1, np.int64)
    np.add.at(kept, first, 1)
    np.add.at(kept, ends, -1)
    held = rows.table.filter(pa.array(np.cumsum(kept)[:-1] > 0))
    wakes = np.full(len(begins), NEVER)
    if job.bound.window is not None and rows.length:
        clock = microseconds(rows.column(job.bound.order[0].column)).to_numpy(zero_copy_only=False)
        open_ = goes_on < ends
        wakes[open_] = clock[goes_on[open_]] + job.bound.window - 1
    some = lengths > 0
    left = np.column_stack([goes_on - first, carried[:, 1], carried[:, 2] + first - begins])
    first_held = (np.cumsum(lengths) - lengths)[some]
    return PageRows(held, pending, left[some]), Wakes(first_held, wakes[some], job.times(pending))


def open_rows(job: RowsJob, cells: Cells) -> RowBucket:
    """The bucket as it was saved, or a new one."""
    header = cells.header()
    if header is None:
        return RowBucket(job, Directory.empty())
    data = unframed(header, _WHAT)
    (length,) = _LENGTH.unpack_from(data)
    end = _LENGTH.size + length
    notes = json.loads(bytes(data[_LENGTH.size : end]))
    _require_same(notes, job)
    directory = Directory.of(notes["bits"], bytes(data[end:]))
    return RowBucket(job, directory, notes["alarm"], _header=header)


def _require_same(notes: dict[str, object], job: RowsJob) -> None:
    if notes["signature"] != job.signature:
        raise StateError(
            "MATCH_RECOGNIZE is not the one that the checkpoint was written with, which was "
            f"{notes['signature']}: resume with that, or start with a new checkpoint"
        )
    if notes["buckets"] != job.buckets:
        raise StateError(
            f"the checkpoint was written with {notes['buckets']} buckets, and now there are "
            f"{job.buckets}: start with a new checkpoint"
        )
