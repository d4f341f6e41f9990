"""Arrow schemas as the schemas that queries are bound against; several streams as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from cepheid.algebra.types import START_COLUMN, STREAM_COLUMN, TIME_COLUMN, Schema, Type
from cepheid.errors import DataError
from cepheid.language import ast
from cepheid.language.diagnostics import nearest
from cepheid.language.walking import walk
from cepheid.options import Options

_UNITS = {
    "us": ast.Unit.MICROSECONDS,
    "ms": ast.Unit.MILLISECONDS,
    "s": ast.Unit.SECONDS,
    "min": ast.Unit.MINUTES,
    "h": ast.Unit.HOURS,
    "d": ast.Unit.DAYS,
}


_MOMENTS = (Type.INTEGER, Type.TIMESTAMP, Type.DATE)


def attribute_type(type_: pa.DataType) -> Type:
    """What predicates see of an Arrow type."""
    is_ = pa.types
    if is_.is_dictionary(type_):
        return attribute_type(type_.value_type)
    if is_.is_boolean(type_):
        return Type.BOOLEAN
    if is_.is_integer(type_):
        return Type.INTEGER
    if is_.is_floating(type_):
        return Type.FLOAT
    if is_.is_decimal(type_):
        return Type.DECIMAL
    if is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_):
        return Type.STRING
    if is_.is_binary(type_) or is_.is_large_binary(type_) or is_.is_fixed_size_binary(type_):
        return Type.BINARY
    if is_.is_date(type_):
        return Type.DATE
    if is_.is_timestamp(type_):
        return Type.TIMESTAMP
    if is_.is_duration(type_):
        return Type.DURATION
    return Type.OTHER


def bind_schema(columns: pa.Schema, options: Options) -> Schema:
    """The schema of one stream; what the options name must be there and fit."""
    _check(columns, options)
    if options.type is not None:
        _require(columns, options.type, "type")
    return _schema(columns, options, None)


def bind_streams(streams: Mapping[str, pa.Schema], options: Options) -> tuple[pa.Schema, Schema]:
    """The schema of several streams merged: all their columns, and the stream's name as type."""
    if options.type is not None:
        raise DataError("with several streams the type is the stream's name: leave out `type`")
    if not streams:
        raise DataError("there are no streams: pass at least one, {'name': data}")
    merged_fields: dict[str, pa.Field] = {}
    for name, columns in streams.items():
        try:
            _check(columns, options)
        except DataError as error:
            raise DataError(f"stream `{name}`: {error}") from None
        for field in columns:
            known = merged_fields.get(field.name)
            merged_fields[field.name] = field if known is None else _unify(known, field, name)
    merged = pa.schema([*merged_fields.values(), pa.field(STREAM_COLUMN, pa.string())])
    own = {name: frozenset(columns.names) for name, columns in streams.items()}
    return merged, _schema(merged, options, own)


@dataclass(frozen=True)
class Input:
    """A stream that is read beside others: its columns, and the parts that some of them play.
    Without `start` its events have no duration; without `type` they are of the stream's name."""

    columns: pa.Schema
    time: str
    start: str | None = None
    type: str | None = None


def bind_inputs(inputs: Mapping[str, Input], options: Options) -> tuple[pa.Schema, Schema]:
    """The schema of streams of events and of matches merged. When an event starts and ends is in
    columns of their own, since it is called otherwise in each stream."""
    merged: dict[str, pa.Field] = {}
    for name, own in inputs.items():
        roles = {TIME_COLUMN: own.time, START_COLUMN: own.start or own.time}
        times = [own.columns.field(column).with_name(role) for role, column in roles.items()]
        for field in (*own.columns, *times):
            known = merged.get(field.name)
            merged[field.name] = field if known is None else _unify(known, field, name)
    columns = pa.schema([*merged.values(), pa.field(STREAM_COLUMN, pa.string())])
    named = {name: frozenset(i.columns.names) for name, i in inputs.items() if i.type is None}
    others = [frozenset(i.columns.names) for i in inputs.values() if i.type is not None]
    schema = Schema(
        columns={f.name: attribute_type(f.type) for f in columns},
        time=TIME_COLUMN,
        start=START_COLUMN,
        type=STREAM_COLUMN,
        streams=named,
        others=others[0] if others else None,
        unit=None if options.unit is None else _UNITS[options.unit],
    )
    return columns, schema


