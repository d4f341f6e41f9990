"""Several streams as one, in which the columns that a stream lacks are NULL.

Whole tables are put together and sorted later. Where one of the streams is an iterator, all of them
are merged as they come: in order of time, and simultaneous events in the order of the streams. So
much is held as the streams are apart: a batch of each, and all events of its last moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.nested_columns import read_fields
from cepheid.algebra.schemas import Input, bind_streams
from cepheid.algebra.types import START_COLUMN, STREAM_COLUMN, TIME_COLUMN
from cepheid.engine.arrays.columns import decoded
from cepheid.engine.rows.clock import times
from cepheid.engine.rows.order import sorted_by
from cepheid.errors import DataError
from cepheid.inprocess.frames import Batches, EventTable, Source, to_arrow
from cepheid.options import Options

BATCH = 1 << 17
"""Rows of a table that go to the engine at once."""


def streams_of(data: Mapping[str, Any]) -> dict[str, Source]:
    """The streams of a dict, by their names."""
    found: dict[str, Source] = {}
    for name, part in data.items():
        if isinstance(part, list | tuple) and not any(isinstance(p, pa.RecordBatch) for p in part):
            raise DataError(
                f"a dict holds streams by their names, and `{name}` is a {type(part).__name__} of "
                "values; of columns make a table, with `pyarrow.table(data)`"
            )
        try:
            found[name] = to_arrow(part)
        except DataError as error:
            raise DataError(f"stream `{name}`: {error}") from None
    return found


def merge(streams: Mapping[str, Source], schema: pa.Schema, options: Options) -> Source:
    """The streams as one with the columns of `schema` (see `algebra.schemas.bind_streams`)."""
    if any(isinstance(source, Batches) for source in streams.values()):
        return MergedBatches(streams, schema, options)

    def load(names: Sequence[str]) -> pa.Table:
        fields = read_fields(schema, names)
        tables = [
            _widened(name, _own(source, names), fields)
            for name, source in streams.items()
            if isinstance(source, EventTable)
        ]
        return pa.concat_tables(tables)

    return EventTable(schema, load)


def merged(tables: Mapping[str, pa.Table], options: Options) -> Source:
    """Tables of several streams as one; if the only one has no name, it."""
    if "" in tables:
        return to_arrow(tables[""])
    schema, _ = bind_streams({name: table.schema for name, table in tables.items()}, options)
    return merge(streams_of(tables), schema, options)


def _own(source: EventTable, names: Sequence[str]) -> pa.Table:
    return source.read(_had(source, names))


def _had(source: Source, names: Sequence[str]) -> list[str]:
    """Those that the stream has, or can be reached in it."""
    return [field.name for field in read_fields(source.schema, names)]


def _widened(name: str, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of the stream with all columns of the merged one."""
    columns: list[Any] = []
    for field in schema:
        if field.name == STREAM_COLUMN:
            columns.append(pa.repeat(pa.scalar(name), rows.num_rows))
        elif field.name in rows.column_names:
            columns.append(_cast(name, rows[field.name], field))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(stream: str, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        why = str(error).splitlines()[0]
        raise DataError(
            f"stream `{stream}`: column `{field.name}` is {column.type}, and {field.type} in all "
            f"streams together, which it doesn't fit: {why}"
        ) from None


def merge_inputs(
    streams: Mapping[str, pa.Table], inputs: Mapping[str, Input], schema: pa.Schema
) -> pa.Table:
    """Streams of events and of matches as one table (see `algebra.schemas.bind_inputs`)."""
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


def slices(table: pa.Table) -> Iterator[pa.RecordBatch]:
    for begin in range(0, table.num_rows, BATCH):
        yield from table.slice(begin, BATCH).combine_chunks().to_batches()


# ── as they come ─────────────────────────────────────────────────────────────


class MergedBatches(Batches):
    """Batches of several streams, of which some may be tables."""

    def __init__(self, streams: Mapping[str, Source], schema: pa.Schema, options: Options) -> None:
        self.schema = schema
        self.endless = any(isinstance(s, Batches) and s.endless for s in streams.values())
        self._streams = streams
        self._time = options.time
        self._order = [n for n in (options.time, options.tie, options.start) if n is not None]

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        needed = list(dict.fromkeys((*names, *self._order)))
        schema = read_fields(self.schema, needed)
        streams = [
            _Ahead(name, self._rows(source, needed), schema, self._time)
            for name, source in self._streams.items()
        ]
        while True:
            bound = min((s.last for s in streams if s.goes_on), default=None)
            rows = pa.concat_tables([s.before(bound) for s in streams])
            if rows.num_rows:
                yield from slices(sorted_by(rows, self._order).select(names))
            if bound is None:
                return
            for stream in streams:
                if stream.goes_on and stream.last == bound:
                    stream.read()

    def _rows(self, source: Source, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        own = _had(source, names)
        if isinstance(source, Batches):
            return source.read(own)
        return slices(sorted_by(source.read(own), [n for n in self._order if n in own]))


class _Ahead:
    """Rows of a stream that have been read, and not yet merged. While the stream goes on, more
    rows of the `last` time may come, but none before it."""

    def __init__(
        self, name: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema, time: str
    ) -> None:
        self._name, self._batches, self._time = name, batches, time
        self._rows = schema.empty_table()
        self._untimed = schema.empty_table()  # rejected later, where they are counted
        self._times: NDArray[np.int64] = np.zeros(0, np.int64)
        self.last = -(1 << 63)
        self.goes_on = True
        self.read()

    def read(self) -> None:
        """Read on, until there is a row."""
        while self.goes_on:
            batch = self._next()
            if batch is None:
                self.goes_on = False
                return
            rows = _widened(self._name, pa.Table.from_batches([batch]), self._rows.schema)
            missing = rows[self._time].null_count
            if missing:
                untimed = pc.is_null(rows[self._time])
                self._untimed = pa.concat_tables([self._untimed, rows.filter(untimed)])
                rows = rows.filter(pc.invert(untimed))
            if rows.num_rows:
                self._append(rows)
                return

    def _next(self) -> pa.RecordBatch | None:
        try:
            return next(self._batches, None)
        except DataError as error:
            raise DataError(f"stream `{self._name}`: {error}") from None

    def _append(self, rows: pa.Table) -> None:
        new = times(decoded(rows[self._time].combine_chunks()))
        before = np.concatenate(([self.last], new[:-1]))
        backwards = np.flatnonzero(new < before)
        if len(backwards):
            at = backwards[0]
            raise DataError(
                f"stream `{self._name}`: the events are not in the order of `{self._time}`: "
                f"{new[at]} comes after {before[at]}; sort them, or pass a whole table"
            )
        self.last = int(new[-1])
        self._rows = pa.concat_tables([self._rows, rows])
        self._times = np.concatenate((self._times, new))

    def before(self, bound: int | None) -> pa.Table:
        """Take the rows before this time, or all."""
        count = len(self._times) if bound is None else int(np.searchsorted(self._times, bound))
        taken = pa.concat_tables([self._untimed, self._rows.slice(0, count)])
        self._rows, self._times = self._rows.slice(count), self._times[count:]
        self._untimed = self._untimed.slice(0, 0)
        return taken
