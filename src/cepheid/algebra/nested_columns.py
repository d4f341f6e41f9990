"""Paths into nested columns: what each leads to, and its values.

Every path that a query reads becomes a column of its own, called as the path is written: the
binder adds it to the schema, and each runtime extracts it where its events come in. So nothing
else knows of nested values. A column of the data that is called so is taken first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.kinds import attribute_type
from cepheid.algebra.types import Schema, Type
from cepheid.language import ast
from cepheid.language.attribute_paths import AttributePath, Element, Field, PathStep, read_path
from cepheid.language.traversal import walk

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a path leads: the path as the columns spell it, and the type of what is there."""

    path: AttributePath
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Missing:
    """A step that leads nowhere: from `path`, which is of this type."""

    path: AttributePath
    type: pa.DataType
    step: PathStep


def reach(path: AttributePath, columns: Mapping[str, pa.DataType]) -> Reached | Missing | None:
    """Follow the path from one of these columns; None if there is no such column."""
    column = _named(path.column, columns)
    if column is None:
        return None
    here = Reached(AttributePath(column, ()), columns[column])
    for step in path.steps:
        reached = _step(here.type, step)
        if reached is None:
            return Missing(here.path, here.type, step)
        here = Reached(AttributePath(column, (*here.path.steps, reached[0])), reached[1])
    return here


def _named(name: str, names: Iterable[str]) -> str | None:
    """Exactly, then without case if that is unique."""
    known = list(names)
    folded = [n for n in known if n.lower() == name.lower()]
    return name if name in known else folded[0] if len(folded) == 1 else None


def _step(type_: pa.DataType, step: PathStep) -> tuple[PathStep, pa.DataType] | None:
    """The step as this type has it, and the type that it leads to."""
    is_ = pa.types
    key = step.name if isinstance(step, Field) else step.key
    if is_.is_struct(type_) and isinstance(key, str):
        name = _named(key, field_names(type_))
        return None if name is None else (Field(name), type_.field(name).type)
    if is_.is_map(type_):
        fits = attribute_type(type_.key_type) is (
            Type.STRING if isinstance(key, str) else Type.INTEGER
        )
        return (Element(key), type_.item_type) if fits else None
    if is_array(type_) and isinstance(key, int):
        return Element(key), type_.value_type
    if is_array(type_) and isinstance(step, Field) and is_.is_struct(type_.value_type):
        element = _step(type_.value_type, step)
        return None if element is None else (element[0], pa.list_(element[1]))
    return None


def field_names(type_: pa.DataType) -> list[str]:
    """The fields of a struct, or of the structs in an array."""
    struct = type_.value_type if is_array(type_) else type_
    return [f.name for f in struct] if pa.types.is_struct(struct) else []


def is_array(type_: pa.DataType) -> bool:
    is_ = pa.types
    return bool(is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_))


# ── columns that are paths ───────────────────────────────────────────────────


def with_paths(schema: Schema, query: ast.Query) -> Schema:
    """The schema with a column for every path that the query reads."""
    paths_read: dict[str, Reached] = {}
    unreadable = dict(schema.unreadable)
    for name in attribute_names(query):
        path = None if schema.resolve(name) is not None else read_path(name)
        if path is None:
            continue
        reached = reach(path, schema.nested)
        if isinstance(reached, Reached):
            paths_read[str(reached.path)] = reached
        elif path.column in unreadable:
            paths_read[name] = Reached(path, pa.null())
            unreadable[name] = unreadable[path.column]
    if not paths_read:
        return schema
    kinds = {name: attribute_type(reached.type) for name, reached in paths_read.items()}
    nested = {n: r.type for n, r in paths_read.items() if kinds[n] is Type.OTHER}
    paths = {name: reached.path for name, reached in paths_read.items()}
    streams = schema.streams
    return replace(
        schema,
        columns={**schema.columns, **kinds},
        nested={**schema.nested, **nested},
        paths={**schema.paths, **paths},
        unreadable=unreadable,
        streams=None if streams is None else {n: _owned(c, paths) for n, c in streams.items()},
        others=None if schema.others is None else _owned(schema.others, paths),
    )


