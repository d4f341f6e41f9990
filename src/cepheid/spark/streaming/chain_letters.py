"""Dead letters of queries that read each other's matches.

Which rows are late is the same for all operators of a batch: those that the watermark had passed.
So one operator more finds them for all queries, beside those that match, and each comes out once,
however many queries could take it.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import uuid4

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cepheid.algebra.schemas import Input, bind_inputs
from cepheid.algebra.types import START_COLUMN, STREAM_COLUMN, TIME_COLUMN, Schema
from cepheid.engine.rows.clock import times
from cepheid.options import Options
from cepheid.spark.batch import merge_inputs
from cepheid.spark.columns.column_names import named, safe
from cepheid.spark.columns.extraction import with_paths
from cepheid.spark.columns.schema import event_schema, spark_schema
from cepheid.spark.group_parts import PACKED
from cepheid.spark.partitions.layout import Layout, Rows
from cepheid.spark.start.session import PANDAS_NOTICE
from cepheid.spark.streaming.chained_streams import ChainedStreams
from cepheid.spark.streaming.clock.ahead import AHEAD
from cepheid.spark.streaming.clock.time import Watermark
from cepheid.spark.streaming.letters import DEAD_LETTER, Letters, wanted_letters
from cepheid.spark.streaming.pipeline import processed
from cepheid.spark.streaming.stateful.bucket_work import Wakes, arrived
from cepheid.spark.streaming.stateful.buckets import (
    DEFAULT,
    in_time_rows,
    spread,
    stream_layout,
    taken_rows,
)
from cepheid.spark.streaming.stateful.packed_rows import (
    BUCKET_COLUMN,
    DATA,
    REASON_COLUMN,
    REJECTED,
    packing,
    unpacking,
)
from cepheid.spark.streaming.status.reports import NO_REPORT, observe_read
from cepheid.streaming.cells import Cells, arrow_bytes
from cepheid.streaming.chained_query import ChainedQuery


@dataclass(frozen=True)
class LateRows:
    """Hands out the rows that are late, and those that were rejected before. `schema` is that of
    rows with a time."""

    letters: Letters
    schema: pa.Schema
    watermark: Watermark

    def step(
        self, number: object, cells: Cells, frames: Iterator[pd.DataFrame], reached: int
    ) -> Generator[pd.DataFrame, None, Wakes]:
        packed, _, _ = arrived(frames)
        passed = self.watermark.ticks(reached)
        for table in packed[None]:
            rows = table.cast(self.schema).combine_chunks()
            at = times(rows[TIME_COLUMN].combine_chunks())
            yield from _handed_out(self.letters.late(rows.filter(pa.array(at <= passed))))
        for table in packed[REJECTED]:
            yield from _handed_out(self.letters.rejected(table))
        return None


def _handed_out(letters: Iterator[pa.RecordBatch]) -> Iterator[pd.DataFrame]:
    for batch in letters:
        yield pd.DataFrame({DATA: [arrow_bytes(batch)], **NO_REPORT})


def with_letters(
    chains: ChainedStreams, query: ChainedQuery, matches: DataFrame, options: Options
) -> DataFrame:
    """The matches of a query, and the dead letters of all events that it reads, also by way of
    other queries. `options` say which columns are kept of each."""
    readers = tuple(dict.fromkeys(_readers(chains, query)))
    run = uuid4().hex[:12]
    rows, schema = _events(chains, readers, options)
    rows = observe_read(rows, f"{run} letters", F.lit(True), counted=False)
    rows, in_time = in_time_rows(rows, schema, True)
    known, taken = rows.columns, F.lit(False)
    for number, reader in enumerate(readers):
        source = chains.source(chains.queries[reader], {})
        rows = with_paths(rows, source.plan.required).withColumn(
            STREAM_COLUMN, _stream(chains.queries[reader], chains)
        )
        if not (reader == query.name and _alone(query, stream_layout(source, options))):
            rows = rows.withColumn(f"__taken{number}", taken_rows(source, in_time))
            taken |= named(f"__taken{number}")
    required = chain.from_iterable(chains.queries[n].prepared.plan.required for n in readers)
    rows = rows.withColumn(safe(options.time), named(TIME_COLUMN))
    letters = wanted_letters(rows, _read(required, known, options), _schema(matches), options)
    assert letters is not None
    result = _schema(matches).append(letters.field)
    count = options.buckets or DEFAULT
    bucket = F.when(in_time, spread(F.xxhash64(named(TIME_COLUMN)), count))
    rows = rows.filter(~in_time | taken).select(
        *(named(name) for name in dict.fromkeys((TIME_COLUMN, *letters.columns.names))),
        named(REASON_COLUMN),
        bucket.alias(BUCKET_COLUMN),
    )
    arriving = event_schema(rows.drop(BUCKET_COLUMN, REASON_COLUMN))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        packed = rows.mapInArrow(packing(pa.int32(), TIME_COLUMN), PACKED)
        found = processed(packed, LateRows(letters, arriving, chains.watermark))
        found = found.filter(F.col(DATA).isNotNull())
        of_rows = found.mapInArrow(unpacking(result), spark_schema(result))
    none = F.lit(None).cast(of_rows.schema[DEAD_LETTER].dataType)
    return matches.withColumn(DEAD_LETTER, none).union(of_rows)


def _readers(chains: ChainedStreams, query: ChainedQuery) -> Iterator[str]:
    """The queries that read the events, of those that one needs."""
    for label in query.labels:
        yield from _readers(chains, chains.queries[label])
    if query.base or not query.labels:
        yield query.name


def _events(
    chains: ChainedStreams, readers: Sequence[str], options: Options
) -> tuple[DataFrame, Schema]:
    """The rows that some of them read, with the columns that any of them has."""
    names = {name for reader in readers for name in _streams(chains.queries[reader], chains)}
    frames = {name: frame for name, frame in chains.streams.items() if name in names}
    inputs = {
        name: Input(event_schema(frame.drop(AHEAD)), options.time, options.start, options.type)
        for name, frame in frames.items()
    }
    merged, schema = bind_inputs(inputs, options)
    merged = merged.append(merged.field(TIME_COLUMN).with_name(AHEAD))
    return merge_inputs(frames, inputs, merged), schema


def _streams(query: ChainedQuery, chains: ChainedStreams) -> Collection[str]:
    if not chains.named:
        return chains.streams.keys()
    return query.base if query.labels else query.prepared.schema.streams or ()


def _stream(query: ChainedQuery, chains: ChainedStreams) -> Column:
    """The stream of a row, as a query calls it that reads results beside one without a name."""
    if chains.named or not query.labels or query.inputs[query.base[0]].type is not None:
        return named(STREAM_COLUMN)
    return F.lit(query.base[0])


def _alone(query: ChainedQuery, layout: Layout) -> bool:
    """Whether a match of its own is a single event, which is never late."""
    return not query.labels and query.prepared.query.answers is None and isinstance(layout, Rows)


def _read(required: Iterable[str], known: Sequence[str], options: Options) -> Iterator[str]:
    """The columns of a dead letter, as they are called in the data."""
    yield options.time
    roles = {START_COLUMN: options.start, STREAM_COLUMN: options.type or STREAM_COLUMN}
    for name in required:
        given = roles.get(name, name)
        if given is not None and name != TIME_COLUMN and (safe(given) in known or "." in given):
            yield given


def _schema(matches: DataFrame) -> pa.Schema:
    return event_schema(matches)
