"""MATCH_RECOGNIZE over a DataFrame: Spark partitions and sorts the rows, workers match them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from cepheid.algebra.kinds import check_readable, readable, reasons
from cepheid.errors import UnsupportedError
from cepheid.language.diagnostics import Source
from cepheid.row_patterns.bound import BoundRecognition, bind
from cepheid.row_patterns.recognize import column_types
from cepheid.row_patterns.recognize import recognize as recognize_table
from cepheid.row_patterns.syntax import Recognition, SortKey
from cepheid.row_patterns.whole_partitions import whole_partitions
from cepheid.spark.batch_sizes import gather
from cepheid.spark.column_names import named
from cepheid.spark.entrance import entered
from cepheid.spark.schema import event_schema, spark_schema
from cepheid.spark.session import PANDAS_NOTICE, adopt_session


def recognize(recognition: Recognition, source: Source, frame: DataFrame) -> DataFrame:
    """The rows that MATCH_RECOGNIZE returns. A wrong clause is an error here, before any job."""
    if frame.isStreaming:
        raise UnsupportedError(
            "MATCH_RECOGNIZE reads tables, not streams: write the pattern in Cepheid's own "
            "language, with `cep.match`"
        )
    adopt_session(frame.sparkSession)
    events = entered(frame)
    schema = readable(event_schema(events))
    bound = bind(recognition, column_types(schema), source)
    check_readable(reasons(schema), bound.reads)
    read = pa.schema([schema.field(name) for name in bound.reads])
    result = recognize_table(bound, read.empty_table()).schema
    rows = _arranged(events.select(*(named(name) for name in bound.reads)), bound)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_partitions(gather(batches), bound.partition):
            found = recognize_table(bound, table)
            yield from found.cast(result).to_batches()

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        return rows.mapInArrow(run, spark_schema(result))


def _arranged(rows: DataFrame, bound: BoundRecognition) -> DataFrame:
    keys = [named(name) for name in bound.partition]
    order = [*keys, *map(_sort_column, bound.order)]
    if keys:
        rows = rows.repartition(*keys)
    else:
        warnings.warn(
            "MATCH_RECOGNIZE without PARTITION BY runs in one task: Spark can't divide the work",
            stacklevel=6,
        )
        rows = rows.repartition(1)
    return rows.sortWithinPartitions(*order) if order else rows


def _sort_column(key: SortKey) -> Column:
    column = named(key.column)
    first = not key.descending if key.nulls_first is None else key.nulls_first
    if key.descending:
        return column.desc_nulls_first() if first else column.desc_nulls_last()
    return column.asc_nulls_first() if first else column.asc_nulls_last()