def _owned(columns: frozenset[str], paths: Mapping[str, AttributePath]) -> frozenset[str]:
    return columns.union(name for name, path in paths.items() if path.column in columns)


def attribute_names(query: ast.Query) -> Iterator[str]:
    """The attributes that a query names, as it writes them."""
    for node in walk(query):
        match node:
            case ast.Attribute(name=name) | ast.KeyTest(attribute=name):
                yield name
            case _:
                pass


def read_field(columns: pa.Schema, name: str) -> pa.Field | None:
    """The column of this name, or of this path into one; None if there is neither."""
    if name in columns.names:
        return columns.field(name)
    path = read_path(name)
    reached = None if path is None else reach(path, {f.name: f.type for f in columns})
    return pa.field(name, reached.type) if isinstance(reached, Reached) else None


def read_fields(columns: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """Those of these names that are columns or lead into one, the columns in their order."""
    wanted = list(names)
    direct = [f for f in columns if f.name in wanted]
    others = (read_field(columns, n) for n in wanted if n not in columns.names)
    return pa.schema([*direct, *(f for f in others if f is not None)])


def roots(columns: pa.Schema, names: Iterable[str]) -> list[str]:
    """The columns that have to be read for these names."""
    columns_read: dict[str, None] = {}
    for name in names:
        path = None if name in columns.names else read_path(name)
        columns_read[name if path is None else path.column] = None
    return list(columns_read)


# ── values ───────────────────────────────────────────────────────────────────


def extract(column: pa.Array | pa.ChunkedArray, steps: Iterable[PathStep]) -> Any:
    """The values to which the steps lead; NULL where there is no such element or key."""
    if isinstance(column, pa.ChunkedArray):
        steps = tuple(steps)
        parts = [extract(chunk, steps) for chunk in column.chunks or [pa.nulls(0, column.type)]]
        return pa.chunked_array(parts)
    for step in steps:
        column = _extracted(column, step)
    return column


def _extracted(column: pa.Array, step: PathStep) -> pa.Array:
    match step:
        case Field(name) if is_array(column.type):
            return _of_each(_as_list(column), name)
        case Field(name):
            return pc.struct_field(column, [column.type.get_field_index(name)])
        case Element(key) if pa.types.is_map(column.type):
            return pc.map_lookup(column, pa.scalar(key, column.type.key_type), "first")
        case Element(index):
            return _element(_as_list(column), int(index))


def _as_list(column: pa.Array) -> pa.Array:
    if pa.types.is_fixed_size_list(column.type):
        return column.cast(pa.list_(column.type.value_field))
    return column


def _element(column: pa.Array, index: int) -> pa.Array:
    """As Spark's `get`: beyond the end there is NULL."""
    starts = np.asarray(column.offsets)[:-1].astype(np.int64) + index
    there = pc.fill_null(pc.greater(pc.list_value_length(column), index), False)
    places = pa.array(starts, mask=~np.asarray(there.to_numpy(zero_copy_only=False), np.bool_))
    return column.values.take(places)


def _of_each(column: pa.Array, name: str) -> pa.Array:
    """The field of every struct of an array."""
    values = pc.struct_field(column.values, [column.type.value_type.get_field_index(name)])
    offsets = pa.array(np.asarray(column.offsets).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values, mask=pc.is_null(column))


def with_extracted(rows: Rows, names: Sequence[str]) -> Rows:
    """These columns of the rows, of which some may be paths into others."""
    if all(name in rows.schema.names for name in names):
        return rows.select(names)
    fields = read_fields(rows.schema, names)
    columns = [_read(rows, name) for name in names]
    return type(rows).from_arrays(columns, schema=pa.schema([fields.field(n) for n in names]))


def _read(rows: Rows, name: str) -> Any:
    if name in rows.schema.names:
        return rows.column(name)
    path = read_path(name)
    reached = None if path is None else reach(path, {f.name: f.type for f in rows.schema})
    assert isinstance(reached, Reached)
    return extract(rows.column(reached.path.column), reached.path.steps)
