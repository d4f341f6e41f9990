"""The runtime for data in this process."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import Input, bind_streams, part_field
from cepheid.engine.match_schema import MATCH_END
from cepheid.engine.rows.clock import unplaced
from cepheid.errors import DataError
from cepheid.inprocess import execution
from cepheid.inprocess.analyze import analyze
from cepheid.inprocess.frames import (
    Batches,
    EventTable,
    Source,
    as_table,
    filtered,
    like,
    may_be_endless,
    to_arrow,
)
from cepheid.inprocess.merged_streams import merge, streams_of
from cepheid.inprocess.prepared_queries import prepared_for
from cepheid.inprocess.text_comparisons import as_texts, compared_by_order, looks_numeric
from cepheid.inprocess.threads import division_text
from cepheid.language import ast
from cepheid.options import Options, refuse_dead_letters, refuse_delay
from cepheid.planner import Prepared, prepare
from cepheid.runtime import Bindable, Columns, Explained, Place
from cepheid.statistics import Statistics
from cepheid.streaming.chained_query import merge_inputs


@dataclass(frozen=True)
class InProcess:
    """Runs queries over frames, tables and iterators of record batches."""

    place: Place = "process"

    def columns(self, data: Any) -> Columns:
        if isinstance(data, Mapping):
            return {name: self.columns(part) for name, part in data.items()}
        if isinstance(getattr(data, "schema", None), pa.Schema):
            return data.schema
        source = to_arrow(data)
        if isinstance(source, Batches):
            raise DataError("an iterator can be read only once: pass the schema of its batches")
        return source.schema

    def match(self, query: Bindable, data: Any, options: Options) -> Any:
        refuse_dead_letters(options)
        prepared, source = _prepared(query, data, options)
        if isinstance(source, EventTable):
            refuse_delay(options, "whole tables", "these are put in order anyway; leave it out")
        prepared.warn()
        _warn_of_texts(query.syntax, source)
        schema, batches = execution.run(prepared, source, options)
        return like(data, schema, batches)

    def explain(self, query: Bindable, data: Any, options: Options) -> Explained:
        prepared, source = _prepared(query, data, options)
        return Explained(prepared, _distribution(prepared, source, options), where="in process")

    def profile(self, query: Bindable, data: Any, options: Options) -> Explained:
        prepared, source = _prepared(query, data, options)
        profile, planned = execution.profile(prepared, source, options)
        return Explained(replace(prepared, planned=planned), profile=profile)

    def warm(self, query: Bindable, sample: Any, options: Options) -> int:
        """Compile what the query needs; returns how many kernels were compiled."""
        prepared, source = _prepared(query, sample, options)
        if not isinstance(source, EventTable):
            raise DataError("warm() needs a schema or a table: an iterator is read only once")
        return execution.warm(prepared, source, options)

    def rejected(self, data: Any, time: str, start: str | None) -> Any:
        if isinstance(data, Mapping):
            return {name: self.rejected(part, time, start) for name, part in data.items()}
        source = to_arrow(data)
        if isinstance(source, Batches):
            raise DataError(
                "rejected() needs a table or a frame: an iterator could be read only once"
            )
        parts = [(time, "time")] if start is None else [(time, "time"), (start, "start")]
        for name, part in parts:
            part_field(source.schema, name, part)
        return filtered(data, unplaced(source.read(list(dict(parts))), time, start))

    def analyze(self, query: Bindable, data: Any, options: Options, rows: int) -> Statistics:
        return analyze(query, data, options, rows)

    def repeatable(self, data: Any, reader: str) -> Any:
        sources = streams_of(data) if isinstance(data, Mapping) else {"": to_arrow(data)}
        if may_be_endless(sources):
            raise DataError(
                f"{reader}, which an iterator gives only once: pass a table, a frame, or a list of "
                "record batches"
            )
        tables = {name: as_table(source) for name, source in sources.items()}
        return tables if isinstance(data, Mapping) else tables[""]

    def match_inputs(
        self,
        bound: BoundQuery,
        streams: Mapping[str, Any],
        inputs: Mapping[str, Input],
        merged: pa.Schema,
        options: Options,
    ) -> pa.Table:
        prepared = prepare(bound, options)
        prepared.warn()
        table = merge_inputs(streams, inputs, merged)
        schema, batches = execution.run(prepared, EventTable.of(table), options)
        return pa.Table.from_batches(batches, schema)

    def union(self, matches: Sequence[pa.Table], counts: Sequence[str]) -> pa.Table:
        table = pa.concat_tables(matches)
        for name in counts:
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table[name].cast(pa.int32()))
        return table.sort_by(MATCH_END)

    def like(self, data: Any, matches: pa.Table) -> Any:
        return like(data, matches.schema, iter(matches.to_batches()))

    def collected(self, data: Any) -> Any:
        return data

    def first_events(self, data: Any, time: str, rows: int | None) -> tuple[Any, int]:
        tables = data.values() if isinstance(data, Mapping) else (data,)
        return data, sum(table.num_rows for table in tables)

    def keep_events(self, data: Any, *_: Any) -> None:
        """They are here."""

    def near(self, data: Any, time: str, *_: Any) -> tuple[Any, int]:
        return self.first_events(data, time, None)


def _prepared(query: Bindable, data: Any, options: Options) -> tuple[Prepared, Source]:
    """Bind the query to the data and plan it; also returns the data as Arrow."""
    if not isinstance(data, Mapping):
        source = to_arrow(data)
        bound, prepared = prepared_for(query, source.schema, options)
        if may_be_endless(source):
            query.require_bounds(bound, options)
        return prepared, source
    streams = streams_of(data)
    schemas = {name: part.schema for name, part in streams.items()}
    merged, every = bind_streams(schemas, options)
    bound = query.bind(schemas, options)
    chosen = {n: part for n, part in streams.items() if n in (bound.schema.streams or ())}
    if may_be_endless(chosen):
        query.require_bounds(bound, options)
    return prepare(bound, options), merge(chosen, merged, every)


def _distribution(
    prepared: Prepared, source: Source, options: Options
) -> tuple[tuple[str, str], ...]:
    """How the work is divided among threads, if it may be."""
    rows = source.rows if isinstance(source, EventTable) else None
    text = None
    if rows is not None:
        text = division_text(prepared.plan, prepared.query, rows, options)
    return () if text is None else (("threads", text),)


def _warn_of_texts(query: ast.Query, source: Source) -> None:
    """Warn of comparisons of text columns that seem to hold numbers."""
    if not isinstance(source, EventTable):
        return
    columns = {f.name.lower(): f.name for f in source.schema if pa.types.is_string(f.type)}
    for text, names in compared_by_order(query).items():
        if all(name.lower() in columns for name in names):
            table = source.read([columns[name.lower()] for name in sorted(names)])
            if all(map(looks_numeric, table.columns)):
                warnings.warn(as_texts(text, "cast the columns to numbers"), stacklevel=5)
