"""Data in this process as Arrow, whatever library holds them, and matches as that library's.

Only the columns that a query reads are converted. A column that can't be is in the schema all the
same, and says why (see `cepheid.algebra.kinds`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from cepheid.algebra.kinds import is_unreadable, plain_column, plain_field, readable, unreadable
from cepheid.algebra.nested_columns import roots, with_extracted
from cepheid.algebra.types import Schema
from cepheid.errors import DataError
from cepheid.inprocess.disorder import Heartbeat, in_time

_NO_ARROW = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""The errors that pyarrow raises for values that fit no Arrow type."""


@dataclass(frozen=True)
class EventTable:
    """Events in memory, which can be read several times: their columns, a function that loads some
    of them, and the number of rows, if it is known before they are loaded."""

    schema: pa.Schema
    load: Callable[[Sequence[str]], pa.Table]
    rows: int | None = None

    @staticmethod
    def of(table: pa.Table) -> EventTable:
        """A table whose columns are plain, and may have reserved names."""
        return EventTable(table.schema, table.select, table.num_rows)

    def read(self, names: Sequence[str]) -> pa.Table:
        """Read these columns, plain; paths are extracted."""
        wanted = roots(self.schema, names)
        loaded = self.load([n for n in wanted if not is_unreadable(self.schema.field(n))])
        columns: dict[str, Any] = {
            name: _plain(name, column)
            for name, column in zip(loaded.column_names, loaded.columns, strict=True)
        }
        fields = [self.schema.field(n) for n in wanted]
        arrays = [columns[f.name] if f.name in columns else _nulls(loaded, f) for f in fields]
        return with_extracted(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), names)


def _plain(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return plain_column(column)
    except _NO_ARROW as error:
        raise DataError(f"column `{name}` can't be read: {_first_line(error)}") from None


def _nulls(table: pa.Table, field: pa.Field) -> pa.Array:
    return pa.nulls(table.num_rows, field.type)


class Batches:
    """An iterator of record batches, and of heartbeats among them, with a known schema. `endless`:
    it may never end, since its length is unknown."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.endless = not isinstance(batches, Sized)
        self._batches = iter(batches)
        if isinstance(batches, pa.RecordBatchReader):
            self._raw = batches.schema
        else:
            begin = list[Any]()
            for item in self._batches:
                begin.append(item)
                if not isinstance(item, Heartbeat):
                    break
            else:
                raise DataError(
                    "the iterator of record batches is empty, so its columns are unknown"
                )
            self._raw = _batch(begin[-1]).schema
            self._batches = chain(begin, self._batches)
        self.schema = readable(self._raw)

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch | Heartbeat]:
        """Read these columns, plain, batch by batch; an iterator can be read once."""
        fields = [self.schema.field(n) for n in roots(self.schema, names)]
        number = 0
        for batch in self._batches:
            if isinstance(batch, Heartbeat):
                yield batch
                continue
            number += 1
            arrays = [
                pa.nulls(batch.num_rows, field.type)
                if is_unreadable(field)
                else _plain(field.name, self._column(_batch(batch), field.name, number))
                for field in fields
            ]
            rows = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
            yield with_extracted(rows, names)

    def timed(
        self, names: Sequence[str], schema: Schema, delay: int | None, late: Callable[[int], None]
    ) -> Iterator[pa.RecordBatch | int]:
        """These columns in order, and the times that have been reached (see `disorder.in_time`)."""
        return in_time(self.read(names), schema, delay, late)

    def _column(self, batch: pa.RecordBatch, name: str, number: int) -> pa.Array:
        """All batches must have the columns of the first."""
        place = batch.schema.get_field_index(name)
        if place < 0:
            raise DataError(f"batch {number} has no column `{name}`, which the first batch has")
        was, now = self._raw.field(name).type, batch.schema.field(place).type
        if was != now:
            raise DataError(
                f"column `{name}` is {now} in batch {number}, but {was} in the first batch; "
                "give all batches one schema"
            )
        return batch.column(place)


def _batch(item: Any) -> pa.RecordBatch:
    if isinstance(item, pa.RecordBatch):
        return item
    raise DataError(f"expected record batches, not {type(item).__name__}{_remedy(item)}")


def _remedy(item: object) -> str:
    """The hint for an element that isn't a record batch."""
    match item:
        case pa.Table():
            return ": pass `table.to_batches()` of each"
        case Mapping():
            return ": make a table of them, with `pyarrow.Table.from_pylist`"
        case _:
            return ""


Source: TypeAlias = EventTable | Batches


def to_arrow(data: Any, *, nan_is_null: bool = False) -> Source:
    """Any supported data in this process. `nan_is_null`: where pandas has no other way to say that
    a number is missing, NaN says it. Of events it doesn't: NaN is the same in all frames."""
    if isinstance(data, EventTable | Batches):
        return data
    if isinstance(data, pa.Table):
        return EventTable(readable(data.schema), data.select, data.num_rows)
    if isinstance(data, pa.RecordBatch):
        return to_arrow(pa.Table.from_batches([data]))
    if _is(data, "pandas", "DataFrame"):
        return _of_pandas(data, nan_is_null)
    if _is(data, "polars", "DataFrame"):
        return EventTable(
            _polars_schema(data), lambda names: data.select(names).to_arrow(), data.height
        )
    if _is(data, "polars", "LazyFrame"):
        empty = data.collect_schema().to_frame()
        return EventTable(
            _polars_schema(empty), lambda names: data.select(names).collect().to_arrow()
        )
    if _is(data, "pyarrow.dataset", "Dataset"):
        return EventTable(readable(data.schema), lambda names: data.to_table(columns=names))
    if isinstance(data, pa.RecordBatchReader):
        return Batches(data)
    if hasattr(data, "__arrow_c_stream__"):
        return to_arrow(_produced(data))
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | PurePath | Mapping):
        return Batches(data)
    raise DataError(f"can't read events from {type(data).__name__}{_suggestion(data)}")


