"""Several queries over iterators, which are read once: all queries get each batch in turn."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.schemas import bind_schema, bind_streams
from cepheid.engine.match_schema import MATCH_END
from cepheid.engine.rows.clock import unplaced
from cepheid.inprocess.disorder import NEVER, WaitingRows, delay_ticks, row_times
from cepheid.inprocess.frames import Batches, may_be_endless, to_arrow
from cepheid.inprocess.merged_streams import merge, streams_of
from cepheid.inprocess.notices import came_late, without_time
from cepheid.options import Options, refuse_dead_letters
from cepheid.query.chains import chained_queries
from cepheid.query.parsed_query import Query
from cepheid.query.several import name_of, numbered
from cepheid.runtime import Columns
from cepheid.sessions.query_runs import QueryRuns
from cepheid.sessions.session_events import EventColumns


def is_endless(data: Any) -> bool:
    """Whether data in this process can be read only once."""
    if isinstance(data, Mapping):
        return any(is_endless(part) for part in data.values())
    is_iterator = isinstance(data, Iterator | pa.RecordBatchReader)
    return is_iterator or (isinstance(data, Batches) and may_be_endless(data))


def match_endless(
    data: Any, queries: Sequence[str | Query], options: Options
) -> dict[str, pa.RecordBatchReader]:
    """A reader of the matches of each query. Whichever is read, all queries get what it takes, and
    the matches of the others wait in memory."""
    schemas, source, columns = endless_events(data, options)
    parsed = numbered(queries)
    planned = chained_queries(parsed, schemas, columns, options)
    for query in planned:
        query.prepared.warn()
    lags = {query.name: query.known_after for query in planned}
    names = [name_of(query) for query in parsed]
    shared = SharedRun(
        QueryRuns(planned, names, options, alone=False), lags, source, columns, options
    )
    return {
        name: pa.RecordBatchReader.from_batches(schema, shared.matches(name))
        for name, schema in shared.schemas.items()
    }


def endless_events(data: Any, options: Options) -> tuple[Columns, Batches, EventColumns]:
    """The columns of the data as they are given, the data, and the columns that are matched."""
    refuse_dead_letters(options)
    schemas: Columns
    if isinstance(data, Mapping):
        streams = streams_of(data)
        schemas = {name: part.schema for name, part in streams.items()}
        source = merge(streams, *bind_streams(schemas, options))
    else:
        source = to_arrow(data)
        schemas = source.schema
        bind_schema(schemas, options)
    assert isinstance(source, Batches)
    return schemas, source, EventColumns.of(schemas, options)


class SharedRuns(Protocol):
    """What is run: the results have names."""

    @property
    def schema(self) -> dict[str, pa.Schema]: ...

    def step(self, rows: pa.Table, reached: int) -> dict[str, pa.Table]: ...

    def finish(self, rows: pa.Table) -> dict[str, pa.Table]: ...


class SharedRun:
    """Reads events when a reader has nothing left, and keeps the matches of all. `lags` are the
    times after their ends at which matches are known; where there is none, they come as they are
    known."""

    def __init__(
        self,
        runs: SharedRuns,
        lags: Mapping[str, int | None],
        source: Batches,
        columns: EventColumns,
        options: Options,
    ) -> None:
        self._runs, self._lags, self._columns = runs, lags, columns
        self._late = self._unplaced = self._events = 0
        delay = delay_ticks(options, columns.bound)
        self._items = source.timed(columns.plain.names, columns.bound, delay, self._count_late)
        self.schemas: dict[str, pa.Schema] = runs.schema
        # Matches come in the order of their ends: those that are known early wait for others.
        self._held = {n: WaitingRows(s, [MATCH_END]) for n, s in self.schemas.items()}
        self._ready: dict[str, deque[pa.RecordBatch]] = {name: deque() for name in self.schemas}
        self._reached = NEVER
        self._over = False

    def _count_late(self, rows: int) -> None:
        self._late += rows
        self._events += rows

    def matches(self, name: str) -> Iterator[pa.RecordBatch]:
        ready = self._ready[name]
        while ready or not self._over:
            if ready:
                yield ready.popleft()
            else:
                self._read()

    def _read(self) -> None:
        item = next(self._items, None)
        empty = self._columns.plain.empty_table()
        if item is None:
            self._over = True
            self._keep(self._runs.finish(empty))
            self._tell()
            return
        rows = empty if isinstance(item, int) else self._placed(item)
        bound = self._columns.bound
        last = item if isinstance(item, int) else max(row_times(rows, bound.time), default=NEVER)
        self._reached = max(self._reached, int(last))
        self._keep(self._runs.step(rows, self._reached))

    def _tell(self) -> None:
        if self._unplaced:
            start = self._columns.bound.start
            warnings.warn(without_time(self._unplaced, self._events, start), stacklevel=3)
        if self._late:
            warnings.warn(came_late(self._late), stacklevel=3)

    def _placed(self, batch: pa.RecordBatch) -> pa.Table:
        rows, bound = pa.Table.from_batches([batch]), self._columns.bound
        self._events += rows.num_rows
        bad = unplaced(rows, bound.time, bound.start)
        if bad is None:
            return rows
        placed = rows.filter(pc.invert(bad))
        self._unplaced += rows.num_rows - placed.num_rows
        return placed

    def _keep(self, results: Mapping[str, pa.Table]) -> None:
        for name, matches in results.items():
            held, lag = self._held[name], self._lags[name]
            held.add(matches)
            ordered = held.release(None if self._over or lag is None else self._reached - lag)
            self._ready[name].extend(ordered.combine_chunks().to_batches())
