"""Events as JSON: columns with their types, and rows of plain values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import DataError, OptionError
from cepheid.files.declared import parse_columns, quoted, type_name

MOST = 20_000
"""Events that the page holds."""

_EXACT = 2**53
"""From here on JavaScript's numbers leave integers out: larger ones are texts."""


def to_cells(table: pa.Table, time: str) -> dict[str, Any]:
    """The events as the page holds them. The time is a number, in microseconds if it is a moment;
    what JSON has no value for is a text."""
    plain = _plain(table, time)
    columns = [{"name": f.name, "type": type_name(f.type)} for f in plain.schema]
    values = [_written(plain[f.name], f.name == time) for f in plain.schema]
    return {"columns": columns, "rows": [list(row) for row in zip(*values, strict=True)]}


def from_cells(given: Any, time: str) -> pa.Table:
    """The events of what the page sent, or a `DataError` that says what is wrong with it."""
    match given:
        case {"columns": list() as columns, "rows": list() as rows}:
            pass
        case _:
            raise DataError("events are an object with columns and rows")
    if len(rows) > MOST:
        raise DataError(f"the lab holds at most {MOST:,} events, not {len(rows):,}")
    fields = [_field(column) for column in columns]
    if len({field.name for field in fields}) < len(fields):
        raise DataError("two columns have the same name")
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(fields):
            raise DataError(f"row {number} has not one value for each of {len(fields)} columns")
    arrays = [
        _read(field, [row[n] for row in rows], field.name == time) for n, field in enumerate(fields)
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def _field(column: Any) -> pa.Field:
    match column:
        case {"name": str(name), "type": str(type_)} if name:
            try:
                (field,) = parse_columns(f"{quoted(name)} {type_}")
            except (OptionError, ValueError):
                raise DataError(f"`{name}` has no type that the lab knows: {type_}") from None
            return field
        case _:
            raise DataError("a column is an object with a name and a type")


# ── to JSON ──────────────────────────────────────────────────────────────────


def _plain(table: pa.Table, time: str) -> pa.Table:
    """With types that the page can hold: moments in microseconds and UTC, no categories; what is
    binary is left out."""
    arrays: dict[str, pa.ChunkedArray] = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            continue
        if pa.types.is_timestamp(column.type):
            zone = None if column.type.tz is None else "UTC"
            column = column.cast(pa.timestamp("us", zone), safe=False)
        if pa.types.is_date(column.type) and name == time:
            column = column.cast(pa.timestamp("us"))
        if pa.types.is_large_string(column.type) or pa.types.is_null(column.type):
            column = column.cast(pa.string())
        if pa.types.is_unsigned_integer(column.type):
            column = column.cast(pa.int64())
        arrays[name] = column
    return pa.table(arrays)


def _written(column: pa.ChunkedArray, time: bool) -> list[Any]:
    type_ = column.type
    if pa.types.is_timestamp(type_):
        if time:
            return list(column.cast(pa.int64()).to_pylist())
        end = "Z" if type_.tz else ""
        return list(pc.strftime(column, format=f"%Y-%m-%dT%H:%M:%S{end}").to_pylist())
    values = column.to_pylist()
    if pa.types.is_integer(type_):
        return [str(v) if v is not None and abs(v) > _EXACT else v for v in values]
    if pa.types.is_floating(type_):
        return [v if v is None or math.isfinite(v) else str(v) for v in values]
    if pa.types.is_boolean(type_) or pa.types.is_string(type_):
        return list(values)
    if pa.types.is_nested(type_):
        return [None if v is None else json.dumps(v, default=str) for v in values]
    return [None if v is None else str(v) for v in values]


# ── from JSON ────────────────────────────────────────────────────────────────


def _read(field: pa.Field, values: Sequence[Any], time: bool) -> pa.Array:
    value_of = _reader(field.type, time)
    kept: list[Any] = []
    for number, value in enumerate(values):
        try:
            kept.append(None if value is None else value_of(value))
        except (ValueError, TypeError, OverflowError):
            raise DataError(
                f"row {number}: {_short(value)} in `{field.name}` is no {type_name(field.type)}"
            ) from None
    try:
        if pa.types.is_timestamp(field.type) and time:
            return pa.array(kept, pa.int64()).cast(field.type)
        if _is_parsed(field.type):
            return pa.array(kept, pa.string()).cast(field.type)
        return pa.array(kept, field.type)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise DataError(
            f"`{field.name}` has a value that is no {type_name(field.type)}: {error}"
        ) from None


def _is_parsed(type_: pa.DataType) -> bool:
    """Whether Arrow reads its values from texts."""
    is_ = pa.types
    return bool(is_.is_timestamp(type_) or is_.is_date(type_) or is_.is_decimal(type_))


def _reader(type_: pa.DataType, time: bool) -> Callable[[Any], Any]:
    is_ = pa.types
    if is_.is_integer(type_) or (is_.is_timestamp(type_) and time):
        return _integer
    if is_.is_floating(type_):
        return lambda v: float(_not_boolean(v))
    if is_.is_boolean(type_):
        return _boolean
    if is_.is_nested(type_):
        return json.loads
    return _text


def _integer(value: Any) -> int:
    value = _not_boolean(value)
    if isinstance(value, float) and not value.is_integer():
        raise ValueError
    return int(value)


def _not_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"
