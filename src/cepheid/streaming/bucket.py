"""One bucket of a stream: the events of some keys, batch after batch.

Rows come in any order. Where a delay is allowed they wait until the watermark passes them, and go
to the engine in order; else those of a batch are put in order and matched at once. What comes too
late for that is counted. After every batch the bucket can be saved, and opened elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.engine.rows.classes import narrowed
from cepheid.engine.rows.clock import times
from cepheid.engine.rows.ties import count_ties
from cepheid.engine.run import Engine
from cepheid.engine.state import EngineState, LoadedRows, as_table, from_table
from cepheid.errors import StateError
from cepheid.plan.nodes import LeafNode
from cepheid.planner.adapt import Adapter
from cepheid.streaming.cells import Cells
from cepheid.streaming.evaluation import Runnable
from cepheid.streaming.log import Log, Segment
from cepheid.streaming.saved import TOKEN, Saved, Version, decode, encode, token_of
from cepheid.streaming.signature import Signature, require_same, require_types

ROWS = 1 << 17
"""Rows that go to the engine at once."""

REMEMBERED = 8
"""Past versions from which a bucket that is still in memory can catch up."""

NEVER = -(1 << 62)


@dataclass(frozen=True)
class Job:
    """What all buckets of a run have in common. `schema` is that of the rows; `left` are the
    classes that still have to be narrowed. `delayed`: rows wait for the watermark. `kept` columns
    are saved even if the engine doesn't hold them: RETURN may read them when a query resumes.
    `idle`: each bucket is one key, which is over when it has had no event for so many ticks;
    `settled`: nothing of it waits for that, so its end brings no matches. `tied_by`: columns in
    which simultaneous events must agree to be counted as ties, if their order matters."""

    prepared: Runnable
    schema: pa.Schema
    signature: Signature
    buckets: int = 1
    left: tuple[tuple[int, LeafNode], ...] = ()
    delayed: bool = False
    jit: bool = True
    kept: tuple[str, ...] = ()
    idle: int | None = None
    settled: bool = False
    tied_by: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Report:
    """What a batch did, and what is held behind it. `shed` events were dropped because of the
    limit. `replans` are those since the stream began, `refused` rules that can't be run; `ties` are
    events whose order matters, and isn't known."""

    events: int
    late: int
    shed: int
    matches: int
    rows: int
    size: int
    replans: int
    refused: int = 0
    ties: int = 0


NOTHING = Report(0, 0, 0, 0, 0, 0, 0)


def open_bucket(job: Job, cells: Cells, warm: Bucket | None = None) -> Bucket:
    """The bucket as it was saved. One that is still in memory is taken if it is this version, and
    catches up if it is an earlier one."""
    header = cells.header()
    if header is None:
        return Bucket(job)
    if warm is not None and warm.token == token_of(header):
        return warm
    saved = decode(header)
    require_same(saved.signature, job.signature)
    if saved.buckets != job.buckets:
        raise StateError(
            f"the checkpoint was written with {saved.buckets} buckets, and now there are "
            f"{job.buckets}: pass buckets={saved.buckets}, or start with a new checkpoint"
        )
    if job.delayed != (saved.released > NEVER):
        before, now = ("no delay", "one") if job.delayed else ("a delay", "none")
        raise StateError(
            f"the checkpoint was written with {before} allowed for events, and now there is {now}: "
            "call withWatermark as before, or start with a new checkpoint"
        )
    if warm is not None and warm.is_before(saved):
        warm.catch_up(saved, cells)
        return warm
    if saved.statistics is not None:
        job = replace(job, prepared=job.prepared.replanned(saved.statistics))
    bucket = Bucket(job)
    bucket.load(saved, cells)
    return bucket


def end_quietly(job: Job, cells: Cells, watermark: int) -> bool:
    """Whether the key is over and has been forgotten. Where its end brings no matches this takes no
    engine, which is most of what a key costs that comes once."""
    header = cells.header() if job.settled and job.idle is not None else None
    if header is None:
        return False
    saved = decode(header)
    last = saved.engine.numbering.last
    if last is None or saved.pending:
        return False
    assert job.idle is not None
    if int(times(last.column(job.prepared.schema.time))[0]) + job.idle > watermark:
        return False
    _remove(cells, saved.rows)
    return True