def _suggestion(data: object) -> str:
    match data:
        case str() | PurePath():
            return ": open the file first, with `pyarrow.dataset.dataset(path)`"
        case Mapping():
            return ": make a table of it, with `pyarrow.table(data)`"
        case _:
            return (
                ": pass a Spark, pandas or polars frame, a pyarrow Table, anything else that gives "
                "Arrow data, an iterator of record batches, or a dict of those"
            )


def as_table(source: Source) -> pa.Table:
    """All columns and rows; reads an iterator to its end."""
    if isinstance(source, EventTable):
        return source.read(source.schema.names)
    items = source.read(source.schema.names)
    batches = (item for item in items if not isinstance(item, Heartbeat))
    return pa.Table.from_batches(batches, source.schema)


def may_be_endless(data: Any) -> bool:
    """Whether the data may never end, as an iterator may."""
    if isinstance(data, Mapping):
        return any(may_be_endless(part) for part in data.values())
    return isinstance(data, Batches) and data.endless


# ── libraries ────────────────────────────────────────────────────────────────


def _is(data: Any, module: str, name: str) -> bool:
    """Whether data is of a class of a library that may not be installed."""
    library = sys.modules.get(module)
    return library is not None and isinstance(data, getattr(library, name))


def _produced(data: Any) -> pa.Table:
    """The data of an object with Arrow's C interface, of any library."""
    try:
        return pa.RecordBatchReader.from_stream(data).read_all()
    except pa.ArrowException as error:
        raise DataError(
            f"can't read events from {type(data).__name__}, which gives no table: "
            f"{_first_line(error)}"
        ) from None


def _of_pandas(data: Any, nan_is_null: bool) -> EventTable:
    """The type of a column of Python objects follows only from its values, so it is converted at
    once. An index that has a name is a column."""
    taken = {str(name) for name in data.columns}
    levels = [name for name in data.index.names if name is not None and str(name) not in taken]
    data = data.reset_index(level=levels) if levels else data
    fields: list[pa.Field] = []
    objects: dict[str, pa.Array] = {}
    series = {str(name): data.iloc[:, place] for place, name in enumerate(data.columns)}
    for name in map(str, data.columns):
        column = series[name]
        try:
            if column.dtype == object:
                objects[name] = pa.array(column, from_pandas=True)
                type_ = objects[name].type
            else:
                type_ = pa.array(column.iloc[:0], from_pandas=True).type
        except _NO_ARROW as error:
            fields.append(unreadable(name, _why_not(column.dtype, error)))
            continue
        if str(column.dtype).startswith("period"):
            why = f"is {column.dtype}; make timestamps of it, with `.dt.to_timestamp()`"
            fields.append(unreadable(name, why))
        elif column.dtype == object and pa.types.is_timestamp(type_) and _half_zoned(column):
            why = "has timestamps with a time zone and others without; give one to all of them"
            fields.append(unreadable(name, why))
        else:
            fields.append(pa.field(name, type_))

    def converted(name: str) -> pa.Array:
        column = series[name]
        if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f" and not nan_is_null:
            return pa.array(column.to_numpy(), from_pandas=False)
        return pa.array(column, from_pandas=True)

    def load(names: Sequence[str]) -> pa.Table:
        return pa.table({n: objects[n] if n in objects else converted(n) for n in names})

    return EventTable(readable(pa.schema(fields)), load, len(data))


