"""A large table in shares, each with an engine of its own, on several cores.

A table is cut in time where the query allows it: a slice has a copy of the window beside it, and
owns the matches that end in it, as on Spark. Where it can't be cut in time (AFTER MATCH, no window)
and a key partitions it, each engine has a share of the keys. Kernels and Arrow run without Python's
lock, the rest of an engine with it: queries with much work per event gain most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from threading import Event

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.patterns import positive
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import in_one
from cepheid.engine.arrays.numbers import in_numpy, is_exact
from cepheid.engine.arrays.vector import logical
from cepheid.engine.counts import Counts
from cepheid.engine.match_schema import MATCH_END
from cepheid.engine.needs import matches_at_once
from cepheid.engine.rows.clock import times
from cepheid.engine.rows.order import STRETCH, ascending
from cepheid.engine.run import Engine
from cepheid.inprocess.merged_streams import BATCH, slices
from cepheid.options import Options
from cepheid.plan.nodes import STREAM, Plan, lookback, waits
from cepheid.plan.reads import leaves
from cepheid.planner.bounds import counts_all, uncut

LEAST_ROWS = 1 << 18
"""Rows that a thread must have: below that, what each engine does once costs more than it saves."""

_MOST_COPIED = 0.2
"""The share of rows that slices may have twice, for the windows beside them."""

_MOST_SHARES = 256
"""Shares of the keys that a table is divided into at most: their numbers have a byte."""

MOST_INDEXED = (1 << 31) - 1
"""Rows that 32 bits can number."""

_MIXING = np.uint64(0x9E3779B97F4A7C15)

_KEY_TYPES = frozenset({Type.INTEGER, Type.STRING, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP})
"""Types whose equal values are equal for Arrow, too."""

_FOREVER = 1 << 62

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TimeSlice:
    """Rows of a table in order, and the ends of matches that are its own: first, and first of the
    next slice."""

    begin: int
    end: int
    owned: tuple[int, int]

    def batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        return slices(table.slice(self.begin, self.end - self.begin))

    def kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ends = times(batch.column(MATCH_END))
        inside = (self.owned[0] <= ends) & (ends < self.owned[1])
        return batch if inside.all() else batch.filter(pa.array(inside))


@dataclass(frozen=True)
class KeyRange:
    """All rows of a table at once, for an engine that picks this of so many parts of the keys."""

    part: tuple[int, int]

    def batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from table.combine_chunks().to_batches()

    def kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch


@dataclass(frozen=True, eq=False)
class KeyShare:
    """The rows of a table whose key is one of this share's."""

    rows: NDArray[np.int32]

    def batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        for begin in range(0, len(self.rows), BATCH):
            rows = pa.array(self.rows[begin : begin + BATCH])
            yield from table.take(rows).combine_chunks().to_batches()

    def kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch


Share = TimeSlice | KeyShare | KeyRange

Found = tuple[list[pa.RecordBatch], set[str], list[Ints] | None]
"""The matches of a share, the types that none of its events has, and the positions of the matches'
ends, if those of all shares can be compared."""


def undivided(plan: Plan, query: BoundQuery, options: Options) -> str | None:
    """Why one thread must do it all; None if several can."""
    if query.answers is not None:
        return "answers are folded in one place"
    if options.until is not None:
        return "what is undecided at `until` is counted in one place"
    if options.limit is not None:
        return "one limit holds for all events"
    if plan.schema.start is not None:
        return "events have durations"
    return None if _key_columns(plan) and not counts_all(query) else uncut(query)