def _remove(cells: Cells, segments: Iterable[Segment]) -> None:
    for segment in segments:
        cells.remove_segment(segment.number)
    cells.remove_header()


class Bucket:
    """The state of a bucket in memory. `token` names the version that it is, if it is one."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.token: bytes | None = None
        self._journal: list[LoadedRows] = []
        self._engine = job.prepared.engine(job.schema, job.jit, self._journal)
        self._time = job.prepared.schema.time
        self._history: tuple[Version, ...] = ()
        self._epoch = 0
        self._kept = frozenset(job.kept)
        self._rows = Log()
        self._waiting = Log(next_number=1)
        self._pending = job.schema.empty_table()
        self._fresh = job.schema.empty_table()  # of the pending rows, those of this batch
        self._released = self._reached = NEVER
        self._replans = 0  # by engines before this one
        self._header = 0  # bytes
        self._events = 0
        self.late_rows = job.schema.empty_table()
        """Those of this batch, with all columns that they came with."""
        self._matches = 0
        self._ties = 0
        self._shed = 0  # by this engine, before this batch
        self.over = False
        """Whether nothing of the key is left that an event to come might need."""

    # ── a batch ──

    def step(self, batches: Iterable[pa.RecordBatch], watermark: int) -> Iterator[pa.RecordBatch]:
        """The matches that are known with these rows, and with the time that has passed: all rows
        at or before the watermark have come. Only then can the bucket be saved."""
        yield from self.match(self.arrive(batches, watermark), watermark)

    def arrive(self, batches: Iterable[pa.RecordBatch], watermark: int) -> pa.Table:
        """Those rows that can be matched now, in order: of these, and of the ones that waited."""
        self.token = None
        rows = self._arrived(batches, watermark)
        if self.job.delayed:
            rows = self._due(rows, watermark)
        return self.job.prepared.in_order(rows)

    def match(self, rows: pa.Table, watermark: int) -> Iterator[pa.RecordBatch]:
        """The matches that are known with these rows, and with the time that has passed."""
        self.token = None
        self._matches = 0
        self._shed = self._engine.counts.shed
        if self.job.tied_by is not None:
            self._ties, _ = count_ties(rows, self._time, self.job.tied_by)
        for matches in self._matched(rows, watermark):
            self._matches += matches.num_rows
            yield matches

    def _arrived(self, batches: Iterable[pa.RecordBatch], watermark: int) -> pa.Table:
        """The rows that are not too late, with the columns that are matched and kept."""
        schema = self.job.schema
        given = [narrowed(batch, self.job.left) for batch in batches]
        table = pa.Table.from_batches(given) if given else schema.empty_table()
        self._events = table.num_rows
        self.late_rows = table.slice(0, 0)
        if not table.num_rows:
            return schema.empty_table()
        at = self._times(table)
        late = at <= watermark
        if not self.job.delayed:
            late |= (at < self._reached) | self._before_tie(table, at)
        rows = table.select(schema.names).cast(schema)
        if not late.any():
            return rows
        self.late_rows = table.filter(pa.array(late))
        return rows.filter(pa.array(~late))

    def _before_tie(self, table: pa.Table, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows are of the time of the last one, and belong before it."""
        tie, last = self.job.prepared.schema.tie, self._engine.last
        if tie is None or last is None or not last.column(tie)[0].is_valid:
            return np.zeros(table.num_rows, np.bool_)
        earlier = pc.fill_null(pc.less(table[tie], last.column(tie)[0]), True)
        own: NDArray[np.bool_] = earlier.combine_chunks().to_numpy(zero_copy_only=False)
        same: NDArray[np.bool_] = at == times(last.column(self._time))[0]
        return own & same

    def _due(self, rows: pa.Table, watermark: int) -> pa.Table:
        """Of these and of the rows that wait, those that the watermark has passed."""
        everything = pa.concat_tables([self._pending, rows])
        due = self._times(everything) <= watermark
        self._fresh = rows.filter(pa.array(~due[self._pending.num_rows :]))
        self._pending = everything.filter(pa.array(~due)).combine_chunks()
        self._released = max(self._released, watermark)
        return everything.filter(pa.array(due))

    def _matched(self, rows: pa.Table, watermark: int) -> Iterator[pa.RecordBatch]:
        for number, (begin, end) in enumerate(pairwise([0, *self._pauses(rows), rows.num_rows])):
            if number:
                yield from self._end_key()
            for first in range(begin, end, ROWS):
                part = rows.slice(first, min(ROWS, end - first))
                for batch in part.combine_chunks().to_batches():
                    yield from self._engine.push(batch)
        if rows.num_rows:
            self._reached = max(self._reached, int(self._times(rows.slice(rows.num_rows - 1))[0]))
        if watermark >= self._reached:
            self._reached = watermark + 1
            yield from self._engine.advance(watermark)
        ends = self._ends
        self.over = ends is not None and ends <= watermark and not self._pending.num_rows
        if self.over:
            yield from self._finished()

    # ── keys that are over ──

    @property
    def _ends(self) -> int | None:
        """When the key is over, unless another event comes before."""
        last = self._engine.last
        if self.job.idle is None or last is None:
            return None
        return int(times(last.column(self._time))[0]) + self.job.idle

    @property
    def expires(self) -> int | None:
        """When to look whether the key is over. A little later than it may be, so that not every
        event of a key is followed by a look of its own."""
        ends, grain = self._ends, max(1, (self.job.idle or 0) // 8)
        return None if ends is None else -(-ends // grain) * grain

    def _pauses(self, rows: pa.Table) -> list[int]:
        """Before which rows the key was over: wherever the stream is cut into batches, what lies
        further apart never meets."""
        ends = self._ends
        if self.job.idle is None or not rows.num_rows:
            return []
        at = self._times(rows)
        anew = np.append([ends is not None and at[0] >= ends], np.diff(at) >= self.job.idle)
        return [int(n) for n in np.flatnonzero(anew)]

    def _end_key(self) -> Iterator[pa.RecordBatch]:
        """What waits is decided as at the end of the data, and all events are forgotten."""
        yield from self._finished()
        before = self._engine
        self._replans, self._shed = self._total_replans, self._shed - before.counts.shed
        self._journal.clear()
        anew = self.job.prepared.engine(self.job.schema, self.job.jit, self._journal)
        assert isinstance(before, Engine) and isinstance(anew, Engine)
        anew.store.base = before.store.base + before.store.n
        self._engine = anew
        self._epoch += 1  # no bucket in memory that has come less far can catch up

    def _finished(self) -> Iterator[pa.RecordBatch]:
        assert isinstance(self._engine, Engine)  # merged rules hold many keys, of which none ends
        yield from self._engine.finish()

    def _times(self, table: pa.Table) -> NDArray[np.int64]:
        return (
            times(table[self._time].combine_chunks()) if table.num_rows else np.zeros(0, np.int64)
        )

    @property
    def waits(self) -> bool:
        """Whether something may be known when time has passed, also without further rows."""
        return self._pending.num_rows > 0 or self._engine.waits

    @property
    def end(self) -> int:
        """The number of the next row that is held."""
        return self._engine.store.base + self._engine.store.n

    def report(self) -> Report:
        held = self._engine.store.n + self._pending.num_rows
        return Report(
            self._events,
            self.late_rows.num_rows,
            self._engine.counts.shed - self._shed,
            self._matches,
            rows=0 if self.over else held,
            size=0 if self.over else self._rows.size + self._waiting.size + self._header,
            replans=self._total_replans,
            ties=self._ties,
        )

    @property
    def _total_replans(self) -> int:
        advisor = self._engine.advisor
        own = () if advisor is None else advisor.replans
        return self._replans + sum(replan.installed for replan in own)

    # ── saving ──

    def save(self, cells: Cells) -> None:
        """Write what has changed."""
        engine = self._engine
        store = engine.store
        end = store.base + store.n
        tables = [as_table(loaded, self._columns) for loaded in self._journal]
        self._journal.clear()
        self._rows.drop(cells, store.base - 1)
        if tables:
            new = pa.concat_tables(tables)
            new = new.slice(max(0, new.num_rows - store.n))
            if new.num_rows:
                self._rows.append(cells, new, end - new.num_rows, end - 1, store.base)
        self._compact(cells)
        if self._fresh.num_rows:
            last = int(self._times(self._fresh).max())
            self._waiting.append(cells, self._fresh.combine_chunks(), 0, last, 0)
            self._fresh = self._fresh.slice(0, 0)
        self._waiting.drop(cells, self._released)
        token = os.urandom(TOKEN)
        state = engine.save()
        version = Version(token.hex(), state.end, self._epoch)
        self._history = (*self._history, version)[-REMEMBERED:]
        header = encode(self._saved(state), token)
        cells.set_header(header)
        self._header = len(header)
        self.token = token

    @property
    def _columns(self) -> tuple[str, ...]:
        """What is saved of a row."""
        return tuple(sorted(self._kept.union(self._engine.store.names)))

    def _saved(self, state: EngineState) -> Saved:
        advisor = self._engine.advisor
        statistics = None
        if isinstance(advisor, Adapter) and self._total_replans:
            statistics = advisor.planned.statistics.to_json()
        return Saved(
            signature=self.job.signature,
            columns=self._columns,
            buckets=self.job.buckets,
            history=self._history,
            rows=tuple(self._rows.segments),
            pending=tuple(self._waiting.segments),
            numbers=(self._rows.next_number, self._waiting.next_number),
            released=self._released,
            reached=self._reached,
            engine=state,
            statistics=statistics,
            replans=self._total_replans,
        )

    def _compact(self, cells: Cells) -> None:
        """Where the engine knows which rows may still matter, only those are kept: they are
        written anew, since they get new numbers."""
        kept = self._engine.spare()
        if kept is None:
            return
        store = self._engine.store
        tables = list(self._rows.read(cells, store.base))
        names = tables[-1].column_names  # a query that goes on may read fewer than before
        rows = pa.concat_tables([t.select(names) for t in tables]).take(pa.array(kept))
        self._engine.compact(kept)
        self._epoch += 1
        self._rows.drop(cells, store.base + store.n)
        if rows.num_rows:
            self._rows.append(cells, rows, store.base, store.base + store.n - 1, store.base)

    def remove(self, cells: Cells) -> None:
        """Forget all that has been written."""
        _remove(cells, (*self._rows.segments, *self._waiting.segments))

    # ── opening ──

    def load(self, saved: Saved, cells: Cells) -> None:
        """Go on, with nothing in memory."""
        missing = set(self._engine.store.names) - set(saved.columns)
        if missing:
            raise StateError(
                f"the query now reads `{min(missing)}`, which the events in the checkpoint don't "
                "have; read only the columns that were read before, or start with a new "
                "checkpoint"
            )
        self._take(saved, cells, saved.engine.base)

    def is_before(self, saved: Saved) -> bool:
        """Whether this is a version that the saved one came from, and all since is still there."""
        if self.token is None:
            return False
        token = self.token.hex()
        own = next((version for version in saved.history if version.token == token), None)
        newest = saved.history[-1]
        return own is not None and own.epoch == newest.epoch and own.end >= saved.engine.base

    def catch_up(self, saved: Saved, cells: Cells) -> None:
        """Go on from an earlier version, with what has come since."""
        store = self._engine.store
        self.token = None
        self._take(saved, cells, store.base + store.n)

    def _take(self, saved: Saved, cells: Cells, begin: int) -> None:
        self._kept = self._kept.intersection(saved.columns)
        self._rows = Log(saved.rows, saved.numbers[0])
        self._waiting = Log(saved.pending, saved.numbers[1])
        classes = self._engine.classes
        schema = self.job.schema
        rows, waiting = [*self._rows.read(cells, begin)], [*self._waiting.read(cells)]
        for table in (*rows, *waiting):
            require_types(table.schema, schema)
        for held in saved.engine.choice.held if saved.engine.choice is not None else ():
            require_types(held.batch.schema, self._engine.schema)
        self._engine.resume(saved.engine, [from_table(table, classes) for table in rows])
        pending = pa.concat_tables([schema.empty_table(), *(_aligned(t, schema) for t in waiting)])
        self._pending = pending.filter(pa.array(self._times(pending) > saved.released))
        self._history, self._epoch = saved.history, saved.history[-1].epoch
        self._released, self._reached = saved.released, saved.reached
        self._replans += saved.replans - self._total_replans


def _aligned(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows that waited, with the columns of today: RETURN may read fewer than before. A column that
    an earlier version of Cepheid didn't save is one that nothing reads yet."""
    have = set(table.column_names)
    columns = [table[f.name] if f.name in have else _unknown(table, f) for f in schema]
    return pa.table(columns, schema=schema)


def _unknown(table: pa.Table, field: pa.Field) -> pa.Array:
    return pa.nulls(table.num_rows, field.type)
