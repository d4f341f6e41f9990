"""Reads Parquet files on Spark. Text becomes a time or a number as in a local run."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.errors import DataError
from cepheid.files.formats import SPARK_JSON
from cepheid.files.parquet_rows import typed_columns
from cepheid.files.text_rows import (
    REJECTED,
    EventRows,
    LineBlock,
    RejectedLine,
    RowFormat,
    finish,
)
from cepheid.spark.columns.column_names import quoted
from cepheid.spark.columns.schema import spark_schema, spark_type
from cepheid.spark.event_files.text_files import local_path, with_rejected
from cepheid.spark.streaming.status.outcome import spark_sentence

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.readwriter import DataFrameReader

_FILE, _LINE = "__file", "__line"
_UNREAD = ("PARQUET_TYPE_", "UNSUPPORTED_TIME_TYPE")
"""The beginnings of Spark's errors about a file's types."""


def parquet_rows(reader: DataFrameReader, path: str) -> DataFrame:
    """The rows of files. Raises DataError if any column has a type that Spark lacks."""
    try:
        return reader.parquet(path)
    except PySparkException as error:
        if not str(error.getCondition()).startswith(_UNREAD):
            raise
        raise DataError(
            f"{path}: Spark can't read it: {spark_sentence(str(error))} Of Parquet, it reads "
            "neither times of day nor nanoseconds: write timestamps of microseconds, or run it "
            "without --engine spark"
        ) from None


def read_parquet_events(rows: DataFrame, form: RowFormat) -> DataFrame:
    """The rows as events. A rejected row has no time."""
    columns = [_column(rows, field) for field in form.columns]
    if not _has_texts(rows, form):
        return rows.select(*columns)
    noted = rows.select(*columns, _file(), F.lit("").alias(_LINE))
    return noted.mapInArrow(ConvertedEvents(form), spark_schema(form.columns))


def read_parquet_rejected(rows: DataFrame, form: RowFormat) -> DataFrame:
    """The rejected rows (see `cepheid.files.text_rows.REJECTED`); the line is the row as JSON."""
    line = F.to_json(F.struct(*(quoted(f.name) for f in rows.schema.fields)), SPARK_JSON)
    columns = [_column(rows, field) for field in form.columns]
    noted = rows.select(*columns, _file(), line.alias(_LINE))
    if not _has_texts(rows, form):
        noted = noted.filter(unplaced(form.time, form.start, form.columns.names))
    return noted.mapInArrow(ConvertedRejected(form), spark_schema(REJECTED))


def unplaced(time: str, start: str | None, columns: Container[str]) -> Column:
    """Rows without a time or a start, and those that start after their end. If `start` isn't among
    the columns, events have no duration."""
    end = quoted(time)
    if start is None or start not in columns:
        return end.isNull()
    return end.isNull() | quoted(start).isNull() | (quoted(start) > end)


def _file() -> Column:
    return F.col("_metadata.file_path").alias(_FILE)


def _has_texts(rows: DataFrame, form: RowFormat) -> bool:
    """Whether a text column must be converted to another type."""
    types = {f.name: f.dataType for f in rows.schema.fields}
    return any(
        isinstance(types.get(f.name), t.StringType) and not pa.types.is_string(f.type)
        for f in form.columns
    )


def _column(rows: DataFrame, field: pa.Field) -> Column:
    """The column cast to the wanted type; workers convert text."""
    wanted = spark_type(field.type)
    if field.name not in rows.columns:
        return F.lit(None).cast(wanted).alias(field.name)
    stored = rows.schema[field.name].dataType
    as_it_is = stored == wanted or isinstance(stored, t.StringType)
    return quoted(field.name) if as_it_is else quoted(field.name).cast(wanted).alias(field.name)


@dataclass(frozen=True)
class Converter:
    """Converts texts to values on a worker."""

    form: RowFormat

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[EventRows]:
        for batch in batches:
            for file in batch[_FILE].unique():
                file_rows = pa.Table.from_batches([batch]).filter(
                    pa.compute.equal(batch[_FILE], file)
                )
                block = LineBlock(local_path(file.as_py()), b"")
                table, faults = typed_columns(self.form, file_rows, block.file)
                lines = [RejectedLine(n, file_rows[_LINE][n].as_py(), f) for n, f in faults.items()]
                yield finish(self.form, block, table, faults, lines)


class ConvertedEvents(Converter):
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in self.rows(batches):
            yield from with_rejected(rows)


class ConvertedRejected(Converter):
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in self.rows(batches):
            yield from rows.rejected.to_batches()
