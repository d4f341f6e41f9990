"""Answers on DataFrames of Spark: the parts of each group are brought together, and merged."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from cepheid.answers import AnswerFold
from cepheid.options import Limit
from cepheid.spark.columns.schema import spark_schema
from cepheid.spark.group_parts import PACKED, GroupParts
from cepheid.spark.start.session import PANDAS_NOTICE
from cepheid.spark.streaming.stateful.packed_rows import BUCKET, DATA, FIRST
from cepheid.streaming.cells import table_of

TASKS = 32
"""Tasks among which groups are divided, at most."""


def merge_parts(
    packed: DataFrame, parts: GroupParts, limit: Limit | None, until: int | None
) -> DataFrame:
    """The answers. At the end time passes to `until`; None is to infinity."""
    if parts.shape.whole:
        packed = _with_a_row(packed)
    rows = packed.repartition(parts.count, BUCKET)

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fold = AnswerFold(parts.shape, parts.matches, limit)
        for batch in batches:
            for data in batch.column(DATA):
                if data.is_valid:
                    fold.merge(table_of(data.as_buffer()))
        if until is None or not fold.windowed:
            yield from fold.finish()
        else:
            yield from fold.advance(until)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        return rows.mapInArrow(merge, spark_schema(parts.answers))


def _with_a_row(packed: DataFrame) -> DataFrame:
    """And a row without parts: a task without rows would not run, and all matches are a group even
    if there are none."""
    return packed.union(packed.sparkSession.createDataFrame([(FIRST, None)], PACKED))