def _unify(one: pa.Field, other: pa.Field, stream: str) -> pa.Field:
    try:
        return pa.unify_schemas(
            [pa.schema([one]), pa.schema([other])], promote_options="permissive"
        ).field(0)
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        raise DataError(
            f"`{one.name}` is {one.type} in one stream and {other.type} in `{stream}`; "
            "give them one type or different names"
        ) from None


def _schema(
    columns: pa.Schema, options: Options, streams: Mapping[str, frozenset[str]] | None
) -> Schema:
    return Schema(
        columns={f.name: attribute_type(f.type) for f in columns},
        time=options.time,
        type=STREAM_COLUMN if streams is not None else options.type,
        tie=options.tie,
        start=options.start,
        streams=streams,
        unit=None if options.unit is None else _UNITS[options.unit],
    )


def _check(columns: pa.Schema, options: Options) -> None:
    reserved = [n for n in columns.names if n.startswith("__")]
    if reserved:
        raise DataError(f"column `{reserved[0]}`: names that begin with `__` are reserved")
    duplicate = [n for n in columns.names if columns.names.count(n) > 1]
    if duplicate:
        raise DataError(f"there are several columns called `{duplicate[0]}`")
    _require(columns, options.time, "time")
    kind = attribute_type(columns.field(options.time).type)
    if kind not in _MOMENTS:
        raise DataError(
            f"the time column `{options.time}` is {columns.field(options.time).type}; "
            "it must be a timestamp, a date or an integer"
        )
    if options.tie is not None:
        _require(columns, options.tie, "tie")
    if options.start is not None:
        _require(columns, options.start, "start")
        other = attribute_type(columns.field(options.start).type)
        if other not in _MOMENTS or (other is Type.INTEGER) != (kind is Type.INTEGER):
            raise DataError(
                f"the start column `{options.start}` is {columns.field(options.start).type}, but "
                f"the time column `{options.time}` is {columns.field(options.time).type}"
            )


def _require(columns: pa.Schema, name: str, part: str) -> None:
    if name not in columns.names:
        close = nearest(name, columns.names)
        hint = f"did you mean `{close}`?" if close else f"there are {', '.join(columns.names)}"
        raise DataError(f"there is no column `{name}` ({part}=); {hint}")


def assumed(query: ast.Query, options: Options) -> pa.Schema:
    """Columns that would fit the query, for checking and explaining it without data.

    An attribute that is compared with a string is one, every other a number; the time is a
    timestamp if the window is given in seconds or the like.
    """
    attributes, strings = set[str](), set[str]()
    for expression in _expressions(query):
        names = [n.name for n in walk(expression) if isinstance(n, ast.Attribute)]
        attributes.update(names)
        attributes.update(n.attribute for n in walk(expression) if isinstance(n, ast.KeyTest))
        for node in walk(expression):
            strings.update(_compared_with_strings(node))
    window = query.within
    ticks = not isinstance(window, ast.Duration) or window.unit is ast.Unit.UNITS
    time = pa.int64() if ticks and options.unit is None else pa.timestamp("us", "UTC")
    columns = {name: pa.string() if name in strings else pa.float64() for name in attributes}
    columns[options.time] = pa.int64() if options.unit is not None else time
    if options.type is not None:
        columns[options.type] = pa.string()
    if options.tie is not None:
        columns.setdefault(options.tie, pa.int64())
    if options.start is not None:
        columns[options.start] = columns[options.time]
    return pa.schema(sorted(columns.items()))


def _compared_with_strings(node: object) -> set[str]:
    match node:
        case ast.Comparison(operands=operands):
            parts: tuple[object, ...] = operands
        case ast.InList(operand=operand, options=options):
            parts = (operand, *options)
        case ast.Like(operand=operand):
            parts = (operand, ast.Literal(""))
        case ast.KeyTest(attribute=attribute, value=ast.Literal(value=str())):
            return {attribute}
        case _:
            return set()
    if not any(isinstance(p, ast.Literal) and isinstance(p.value, str) for p in parts):
        return set()
    return {p.name for p in parts if isinstance(p, ast.Attribute)}


def _expressions(query: ast.Query) -> list[object]:
    untils = [n.until for n in walk(query.pattern) if isinstance(n, ast.Closure) and n.until]
    returned = [item.expression for item in query.returns]
    return [e for e in (query.where, query.having, *untils, *returned) if e is not None]
