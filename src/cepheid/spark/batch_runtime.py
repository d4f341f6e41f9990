"""The runtime for Spark DataFrames that are no streams."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import Input
from cepheid.options import Options
from cepheid.runtime import Bindable, Columns, Explained, Place
from cepheid.spark import batch
from cepheid.spark.analyze import analyze
from cepheid.spark.columns.column_names import in_quotes
from cepheid.spark.columns.predicates import microseconds
from cepheid.spark.columns.schema import arrow_schema
from cepheid.spark.kept_events import SparkEvents, keep_events
from cepheid.statistics import Statistics


@dataclass(frozen=True)
class SparkBatch:
    """Runs queries over DataFrames: each task runs an engine over its partitions."""

    place: Place = "batch"

    def columns(self, data: Any) -> Columns:
        if isinstance(data, Mapping):
            return {name: self.columns(part) for name, part in data.items()}
        return arrow_schema(data.schema)

    def match(self, query: Bindable, data: Any, options: Options) -> DataFrame:
        return batch.match(query, data, options)

    def explain(self, query: Bindable, data: Any, options: Options) -> Explained:
        return batch.explain(query, data, options)

    def profile(self, query: Bindable, data: Any, options: Options) -> Explained:
        explained = self.explain(query, data, options)
        return replace(explained, profile=batch.profile(query, data, options))

    def rejected(self, data: Any, time: str, start: str | None) -> Any:
        return batch.rejected(data, time, start)

    def analyze(self, query: Bindable, data: Any, options: Options, rows: int) -> Statistics:
        return analyze(query, data, options, rows)

    def repeatable(self, data: Any, reader: str) -> Any:
        return data

    def match_inputs(
        self,
        bound: BoundQuery,
        streams: Mapping[str, Any],
        inputs: Mapping[str, Input],
        merged: pa.Schema,
        options: Options,
    ) -> DataFrame:
        return batch.match_inputs(bound, streams, inputs, merged, options)

    def union(self, matches: Sequence[DataFrame], counts: Sequence[str]) -> DataFrame:
        whole = reduce(lambda left, right: left.union(right), matches)
        return whole.withColumns({name: whole[name].cast("int") for name in counts})

    def like(self, data: Any, matches: DataFrame) -> DataFrame:
        return matches

    def collected(self, data: Any) -> Any:
        return data.toArrow()

    def first_events(self, data: Any, time: str, rows: int | None) -> tuple[Any, int]:
        if isinstance(data, Mapping):
            parts = {name: self.first_events(part, time, rows) for name, part in data.items()}
            tables = {name: table for name, (table, _) in parts.items()}
            return tables, sum(total for _, total in parts.values())
        total = data.count()
        return _first(data, time, rows, total), total

    def keep_events(
        self,
        data: Any,
        options: Options,
        columns: Collection[str],
        key: str | None,
        rows: int | None,
        small: int,
    ) -> SparkEvents | None:
        return keep_events(data, options, columns, key, rows, small)

    def near(
        self,
        data: Any,
        time: str,
        key: tuple[str, Collection[Any]] | None,
        span: tuple[int, int],
        rows: int | None,
    ) -> tuple[Any, int]:
        if isinstance(data, Mapping):
            parts = {name: self.near(part, time, key, span, rows) for name, part in data.items()}
            tables = {name: table for name, (table, _) in parts.items()}
            return tables, sum(total for _, total in parts.values())
        if key is not None:
            wanted = F.col(in_quotes(key[0])).isin(list(key[1]))
        else:
            moment = microseconds(F.col(in_quotes(time)), data.schema[time].dataType)
            wanted = moment.between(*span)
        inside = data.filter(wanted)
        return _first(inside, time, rows, inside.count()), data.count()


def _first(data: DataFrame, time: str, rows: int | None, total: int) -> Any:
    """The first rows by time, if there are more."""
    if rows is not None and total > rows:
        data = data.filter(F.col(in_quotes(time)).isNotNull()).orderBy(in_quotes(time)).limit(rows)
    return data.toArrow()
