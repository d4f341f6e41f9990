"""Many keys whose events are counted (`WITHIN n EVENTS`), in one bucket.

An engine gets such events key by key, so it can't return to a key after it has seen others. Held
here are the rows, with each row's number in its key. When new rows come, those keys that may have a
match are matched again from their held rows on; and a match is new if its last event is. So only
new events are given to the last class, which costs no more than to continue.

A key is over when it has had no event for the idle time. Whatever comes then is numbered so far
behind that no window reaches back. So dropping its rows changes nothing, whenever that happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.types import Schema
from cepheid.engine.arrays.columns import decoded
from cepheid.engine.arrays.vector import seen
from cepheid.engine.counts import Counts
from cepheid.engine.limits import Floors
from cepheid.engine.match_schema import output_schema
from cepheid.engine.operators.base import Horizon
from cepheid.engine.rows.classes import CLASS_COLUMN, MOST_CLASSES, classify
from cepheid.engine.rows.clock import CLOCK_COLUMN, Numbering, Ticks, times
from cepheid.engine.rows.order import in_order, key_by_key, sorted_by
from cepheid.engine.run import Advisor, Engine
from cepheid.engine.state import EngineState, LoadedRows
from cepheid.plan.nodes import LeafNode, Node, Plan, Run, walk
from cepheid.plan.reads import final_leaves, leaves, uniform_key
from cepheid.planner import Prepared

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

NEVER = -(1 << 62)


def keys_share(prepared: Prepared) -> bool:
    """Whether keys whose events are counted can share a bucket: a match is known with its last
    event, and which class that is of is known, too."""
    plan = prepared.plan
    if not key_by_key(plan) or not prepared.settled or plan.limit is not None:
        return False
    if plan.schema.start is not None or len(leaves(plan)) > MOST_CLASSES:
        return False
    ends = [final_leaves(root) for root in plan.alternatives]
    last = frozenset().union(*ends)
    others = {
        leaf
        for root, end in zip(plan.alternatives, ends, strict=True)
        for leaf in _inner(root, end)
    }
    return all(len(end) == 1 for end in ends) and not last & others


def _inner(root: Node, last: frozenset[LeafNode]) -> Iterator[LeafNode]:
    """The classes of events that end no match. A run's last event is of the class of all others."""
    for node in walk(root):
        if isinstance(node, LeafNode) and node not in last:
            yield node
        elif isinstance(node, Run):
            yield node.element


@dataclass(frozen=True)
class CountedKeys:
    """A plan that is ready to run in buckets of many keys. `idle`: after so many ticks without an
    event a key is over."""

    plan: Plan
    idle: int | None = None

    @property
    def schema(self) -> Schema:
        return self.plan.schema

    def engine(self, schema: pa.Schema, jit: bool, journal: list[LoadedRows]) -> HeldKeys:
        return HeldKeys(self, schema, jit, journal)

    def in_order(self, table: pa.Table) -> pa.Table:
        return in_order(self.plan, table)

    def replanned(self, statistics: str) -> CountedKeys:
        return self


