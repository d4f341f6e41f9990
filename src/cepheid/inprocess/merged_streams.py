"""Several streams as one, in which the columns that a stream lacks are NULL.

Whole tables are put together and sorted later. Where one of the streams is an iterator, all of them
are merged as they come: in order of time, and simultaneous events in the order of the streams. So
much is held as the streams are apart: a batch of each, and all events of its last moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.nested_columns import read_fields
from cepheid.algebra.schemas import bind_streams
from cepheid.algebra.types import STREAM_COLUMN, Schema
from cepheid.engine.arrays.columns import decoded
from cepheid.engine.rows.clock import times
from cepheid.engine.rows.order import sorted_by
from cepheid.errors import DataError
from cepheid.inprocess.disorder import Heartbeat, in_time
from cepheid.inprocess.frames import Batches, EventTable, Source, to_arrow
from cepheid.options import Options

BATCH = 1 << 17
"""How many rows of a table go to the engine at once."""


def streams_of(data: Mapping[str, Any]) -> dict[str, Source]:
    """The streams of a dict, by their names."""
    streams: dict[str, Source] = {}
    for name, part in data.items():
        if isinstance(part, list | tuple) and not any(isinstance(p, pa.RecordBatch) for p in part):
            raise DataError(
                f"a dict holds streams by their names, and `{name}` is a {type(part).__name__} of "
                "values; of columns make a table, with `pyarrow.table(data)`"
            )
        try:
            streams[name] = to_arrow(part)
        except DataError as error:
            raise DataError(f"stream `{name}`: {error}") from None
    return streams


def merge(streams: Mapping[str, Source], schema: pa.Schema, bound: Schema) -> Source:
    """The streams as one with the columns of `schema`, and what they are to queries (see
    `algebra.schemas.bind_streams`)."""
    if any(isinstance(source, Batches) for source in streams.values()):
        return MergedBatches(streams, schema, bound)

    def load(names: Sequence[str]) -> pa.Table:
        fields = read_fields(schema, names)
        tables = [
            widened(name, _read_columns(source, names), fields)
            for name, source in streams.items()
            if isinstance(source, EventTable)
        ]
        return pa.concat_tables(tables)

    return EventTable(schema, load)


def merged(tables: Mapping[str, pa.Table], options: Options) -> Source:
    """Merge the tables of several streams; a single unnamed table is returned as it is."""
    if "" in tables:
        return to_arrow(tables[""])
    schemas = {name: table.schema for name, table in tables.items()}
    return merge(streams_of(tables), *bind_streams(schemas, options))


def _read_columns(source: EventTable, names: Sequence[str]) -> pa.Table:
    return source.read(_had(source, names))


def _had(source: Source, names: Sequence[str]) -> list[str]:
    """The names that are columns of the stream, or paths into one."""
    return [field.name for field in read_fields(source.schema, names)]


def widened(name: str, rows: pa.Table, schema: pa.Schema) -> pa.Table:
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


def slices(table: pa.Table) -> Iterator[pa.RecordBatch]:
    for begin in range(0, table.num_rows, BATCH):
        yield from table.slice(begin, BATCH).combine_chunks().to_batches()


# ── as they come ─────────────────────────────────────────────────────────────


class MergedBatches(Batches):
    """Merges the batches of several streams, some of which may be tables."""

    def __init__(self, streams: Mapping[str, Source], schema: pa.Schema, bound: Schema) -> None:
        self.schema = schema
        self.endless = any(isinstance(s, Batches) and s.endless for s in streams.values())
        self._streams = streams
        self._bound = bound

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch | Heartbeat]:
        items = self.timed(names, self._bound, None, lambda rows: None)
        return (item for item in items if not isinstance(item, int))

    def timed(
        self, names: Sequence[str], schema: Schema, delay: int | None, late: Callable[[int], None]
    ) -> Iterator[pa.RecordBatch | int]:
        """Each stream may be out of order by the delay."""
        needed = list(dict.fromkeys((*names, *schema.order)))
        columns = read_fields(self.schema, needed)
        streams = [
            _Ahead(
                name,
                in_time(_wide(name, self._rows(s, needed), columns), schema, delay, late),
                columns,
                schema.time,
            )
            for name, s in self._streams.items()
        ]
        while True:
            bound = min((s.last for s in streams if s.goes_on), default=None)
            rows = pa.concat_tables([s.before(bound) for s in streams])
            if rows.num_rows:
                yield from slices(sorted_by(rows, schema.order).select(names))
            if bound is None:
                return
            if any(s.beats for s in streams):
                yield bound
            for stream in streams:
                if stream.goes_on and stream.last == bound:
                    stream.read()

    def _rows(self, source: Source, names: Sequence[str]) -> Iterator[pa.RecordBatch | Heartbeat]:
        columns = _had(source, names)
        if isinstance(source, Batches):
            return source.read(columns)
        return slices(
            sorted_by(source.read(columns), [n for n in self._bound.order if n in columns])
        )


def _wide(
    name: str, items: Iterator[pa.RecordBatch | Heartbeat], schema: pa.Schema
) -> Iterator[pa.RecordBatch | Heartbeat]:
    """The items of a stream, with all columns of the merged one."""
    for item in items:
        if isinstance(item, Heartbeat):
            yield item
        else:
            rows = widened(name, pa.Table.from_batches([item]), schema)
            yield from rows.combine_chunks().to_batches()


class _Ahead:
    """Rows of a stream that have been read, and not yet merged. While the stream continues, more
    rows of the `last` time may come, but none before it."""

    def __init__(
        self, name: str, items: Iterator[pa.RecordBatch | int], schema: pa.Schema, time: str
    ) -> None:
        self._name, self._items, self._time = name, items, time
        self._rows = schema.empty_table()
        self._untimed = schema.empty_table()  # rejected later, where they are counted
        self._times: NDArray[np.int64] = np.zeros(0, np.int64)
        self.last = -(1 << 63)
        self.goes_on = True
        self.beats = False
        """Whether time alone has passed."""
        self.read()

    def read(self) -> None:
        """Read on, until there is a row, or time has passed."""
        while self.goes_on:
            item = self._next()
            if item is None:
                self.goes_on = False
                return
            if isinstance(item, int):
                self.beats = True
                if item > self.last:
                    self.last = item
                    return
                continue
            rows = pa.Table.from_batches([item])
            missing = rows[self._time].null_count
            if missing:
                untimed = pc.is_null(rows[self._time])
                self._untimed = pa.concat_tables([self._untimed, rows.filter(untimed)])
                rows = rows.filter(pc.invert(untimed))
            if rows.num_rows:
                self._append(rows)
                return

    def _next(self) -> pa.RecordBatch | int | None:
        try:
            return next(self._items, None)
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
        """Take the rows before this time; all rows, if it is None."""
        count = len(self._times) if bound is None else int(np.searchsorted(self._times, bound))
        taken = pa.concat_tables([self._untimed, self._rows.slice(0, count)])
        self._rows, self._times = self._rows.slice(count), self._times[count:]
        self._untimed = self._untimed.slice(0, 0)
        return taken
