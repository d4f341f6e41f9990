"""Kinds of Arrow columns: what a query sees of each, and the plain form in which it is read.

Arrow has several layouts for one value: views, runs, large offsets, dictionaries, extensions. The
engine knows the plain ones alone, and every runtime makes its columns plain on the way in. A column
that no query can read may be in the data all the same: its field says why, and that is an error
only for a query that reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.types import Type
from cepheid.errors import DataError

_WHY = b"cepheid.unreadable"


def attribute_type(type_: pa.DataType) -> Type:
    """What predicates see of an Arrow type."""
    is_, plain = pa.types, plain_type(type_)
    if is_.is_dictionary(plain):
        return attribute_type(plain.value_type)
    if is_.is_boolean(plain):
        return Type.BOOLEAN
    if is_.is_integer(plain):
        return Type.INTEGER
    if is_.is_floating(plain):
        return Type.FLOAT
    if is_.is_decimal(plain):
        return Type.DECIMAL
    if is_.is_string(plain) or is_.is_large_string(plain):
        return Type.STRING
    if is_.is_binary(plain) or is_.is_large_binary(plain) or is_.is_fixed_size_binary(plain):
        return Type.BINARY
    if is_.is_date(plain):
        return Type.DATE
    if is_.is_timestamp(plain):
        return Type.TIMESTAMP
    if is_.is_duration(plain) or is_.is_time(plain):
        return Type.DURATION
    return Type.NULL if is_.is_null(plain) else Type.OTHER


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type as which a column of this type is read. A dictionary of texts stays one: the engine
    compares its codes."""
    is_ = pa.types
    if isinstance(type_, pa.BaseExtensionType):
        return plain_type(type_.storage_type)
    if is_.is_run_end_encoded(type_):
        return plain_type(type_.value_type)
    if is_.is_dictionary(type_):
        value = plain_type(type_.value_type)
        texts = attribute_type(value) in (Type.STRING, Type.BINARY)
        return pa.dictionary(type_.index_type, value) if texts else value
    if is_.is_string_view(type_):
        return pa.large_string()
    if is_.is_binary_view(type_):
        return pa.large_binary()
    if is_.is_float16(type_):
        return pa.float32()
    return _plain_nested(type_) if is_.is_nested(type_) else type_


def _plain_nested(type_: pa.DataType) -> pa.DataType:
    is_ = pa.types
    if is_.is_struct(type_):
        return pa.struct([f.with_type(_plain_part(f.type)) for f in type_])
    if is_.is_map(type_):
        return pa.map_(_plain_part(type_.key_type), _plain_part(type_.item_type))
    if is_.is_union(type_) or is_.is_list_view(type_) or is_.is_large_list_view(type_):
        return type_
    element = type_.value_field.with_type(_plain_part(type_.value_type))
    if is_.is_fixed_size_list(type_):
        return pa.list_(element, type_.list_size)
    return pa.large_list(element) if is_.is_large_list(type_) else pa.list_(element)


def _plain_part(type_: pa.DataType) -> pa.DataType:
    """Inside of nested values nothing is compared, so dictionaries are of no use there."""
    plain = plain_type(type_)
    return plain.value_type if pa.types.is_dictionary(plain) else plain


def plain_column(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column in its plain type."""
    type_ = column.type
    if isinstance(type_, pa.BaseExtensionType):
        return plain_column(column.cast(type_.storage_type))
    if pa.types.is_run_end_encoded(type_):
        return plain_column(pc.run_end_decode(column))
    plain = plain_type(type_)
    return column if plain == type_ else column.cast(plain)


def plain_field(field: pa.Field) -> pa.Field:
    """The field of the plain column; an unreadable one, if the column can't be made plain."""
    plain = plain_type(field.type)
    if plain == field.type:
        return field
    try:
        plain_column(pa.nulls(0, field.type))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        return unreadable(field.name, f"is {field.type}, which can't be read; cast it before")
    return pa.field(field.name, plain, field.nullable)


def nested_types(columns: pa.Schema) -> dict[str, pa.DataType]:
    """The types of the columns that hold arrays, maps or structs."""
    return {f.name: f.type for f in columns if attribute_type(f.type) is Type.OTHER}


# ── columns that can't be read ───────────────────────────────────────────────


def unreadable(name: str, why: str) -> pa.Field:
    """A column that is there but can't be read. `why` is what messages say after its name, such as
    "is of type …"."""
    return pa.field(name, pa.null(), metadata={_WHY: why})


def readable(columns: pa.Schema) -> pa.Schema:
    """The columns as a query can be bound to them: each name once, and each type plain."""
    names = columns.names
    fields = {f.name: f for f in columns}  # of several, the last
    for name, field in fields.items():
        if names.count(name) > 1:
            why = "occurs several times; give each a different name"
            fields[name] = unreadable(name, why)
        elif name.startswith("__"):
            why = "has a reserved name, because it begins with `__`; rename it"
            fields[name] = unreadable(name, why)
        elif not is_unreadable(field):
            fields[name] = plain_field(field)
    return pa.schema(fields.values())


def is_unreadable(field: pa.Field) -> bool:
    return field.metadata is not None and _WHY in field.metadata


def reasons(columns: pa.Schema) -> dict[str, str]:
    """Why columns can't be read, by their names."""
    return {f.name: f.metadata[_WHY].decode() for f in columns if is_unreadable(f)}


def check_readable(unreadable: Mapping[str, str], names: Iterable[str]) -> None:
    """`DataError`, if one of these columns is among those that can't be read."""
    for name in names:
        if name in unreadable:
            raise DataError(f"column `{name}` {unreadable[name]}")
