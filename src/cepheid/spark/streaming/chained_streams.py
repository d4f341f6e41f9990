"""Queries over streaming DataFrames that read each other's matches.

The result of each is a stream of its own, with all operators that it needs. Queries whose keys
agree share an operator: a match is then read in the bucket where it was found. The others are
operators one after the other, with a shuffle in between.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cepheid.algebra.expressions import Attribute
from cepheid.algebra.kinds import is_unreadable
from cepheid.algebra.patterns import Leaf
from cepheid.algebra.query import Kind
from cepheid.engine.match_schema import output_schema
from cepheid.options import Options
from cepheid.spark.batch import merge_inputs, merge_streams, read_events
from cepheid.spark.columns.column_names import safe, types_of
from cepheid.spark.columns.schema import event_schema, spark_schema, spark_type
from cepheid.spark.group_parts import PACKED
from cepheid.spark.partitions.arrange import EventSource
from cepheid.spark.partitions.layout import ByKey, Rows, in_events
from cepheid.spark.start.session import PANDAS_NOTICE, adopt_session
from cepheid.spark.streaming.answer_pipeline import answer_parts, answer_stream, folding
from cepheid.spark.streaming.clock.time import Watermark
from cepheid.spark.streaming.pipeline import (
    ChainLink,
    job_of,
    match_stream,
    observed,
    processed,
    refuse_in_chains,
)
from cepheid.spark.streaming.stateful.buckets import bucketed, stream_layout
from cepheid.spark.streaming.stateful.chain_work import ChainWork
from cepheid.spark.streaming.stateful.packed_rows import (
    BUCKET_COLUMN,
    DATA,
    packing,
    unpacking,
)
from cepheid.spark.streaming.status.reports import observe_results
from cepheid.streaming.buckets.bucket import Job
from cepheid.streaming.buckets.chain_bucket import ChainJob
from cepheid.streaming.chained_query import ChainedQuery

Columns = tuple[str, ...]


@dataclass(frozen=True)
class OperatorQuery:
    """A query of an operator that runs several; its rows have their bucket by these columns.
    `source` has those that come to it from outside, if any do."""

    query: ChainedQuery
    source: EventSource
    columns: Columns
    outside: bool


@dataclass(frozen=True)
class ChainedStreams:
    """The queries by their names, and the streams that they read: several by their names, or a
    single one."""

    queries: Mapping[str, ChainedQuery]
    streams: Mapping[str, DataFrame]
    named: bool
    options: Options
    watermark: Watermark

    def result(self, query: ChainedQuery, last: bool = True, counts: bool = True) -> DataFrame:
        """The matches of a query. Unless it is the `last`, others read them. If it `counts`, one of
        its operators says how many events there were."""
        together = self.together(query)
        counting = query
        while not _reads_events(counting) and counting.labels[0] in together:
            counting = self.queries[counting.labels[0]]
        here = counts and _reads_events(counting)
        members = []
        for name, columns in together.items():
            member = self.queries[name]
            results = {
                label: self.result(
                    self.queries[label],
                    False,
                    counts and not here and member is counting and label == member.labels[0],
                )
                for label in member.labels
                if label not in together
            }
            outside = bool(results) or _reads_events(member)
            members.append(OperatorQuery(member, self.source(member, results), columns, outside))
        link = ChainLink(query.labels, query.lag, last, here)
        if len(members) == 1:
            source = members[0].source
            return match_stream(source, query.columns, self.options, self.watermark, link)
        return match_together(members, self.options, self.watermark, link, counting.name)

    def source(self, query: ChainedQuery, results: Mapping[str, DataFrame]) -> EventSource:
        """What the query reads of the streams, and results of others."""
        if not query.labels:
            chosen = query.prepared.schema.streams or ()
            read = {name: frame for name, frame in self.streams.items() if name in chosen}
            events = merge_streams(read, query.columns) if self.named else self._only
            return read_events(query.prepared, events, query.columns, self.options)
        base = {name: self.streams[name] if self.named else self._only for name in query.base}
        frames = {**base, **results}
        inputs = {name: of for name, of in query.inputs.items() if name in frames}
        if frames:
            events = merge_inputs(frames, inputs, query.columns)
        else:
            events = next(iter(self.streams.values())).select()  # of which no row is read
        there = types_of(events)
        missing = (f for f in query.columns if f.name not in there and not is_unreadable(f))
        events = events.withColumns(
            {safe(f.name): F.lit(None).cast(spark_type(f.type)) for f in missing}
        )
        source = read_events(query.prepared, events, query.columns, self.options)
        return replace(source, classed=len(results) == len(query.labels))

    @property
    def _only(self) -> DataFrame:
        (events,) = self.streams.values()
        return events

    # ── who shares an operator ──

    def together(self, query: ChainedQuery) -> dict[str, Columns]:
        """The queries that one operator can run, in an order in which every label is there before
        it is read, and the columns by which each has its buckets."""
        chosen: dict[str, Columns] = {}
        apart: set[str] = set()

        def agree(reader: ChainedQuery, columns: Columns) -> bool:
            """Whether all who read the same query find its matches in the same bucket."""
            for label in reader.labels:
                upstream = self.queries[label]
                of_label = self._columns_of(upstream, reader, columns)
                if of_label is None:
                    apart.add(label)
                    if not columns:
                        return False
                    continue
                if chosen.get(label, of_label) != of_label:
                    return False
                if label not in chosen and not agree(upstream, of_label):
                    return False
            chosen[reader.name] = columns
            return True

        own = self._key(query)
        if own is None or not agree(query, own) or apart & chosen.keys():
            return {query.name: ()}
        return chosen

    def _key(self, query: ChainedQuery) -> Columns | None:
        """The columns by which the rows of a query have their buckets; none at all, if it finds
        its matches in those of another query, one by one. None if there is no such key."""
        if query.prepared.query.nothing is not None or in_events(query.prepared.plan):
            return None
        match stream_layout(self.source(query, {}), self.options):
            case ByKey() as layout if layout.uniform:
                return layout.columns[0]
            case Rows() if len(query.labels) == 1 and not query.base:
                return ()
            case _:
                return None

    def _columns_of(
        self, upstream: ChainedQuery, reader: ChainedQuery, columns: Columns
    ) -> Columns | None:
        """The attributes of a query's events that its reader has these columns from, if events
        that agree on them find each other."""
        bound = upstream.prepared.query
        key = self._key(upstream)
        if bound.answers is not None or (key is None and not isinstance(bound.pattern, Leaf)):
            return None
        if not columns:
            return key
        outputs = {output.name: output.expression for output in bound.outputs}
        found: list[str] = []
        for column in columns:
            match outputs.get(column):
                case Attribute(variable, name) if bound.variables[variable].kind is Kind.SINGLE:
                    if key and name not in key:
                        return None
                    found.append(name)
                case _:
                    return None
        return tuple(found) if self._same_types(upstream, found, reader, columns) else None

    def _same_types(
        self, upstream: ChainedQuery, names: Sequence[str], reader: ChainedQuery, columns: Columns
    ) -> bool:
        """Whether equal values have the same bucket."""
        given, read = self.source(upstream, {}), self.source(reader, {})
        return all(
            given.types[name] == read.types[column]
            for name, column in zip(names, columns, strict=True)
        )


def _reads_events(query: ChainedQuery) -> bool:
    return bool(query.base) or not query.labels


# ── one operator ─────────────────────────────────────────────────────────────


def match_together(
    members: Sequence[OperatorQuery],
    options: Options,
    watermark: Watermark,
    link: ChainLink,
    counting: str,
) -> DataFrame:
    """The matches of the last of the queries, all of which one operator runs."""
    refuse_in_chains(options)
    watermark = replace(watermark, delayed=True)
    query, prepared = members[-1].query, members[-1].query.prepared
    output = output_schema(prepared.plan, query.columns)
    shape = prepared.query.answers
    parts = None if shape is None else answer_parts(prepared, shape, output, options)
    result = output if parts is None else parts.answers
    adopt_session(members[0].source.events.sparkSession)
    run = uuid4().hex[:12]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        packed = _together(members, options, watermark, link, counting, run)
        if parts is not None:
            folded = packed.mapInArrow(folding(parts), PACKED)
            packed = answer_stream(folded, parts, prepared, options, watermark, run, link.lag)
        return packed.mapInArrow(unpacking(result), spark_schema(result))


def _together(
    members: Sequence[OperatorQuery],
    options: Options,
    watermark: Watermark,
    link: ChainLink,
    counting: str,
    run: str,
) -> DataFrame:
    jobs: list[tuple[ChainedQuery, Job]] = []
    packed: list[DataFrame] = []
    arriving: dict[str, pa.Schema] = {}
    for number, member in enumerate(members):
        query, layout = member.query, ByKey((member.columns,))
        query.prepared.warn()
        source = replace(member.source, results=query.labels)
        here = link.counts and query.name == counting
        own = ChainLink(query.labels, query.lag, False, here)
        job = job_of(source, layout, options, watermark, own)
        nullable = pa.schema([field.with_nullable(True) for field in job.schema])
        jobs.append((query, replace(job, schema=nullable)))
        if not member.outside:
            continue
        source = replace(source, events=observed(source, None, f"{run} {number}", own))
        rows = bucketed(source, layout, job.buckets)
        arriving[query.name] = event_schema(rows.drop(BUCKET_COLUMN))
        pack = packing(pa.int32(), source.plan.schema.time, (), query.name)
        packed.append(rows.mapInArrow(pack, PACKED))
    whole = reduce(DataFrame.union, packed)
    work = ChainWork(ChainJob(tuple(jobs), counting), arriving, watermark, run)
    results = observe_results(processed(whole, work), run, left_out=link.left_out)
    return results.filter(F.col(DATA).isNotNull())
