"""A bucket of MATCH_RECOGNIZE: the partitions of some keys, to which rows come batch after batch.

Rows wait until the watermark has passed them, so that they are matched in the order of ORDER BY
whatever batches they come in. A match is returned when no later row can change it: the search never
tried to take a row that has not come, except beyond WITHIN. Rows before the place where the search
goes on are dropped, but for those that PREV may read.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.engine.rows.clock import times
from cepheid.errors import StateError
from cepheid.row_patterns.arrangement import ArrangedRows, arrange
from cepheid.row_patterns.bound import BoundRecognition
from cepheid.row_patterns.endless import rows_before
from cepheid.row_patterns.recognize import output
from cepheid.row_patterns.row_machine import Ongoing
from cepheid.row_patterns.row_search import search
from cepheid.streaming.cells import Cells, arrow_bytes, framed, table_of, unframed
from cepheid.streaming.report import Report

Numbers = NDArray[np.int64]

_LENGTHS = struct.Struct("<III")
_WHAT = "the saved state of a bucket"


@dataclass(frozen=True)
class RowsJob:
    """A clause over rows of this schema. `signature` must be the one that a saved state has."""

    bound: BoundRecognition
    schema: pa.Schema
    signature: str
    buckets: int
    jit: bool | None = None

    @property
    def time(self) -> str:
        return self.bound.order[0].column


@dataclass
class RowBucket:
    """`held` are rows in which matches are still to be found, partition after partition; `carried`
    says where the search goes on in each (see `Ongoing`). `pending` rows wait for the watermark;
    `late_rows` are those of the last step."""

    job: RowsJob
    held: pa.Table
    pending: pa.Table
    carried: Numbers
    late_rows: pa.Table | None = None
    _batch: Report = field(default_factory=lambda: Report(0, 0, 0, 0, 0, 0, 0))
    _size: int = 0

    def step(self, batches: Iterable[pa.RecordBatch], watermark: int) -> pa.Table:
        """The matches that are known now: all rows at or before the watermark have come."""
        arrived = pa.Table.from_batches(batches, self.job.schema)
        late = self._times(arrived) <= watermark
        self.late_rows = arrived.filter(pa.array(late))
        waiting = pa.concat_tables([self.pending, arrived.filter(pa.array(~late))])
        due = self._times(waiting) <= watermark
        self.pending = waiting.filter(pa.array(~due)).combine_chunks()
        matches = self._recognize(waiting.filter(pa.array(due)), watermark)
        self._batch = Report(
            events=arrived.num_rows,
            late=int(late.sum()),
            shed=0,
            matches=matches.num_rows,
            rows=0,
            size=0,
            replans=0,
        )
        return matches

    def _recognize(self, due: pa.Table, watermark: int) -> pa.Table:
        bound = self.job.bound
        table = pa.concat_tables([self.held, due])
        arrangement = arrange(table, bound.partition, bound.order)
        rows = ArrangedRows(arrangement.apply(table), arrangement.begins)
        # Partitions are numbered as they first appear, so those that were held come first.
        carried = np.zeros((len(rows.begins) - 1, 3), np.int64)
        carried[: len(self.carried)] = self.carried
        matched = search(bound, rows, self.job.jit, ongoing=Ongoing(watermark + 1, carried))
        self._keep(rows, carried)
        return output(bound, rows, matched)

    def _keep(self, rows: ArrangedRows, carried: Numbers) -> None:
        begins, ends = rows.begins[:-1], rows.begins[1:]
        first = np.maximum(begins, carried[:, 0] - rows_before(self.job.bound))
        kept = np.zeros(rows.length + 1, np.int64)
        np.add.at(kept, first, 1)
        np.add.at(kept, ends, -1)
        self.held = rows.table.filter(pa.array(np.cumsum(kept)[:-1] > 0)).combine_chunks()
        carried[:, 0] -= first
        carried[:, 2] += first - begins
        self.carried = carried[first < ends]

    def _times(self, table: pa.Table) -> Numbers:
        if not table.num_rows:
            return np.zeros(0, np.int64)
        return times(table[self.job.time].combine_chunks())

    @property
    def waits(self) -> bool:
        """Whether something may be known when time has passed, also without further rows."""
        expiring = self.job.bound.window is not None and self.held.num_rows > 0
        return self.pending.num_rows > 0 or expiring

    def report(self) -> Report:
        batch = self._batch
        held = self.held.num_rows + self.pending.num_rows
        return Report(batch.events, batch.late, 0, batch.matches, held, self._size, 0)

    def save(self, cells: Cells) -> None:
        notes = {"signature": self.job.signature, "buckets": self.job.buckets}
        carried = pa.table({name: self.carried[:, n] for n, name in enumerate(_CARRIED)})
        parts = (
            json.dumps(notes).encode(),
            arrow_bytes(carried),
            arrow_bytes(self.held),
            arrow_bytes(self.pending),
        )
        data = framed(_LENGTHS.pack(*map(len, parts[:3])) + b"".join(parts))
        self._size = len(data)
        cells.set_header(data)


_CARRIED = ("place", "matches", "dropped")


def open_rows(job: RowsJob, cells: Cells) -> RowBucket:
    """The bucket as it was saved, or a new one."""
    header = cells.header()
    if header is None:
        empty = job.schema.empty_table()
        return RowBucket(job, empty, empty, np.zeros((0, 3), np.int64))
    data = unframed(header, _WHAT)
    lengths = _LENGTHS.unpack_from(data)
    places = np.cumsum([_LENGTHS.size, *lengths]).tolist()
    notes = json.loads(bytes(data[places[0] : places[1]]))
    _require_same(notes, job)
    carried = table_of(data[places[1] : places[2]])
    return RowBucket(
        job,
        table_of(data[places[2] : places[3]]).cast(job.schema),
        table_of(data[places[3] :]).cast(job.schema),
        np.column_stack([carried[name].to_numpy() for name in _CARRIED]),
    )


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