class HeldKeys:
    """The events of many keys that may still be in a match. To a bucket it is an engine."""

    def __init__(
        self, job: CountedKeys, schema: pa.Schema, jit: bool, journal: list[LoadedRows]
    ) -> None:
        plan = job.plan
        assert plan.window is not None
        self.counts = Counts()
        self.schema = output_schema(plan, schema)
        self._plan, self._idle, self._window = plan, job.idle, plan.window.size
        self._input, self._jit, self._journal = schema, jit, journal
        self._key = uniform_key(plan)
        self._leaves = leaves(plan)
        last = frozenset().union(*map(final_leaves, plan.alternatives))
        self._last_bits = sum(1 << n for n, leaf in enumerate(self._leaves) if leaf in last)
        stored = Engine(plan, schema, jit=jit, journal=[]).store.names
        self._names = tuple(sorted({*stored, *self._key, *plan.schema.order}))
        self.base = 0
        self._rows = _no_rows(schema, self._names)
        self._codes: Ints | None = None  # a number for each key of the held rows
        self._now = NEVER  # the latest time, of events or by the watermark
        self.reached = NEVER
        """No event before this comes any more that isn't late."""
        self.last: pa.RecordBatch | None = None
        """Time and tie-break of the last row of all keys."""

    # ── what a bucket calls ──

    @property
    def advisor(self) -> Advisor | None:
        return None  # most of what the last class gets is left out, so rates can't be observed

    @property
    def store(self) -> HeldKeys:
        return self

    @property
    def n(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    @property
    def classes(self) -> int:
        return len(self._leaves)

    @property
    def waits(self) -> bool:
        """Time ends keys, also without events."""
        return self._idle is not None and self.n > 0

    @property
    def settled(self) -> int:
        """Every match that ends before this has been let out: it is known with its last event."""
        return self.reached

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from ()

    # ── a batch ──

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Match the next events: key by key, and in each key not earlier than those before."""
        self.counts.events += batch.num_rows
        batch = self._with_keys(batch)
        if not batch.num_rows:
            return
        self._note_last(batch)
        rows = self._rows.plus([self._new(batch)])
        codes = _codes(rows.batch, self._plan)
        fresh = np.arange(len(rows)) >= self.n
        turn = np.argsort(codes, kind="stable")  # key by key, and in each key as they came
        turn = turn[np.isin(codes[turn], codes[fresh])]
        rows.clock[turn] = self._numbers(rows.take(turn), codes[turn], fresh[turn])
        yield from self._matches(rows.take(turn), codes[turn], fresh[turn])
        self._hold(rows, codes, batch)

    def _with_keys(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for name in self._key:
            if batch.column(name).null_count:
                batch = batch.filter(pc.is_valid(batch.column(name)))
        return batch

    def _note_last(self, batch: pa.RecordBatch) -> None:
        """Which row is the last of all, in the order of time and tie-break."""
        schema = self._plan.schema
        rows = batch.select(list(schema.order))
        if self.last is not None:
            rows = pa.concat_batches([self.last.select(rows.schema.names), rows])
        at = times(rows.column(schema.time))
        self._now = max(self._now, int(at.max()))
        self.reached = max(self.reached, self._now)
        latest = pa.Table.from_batches([rows.filter(pa.array(at == at.max()))])
        latest = sorted_by(latest, schema.order).slice(latest.num_rows - 1)
        (self.last,) = latest.combine_chunks().to_batches()

    def _new(self, batch: pa.RecordBatch) -> _Rows:
        """Rows that have come, with their classes. Their numbers aren't known yet."""
        plan = self._plan
        classified = classify(batch, self._leaves, plan.variables, plan.schema.type, plan.key)
        bits = np.zeros(batch.num_rows, np.int64)
        bits[classified.rows] = _bits(classified.masks)
        at = times(batch.column(plan.schema.time))
        return _Rows(_plain(batch, self._names), at, np.zeros(len(at), np.int64), bits)

    def _numbers(self, rows: _Rows, codes: Ints, fresh: Mask) -> Ints:
        """The clock of each row: its number in its key. Behind a pause it is out of reach."""
        begins = np.append(True, codes[1:] != codes[:-1])
        steps = np.diff(rows.clock, prepend=0)
        steps[fresh] = 1
        if self._idle is not None:
            paused = fresh & (np.diff(rows.time, prepend=rows.time[0]) >= self._idle)
            steps[paused] += 3 * self._window  # as far as between keys (see `clock`)
        steps[begins] = 0
        moved = np.cumsum(steps)
        first = np.flatnonzero(begins)
        origin = np.where(fresh[first], 0, rows.clock[first])
        return np.asarray(moved + (origin - moved[first])[np.cumsum(begins) - 1])

    def _matches(self, rows: _Rows, codes: Ints, fresh: Mask) -> Iterator[pa.RecordBatch]:
        """Of the rows of keys that have new ones: the matches that end with a new one."""
        ending = fresh & (rows.bits & self._last_bits != 0)
        bits = np.where(fresh, rows.bits, rows.bits & ~self._last_bits)
        needed = np.flatnonzero(np.isin(codes, codes[ending]) & (bits != 0))
        if not len(needed):
            return
        batch = rows.batch.take(pa.array(needed))
        batch = batch.append_column(CLASS_COLUMN, pa.array(bits[needed]))
        batch = batch.append_column(CLOCK_COLUMN, pa.array(rows.clock[needed]))
        engine = Engine(self._plan, self._input, jit=self._jit, journal=[])
        for matches in engine.push(batch):
            self.counts.matches += matches.num_rows
            yield matches

    def _hold(self, rows: _Rows, codes: Ints, batch: pa.RecordBatch) -> None:
        """Of the new rows, those of a class, and the last one of each key, where it continues."""
        old = self.n
        keep = (rows.bits != 0) | _is_last(codes)
        keep[:old] = True
        kept = np.flatnonzero(keep)
        new = kept[old:]
        self._rows, self._codes = rows.take(kept), codes[kept]
        time, clock = rows.time[new], rows.clock[new]
        place = np.zeros(len(new), np.int64)
        ticks = Ticks(time, place, clock, time, place, clock, int(clock[-1]))
        masks = [(rows.bits[new] >> n) & 1 != 0 for n in range(self.classes)]
        self._journal.append(LoadedRows(batch.take(pa.array(new - old)), ticks, masks))

    def advance(self, time: int) -> Iterator[pa.RecordBatch]:
        """Time passes, with or without events. Nothing waits for that."""
        self._now = max(self._now, time)
        self.reached = max(self.reached, time + 1)
        yield from ()

    # ── what is held ──

    def spare(self) -> Ints | None:
        """Places of the rows that may still matter, once the others are the most."""
        rows, n = self._rows, self.n
        if not n:
            return None
        if self._codes is None:
            self._codes = _codes(rows.batch, self._plan)
        last = _last_places(self._codes)
        needed = (rows.bits != 0) & (rows.clock > rows.clock[last] - self._window)
        needed |= last == np.arange(n)
        if self._idle is not None:
            needed &= rows.time[last] + self._idle > self._now
        return None if 2 * int(np.count_nonzero(needed)) > n else np.flatnonzero(needed)

    def compact(self, kept: Ints) -> None:
        """Drop all rows but these, which get the last of the numbers."""
        self.base += self.n - len(kept)
        self._rows = self._rows.take(kept)
        self._codes = None if self._codes is None else self._codes[kept]

    def save(self) -> EngineState:
        last = self.last
        return EngineState(
            base=self.base,
            end=self.base + self.n,
            started=True,
            frontier=0,
            horizon=Horizon(0, 0),
            eat=0,
            numbering=Numbering(last, self._now, None, position=0, ordinal=-1, clock=-1, offset=0),
            choice=None,
            strings={},
            floor=None,
            floors=Floors(np.zeros((0, len(self._key)), np.int64), np.zeros(0, np.int64)),
        )

    def resume(self, state: EngineState, loaded: Iterable[LoadedRows]) -> None:
        """Resume where another stopped: with its rows, or those that this one hasn't seen."""
        if not self.n:
            self.base = state.base
        parts = [
            _Rows(
                _plain(rows.batch, self._names),
                rows.ticks.time,
                rows.ticks.clock,
                _bits(rows.masks),
            )
            for rows in loaded
        ]
        self._rows, self._codes = self._rows.plus(parts), None
        self._now, self.last = state.numbering.reached, state.numbering.last
        self.reached = self._now


@dataclass(frozen=True)
class _Rows:
    """Rows in the order in which they came: what is read of them, their times, their numbers in
    their keys, and a bit for each class that takes them."""

    batch: pa.RecordBatch
    time: Ints
    clock: Ints
    bits: Ints

    def __len__(self) -> int:
        return len(self.time)

    def take(self, rows: Ints) -> _Rows:
        batch = self.batch.take(pa.array(rows))
        return _Rows(batch, self.time[rows], self.clock[rows], self.bits[rows])

    def plus(self, others: list[_Rows]) -> _Rows:
        parts = [self, *others]
        return _Rows(
            pa.concat_batches([part.batch for part in parts]),
            np.concatenate([part.time for part in parts]),
            np.concatenate([part.clock for part in parts]),
            np.concatenate([part.bits for part in parts]),
        )


def _no_rows(schema: pa.Schema, names: Sequence[str]) -> _Rows:
    empty = pa.RecordBatch.from_pylist([], schema)
    none = np.zeros(0, np.int64)
    return _Rows(_plain(empty, names), none, none, none)


def _plain(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """These columns, without dictionaries: those differ from batch to batch."""
    return pa.record_batch([decoded(batch.column(name)) for name in names], list(names))


def _bits(masks: Sequence[Mask]) -> Ints:
    return np.asarray(sum(mask.astype(np.int64) << n for n, mask in enumerate(masks)), np.int64)


def _codes(batch: pa.RecordBatch, plan: Plan) -> Ints:
    """A number for the key of each row: the same for keys that predicates take as equal."""
    codes = np.zeros(batch.num_rows, np.int64)
    for name in uniform_key(plan):
        values = seen(name, batch.column(name), plan.schema.columns[name])
        if pa.types.is_floating(values.type):
            values = pc.add(values, 0.0)  # -0.0 is 0.0
        column_codes = np.asarray(values.dictionary_encode().indices, np.int64)
        _, codes = np.unique(
            codes * (column_codes.max(initial=0) + 1) + column_codes, return_inverse=True
        )
    return codes


def _last_places(codes: Ints) -> Ints:
    """For each row the place of the last one of its key."""
    last = np.zeros(codes.max(initial=0) + 1, np.int64)
    last[codes] = np.arange(len(codes))
    return np.asarray(last[codes])


def _is_last(codes: Ints) -> Mask:
    return np.asarray(_last_places(codes) == np.arange(len(codes)))
