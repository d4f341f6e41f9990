"""What a worker does with the rows of a pass: merged rules, and every query beside them.

Rows go to all of them as they come, batch by batch. Events that are dealt to variants are held:
an event may be needed because of a later one. Where time limits how far that reaches, they are
held for a stretch of time, of which the matches are those that end in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cepheid.engine.attribution.owners import Attribution, alerts_of_queries
from cepheid.engine.attribution.variants import Variants
from cepheid.engine.end_of_data import end
from cepheid.engine.merged.group import GroupMachines, RuleGroup
from cepheid.engine.rows.clock import times
from cepheid.engine.run import Engine
from cepheid.planner import Prepared
from cepheid.spark.partitions.worker import Range, owned

STRETCH = 1 << 20
"""About how many rows are held until they are dealt, if that may be done in stretches."""
_DEALT = 1 << 16
"""How many dealt rows an engine gets at once."""
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class QueryWork:
    """A query, and whose its matches are. With `variants`, it runs over dealt events."""

    prepared: Prepared
    attributions: tuple[Attribution, ...]
    variants: Variants | None = None

    @property
    def required(self) -> tuple[str, ...]:
        """The columns of the events that are read."""
        return self.prepared.plan.required if self.variants is None else self.variants.required

    @property
    def reach(self) -> int | None:
        """How far from its end a match depends on events; None if that isn't limited, or if it
        depends on other matches."""
        if self.variants is None or self.prepared.query.selection is not None:
            return None
        return self.variants.farthest


@dataclass(frozen=True)
class PassWork:
    """All that runs over the rows of a pass; `rules` and `schema` are those of the alerts."""

    group: RuleGroup | None
    queries: tuple[QueryWork, ...]
    rules: pa.Table
    schema: pa.Schema
    jit: bool = True


def alerts(work: PassWork, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The alerts in rows that come in order."""
    machines: GroupMachines | None = None
    running: list[_Plain | _Dealt] | None = None
    group = work.group
    for batch in batches:
        if group is not None:
            rows = batch.select(group.required)
            if machines is None:
                machines = GroupMachines(group, work.rules, work.schema, rows, work.jit)
            yield from machines.push(rows)
        if running is None:
            running = [
                _Plain(query, work, batch) if query.variants is None else _Dealt(query, work)
                for query in work.queries
            ]
        for run in running:
            yield from run.push(batch)
    for run in running or ():
        yield from run.finish()


class _Plain:
    """A query over the rows as they come."""

    def __init__(self, query: QueryWork, work: PassWork, first: pa.RecordBatch) -> None:
        self._query, self._work = query, work
        self._names = [name for name in first.schema.names if name in query.required]
        self._engine = query.prepared.engine(first.select(self._names).schema, work.jit)

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield from self._alerts(self._engine.push(batch.select(self._names)))

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from self._alerts(end(self._engine, None))

    def _alerts(self, matches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _alerts(self._query, self._work, matches)


class _Dealt:
    """A query over dealt rows."""

    def __init__(self, query: QueryWork, work: PassWork) -> None:
        self._query, self._work = query, work
        self._held: list[pa.RecordBatch] = []
        self._begin, self._room = _FIRST, STRETCH

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._held.append(batch.select(self._query.required))
        if self._query.reach is not None and sum(b.num_rows for b in self._held) >= self._room:
            yield from self._stretch(self._query.reach)

    def finish(self) -> Iterator[pa.RecordBatch]:
        if self._held:
            yield from self._found(pa.Table.from_batches(self._held), (self._begin, _LAST))

    def _stretch(self, reach: int) -> Iterator[pa.RecordBatch]:
        """The matches that no later row decides about. What they depend on, before their end and
        after it, is held."""
        table = pa.Table.from_batches(self._held)
        assert self._query.variants is not None
        at = times(table[self._query.variants.schema.time].combine_chunks())
        until = int(at[-1]) - reach
        if until > self._begin:
            yield from self._found(table, (self._begin, until))
            table = table.slice(int(np.searchsorted(at, until - reach)))
            self._begin = until
        self._held = table.combine_chunks().to_batches()
        self._room = max(STRETCH, 2 * table.num_rows)

    def _found(self, table: pa.Table, range_: Range) -> Iterator[pa.RecordBatch]:
        query = self._query
        assert query.variants is not None
        for events in query.variants.dealt(table):
            engine = query.prepared.engine(events.schema, self._work.jit)
            matches = owned(_matches(engine, events), range_)
            yield from _alerts(query, self._work, matches)


def _matches(engine: Engine, events: pa.Table) -> Iterator[pa.RecordBatch]:
    for batch in events.combine_chunks().to_batches(max_chunksize=_DEALT):
        yield from engine.push(batch)
    yield from end(engine, None)


def _alerts(
    query: QueryWork, work: PassWork, matches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in matches:
        if batch.num_rows:
            yield alerts_of_queries(work.rules, query.attributions, batch, work.schema)
