"""Queries over Spark DataFrames that are no streams, on classic sessions and under Spark Connect.

Filter and prune in Spark, partition, order, and hand the rows to the engine in `mapInArrow`,
which streams: a task holds the rows of a window, not of a partition. Nothing runs before the
result is used, except that time slices need one small job to find the range of time, and keys one
to find those with too many rows.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.algebra.answer_shape import Answers
from cepheid.algebra.kinds import is_unreadable, readable
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import Input, bind_streams, part_field
from cepheid.algebra.text import expression_text
from cepheid.algebra.types import START_COLUMN, STREAM_COLUMN, TIME_COLUMN
from cepheid.engine.end_of_data import last_moment
from cepheid.engine.match_schema import output_schema
from cepheid.engine.operators.base import FOREVER
from cepheid.errors import DataError, UnsupportedError
from cepheid.options import ON_SPARK, Options, refuse_dead_letters, refuse_delay, refuse_until
from cepheid.plan.profile import Profile, total
from cepheid.planner import Prepared, prepare
from cepheid.runtime import Bindable, Explained
from cepheid.spark.columns.class_filters import Class, classify, type_text
from cepheid.spark.columns.column_names import named, safe, types_of
from cepheid.spark.columns.entrance import entered
from cepheid.spark.columns.extraction import with_paths
from cepheid.spark.columns.predicates import Translator
from cepheid.spark.columns.schema import (
    arrow_schema,
    arrow_type,
    event_schema,
    spark_schema,
    spark_type,
)
from cepheid.spark.group_parts import PACKED, GroupParts, shuffled_text
from cepheid.spark.grouped_matches import TASKS, merge_parts
from cepheid.spark.partitions import worker
from cepheid.spark.partitions.arrange import EventSource, arrange, placed, shipped, span_of, task_of
from cepheid.spark.partitions.layout import (
    Layout,
    Slices,
    choose,
    find_partial,
    hot_keys_text,
    layout_reason,
    layout_text,
)
from cepheid.spark.start.session import PANDAS_NOTICE, adopt_session
from cepheid.spark.streaming.clock.ahead import AHEAD, hold_back
from cepheid.spark.streaming.clock.time import delay_of, with_watermark

Data = DataFrame | Mapping[str, DataFrame]
SHEDDING = (
    'Limit(..., policy="drop-oldest") is for streams and for data in this process: a batch query '
    "on Spark can't report how many events it dropped; leave the policy out"
)
Runner = Callable[[worker.Task, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def match(query: Bindable, data: Any, options: Options, runner: Runner = worker.run) -> DataFrame:
    """The matches as a DataFrame. A wrong query or unfit data is an error here, before any job.

    With `runner=worker.discard` the same pipeline runs with an engine that returns nothing.
    """
    source, schema = source_of(query, entered(data), options)
    return _matches(source, schema, options, runner)


def match_prepared(prepared: Prepared, data: Data, options: Options) -> DataFrame:
    """The matches of a query that is already bound and planned, in data that are no streams."""
    data = entered(data)
    if isinstance(data, Mapping):
        schemas = {name: event_schema(part) for name, part in data.items()}
        schema, _ = bind_streams(schemas, options)
        chosen = {n: part for n, part in data.items() if n in (prepared.schema.streams or ())}
        events = merge_streams(chosen, schema)
    else:
        events, schema = data, event_schema(data)
    return _matches(read_events(prepared, events, schema, options), schema, options, worker.run)


def match_inputs(
    bound: BoundQuery,
    frames: Mapping[str, DataFrame],
    inputs: Mapping[str, Input],
    merged: pa.Schema,
    options: Options,
) -> DataFrame:
    """The matches of a query in streams of events and of matches."""
    events = merge_inputs(entered(frames), inputs, merged)
    source = _planned(bound, events, merged, options)
    return _matches(source, merged, options, worker.run)


def _matches(source: EventSource, schema: pa.Schema, options: Options, runner: Runner) -> DataFrame:
    refuse_dead_letters(options)
    if options.limit is not None and options.limit.policy != "fail":
        raise UnsupportedError(SHEDDING)
    source.prepared.warn()
    returned = output_schema(source.plan, schema)
    until = last_moment(options.until, source.plan)
    if until is not None:
        until = max(until, _reached(source))
    shape = source.prepared.query.answers
    if shape is None:
        return _mapped(source, options, runner, spark_schema(returned), until)
    parts = _parts(source, shape, returned)
    counted = source.prepared.counted(prompt=False)

    def folded(task: worker.Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return parts.packed(runner(replace(task, counted=counted), batches))

    packed = _mapped(source, options, folded, PACKED, until)
    return merge_parts(packed, parts, options.limit, until)


def _parts(source: EventSource, shape: Answers, matches: pa.Schema) -> GroupParts:
    counted = source.prepared.counted(prompt=False) is not None
    return GroupParts.of(shape, matches, min(source.shuffled, TASKS), counted=counted)


def _reached(source: EventSource) -> int:
    """The time of the last event, of whatever type. This runs a job."""
    time, start = source.plan.schema.time, source.plan.schema.start
    span = span_of(source.events.filter(placed(time, start)), time, source.types[time])
    return -FOREVER if span is None else span[1]


def _mapped(
    source: EventSource,
    options: Options,
    runner: Runner,
    result: t.StructType | str,
    until: int | None = None,
) -> DataFrame:
    """Run the runner on the rows of each partition. All of them end at the same time."""
    adopt_session(source.events.sparkSession)
    if source.prepared.query.nothing is not None:
        return source.events.sparkSession.createDataFrame([], result)
    layout, spare = _layout(source, options)
    task = replace(task_of(source, options.jit), until=until)
    rows, task = arrange(source, layout, spare, task)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return runner(task, batches)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        return rows.mapInArrow(run, result)


def profile(query: Bindable, data: Any, options: Options) -> Profile:
    """Run the query, drop its matches, and return the merged profile of all partitions."""
    source, _ = source_of(query, entered(data), options)
    result = t.StructType([t.StructField(worker.PROFILE_COLUMN, t.BinaryType())])
    rows = _mapped(source, options, worker.profile, result).collect()
    return total(pickle.loads(row[0]) for row in rows)


def explain(query: Bindable, data: Data, options: Options) -> Explained:
    """Explain how the query runs, how the work is partitioned, and what Spark does before the
    engine. This runs no job."""
    source, schema = source_of(query, entered(data), options)
    layout, _ = _layout(source, options)
    partitioning = (
        ("partitioning", layout_text(layout, source.shuffled)),
        ("why", layout_reason(layout, source.plan, source.prepared.query, options)),
    )
    hot = hot_keys_text(layout, source.prepared.query, options)
    keys = () if hot is None else (("hot keys", hot),)
    answers = tuple(_answers_text(source, schema))
    distribution = (*partitioning, *keys, *answers, *before_engine(source))
    return Explained(source.prepared, distribution, prompt=False)


def _answers_text(source: EventSource, schema: pa.Schema) -> Iterator[tuple[str, str]]:
    shape = source.prepared.query.answers
    if shape is not None:
        count = _parts(source, shape, output_schema(source.plan, schema)).count
        yield "answers", shuffled_text(shape, count, "task")


def before_engine(source: EventSource) -> tuple[tuple[str, str], ...]:
    """The steps that Spark performs on the rows, as labels and texts."""
    return (
        ("columns", ", ".join(shipped(source))),
        *(("pushed to Spark", _class_text(c)) for c in source.classes),
    )


def _class_text(class_: Class) -> str:
    pushed = f"{class_.leaf.variable}: {' AND '.join(class_.texts) or 'all rows'}"
    left = " AND ".join(expression_text(expr) for expr in class_.left)
    return f"{pushed}; left to the engine: {left}" if left else pushed


def rejected(data: Any, time: str, start: str | None = None) -> Any:
    """Rows without a valid time; for several streams, a dict of them."""
    if isinstance(data, Mapping):
        return {name: rejected(part, time, start) for name, part in data.items()}
    columns = readable(arrow_schema(data.schema))
    for name, part in ((time, "time"), (start, "start")):
        if name is not None:
            part_field(columns, name, part)
    events = entered(data)
    # A comparison with NULL is unknown, so that this is never NULL itself.
    lost = F.coalesce(~placed(time, start), F.lit(True))
    for name in (time, start):
        if name is not None and pa.types.is_floating(columns.field(name).type):
            lost = lost | F.isnan(named(name))
    dead = events.filter(lost)
    return dead if dead.columns == data.columns else dead.toDF(*data.columns)


def source_of(query: Bindable, data: Data, options: Options) -> tuple[EventSource, pa.Schema]:
    """Bind the query to the data, and plan it."""
    events, schema, bound = bind(query, data, options)
    return _planned(bound, events, schema, options), schema


def _planned(
    bound: BoundQuery, events: DataFrame, schema: pa.Schema, options: Options
) -> EventSource:
    return read_events(prepare(bound, options), events, schema, options)


def read_events(
    prepared: Prepared, events: DataFrame, schema: pa.Schema, options: Options
) -> EventSource:
    if events.isStreaming:
        refuse_until(options)
    refuse_delay(options, "data on Spark", ON_SPARK)
    plan = prepared.plan
    events = with_paths(events, plan.required)
    types = types_of(events)
    shuffled = int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    partitions = options.partitions
    classes = classify(plan, types)
    every = partitions or shuffled
    return EventSource(events, prepared, types, classes, partitions, every, events.isStreaming)


def bind(query: Bindable, data: Data, options: Options) -> tuple[DataFrame, pa.Schema, BoundQuery]:
    if isinstance(data, Mapping):
        schemas = {name: event_schema(part) for name, part in data.items()}
        bound = query.bind(schemas, options)
        merged, _ = bind_streams(schemas, options)
        chosen = {n: part for n, part in data.items() if n in (bound.schema.streams or ())}
        if any(part.isStreaming for part in chosen.values()):
            query.require_bounds(bound, options)
            return merge_streaming(chosen, merged, options), merged, bound
        return merge_streams(chosen, merged), merged, bound
    schema = event_schema(data)
    bound = query.bind(schema, options)
    if data.isStreaming:
        query.require_bounds(bound, options)
        return with_watermark(hold_back(data, options), options.time), schema, bound
    return data, schema, bound


def frames_of(data: Data) -> list[DataFrame]:
    return list(data.values()) if isinstance(data, Mapping) else [data]


def merge_streaming(
    given: Mapping[str, DataFrame], merged: pa.Schema, options: Options
) -> DataFrame:
    """Merge streams; the watermark is their least, if any has one."""
    if not all(frame.isStreaming for frame in given.values()):
        raise DataError("several streams must all be streaming DataFrames, or none of them")
    time = options.time
    streams = {name: hold_back(frame, options) for name, frame in given.items()}
    merged = merged.append(merged.field(time).with_name(AHEAD))
    if all(delay_of(frame, time) is None for frame in streams.values()):
        return with_watermark(merge_streams(streams, merged), time)
    return merge_streams({name: with_watermark(f, time) for name, f in streams.items()}, merged)


def merge_streams(streams: Mapping[str, DataFrame], merged: pa.Schema) -> DataFrame:
    """Several streams as one DataFrame: the columns that a stream lacks are NULL."""
    wanted = {f.name: spark_type(f.type) for f in merged if not is_unreadable(f)}
    parts = [
        frame.select(
            *(_as(n, kind, wanted[n]) for n, kind in types_of(frame).items() if n in wanted),
            *([] if STREAM_COLUMN in frame.columns else [F.lit(name).alias(STREAM_COLUMN)]),
        )
        for name, frame in streams.items()
    ]
    union, *others = parts
    for other in others:
        union = union.unionByName(other, allowMissingColumns=True)
    return union


def merge_inputs(
    frames: Mapping[str, DataFrame], inputs: Mapping[str, Input], merged: pa.Schema
) -> DataFrame:
    """Streams of events and of matches as one (see `algebra.schemas.bind_inputs`)."""
    widened: dict[str, DataFrame] = {}
    for name, input_ in inputs.items():
        frame = frames[name]
        roles = {TIME_COLUMN: named(input_.time), START_COLUMN: named(input_.start or input_.time)}
        if input_.type is not None:
            roles[STREAM_COLUMN] = type_text(input_.type, types_of(frame)[input_.type])
        widened[name] = frame.withColumns(roles)
    return merge_streams(widened, merged)


def _as(name: str, actual: t.DataType, wanted: t.DataType) -> Column:
    """The column, cast if another stream's column of this name is wider."""
    if arrow_type(actual) == arrow_type(wanted):
        return named(name)
    return named(name).cast(wanted).alias(safe(name))


def _layout(source: EventSource, options: Options) -> tuple[Layout, Layout | None]:
    translator, bound = Translator(source.types), source.prepared.query
    layout = choose(source.plan, bound, options, translator)
    if options.partitioning == "auto" and isinstance(layout, Slices):
        return layout, find_partial(source.plan, bound, translator)
    return layout, None
