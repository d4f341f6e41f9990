"""Queries on data that may never end, of which some read the results of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from cepheid.options import Options
from cepheid.planner import Prepared, prepare
from cepheid.query.parsed_query import Query
from cepheid.query.runtimes import runtime_of
from cepheid.query.several import EVENTS, arranged, bound_step, match_all, name_of, numbered
from cepheid.runtime import Columns
from cepheid.sessions.session_events import EventColumns
from cepheid.streaming.chained_query import ChainedQuery, result_schema, results_known_after


def match_streams(data: Any, queries: Sequence[str | Query], options: Options) -> dict[str, Any]:
    """The matches of each query over streaming DataFrames, by its label or else by its name."""
    named = isinstance(data, Mapping)
    parsed = numbered(queries)
    steps = arranged(parsed, data.keys() if named else None)
    if not any(step.labels for step in steps):
        return match_all(data, parsed, options)
    from cepheid.spark.streaming.stream_runtime import SparkStream

    runtime = runtime_of(data)
    assert isinstance(runtime, SparkStream)
    schemas = runtime.columns(data)
    parts = chained_queries(parsed, schemas, EventColumns.of(schemas, options), options)
    streams = dict(data) if named else {EVENTS: data}
    chains = {part.name: part for part in parts}
    results = runtime.match_chains(chains, streams, named, options)
    return {name: results[name] for name in map(name_of, parsed)}


def one_prepared(query: Query, schema: Columns, options: Options) -> Prepared:
    bound = query.bind(schema, options)
    query.require_bounds(bound, options)
    return prepare(bound, options)


def chained_queries(
    queries: Sequence[Query], schema: Columns, columns: EventColumns, options: Options
) -> list[ChainedQuery]:
    """The queries in the order in which they depend on each other."""
    named = isinstance(schema, Mapping)
    plain = {n: stream.plain for n, stream in (columns.streams or {EVENTS: columns}).items()}
    parts: dict[str, ChainedQuery] = {}
    schemas: dict[str, pa.Schema] = {}
    for step in arranged(queries, schema.keys() if named else None):
        query = step.query
        if not step.labels:
            prepared = one_prepared(query, schema, options)
            part = ChainedQuery(step.name, prepared, columns.plain)
        else:
            base = {n: plain[n if named else EVENTS] for n in step.base}
            read = {**base, **{label: schemas[label] for label in step.labels}}
            inputs, merged, bound = bound_step(step, read, options)
            query.require_bounds(bound, options)
            prepared = prepare(bound, options)
            lag = max(_known(parts[label]) for label in step.labels)
            part = ChainedQuery(step.name, prepared, merged, step.base, step.labels, inputs, lag)
        schemas[step.name] = result_schema(part.prepared, part.columns)
        parts[step.name] = part
    return list(parts.values())


def _known(part: ChainedQuery) -> int:
    return part.lag + results_known_after(part.name, part.prepared, part.columns)