def shares(plan: Plan, query: BoundQuery, table: pa.Table, options: Options) -> Sequence[Share]:
    """How a table in order is divided; nothing, if one engine is best or must do it all. What is
    held of a share of the keys should stay in the processor's caches, so there are more of them
    than threads; and as much is held without a window, one thread is faster with them, too, unless
    matches are single events."""
    count = min(options.threads, table.num_rows // LEAST_ROWS)
    if not 2 * LEAST_ROWS <= table.num_rows <= MOST_INDEXED:
        return ()
    if undivided(plan, query, options) is not None:
        return ()
    if uncut(query) is None:
        return _slices(plan, times(in_one(table[plan.schema.time])), count)
    if matches_at_once(plan) and _are_apart(plan, table):
        return [KeyRange((n, max(1, count))) for n in range(max(1, count))]
    held = plan.window is None and len(positive(query.pattern)) > 1
    if count < 2 and not held:
        return ()
    if not all(map(_can_be_taken, table.columns)):
        return ()
    return _key_shares(plan, table, _key_columns(plan), count)


def _are_apart(plan: Plan, table: pa.Table) -> bool:
    """Whether no two rows are at the same position."""
    columns = [table[name] for name in plan.schema.order]
    if any(c.null_count or not is_exact(c.type) for c in columns):
        return False
    values = [in_numpy(in_one(column)) for column in columns]
    for begin in range(0, table.num_rows - 1, STRETCH):
        parts = [v[begin : begin + STRETCH + 1] for v in values]
        if not np.logical_or.reduce([v[1:] != v[:-1] for v in parts]).all():
            return False
    return True


def _can_be_taken(column: pa.ChunkedArray) -> bool:
    """Whether Arrow can take rows of it: it joins the chunks, and numbers bytes of texts and
    elements of lists by 32 bits."""
    return bool(pa.types.is_primitive(column.type) or column.nbytes <= MOST_INDEXED)


def _slices(plan: Plan, clock: Ints, count: int) -> Sequence[TimeSlice]:
    """Slices of equally many rows that end where a new time begins."""
    assert plan.window is not None
    reach = plan.window.size + lookback(plan)
    ahead = reach if any(waits(root) for root in plan.alternatives) else 0
    while count > 1:
        cuts = np.unique(clock[len(clock) * np.arange(1, count) // count])
        cuts = cuts[cuts > clock[0]]
        begins = [0, *np.searchsorted(clock, cuts - reach).tolist()]
        ends = [*np.searchsorted(clock, cuts + ahead).tolist(), len(clock)]
        if len(cuts) and sum(ends) - sum(begins) <= (1 + _MOST_COPIED) * len(clock):
            owned = pairwise([-_FOREVER, *cuts.tolist(), _FOREVER])
            return [TimeSlice(*row) for row in zip(begins, ends, owned, strict=True)]
        count -= 1
    return ()


def _key_columns(plan: Plan) -> list[str]:
    """The columns of the key, if a row has the same key in whatever class it is."""
    names = [set(part.values()) for part in plan.key]
    strict = any(leaf.variable == STREAM for leaf in leaves(plan))
    if strict and any(STREAM not in part for part in plan.key):
        return []  # `=>` looks at events of every key
    if any(len(part) > 1 for part in names):
        return []
    columns = [part.pop() for part in names]
    return columns if all(plan.schema.columns[name] in _KEY_TYPES for name in columns) else []


def _key_shares(
    plan: Plan, table: pa.Table, columns: Sequence[str], count: int
) -> Sequence[KeyShare]:
    """Shares of a little fewer rows than a batch has, if no key has more."""
    hashed = np.zeros(table.num_rows, np.uint64)
    for name in columns:
        hashed = (hashed ^ _numbers(table[name], plan.schema.columns[name])) * _MIXING
    shares = max(count, min(_MOST_SHARES, table.num_rows * 5 // (4 * BATCH)))
    number = ((hashed >> np.uint64(32)) * np.uint64(shares) >> np.uint64(32)).astype(np.uint8)
    order = np.argsort(number, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(number, minlength=shares))
    return [KeyShare(rows) for rows in np.split(order, ends[:-1]) if len(rows)]


def _numbers(column: pa.ChunkedArray, kind: Type) -> NDArray[np.uint64]:
    """A number for each value, the same for equal ones."""
    values = logical(in_one(column), kind)
    if kind is Type.INTEGER and pa.types.is_integer(values.type) and not values.null_count:
        return np.asarray(values.to_numpy(zero_copy_only=False)).astype(np.uint64)
    codes = values.dictionary_encode(null_encoding="encode").indices
    return np.asarray(codes.to_numpy(zero_copy_only=False), np.uint64)


class Engines:
    """An engine for each share of a table."""

    done = False  # one share doesn't know what the others have found

    def __init__(self, new: Callable[[], Engine], threads: int, events: int, rejected: int) -> None:
        first = new()
        self.plan, self.schema = first.plan, first.schema
        self.unseen = set(first.unseen)
        """Types that no event has had."""
        # Of the whole table: slices share rows, so the engines' own counts don't add up to it.
        self.counts = Counts(events=events, rejected=rejected)
        self._new, self._threads = new, threads
        self._stopped = Event()

    def matches(
        self, table: pa.Table, divided: Sequence[Share], seen: Callable[[int], None]
    ) -> Iterator[pa.RecordBatch]:
        """The matches of all shares in the order of their ends. All rows of `table` have a time."""
        tasks = [(table, share, seen) for share in divided]
        in_order = len(divided) == 1 or isinstance(divided[0], TimeSlice)
        with ThreadPoolExecutor(min(self._threads, len(divided))) as pool:
            try:
                ends: list[Ints] = []
                batches = self._noted(pool.map(self._run, tasks), ends)
                yield from batches if in_order else by_end(self.schema, batches, ends)
            finally:
                self._stopped.set()  # whoever reads the matches may not want all of them

    def _noted(self, found: Iterable[Found], ends: list[Ints]) -> Iterator[pa.RecordBatch]:
        for batches, unseen, positions in found:
            self.unseen &= unseen
            self.counts.matches += sum(batch.num_rows for batch in batches)
            ends += positions or ()
            yield from batches

    def _run(self, task: tuple[pa.Table, Share, Callable[[int], None]]) -> Found:
        table, share, seen = task
        kept: list[pa.RecordBatch] = []
        engine, batches = self._new(), share.batches(table)
        if isinstance(share, KeyRange):
            engine.part, engine.tree.sink.ends = share.part, []
        batch = next(batches, None)
        while batch is not None:
            if self._stopped.is_set():
                return [], engine.unseen, None
            after = next(batches, None)
            kept += map(share.kept, engine.push(batch, last=after is None))
            seen(batch.num_rows)
            batch = after
        kept += map(share.kept, engine.finish())
        return kept, engine.unseen, engine.tree.sink.ends


def by_end(
    schema: pa.Schema, matches: Iterable[pa.RecordBatch], ends: Sequence[Ints] = ()
) -> Iterator[pa.RecordBatch]:
    """Matches that were found key by key, in the order of their ends: positions, if they are
    known when all matches are, else times."""
    table = pa.Table.from_batches(matches, schema)
    positions = np.concatenate(ends) if ends else times(table[MATCH_END].combine_chunks())
    order = ascending(positions)
    yield from table.take(pa.array(order)).combine_chunks().to_batches()


def division_text(plan: Plan, query: BoundQuery, rows: int, options: Options) -> str | None:
    """How the work on so many rows is divided; None if they are too few to be."""
    count = min(options.threads, rows // LEAST_ROWS)
    if count < 2:
        return None
    reason = undivided(plan, query, options)
    if reason is not None:
        return f"1: {reason}"
    kind = "slices of time" if uncut(query) is None else "shares of the keys"
    return f"{count}, for {kind}"
