"""From a streaming DataFrame of events to one of matches.

Filter and prune in Spark, give each row its bucket, pack the rows of a bucket into Arrow, and let
the stateful operator match bucket by bucket; then unpack its matches. Nothing runs before the
caller starts the query, and then batch after batch, as Spark's checkpoints say: a batch that fails
is done again from the state before it, so every match comes out exactly once.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.algebra.types import STREAM_COLUMN
from cepheid.engine.match_schema import output_schema
from cepheid.engine.rows.order import in_order
from cepheid.engine.rows.ties import tied_by
from cepheid.errors import OptionError, StreamError
from cepheid.options import Options
from cepheid.plan.reads import kept_columns
from cepheid.spark.columns.column_names import named
from cepheid.spark.columns.schema import event_schema, spark_schema, spark_type
from cepheid.spark.group_parts import PACKED
from cepheid.spark.partitions.arrange import EventSource, placed, relevant_rows, task_of
from cepheid.spark.partitions.batch_sizes import gather
from cepheid.spark.partitions.layout import Layout, Rows, Single
from cepheid.spark.partitions.worker import Task
from cepheid.spark.start.session import PANDAS_NOTICE, adopt_session
from cepheid.spark.streaming.answer_pipeline import (
    answer_parts,
    answer_stream,
    folding,
)
from cepheid.spark.streaming.clock.ahead import AHEAD
from cepheid.spark.streaming.clock.heartbeat import heartbeat_of, with_clock
from cepheid.spark.streaming.clock.time import Watermark
from cepheid.spark.streaming.letters import Letters, wanted_letters
from cepheid.spark.streaming.stateful.bucket_work import BucketWork
from cepheid.spark.streaming.stateful.buckets import (
    ONE_BUCKET,
    bucket_count,
    bucket_numbers,
    bucket_type,
    bucketed,
    by_single_key,
    counts_keys,
    row_schema,
    stream_layout,
)
from cepheid.spark.streaming.stateful.packed_rows import (
    BUCKET,
    BUCKET_COLUMN,
    DATA,
    REASON_COLUMN,
    Mapped,
    divided,
    filled,
    packing,
    unpacking,
)
from cepheid.spark.streaming.stateful.processor import Processor, Work
from cepheid.spark.streaming.status.reports import (
    RESULT,
    observe_each,
    observe_read,
    observe_results,
)
from cepheid.streaming.buckets.bucket import Job
from cepheid.streaming.counted_keys import CountedKeys
from cepheid.streaming.signature import found_signature

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True)
class ChainLink:
    """The place of a query among queries that read each other's results. Its rows wait for the
    watermark, so that all operators agree on which rows are late. `labels` are the streams of
    results that it reads, known up to `lag` after their ends; `last`: nothing reads its own.
    Of several that read the events, one `counts` them."""

    labels: tuple[str, ...]
    lag: int
    last: bool
    counts: bool

    @property
    def left_out(self) -> tuple[str, ...]:
        """Figures that others tell."""
        matches = () if self.last else ("matches",)
        return matches if self.counts else (*matches, "events", "late", "ties")


def match_stream(
    source: EventSource,
    schema: pa.Schema,
    options: Options,
    watermark: Watermark,
    link: ChainLink | None = None,
) -> DataFrame:
    """The matches as a streaming DataFrame."""
    source.prepared.warn()
    if link is not None:
        refuse_in_chains(options)
        watermark = replace(watermark, delayed=True)
        source = replace(source, results=link.labels)
    output = output_schema(source.plan, schema)
    shape = source.prepared.query.answers
    parts = None if shape is None else answer_parts(source.prepared, shape, output, options)
    returned = output if parts is None else parts.answers
    letters = wanted_letters(source.events, source.plan.required, returned, options)
    result = returned if letters is None else returned.append(letters.field)
    adopt_session(source.events.sparkSession)
    run = uuid4().hex[:12]
    source = replace(source, events=observed(source, letters, run, link))
    layout = stream_layout(source, options)
    _refuse_durations(source, layout, options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        if _is_stateless(source, layout, link):
            return observe_each(_stateless(source, layout, options, letters, result), run)
        packed = _stateful(source, layout, options, watermark, letters, run, link)
        if parts is not None:
            folded = packed.mapInArrow(folding(parts), PACKED)
            lag = 0 if link is None else link.lag
            packed = answer_stream(folded, parts, source.prepared, options, watermark, run, lag)
        return packed.mapInArrow(unpacking(result), spark_schema(result))


def refuse_in_chains(options: Options) -> None:
    """Refuse what a query that reads the results of others, or is read by them, can't have."""
    if options.heartbeat is not None:
        raise OptionError(
            "heartbeat= lets the time of each bucket go on, and queries that read each other's "
            "matches wait for the watermark, which only events move: leave it out"
        )


def _is_stateless(source: EventSource, layout: Layout, link: ChainLink | None) -> bool:
    """Whether matches need no events but their own. Where they are counted in windows, or read by
    others, it matters which of them are late, and only a bucket knows."""
    query = source.prepared.query
    alone = query.answers is None and (link is None or link.last)
    return query.nothing is not None or (isinstance(layout, Rows) and alone)


def observed(
    source: EventSource, letters: Letters | None, run: str, link: ChainLink | None
) -> DataFrame:
    """Select the needed columns. Spark pushes no filter below an observation, so every event is
    counted, and moves the watermark."""
    plan = source.plan
    names = plan.required if letters is None else letters.columns.names
    ahead = [AHEAD] if AHEAD in source.events.columns else []
    streams = [STREAM_COLUMN] if source.results else []
    names = dict.fromkeys((*names, *streams, *ahead))
    rows = source.events.select(*(named(n) for n in names))
    counted = link is None or link.counts
    valid = placed(plan.schema.time, plan.schema.start)
    return observe_read(rows, run, valid, source.results, counted)


