"""The in-process runtime: pyarrow, pandas and polars data, one thread.

Tables are put in order here; an iterator of record batches is taken as it comes and must be in
order already, so that it may be larger than memory.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.types import START_COLUMN, STREAM_COLUMN, TIME_COLUMN
from cepheid.engine.clock import times, unplaced
from cepheid.engine.order import in_order, key_by_key
from cepheid.engine.output import MATCH_END
from cepheid.engine.run import Engine
from cepheid.errors import DataError
from cepheid.options import Options
from cepheid.plan.nodes import Plan
from cepheid.plan.profile import Profile
from cepheid.planner import Prepared
from cepheid.planner.adapt import Adapter
from cepheid.planner.planned import Planned
from cepheid.schemas import Input

BATCH = 1 << 17
"""Rows of a table that go to the engine at once."""


class Batches:
    """An iterator of record batches whose schema is known. `endless`: it may be, since nobody can
    tell how many there are."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.endless = not isinstance(batches, Sized)
        if isinstance(batches, pa.RecordBatchReader):
            self.schema = batches.schema
            self._batches: Iterator[pa.RecordBatch] = iter(batches)
            return
        iterator = iter(batches)
        first = next(iterator, None)
        if first is None:
            raise DataError("the iterator of record batches is empty, so its columns are unknown")
        if not isinstance(first, pa.RecordBatch):
            raise DataError(f"expected record batches, not {type(first).__name__}")
        self.schema = first.schema
        self._batches = _chain(first, iterator)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


Source: TypeAlias = Any  # a pyarrow Table or Batches; pyarrow has no types


def to_arrow(data: Any) -> Source:
    """Any supported in-process data as Arrow."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if _is(data, "pandas", "DataFrame"):
        return pa.Table.from_pandas(data, preserve_index=False)
    if _is(data, "polars", "DataFrame"):
        return data.to_arrow()
    if _is(data, "polars", "LazyFrame"):
        return data.collect().to_arrow()
    if isinstance(data, pa.RecordBatchReader | Iterator) or hasattr(data, "__iter__"):
        return Batches(data)
    raise DataError(
        f"can't read events from {type(data).__name__}: pass a Spark, pandas or polars frame, a "
        "pyarrow Table, an iterator of record batches, or a dict of those"
    )


def may_be_endless(data: Any) -> bool:
    """Whether there may always be more to read: of an iterator nobody knows."""
    if isinstance(data, Mapping):
        return any(may_be_endless(part) for part in data.values())
    return isinstance(data, Batches) and data.endless


def like(data: Any, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Any:
    """The matches as the same kind of data as the events."""
    if isinstance(data, Mapping):
        data = next(iter(data.values()))
    if isinstance(data, pa.Table | pa.RecordBatch):
        return pa.Table.from_batches(batches, schema)
    if _is(data, "pandas", "DataFrame"):
        return pa.Table.from_batches(batches, schema).to_pandas()
    if _is(data, "polars", "DataFrame"):
        return _polars(pa.Table.from_batches(batches, schema))
    if _is(data, "polars", "LazyFrame"):
        return _polars(pa.Table.from_batches(batches, schema)).lazy()
    return pa.RecordBatchReader.from_batches(schema, batches)


def _is(data: Any, module: str, name: str) -> bool:
    """Whether data is of a class of a library that may not be installed."""
    library = sys.modules.get(module)
    return library is not None and isinstance(data, getattr(library, name))


def _polars(table: pa.Table) -> Any:
    import polars

    return polars.from_arrow(table)


def merge(streams: Mapping[str, Source], schema: pa.Schema) -> pa.Table:
    """Several streams as one table: the columns that a stream lacks are NULL."""
    tables = []
    for name, source in streams.items():
        table = as_table(source)
        columns = [
            pa.repeat(pa.scalar(name), table.num_rows)
            if field.name == STREAM_COLUMN
            else table[field.name].cast(field.type)
            if field.name in table.column_names
            else pa.nulls(table.num_rows, field.type)
            for field in schema
        ]
        tables.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(tables)


def merge_inputs(
    streams: Mapping[str, pa.Table], inputs: Mapping[str, Input], schema: pa.Schema
) -> pa.Table:
    """Streams of events and of matches as one table (see `cepheid.schemas.bind_inputs`)."""
    tables = []
    for name, own in inputs.items():
        table = streams[name]
        given = dict(zip(table.column_names, table.columns, strict=True))
        given[TIME_COLUMN], given[START_COLUMN] = table[own.time], table[own.start or own.time]
        if own.type is None:
            given[STREAM_COLUMN] = pa.chunked_array([pa.repeat(pa.scalar(name), table.num_rows)])
        else:
            given[STREAM_COLUMN] = table[own.type]
        columns = [
            given[f.name].cast(f.type) if f.name in given else pa.nulls(table.num_rows, f.type)
            for f in schema
        ]
        tables.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(tables)


def run(
    prepared: Prepared,
    source: Source,
    options: Options,
    seen: Callable[[int], None] = lambda rows: None,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The matches' schema, and the matches as they are found.

    `seen` is told the number of rows after every batch of events.
    """
    plan = prepared.plan
    engine, batches = _start(prepared, source, options)
    matches = _matches(engine, batches, seen)
    return engine.schema, _by_end(engine, matches) if key_by_key(plan) else matches


