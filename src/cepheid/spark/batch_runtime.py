"""The runtime for Spark DataFrames that are no streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import Input
from cepheid.options import Options
from cepheid.runtime import Bindable, Columns, Explained, Place
from cepheid.spark import batch
from cepheid.spark.analyze import analyze
from cepheid.spark.columns.schema import arrow_schema
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
        if rows is not None and total > rows:
            data = data.filter(data[time].isNotNull()).orderBy(time).limit(rows)
        return data.toArrow(), total
