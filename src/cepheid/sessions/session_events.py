"""What is pushed into a session, of whatever kind, as a table with the session's columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.algebra.kinds import is_unreadable, plain_column, readable
from cepheid.algebra.schemas import bind_schema, bind_streams
from cepheid.algebra.types import Schema
from cepheid.errors import DataError
from cepheid.inprocess.frames import Batches, as_table, to_arrow
from cepheid.inprocess.merged_streams import widened
from cepheid.options import Options
from cepheid.runtime import Columns

_NO_VALUE = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""What pyarrow raises of a Python value that doesn't fit a type."""


@dataclass(frozen=True)
class EventColumns:
    """The columns of a session's events: as they are pushed, and plain. With several streams,
    `streams` has those of each, and the columns are all of them."""

    given: pa.Schema
    plain: pa.Schema
    bound: Schema
    streams: Mapping[str, EventColumns] | None = None

    @staticmethod
    def of(columns: Columns, options: Options) -> EventColumns:
        if not isinstance(columns, Mapping):
            if not isinstance(columns, pa.Schema):
                kind = type(columns).__name__
                raise DataError(
                    f"a session is opened with the schema of its events, not with {kind}: pass a "
                    "pyarrow.schema, or a dict of them for several streams"
                )
            return EventColumns(columns, readable(columns), bind_schema(columns, options))
        streams = {name: EventColumns.of(schema, options) for name, schema in columns.items()}
        merged, bound = bind_streams(columns, options)
        return EventColumns(merged, merged, bound, streams)

    def table(self, data: Any) -> pa.Table:
        """The events, plain; of several streams, in the order of the streams."""
        if self.streams is None:
            return self._table(data)
        if not isinstance(data, Mapping):
            raise DataError(
                f"the session has several streams: push a dict of them, as in "
                f"{{{next(iter(self.streams))!r}: events}}"
            )
        for name in data:
            if name not in self.streams:
                known = ", ".join(f"`{n}`" for n in self.streams)
                raise DataError(f"there is no stream `{name}`: the session has {known}")
        parts = []
        for name, part in data.items():
            try:
                parts.append(widened(name, self.streams[name]._table(part), self.plain))
            except DataError as error:
                raise DataError(f"stream `{name}`: {error}") from None
        return pa.concat_tables([self.plain.empty_table(), *parts])

    def _table(self, data: Any) -> pa.Table:
        if isinstance(data, pa.RecordBatch):
            if data.schema.equals(self.plain):
                return pa.Table.from_batches([data])
            data = pa.Table.from_batches([data])
        if isinstance(data, pa.Table):
            return data if data.schema.equals(self.plain) else self._cast(data)
        if isinstance(data, Mapping):
            return self._of_dicts([data])
        if isinstance(data, list | tuple) and all(isinstance(row, Mapping) for row in data):
            return self._of_dicts(list(data))
        source = to_arrow(data)
        if isinstance(source, Batches):
            raise DataError(
                "push a frame, a table, a record batch, a dict or a list of dicts; of an iterator, "
                "push one batch after the other"
            )
        return self._cast(as_table(source))

    def _cast(self, table: pa.Table) -> pa.Table:
        """A table with the columns of the session; others are left out."""
        have = set(table.column_names)
        columns: list[Any] = []
        for field in self.plain:
            if is_unreadable(field):
                columns.append(pa.nulls(table.num_rows, field.type))
                continue
            if field.name not in have:
                raise DataError(
                    f"the events have no column `{field.name}`, which is in the session's schema; "
                    "add it, with NULLs if there are no values"
                )
            column = table[field.name]
            try:
                plain = plain_column(column)
                columns.append(plain if plain.type == field.type else plain.cast(field.type))
            except _NO_VALUE:
                was = self.given.field(field.name).type
                raise DataError(
                    f"column `{field.name}` is {column.type}, and {was} in the session's schema; "
                    "cast it before"
                ) from None
        return pa.Table.from_arrays(columns, schema=self.plain)

    def _of_dicts(self, rows: list[Mapping[str, Any]]) -> pa.Table:
        """What a row doesn't have is NULL."""
        columns: list[Any] = []
        for field in self.plain:
            name, type_ = field.name, field.type
            values = [row.get(name) for row in rows]
            try:
                if is_unreadable(field):
                    columns.append(pa.nulls(len(rows), type_))
                elif pa.types.is_dictionary(type_):
                    columns.append(pa.array(values, type_.value_type).cast(type_))
                else:
                    columns.append(pa.array(values, type_))
            except _NO_VALUE:
                _name_value(name, values, type_)
                raise
        return pa.Table.from_arrays(columns, schema=self.plain)


def _name_value(name: str, values: list[Any], type_: pa.DataType) -> None:
    plain = type_.value_type if pa.types.is_dictionary(type_) else type_
    for number, value in enumerate(values, 1):
        try:
            pa.array([value], plain)
        except _NO_VALUE:
            raise DataError(
                f"event {number}: `{name}` is {value!r}, and {plain} in the session's schema"
            ) from None
