"""Answers on Spark: the values of the matches are shuffled by group, and folded there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.algebra.answer_shape import Answers
from cepheid.answers import AnswerFold
from cepheid.engine.match_schema import MATCH_END
from cepheid.options import Limit
from cepheid.spark.columns.column_names import named
from cepheid.spark.columns.schema import spark_schema
from cepheid.spark.start.session import PANDAS_NOTICE


def fold_matches(
    matches: DataFrame, schema: pa.Schema, shape: Answers, limit: Limit | None
) -> DataFrame:
    """The answers. Matches of one group go to one task, all of them if there is nothing to group
    by, or if LIMIT counts answers."""
    if shape.groups and shape.most is None:
        rows = matches.repartition(*(_partitioned(matches, name) for name in shape.groups))
    else:
        rows = _with_a_row(matches).repartition(1)
    result = AnswerFold(shape, schema).schema

    def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        folding = AnswerFold(shape, schema, limit)
        for batch in batches:
            found = batch.filter(pc.is_valid(batch.column(MATCH_END)))
            folding.push(found.cast(schema))
        yield from folding.finish()

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        ordered = rows.sortWithinPartitions(named(MATCH_END))
        return ordered.mapInArrow(fold, spark_schema(result))


def _with_a_row(matches: DataFrame) -> DataFrame:
    """And a row of NULLs, which is no match: a task without rows would not run, and all matches are
    a group even if there are none."""
    nulls = {field.name: None for field in matches.schema}
    nullable = t.StructType([t.StructField(f.name, f.dataType) for f in matches.schema])
    return matches.union(matches.sparkSession.createDataFrame([tuple(nulls.values())], nullable))


def _partitioned(matches: DataFrame, name: str) -> Column:
    """Spark's hash tells -0.0 from 0.0, and SQL's groups don't."""
    real = isinstance(matches.schema[name].dataType, t.DoubleType | t.FloatType)
    return named(name) + F.lit(0.0) if real else named(name)
