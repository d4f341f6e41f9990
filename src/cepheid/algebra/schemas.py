"""Arrow schemas as the schemas that queries are bound against; several streams as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from cepheid.algebra.kinds import (
    attribute_type,
    check_readable,
    is_unreadable,
    nested_types,
    readable,
    reasons,
    unreadable,
)
from cepheid.algebra.types import START_COLUMN, STREAM_COLUMN, TIME_COLUMN, Schema, Type
from cepheid.errors import DataError, OptionError
from cepheid.language import ast
from cepheid.language.diagnostics import nearest
from cepheid.language.traversal import walk
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
_NAMES = (Type.STRING, Type.BINARY, Type.INTEGER, Type.BOOLEAN, Type.DATE)
_TO_MOMENTS = {
    Type.STRING: ": parse it first, with `to_datetime` (pandas, polars) or `to_timestamp` (Spark)",
    Type.FLOAT: ": cast it to an integer, and say what one is with unit=",
    Type.DECIMAL: ": cast it to an integer, and say what one is with unit=",
    Type.DURATION: ": add it to the date that it counts from",
}


def bind_schema(columns: pa.Schema, options: Options) -> Schema:
    """The schema of one stream; what the options name must be there and fit."""
    columns = readable(columns)
    _check(columns, options)
    return _schema(columns, options, None)


def columns_schema(columns: pa.Schema | Mapping[str, pa.Schema], options: Options) -> Schema:
    """The schema of one stream, or of several."""
    if isinstance(columns, pa.Schema):
        return bind_schema(columns, options)
    return bind_streams(columns, options)[1]


def bind_streams(streams: Mapping[str, pa.Schema], options: Options) -> tuple[pa.Schema, Schema]:
    """The schema of several streams merged: all their columns, and the stream's name as type."""
    if options.type is not None:
        raise OptionError("with several streams the type is the stream's name: leave out `type`")
    if not streams:
        raise DataError("there are no streams: pass at least one, {'name': data}")
    merged_fields: dict[str, pa.Field] = {}
    streams = {name: readable(columns) for name, columns in streams.items()}
    for name, columns in streams.items():
        try:
            _check(columns, options)
        except DataError as error:
            raise type(error)(f"stream `{name}`: {error}") from None
        for field in columns:
            known = merged_fields.get(field.name)
            merged_fields[field.name] = field if known is None else _unify(known, field, name)
    merged = pa.schema([*merged_fields.values(), pa.field(STREAM_COLUMN, pa.string())])
    names_by_stream = {name: frozenset(columns.names) for name, columns in streams.items()}
    return merged, _schema(merged, options, names_by_stream)


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
    inputs = {
        name: replace(given, columns=readable(given.columns)) for name, given in inputs.items()
    }
    for name, given in inputs.items():
        roles = {TIME_COLUMN: given.time, START_COLUMN: given.start or given.time}
        times = [given.columns.field(column).with_name(role) for role, column in roles.items()]
        for field in (*given.columns, *times):
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
        unreadable=reasons(columns),
        nested=nested_types(columns),
    )
    return columns, schema


def _unify(known: pa.Field, other: pa.Field, stream: str) -> pa.Field:
    """A column that several streams have: of the type that holds the values of all. Streams that
    have no such type disagree about it, so that it can't be read."""
    if is_unreadable(known) or is_unreadable(other):
        return known if is_unreadable(known) else other
    zoned = _zoned(known.type, other.type)
    if zoned is not None:
        return known.with_type(zoned)
    try:
        return pa.unify_schemas(
            [pa.schema([known]), pa.schema([other])], promote_options="permissive"
        ).field(0)
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        why = (
            f"is {known.type} in one stream and {other.type} in `{stream}`; "
            "give them one type or different names"
        )
        if pa.types.is_timestamp(known.type) and pa.types.is_timestamp(other.type):
            naive = f"`{stream}`" if other.type.tz is None else "another stream"
            why += f": without a time zone nobody knows which moments those of {naive} are"
        return unreadable(known.name, why)


def _zoned(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type of moments in two time zones."""
    if not (pa.types.is_timestamp(left) and pa.types.is_timestamp(right)):
        return None
    if left.tz is None or right.tz is None or left.tz == right.tz:
        return None
    finer = max(left.unit, right.unit, key=("s", "ms", "us", "ns").index)
    return pa.timestamp(finer, "UTC")


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
        unreadable=reasons(columns),
        nested=nested_types(columns),
    )


def _check(columns: pa.Schema, options: Options) -> None:
    """The columns that options name are there, can be read, and fit their parts."""
    time = part_field(columns, options.time, "time")
    kind = attribute_type(time.type)
    if kind not in _MOMENTS:
        raise OptionError(
            f"the time column `{options.time}` is {time.type}; it must be a timestamp, a date or "
            f"an integer{_TO_MOMENTS.get(kind, '')}"
        )
    if options.type is not None:
        type_ = part_field(columns, options.type, "type").type
        if attribute_type(type_) not in _NAMES:
            raise OptionError(
                f"the type column `{options.type}` is {type_}; it must be a string, an integer, a "
                "boolean or a date: cast it to a string"
            )
    if options.tie is not None:
        type_ = part_field(columns, options.tie, "tie").type
        if attribute_type(type_) in (Type.OTHER, Type.NULL):
            raise OptionError(
                f"the tie column `{options.tie}` is {type_}, which has no order; it must be a "
                "number, a string or a time"
            )
    if options.start is not None:
        start = part_field(columns, options.start, "start").type
        other = attribute_type(start)
        if other not in _MOMENTS or (other is Type.INTEGER) != (kind is Type.INTEGER):
            raise OptionError(
                f"the start column `{options.start}` is {start}, but the time column "
                f"`{options.time}` is {time.type}"
            )


def part_field(columns: pa.Schema, name: str, part: str) -> pa.Field:
    """The column that an option names."""
    if name not in columns.names:
        close = nearest(name, columns.names)
        hint = f"did you mean `{close}`?" if close else f"there are {', '.join(columns.names)}"
        raise OptionError(f"there is no column `{name}` ({part}=); {hint}")
    check_readable(reasons(columns), [name])
    return columns.field(name)


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
