"""The runtime for streaming DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from cepheid.errors import DataError
from cepheid.options import Options
from cepheid.runtime import Bindable, Explained, Place
from cepheid.spark.batch import (
    before_engine,
    frames_of,
    source_of,
)
from cepheid.spark.batch_runtime import SparkBatch
from cepheid.spark.columns.entrance import entered
from cepheid.spark.streaming.chain_letters import with_letters
from cepheid.spark.streaming.chained_streams import ChainedStreams
from cepheid.spark.streaming.clock.ahead import hold_back
from cepheid.spark.streaming.clock.time import delay_of, watermark_of, with_watermark
from cepheid.spark.streaming.explain import explain_stream
from cepheid.spark.streaming.pipeline import match_stream
from cepheid.streaming.chained_query import ChainedQuery


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
        return Explained(source.prepared, (*distribution, *before_engine(source)), prompt=True)

    def profile(self, query: Bindable, data: Any, options: Options) -> Explained:
        source_of(query, entered(data), options)  # raises what is wrong with the query
        raise DataError("analyze=True runs the query to its end, and a stream has none")

    def first_events(self, data: Any, time: str, rows: int | None) -> tuple[Any, int]:
        raise DataError(
            "a stream has no events that can be read again: pass a DataFrame of events that are "
            "stored"
        )

    def keep_events(self, data: Any, options: Options, *_: Any) -> None:
        self.first_events(data, options.time, None)

    def match_chains(
        self,
        queries: Mapping[str, ChainedQuery],
        data: Mapping[str, DataFrame],
        named: bool,
        options: Options,
    ) -> dict[str, DataFrame]:
        """The matches of each query, of which some read the matches of others. Each result is a
        stream of its own, with all operators that it needs."""
        frames = entered(data)
        given = tuple(frames.values())
        if not all(frame.isStreaming for frame in given):
            raise DataError("several streams must all be streaming DataFrames, or none of them")
        watermark = watermark_of(given, options.time)
        kept = {n: with_watermark(hold_back(f, options), options.time) for n, f in frames.items()}
        wanted, options = options, replace(options, dead_letters=False)
        chains = ChainedStreams(queries, kept, named, options, watermark)
        results = {name: chains.result(query) for name, query in queries.items()}
        if wanted.dead_letters is False:
            return results
        return {n: with_letters(chains, queries[n], found, wanted) for n, found in results.items()}
