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

from cepheid.algebra.types import STREAM_COLUMN
from cepheid.engine.counts import Counts
from cepheid.engine.end_of_data import end
from cepheid.engine.merged.engine import MergedEngine
from cepheid.engine.operators.base import FOREVER
from cepheid.engine.rows.classes import narrowed
from cepheid.engine.rows.clock import times
from cepheid.engine.rows.ties import count_ties
from cepheid.engine.run import Engine
from cepheid.engine.state import EngineState, LoadedRows, as_table, from_table, joined
from cepheid.errors import StateError
from cepheid.plan.nodes import LeafNode
from cepheid.planner.adapt import Adapter
from cepheid.streaming.cells import Cells
from cepheid.streaming.evaluation import Runnable
from cepheid.streaming.log import Log, Segment
from cepheid.streaming.report import Report
from cepheid.streaming.saved import TOKEN, Saved, Version, decode, encode, token_of
from cepheid.streaming.signature import Signature, require_same, require_types

ROWS = 1 << 17
"""How many rows go to the engine at once."""

REMEMBERED = 8
"""How many past versions are recorded, from which a bucket in memory can catch up."""

NEVER = -(1 << 62)


@dataclass(frozen=True)
class Job:
    """What all buckets of a run have in common. `schema` is that of the rows; `left` are the
    classes that still have to be narrowed. `delayed`: rows wait for the watermark. `kept` columns
    are saved even if the engine doesn't hold them: RETURN may read them when a query resumes.
    `idle`: each bucket is one key, which is over when it has had no event for so many ticks;
    `settled`: nothing of it waits for that, so its end brings no matches. `tied_by`: columns in
    which simultaneous events must agree to be counted as ties, if their order matters. Some rows
    may be `results` of other queries, by the names of their streams; they come when the watermark
    has passed their ends by up to `lag`, so all rows wait for that.
    `accepted` rows come from another bucket, which has left out those that are late."""

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
    results: tuple[str, ...] = ()
    lag: int = 0
    accepted: bool = False

    def new_bucket(self) -> Bucket:
        return Bucket(self)


def open_bucket(job: Job, cells: Cells, warm: Bucket | None = None) -> Bucket:
    """Open the saved bucket. A copy in memory is used if it is this version, and catches up if it
    is an earlier one."""
    header = cells.header()
    if header is None:
        return job.new_bucket()
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
    bucket = job.new_bucket()
    bucket.load(saved, cells)
    return bucket


