"""The runtime for streaming DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import Input
from cepheid.errors import DataError, UnsupportedError
from cepheid.options import Options
from cepheid.runtime import Bindable, Explained, Place
from cepheid.spark.batch import before_engine, frames_of, source_of
from cepheid.spark.batch_runtime import SparkBatch
from cepheid.spark.columns.entrance import entered
from cepheid.spark.streaming.clock.time import delay_of, watermark_of
from cepheid.spark.streaming.explain import explain_stream
from cepheid.spark.streaming.pipeline import match_stream

CHAINED = (
    "queries over a stream can't read each other's matches: write those to a table, and read that "
    "as a stream"
)


@dataclass(frozen=True)
class SparkStream(SparkBatch):
    """Runs queries over streaming DataFrames, with the state in buckets of keys. What depends on
    columns alone is as for other DataFrames."""

    place: Place = "stream"

    def match(self, query: Bindable, data: Any, options: Options) -> DataFrame:
        data = entered(data)
        source, schema = source_of(query, data, options)
        watermark = watermark_of(frames_of(data), options.time)
        return match_stream(source, schema, options, watermark)

    def explain(self, query: Bindable, data: Any, options: Options) -> Explained:
        data = entered(data)
        source, _ = source_of(query, data, options)
        delays = [delay_of(frame, options.time) for frame in frames_of(data)]
        distribution = explain_stream(source, options, delays)
        return Explained(source.prepared, (*distribution, *before_engine(source)))

    def profile(self, query: Bindable, data: Any, options: Options) -> Explained:
        source_of(query, entered(data), options)  # raises what is wrong with the query
        raise DataError("analyze=True runs the query to its end, and a stream has none")

    def first_events(self, data: Any, time: str, rows: int | None) -> tuple[Any, int]:
        raise DataError(
            "a stream has no events that can be read again: pass a DataFrame of events that are "
            "stored"
        )

    def match_inputs(
        self,
        bound: BoundQuery,
        streams: Mapping[str, Any],
        inputs: Mapping[str, Input],
        merged: pa.Schema,
        options: Options,
    ) -> DataFrame:
        raise UnsupportedError(CHAINED)
