"""Paths into nested columns as columns of a DataFrame (see `cepheid.algebra.nested_columns`).

Spark reads only those parts of a struct that are selected, and pushes conditions on them down to
files that can check them.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.algebra.nested_columns import Reached, reach
from cepheid.language.attribute_paths import AttributePath, Element, Field, PathStep, read_path
from cepheid.spark.columns.column_names import named, safe, types_of
from cepheid.spark.columns.schema import event_schema


def with_paths(events: DataFrame, names: Iterable[str]) -> DataFrame:
    """The events with a column for each of these names that is a path into one they have."""
    types, columns = types_of(events), {f.name: f.type for f in event_schema(events)}
    added: dict[str, Column] = {}
    for name in names:
        path = None if name in types else read_path(name)
        reached = None if path is None else reach(path, columns)
        if isinstance(reached, Reached):
            added[safe(name)] = _extracted(reached.path, types)
    return events.withColumns(added) if added else events


def _extracted(path: AttributePath, types: dict[str, t.DataType]) -> Column:
    column, type_ = named(path.column), types[path.column]
    for step in path.steps:
        column, type_ = _step(column, type_, step)
    return column


def _step(column: Column, type_: t.DataType, step: PathStep) -> tuple[Column, t.DataType]:
    """An element or key that isn't there is NULL, whether the session is in ANSI mode or not."""
    match step, type_:
        case Field(name), t.StructType():
            return column.getField(name), type_[name].dataType
        case Field(name), t.ArrayType(elementType=t.StructType() as struct):
            return column.getField(name), t.ArrayType(struct[name].dataType)
        case Element(key), t.MapType():
            return F.try_element_at(column, F.lit(key).cast(type_.keyType)), type_.valueType
        case Element(index), t.ArrayType():
            return F.get(column, F.lit(index)), type_.elementType
        case _:
            raise AssertionError(f"{step} of {type_}")