def end_quietly(job: Job, cells: Cells, watermark: int) -> bool:
    """Whether the key has ended and its state is dropped. If its end brings no matches, this needs
    no engine, which is most of the cost of a key that occurs once."""
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
    """The state of a bucket in memory. `token` names the saved version that it equals, if any."""

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
        """The late rows of this batch, with all their columns."""
        self._matches = 0
        self._ties = 0
        self._shed = 0  # by this engine, before this batch
        self.over = False
        """Whether no future event can need anything that the key has left."""

    # ── a batch ──

    def step(self, batches: Iterable[pa.RecordBatch], watermark: int) -> Iterator[pa.RecordBatch]:
        """Yield the matches that are decided by these rows and by the watermark: all rows at or
        before it have come. The bucket can be saved only after that."""
        yield from self.match(self.arrive(batches, watermark), watermark)

    def arrive(self, batches: Iterable[pa.RecordBatch], watermark: int) -> pa.Table:
        """The rows that can be matched now, in order: new ones, and ones that waited."""
        self.token = None
        rows = self._arrived(batches, watermark)
        if self.job.delayed:
            rows = self._due(rows, watermark - self.job.lag)
        return self.job.prepared.in_order(rows)

    def match(self, rows: pa.Table, watermark: int) -> Iterator[pa.RecordBatch]:
        """Yield the matches that are decided by these rows and by the watermark."""
        self.token = None
        watermark -= self.job.lag
        self._matches = 0
        self._shed = self._engine.counts.shed
        if self.job.tied_by is not None:
            self._ties, _ = count_ties(rows, self._time, self.job.tied_by)
        for matches in self._matched(rows, watermark):
            self._matches += matches.num_rows
            yield matches

    def _arrived(self, batches: Iterable[pa.RecordBatch], watermark: int) -> pa.Table:
        """The rows that aren't late, with the columns that are matched and kept."""
        schema = self.job.schema
        given = [narrowed(batch, self.job.left) for batch in batches]
        table = pa.Table.from_batches(given) if given else schema.empty_table()
        self._events = table.num_rows
        self.late_rows = table.slice(0, 0)
        if not table.num_rows:
            return schema.empty_table()
        if self.job.accepted:
            return table
        at = self._times(table)
        late = at <= watermark
        if self.job.results:
            known = pc.is_in(table[STREAM_COLUMN], pa.array(self.job.results))
            late &= ~known.combine_chunks().to_numpy(zero_copy_only=False)
        if not self.job.delayed:
            late |= (at < self._reached) | self._before_tie(table, at)
        rows = table.select(schema.names).cast(schema)
        if not late.any():
            return rows
        self.late_rows = table.filter(pa.array(late))
        return rows.filter(pa.array(~late))

    def _before_tie(self, table: pa.Table, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows have the time of the last matched row, and belong before it."""
        tie, last = self.job.prepared.schema.tie, self._engine.last
        if tie is None or last is None or not last.column(tie)[0].is_valid:
            return np.zeros(table.num_rows, np.bool_)
        earlier = pc.fill_null(pc.less(table[tie], last.column(tie)[0]), True)
        before: NDArray[np.bool_] = earlier.combine_chunks().to_numpy(zero_copy_only=False)
        same: NDArray[np.bool_] = at == times(last.column(self._time))[0]
        return before & same

    def _due(self, rows: pa.Table, watermark: int) -> pa.Table:
        """The rows, of these and the waiting ones, that the watermark has passed."""
        everything = pa.concat_tables([self._pending, rows])
        due = self._times(everything) <= watermark
        self._fresh = rows.filter(pa.array(~due[self._pending.num_rows :]))
        self._pending = everything.filter(pa.array(~due)).combine_chunks()
        self._released = max(self._released, watermark)
        return everything.filter(pa.array(due))

    def _matched(self, rows: pa.Table, watermark: int) -> Iterator[pa.RecordBatch]:
        for number, (begin, stop) in enumerate(pairwise([0, *self._pauses(rows), rows.num_rows])):
            if number:
                yield from self._end_key()
            for first in range(begin, stop, ROWS):
                part = rows.slice(first, min(ROWS, stop - first))
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
        """The time at which the key ends, unless another event comes before."""
        if self.job.idle is None:
            return None
        last = self._engine.last
        if last is None:
            return None
        return int(times(last.column(self._time))[0]) + self.job.idle

    @property
    def expires(self) -> int | None:
        """When to check whether the key has ended: a little later than it can, so that not every
        event of a key causes a check."""
        ends, grain = self._ends, max(1, (self.job.idle or 0) // 8)
        return None if ends is None else -(-ends // grain) * grain

    def _pauses(self, rows: pa.Table) -> list[int]:
        """The rows before which the key had ended: events further apart than that never meet,
        however the stream is cut into batches."""
        ends = self._ends
        if self.job.idle is None or not rows.num_rows:
            return []
        at = self._times(rows)
        anew = np.append([ends is not None and at[0] >= ends], np.diff(at) >= self.job.idle)
        return [int(n) for n in np.flatnonzero(anew)]

    def _end_key(self) -> Iterator[pa.RecordBatch]:
        """Decide what waits, as at the end of the data, and drop all events."""
        yield from self._finished()
        before = self._engine
        self._replans, self._shed = self._total_replans, self._shed - before.counts.shed
        self._journal.clear()
        anew = self.job.prepared.engine(self.job.schema, self.job.jit, self._journal)
        assert isinstance(before, Engine) and isinstance(anew, Engine)
        anew.store.base = before.store.base + before.store.n
        self._engine = anew
        self._epoch += 1  # no bucket in memory that has come less far can catch up

    def finish(self, until: int | None) -> Iterator[pa.RecordBatch]:
        """The last matches, at the end of the data (see `cepheid.engine.end_of_data`)."""
        if isinstance(self._engine, Engine):  # merged rules wait for nothing
            yield from end(self._engine, until)

    def _finished(self) -> Iterator[pa.RecordBatch]:
        assert isinstance(self._engine, Engine)  # merged rules hold many keys, of which none ends
        yield from self._engine.finish()

    def _times(self, table: pa.Table) -> NDArray[np.int64]:
        return (
            times(table[self._time].combine_chunks()) if table.num_rows else np.zeros(0, np.int64)
        )

    @property
    def waits(self) -> bool:
        """Whether passing time alone can decide a match, without further rows."""
        return self._pending.num_rows > 0 or self._engine.waits

    @property
    def due(self) -> int:
        """The time from which on something may come out that no event ends."""
        return FOREVER

    @property
    def counts(self) -> Counts:
        """What the engine has seen and made."""
        return self._engine.counts

    def total(self, figure: str) -> int:
        """A figure of the engine, or of the report."""
        if figure in ("shed", "undecided"):
            return int(getattr(self._engine.counts, figure))
        return int(getattr(self.report(), figure))

    @property
    def partial_matches(self) -> int | None:
        """The most that one operator has held at once; of merged rules, those that are held now.
        None where none are made."""
        match self._engine:
            case Engine() as engine:
                return max((node.peak for node in engine.profile().nodes.values()), default=0)
            case MergedEngine() as merged:
                return merged.instances
            case _:
                return None

    @property
    def match_schema(self) -> pa.Schema:
        """The columns of matches."""
        return self._engine.schema

    @property
    def end_row(self) -> int:
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
        replans = () if advisor is None else advisor.replans
        return self._replans + sum(replan.installed for replan in replans)

    # ── saving ──

    @property
    def noted(self) -> int:
        """How many batches of rows have come that aren't written yet."""
        return len(self._journal)

    def write_rows(self, cells: Cells) -> None:
        """Write the rows that have come, and drop those that are past."""
        store = self._engine.store
        end = store.base + store.n
        new = self._noted_rows()
        self._rows.drop(cells, store.base - 1)
        if new is not None:
            new = new.slice(max(0, new.num_rows - store.n))
            if new.num_rows:
                self._rows.append(cells, new, end - new.num_rows, end - 1, store.base)
        self._compact(cells)

    def _noted_rows(self) -> pa.Table | None:
        if not self._journal:
            return None
        names = self._columns
        table = as_table(joined(self._journal, names), names)
        self._journal.clear()
        return table

    def save(self, cells: Cells) -> None:
        """Write what has changed."""
        self.write_rows(cells)
        if self._fresh.num_rows:
            last = int(self._times(self._fresh).max())
            self._waiting.append(cells, self._fresh.combine_chunks(), 0, last, 0)
            self._fresh = self._fresh.slice(0, 0)
        self._waiting.drop(cells, self._released)
        token = os.urandom(TOKEN)
        state = self._engine.save()
        version = Version(token.hex(), state.end, self._epoch)
        self._history = (*self._history, version)[-REMEMBERED:]
        header = encode(self._saved(state), token)
        cells.set_header(header)
        self._header = len(header)
        self.token = token

    @property
    def _columns(self) -> tuple[str, ...]:
        """The columns saved of a row."""
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
        """Keep only the rows that may still matter, if the engine knows them; they are rewritten,
        since they get new numbers."""
        kept = self._engine.spare()
        if kept is None:
            return
        store = self._engine.store
        tables = list(self._rows.read(cells, store.base))
        names = tables[-1].column_names  # a resumed query may read fewer than before
        rows = pa.concat_tables([t.select(names) for t in tables]).take(pa.array(kept))
        self._engine.compact(kept)
        self._epoch += 1
        self._rows.drop(cells, store.base + store.n)
        if rows.num_rows:
            self._rows.append(cells, rows, store.base, store.base + store.n - 1, store.base)

    def remove(self, cells: Cells) -> None:
        """Delete all that was saved."""
        _remove(cells, (*self._rows.segments, *self._waiting.segments))

    # ── opening ──

    def load(self, saved: Saved, cells: Cells) -> None:
        """Resume with nothing in memory."""
        missing = set(self._engine.store.names) - set(saved.columns)
        if missing:
            raise StateError(
                f"the query now reads `{min(missing)}`, which the events in the checkpoint don't "
                "have; read only the columns that were read before, or start with a new "
                "checkpoint"
            )
        self._take(saved, cells, saved.engine.base)

    def is_before(self, saved: Saved) -> bool:
        """Whether the saved version descends from this one, and all rows since are still saved."""
        if self.token is None:
            return False
        token = self.token.hex()
        ancestor = next((version for version in saved.history if version.token == token), None)
        newest = saved.history[-1]
        return (
            ancestor is not None
            and ancestor.epoch == newest.epoch
            and ancestor.end >= saved.engine.base
        )

    def catch_up(self, saved: Saved, cells: Cells) -> None:
        """Catch up from an earlier version with the rows saved since."""
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
    """The waiting rows, with the current columns: RETURN may read fewer than before. A column that
    an earlier version of Cepheid didn't save is one that nothing reads yet."""
    have = set(table.column_names)
    columns = [table[f.name] if f.name in have else _unknown(table, f) for f in schema]
    return pa.table(columns, schema=schema)


def _unknown(table: pa.Table, field: pa.Field) -> pa.Array:
    return pa.nulls(table.num_rows, field.type)