def _half_zoned(column: Any) -> bool:
    return len({moment.tzinfo is None for moment in column.dropna()}) > 1


def _why_not(dtype: object, error: Exception) -> str:
    return (
        f"is {dtype}, which can't be read ({_first_line(error).rstrip('.')}); cast it to one "
        "type, as in `.astype(str)`"
    )


def _polars_schema(data: Any) -> pa.Schema:
    import polars

    fields: list[pa.Field] = []
    for name, type_ in data.schema.items():
        try:
            if type_ == polars.Object:
                raise TypeError("it holds Python objects")
            arrow = data.get_column(name).head(0).to_arrow().type
            fields.append(plain_field(pa.field(name, arrow)))
        except _NO_ARROW as error:
            why = f"is {type_}, which can't be read ({_first_line(error)}); cast it before"
            fields.append(unreadable(name, why))
    return readable(pa.schema(fields))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


# ── matches ──────────────────────────────────────────────────────────────────


def like(data: Any, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Any:
    """The matches as the same kind of data as the events."""
    if isinstance(data, Mapping):
        data = next(iter(data.values()))
    if isinstance(data, pa.RecordBatchReader | Batches) or not _is_whole(data):
        return pa.RecordBatchReader.from_batches(schema, batches)
    table = pa.Table.from_batches(batches, schema)
    if _is(data, "pandas", "DataFrame"):
        return _pandas(table)
    if _is(data, "polars", "DataFrame"):
        return _polars(table)
    if _is(data, "polars", "LazyFrame"):
        return _polars(table).lazy()
    return _as_produced(data, table)


def filtered(data: Any, chosen: pa.ChunkedArray | None) -> Any:
    """The chosen rows of the data, with all columns; without a choice, none."""
    if _is(data, "pandas", "DataFrame"):
        return data.iloc[:0] if chosen is None else data[chosen.to_numpy()]
    if _is(data, "polars", "LazyFrame"):
        return filtered(data.collect(), chosen).lazy()
    if _is(data, "polars", "DataFrame"):
        return data.head(0) if chosen is None else data.filter(_polars(chosen))
    table = data if isinstance(data, pa.Table) else _table(data)
    table = table.slice(0, 0) if chosen is None else table.filter(chosen)
    return like(data, table.schema, iter(table.to_batches()))


def _table(data: Any) -> pa.Table:
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    return data.to_table() if _is(data, "pyarrow.dataset", "Dataset") else _produced(data)


def _is_whole(data: Any) -> bool:
    if isinstance(data, pa.RecordBatch | pa.Table | EventTable):
        return True
    return (
        hasattr(data, "__arrow_c_stream__")
        or _is(data, "pandas", "DataFrame")
        or _is(data, "polars", "LazyFrame")
        or _is(data, "pyarrow.dataset", "Dataset")
    )


def _pandas(table: pa.Table) -> Any:
    import pandas

    try:
        return table.to_pandas()
    except pa.ArrowNotImplementedError:  # NumPy has no arrays of some kinds
        return table.to_pandas(types_mapper=pandas.ArrowDtype)


def _polars(data: pa.Table | pa.ChunkedArray) -> Any:
    import polars

    return polars.from_arrow(data)


def _as_produced(data: Any, table: pa.Table) -> Any:
    """The matches as the events' library converts Arrow data; else the table."""
    library = type(data).__module__.partition(".")[0]
    match library:
        case "duckdb" | "_duckdb":
            return sys.modules["duckdb"].from_arrow(table)
        case "ibis":
            return sys.modules["ibis"].memtable(table)
        case "nanoarrow":
            return type(data)(table)
        case _:
            return table
