"""Spark's types as Arrow's, and back, as they travel through `mapInArrow`.

Spark has such a translation of its own, but not in its public interface.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from cepheid.algebra.kinds import unreadable
from cepheid.spark.columns.column_names import given

_PLAIN: tuple[tuple[type[t.DataType], pa.DataType], ...] = (
    (t.BooleanType, pa.bool_()),
    (t.ByteType, pa.int8()),
    (t.ShortType, pa.int16()),
    (t.IntegerType, pa.int32()),
    (t.LongType, pa.int64()),
    (t.FloatType, pa.float32()),
    (t.DoubleType, pa.float64()),
    (t.StringType, pa.string()),
    (t.CharType, pa.string()),
    (t.VarcharType, pa.string()),
    (t.BinaryType, pa.binary()),
    (t.DateType, pa.date32()),
    (t.TimestampType, pa.timestamp("us", "UTC")),
    (t.TimestampNTZType, pa.timestamp("us")),
    (t.DayTimeIntervalType, pa.duration("us")),
    (t.NullType, pa.null()),
)


def arrow_schema(schema: t.StructType) -> pa.Schema:
    """The columns that a query is bound to. A column of a type that Arrow batches can't carry may
    exist, but not be read."""
    return pa.schema([_arrow_field(field.name, field) for field in schema.fields])


def event_schema(events: DataFrame) -> pa.Schema:
    """The columns of events, by the caller's names."""
    return pa.schema([_arrow_field(given(field.name), field) for field in events.schema.fields])


def _arrow_field(name: str, field: t.StructField) -> pa.Field:
    type_ = arrow_type(field.dataType)
    if type_ is None:
        kind = field.dataType.simpleString()
        return unreadable(name, f"is {kind}, which can't be read in a query; cast it before")
    return pa.field(name, type_, field.nullable)


def arrow_type(type_: t.DataType) -> pa.DataType | None:
    """The Arrow type of a Spark type; None if no Arrow batch can carry it."""
    match type_:
        case t.DecimalType():
            return pa.decimal128(type_.precision, type_.scale)
        case t.ArrayType():
            element = arrow_type(type_.elementType)
            return None if element is None else pa.list_(element)
        case t.MapType():
            key, value = arrow_type(type_.keyType), arrow_type(type_.valueType)
            return None if key is None or value is None else pa.map_(key, value)
        case t.StructType():
            parts = {f.name: arrow_type(f.dataType) for f in type_.fields}
            if len(parts) < len(type_.fields) or any(p is None for p in parts.values()):
                return None
            return pa.struct(list(parts.items()))
        case _:
            return next((arrow for spark, arrow in _PLAIN if isinstance(type_, spark)), None)


def spark_schema(schema: pa.Schema) -> t.StructType:
    """The schema of the matches."""
    return t.StructType([t.StructField(f.name, spark_type(f.type), True) for f in schema])


def spark_type(type_: pa.DataType) -> t.DataType:
    """The Spark type that an Arrow column arrives as. Any part of a match may be NULL."""
    is_ = pa.types
    if is_.is_decimal(type_):
        return t.DecimalType(type_.precision, type_.scale)
    if is_.is_list(type_) or is_.is_large_list(type_):
        return t.ArrayType(spark_type(type_.value_type), True)
    if is_.is_map(type_):
        return t.MapType(spark_type(type_.key_type), spark_type(type_.item_type), True)
    if is_.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return t.StructType([t.StructField(f.name, spark_type(f.type), True) for f in fields])
    if is_.is_timestamp(type_):
        return t.TimestampNTZType() if type_.tz is None else t.TimestampType()
    for spark, arrow in _PLAIN:
        if type_ == arrow:
            return spark()
    raise AssertionError(f"no Spark type for {type_}")