def profile(prepared: Prepared, source: Source, options: Options) -> tuple[Profile, Planned]:
    """Run the query, forget its matches, and tell what happened, and with which plan it ended."""
    engine, batches = _start(prepared, source, options)
    for _ in _matches(engine, batches, lambda rows: None):
        pass
    advisor = engine.advisor
    return engine.profile(), advisor.planned if isinstance(advisor, Adapter) else prepared.planned


def _start(
    prepared: Prepared, source: Source, options: Options
) -> tuple[Engine, Iterable[pa.RecordBatch]]:
    """An engine, and the events as it needs them. What can match nothing isn't read."""
    plan = prepared.plan
    if isinstance(source, Batches) and key_by_key(plan):
        source = _read(source)
    needed = [n for n in source.schema.names if n in plan.required]
    schema = pa.schema([source.schema.field(n) for n in needed])
    if prepared.query.nothing is not None:
        batches: Iterable[pa.RecordBatch] = ()
    elif isinstance(source, pa.Table):
        source = _named(plan, source).select(needed)
        batches = slices(in_order(plan, source))
    else:
        batches = (batch.select(needed) for batch in source)
    return prepared.engine(schema, options.jit), batches


def _by_end(engine: Engine, matches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Matches that were found key by key, in the order of their ends."""
    table = pa.Table.from_batches(matches, engine.schema)
    order = np.argsort(times(table[MATCH_END].combine_chunks()), kind="stable")
    yield from table.take(pa.array(order)).combine_chunks().to_batches()


def _named(plan: Plan, table: pa.Table) -> pa.Table:
    """Only the streams that FROM names, if it does: others don't count as events."""
    streams = plan.schema.streams
    if streams is None or plan.schema.others is not None:
        return table
    if set(pc.unique(table[STREAM_COLUMN]).to_pylist()) <= set(streams):
        return table
    return table.filter(pc.is_in(table[STREAM_COLUMN], value_set=pa.array(streams)))


def as_table(source: Source) -> pa.Table:
    return source if isinstance(source, pa.Table) else _read(source)


def _read(source: Batches) -> pa.Table:
    return pa.Table.from_batches(source, source.schema)


def _matches(
    engine: Engine, batches: Iterable[pa.RecordBatch], seen: Callable[[int], None]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from engine.push(batch)
        seen(batch.num_rows)
    yield from engine.finish()
    if engine.counts.rejected:
        what, how = "have no time", "time=..."
        if engine.plan.schema.start is not None:
            what, how = "have no time, or start after their end,", "time=..., start=..."
        warnings.warn(
            f"{engine.counts.rejected} of {engine.counts.events} events {what} and were left "
            f"out; cepheid.rejected(data, {how}) shows them",
            stacklevel=2,
        )
    if engine.counts.shed:
        warnings.warn(
            f"{engine.counts.shed} of {engine.counts.events} events were forgotten because of the "
            "limit, though matches might have needed them: matches that begin with them, or "
            "before them, are missing",
            stacklevel=2,
        )


def slices(table: pa.Table) -> Iterator[pa.RecordBatch]:
    for begin in range(0, table.num_rows, BATCH):
        yield from table.slice(begin, BATCH).combine_chunks().to_batches()


def rejected(table: pa.Table, time: str, start: str | None) -> pa.Table:
    """The rows that no query can place."""
    dead = unplaced(table, time, start)
    return table.slice(0, 0) if dead is None else table.filter(dead)
