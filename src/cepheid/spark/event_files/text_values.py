"""Values as text files have them, whichever engine writes: durations are microseconds, bytes are
Base64, and in JSON decimals are texts (as in `cepheid.engine.attribution.json_rows`)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.files.formats import Format
from cepheid.spark.columns.column_names import quoted


def for_text(frame: DataFrame, format: Format) -> DataFrame:
    """The rows as this format writes them. Parquet has its own types."""
    fields = frame.schema.fields
    if format is Format.PARQUET or not any(_differs(field.dataType) for field in fields):
        return frame
    return frame.select(*(_text(quoted(f.name), f.dataType).alias(f.name) for f in fields))


def _differs(kind: t.DataType) -> bool:
    """Whether Spark would write the value in another form."""
    match kind:
        case t.ArrayType():
            return _differs(kind.elementType)
        case t.MapType():
            return _differs(kind.valueType)
        case t.StructType():
            return any(_differs(field.dataType) for field in kind.fields)
        case _:
            return isinstance(kind, t.DayTimeIntervalType | t.BinaryType | t.DecimalType)


def _text(value: Column, kind: t.DataType) -> Column:
    if not _differs(kind):
        return value
    match kind:
        case t.DayTimeIntervalType():
            return _microseconds(value)
        case t.BinaryType():
            return F.base64(value)
        case t.DecimalType():
            return value.cast("string")
        case t.ArrayType():
            return F.transform(value, lambda item: _text(item, kind.elementType))
        case t.MapType():
            return F.transform_values(value, lambda _, item: _text(item, kind.valueType))
        case t.StructType():
            parts = (_text(value[f.name], f.dataType).alias(f.name) for f in kind.fields)
            return F.when(value.isNotNull(), F.struct(*parts))
        case _:
            raise AssertionError(kind)


def _microseconds(span: Column) -> Column:
    # As a number, an interval counts its last unit, which is to be seconds.
    seconds = span.cast("interval day to second").cast("decimal(20,6)")
    return (seconds * 1_000_000).cast("long")