def _stateful(
    source: EventSource,
    layout: Layout,
    options: Options,
    watermark: Watermark,
    letters: Letters | None,
    run: str,
    link: ChainLink | None,
) -> DataFrame:
    if isinstance(layout, Single) and options.partitioning == "auto":
        warnings.warn(ONE_BUCKET, stacklevel=6)
    count = bucket_count(layout, options)
    rows = bucketed(source, layout, count, None if letters is None else letters.columns.names)
    kind = bucket_type(source, layout)
    single = by_single_key(source, layout)
    job = job_of(source, layout, options, watermark, link)
    packed = t.StructType(
        [t.StructField(BUCKET, spark_type(kind)), t.StructField(DATA, t.BinaryType())]
    )
    time = source.plan.schema.time
    arriving = event_schema(rows.drop(BUCKET_COLUMN, REASON_COLUMN))
    heartbeat = heartbeat_of(options, watermark)
    clock_buckets = () if heartbeat is None else bucket_numbers(layout, count)
    whole = rows.mapInArrow(packing(kind, time, clock_buckets), packed)
    if heartbeat is not None:
        whole = with_clock(whole, clock_buckets)
    results = processed(whole, BucketWork(job, arriving, watermark, run, letters, heartbeat))
    left_out = () if link is None else link.left_out
    return observe_results(results, run, not single, left_out).filter(F.col(DATA).isNotNull())


def job_of(
    source: EventSource,
    layout: Layout,
    options: Options,
    watermark: Watermark,
    link: ChainLink | None,
) -> Job:
    """What the buckets of the query have in common."""
    single = by_single_key(source, layout)
    shared = counts_keys(source, layout) and not single
    idle = None if options.idle is None else watermark.length("idle", options.idle, options.unit)
    counted = source.prepared.counted(prompt=True)
    return Job(
        CountedKeys(source.plan, idle) if shared else counted or source.prepared,
        row_schema(source),
        found_signature(source.prepared),
        0 if single else bucket_count(layout, options),
        task_of(source, options.jit).left,
        watermark.delayed,
        options.jit,
        tuple(kept_columns(source.plan)),
        idle if single else None,
        source.prepared.settled,
        tied_by([source.prepared.query]),
        *(() if link is None else (link.labels, link.lag)),
    )


def processed(packed: DataFrame, work: Work) -> DataFrame:
    """What a stateful operator makes of packed rows."""
    use_rocksdb(packed.sparkSession)
    return packed.groupBy(BUCKET).transformWithStateInPandas(
        Processor(work), outputStructType=RESULT, outputMode="Append", timeMode="EventTime"
    )


def _refuse_durations(source: EventSource, layout: Layout, options: Options) -> None:
    """Refuse options of time that would change nothing."""
    if options.heartbeat is not None and counts_keys(source, layout):
        raise OptionError(
            "heartbeat= lets time pass, and with WITHIN n EVENTS no time decides anything: leave "
            "it out, or use a window of time"
        )
    if options.idle is not None and not counts_keys(source, layout):
        raise OptionError(
            "idle= is for queries with a key and WITHIN n EVENTS, in which time ends nothing: here "
            "events are forgotten when their window has passed; leave it out"
        )


def use_rocksdb(spark: SparkSession) -> None:
    """Spark's default state store refuses stateful operators in Python. Queries that have begun
    with it keep it: their checkpoints say so. Declarative pipelines don't let a session be set."""
    if "HDFSBacked" not in (spark.conf.get(PROVIDER, "HDFSBacked") or ""):
        return
    try:
        spark.conf.set(PROVIDER, ROCKSDB)
    except PySparkException as error:
        raise StreamError(
            "streams need RocksDB's state store, and the session can't be changed here: set "
            f"{PROVIDER} to {ROCKSDB} where the session is built, or under `configuration` in the "
            "file of the pipeline"
        ) from error


def _stateless(
    source: EventSource,
    layout: Layout,
    options: Options,
    letters: Letters | None,
    result: pa.Schema,
) -> DataFrame:
    """Match without state: a match is one event, so rows need no others and no order, and nothing
    is late."""
    task = task_of(source, options.jit)
    if letters is None:
        rows = relevant_rows(source, layout)
        return rows.mapInArrow(_each(task), spark_schema(result))
    rows = bucketed(source, Rows(), 1, letters.columns.names)
    rows = rows.filter(named(BUCKET_COLUMN).isNotNull() | named(REASON_COLUMN).isNotNull())
    input_schema, each = row_schema(source), _each(task)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in gather(batches):
            inside, rejected = divided(batch)
            output = chain(
                each(iter([inside.select(input_schema.names)])), letters.rejected(rejected)
            )
            yield from (filled(part, result) for part in output)

    return rows.mapInArrow(run, spark_schema(result))


def _each(task: Task) -> Mapped:
    """A function that yields the matches of single events."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if task.prepared.query.nothing is not None:
            return
        for batch in gather(batches):
            rows = in_order(task.prepared.plan, pa.Table.from_batches([batch]))
            engine = task.prepared.engine(batch.schema, task.jit)
            for ordered in rows.combine_chunks().to_batches():
                yield from engine.push(ordered)
            yield from engine.finish()

    return run
