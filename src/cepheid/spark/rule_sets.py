"""Sets of rules over Spark DataFrames: a pass and a shuffle for each group of them.

All rules of a group keep the events of different keys apart, so they share the partitions; those
without a key share slices of time. Where the rules of a group are divided, a row goes, in the same
shuffle, to each part of them that can take it.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import and_
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.algebra.expressions import Attribute, Call, Constant
from cepheid.algebra.schemas import bind_streams
from cepheid.algebra.types import Schema, Type
from cepheid.engine.attribution.json_rows import KEY, MATCH, RULE, TEMPLATE, alert_rows
from cepheid.engine.attribution.owners import Attribution, alerts_of_queries
from cepheid.engine.attribution.throttled import throttled_by_rule, throttled_schema
from cepheid.engine.attribution.typed_rows import typed
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.engine.merged.group import RuleGroup, matches, necessary
from cepheid.options import ON_SPARK, Options, refuse_delay, refuse_until
from cepheid.spark.batch import Data, frames_of, merge_streaming, merge_streams
from cepheid.spark.columns.column_names import named, safe, types_of
from cepheid.spark.columns.entrance import entered
from cepheid.spark.columns.extraction import with_paths
from cepheid.spark.columns.predicates import Translator, combine, microseconds
from cepheid.spark.columns.schema import event_schema, spark_schema
from cepheid.spark.partitions.arrange import cut_between, key_columns, placed, span_of
from cepheid.spark.partitions.batch_sizes import gather
from cepheid.spark.partitions.hot_keys import Reach, look
from cepheid.spark.partitions.salts import salts
from cepheid.spark.partitions.worker import SECTION_COLUMN, Range, owned, sections
from cepheid.spark.start.session import PANDAS_NOTICE, adopt_session
from cepheid.spark.streaming.clock.ahead import hold_back
from cepheid.spark.streaming.clock.time import with_watermark
from cepheid.spark.streaming.stateful.packed_rows import Mapped

GATHERED = 1 << 20
"""How many rows a partition's machines match at once."""

_PART = "__part"
_MANY = 1 << 14  # cores, at most
_ALWAYS: Range = (-(1 << 63), (1 << 63) - 1)

Texts: TypeAlias = dict[str, tuple[str, ...]]
Held: TypeAlias = dict[int, tuple[int, Range]]
"""For each section number, the part that runs there, and the range of match ends that it owns."""


@dataclass(frozen=True)
class Frame:
    """The events, merged if there are several streams, as Spark and as Arrow see them."""

    events: DataFrame
    schema: pa.Schema

    @property
    def types(self) -> dict[str, t.DataType]:
        return types_of(self.events)


def read(data: Data, options: Options) -> Frame:
    """The events; of a stream, with a watermark."""
    refuse_delay(options, "data on Spark", ON_SPARK)
    data = entered(data)
    adopt_session(frames_of(data)[0].sparkSession)
    streaming = any(frame.isStreaming for frame in frames_of(data))
    if streaming:
        refuse_until(options)
    if not isinstance(data, Mapping):
        if streaming:
            events = with_watermark(hold_back(data, options), options.time)
            return Frame(events, event_schema(data))
        return Frame(data, event_schema(data))
    schemas = {name: event_schema(frame) for name, frame in data.items()}
    merged, _ = bind_streams(schemas, options)
    if streaming:
        return Frame(merge_streaming(data, merged, options), merged)
    return Frame(merge_streams(data, merged), merged)


def with_columns(frame: Frame, names: Iterable[str]) -> Frame:
    """The events with a column for each of these names that is a path into one they have."""
    events = with_paths(frame.events, names)
    more = [f for f in event_schema(events) if f.name not in frame.schema.names]
    return Frame(events, pa.schema([*frame.schema, *more]))


def tasks(frame: Frame, options: Options) -> tuple[int, int]:
    """The number of tasks that run at once, and of the session's shuffle partitions."""
    shuffled = shuffle_partitions(frame, options)
    session: object = frame.events.sparkSession
    # A Connect session is no instance of the classic class, and only tells by what it does: a range
    # has as many partitions as tasks run at once.
    if isinstance(session, SparkSession):
        return session.sparkContext.defaultParallelism, shuffled
    spread = frame.events.sparkSession.range(_MANY).select(F.spark_partition_id().alias("n"))
    return spread.agg(F.max("n")).toArrow().column(0)[0].as_py() + 1, shuffled


def shuffle_partitions(frame: Frame, options: Options) -> int:
    conf = frame.events.sparkSession.conf
    return options.partitions or int(conf.get("spark.sql.shuffle.partitions") or 200)


def span(frame: Frame, options: Options) -> Range | None:
    """The first and the last time. This runs a job."""
    rows = frame.events.filter(placed(options.time, None))
    return span_of(rows, options.time, frame.types[options.time])


def match_group(
    frame: Frame,
    parts: Sequence[RuleGroup],
    rules: pa.Table,
    schema: pa.Schema,
    options: Options,
    times: Range | None = None,
) -> DataFrame:
    """The alerts of a group's rules, which may be divided into parts; `schema` has their columns.
    `times` are the first and last time; without them there are no slices."""
    texts = _listed(parts)
    rows, held = _arranged(frame, parts, texts, times, options)
    jit = options.jit
    # A task reads the parts that it runs, and no others.
    packed = tuple(pickle.dumps(part) for part in parts)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = map(partial(_spelled, texts), gather(batches, GATHERED))
        if held is None:
            yield from matches(pickle.loads(packed[0]), rules, schema, rows, jit)
            return
        groups = lru_cache(maxsize=1)(lambda part: pickle.loads(packed[part]))
        for section, pieces in sections(rows):
            part, range_ = held[section]
            read = map(partial(_chosen, groups(part).required), pieces)
            yield from owned(matches(groups(part), rules, schema, read, jit), range_)

    return mapped(rows, run, schema)


def _listed(parts: Sequence[RuleGroup]) -> Texts:
    """Columns that must equal one of a few texts, with those texts. Sent as numbers, rows are
    shorter and reach Python sooner."""
    each = [dict(_texts(part)) for part in parts]
    # What rows are shuffled and sorted by stays as it is.
    kept = {part.key for part in parts} | set(parts[0].query.schema.order)
    names = frozenset.intersection(*map(frozenset, each)) - kept
    return {
        name: tuple(dict.fromkeys(text for texts in each for text in texts[name]))
        for name in sorted(names)
    }


def _texts(part: RuleGroup) -> Iterator[tuple[str, tuple[str, ...]]]:
    for condition in () if part.counts_all else necessary(part):
        match condition:
            case Call("in", (Attribute(name=name, type=Type.STRING), *options)):
                yield name, tuple(str(o.value) for o in options if isinstance(o, Constant))
            case _:
                pass


def _numbered(texts: Sequence[str], column: Column) -> Column:
    """The index of the column's text among these texts."""
    return (F.array_position(F.array(*map(F.lit, texts)), column) - 1).cast("short")


def _spelled(texts: Texts, batch: pa.RecordBatch) -> pa.RecordBatch:
    for name, values in texts.items():
        place = batch.schema.get_field_index(name)
        column = pa.DictionaryArray.from_arrays(batch.column(place), pa.array(values, pa.string()))
        batch = batch.set_column(place, name, column)
    return batch


def _chosen(names: tuple[str, ...], batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(names)


def as_alerts(
    query_matches: DataFrame,
    attributions: Sequence[Attribution],
    rules: pa.Table,
    schema: pa.Schema,
) -> DataFrame:
    """The matches of a query, or of several joined ones, as alerts of the rules that they stand
    for."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield alerts_of_queries(rules, attributions, batch, schema)

    return mapped(query_matches, run, schema)


def throttled_alerts(
    alerts: DataFrame, schema: pa.Schema, pause: int, exempt: pa.Array
) -> DataFrame:
    """One alert for a rule and key in a pause. Alerts are shuffled by both, and sorted."""
    by = [named(RULE), named(KEY)]
    together = alerts.repartition(*by).sortWithinPartitions(*by)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return throttled_by_rule(batches, pause, exempt)

    return mapped(together, run, throttled_schema(schema))


def typed_of(set_matches: DataFrame, rule: str, schema: pa.Schema) -> DataFrame:
    """The alerts of one rule, as columns of their own types."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield typed(batch, schema)

    of_rule = set_matches.filter(named(RULE) == rule).select(
        *map(named, (MATCH, MATCH_START, MATCH_END))
    )
    return mapped(of_rule, run, schema)


def typed_of_template(set_matches: DataFrame, template: str, schema: pa.Schema) -> DataFrame:
    """The alerts of a template's rules, as columns of their own types, and the rule."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = typed(batch, schema)
            yield rows if RULE in schema.names else rows.append_column(RULE, batch.column(RULE))

    with_rule = schema if RULE in schema.names else schema.append(pa.field(RULE, pa.string()))
    of_template = set_matches.filter(named(TEMPLATE) == template).select(
        *map(named, (RULE, MATCH, MATCH_START, MATCH_END))
    )
    return mapped(of_template, run, with_rule)


def alerts_of_rule(
    query_matches: DataFrame, rules: pa.Table, number: int, schema: pa.Schema
) -> DataFrame:
    """The matches of a rule's query as its alerts."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield alert_rows(rules, np.full(batch.num_rows, number), batch, schema)

    return mapped(query_matches, run, schema)


def with_rule(query_matches: DataFrame, rule: str) -> DataFrame:
    """The matches with the name of their rule, unless the query returns such a column."""
    if RULE in query_matches.columns:
        return query_matches
    return query_matches.withColumn(RULE, F.lit(rule))


def with_all_columns(alerts: DataFrame, schema: pa.Schema) -> DataFrame:
    """Alerts of some rules with the columns that any carries."""
    kinds = {field.name: field.dataType for field in spark_schema(schema)}
    columns = [
        (named(name) if name in alerts.columns else F.lit(None)).cast(kind).alias(name)
        for name, kind in kinds.items()
    ]
    return alerts.select(*columns)


def mapped(rows: DataFrame, run: Mapped, schema: pa.Schema) -> DataFrame:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        return rows.mapInArrow(run, spark_schema(schema))


def union(frame: Frame, frames: list[DataFrame], schema: pa.Schema) -> DataFrame:
    if not frames:
        return frame.events.sparkSession.createDataFrame([], spark_schema(schema))
    whole, *others = frames
    for other in others:
        whole = whole.unionByName(other)
    return whole


def _arranged(
    frame: Frame, parts: Sequence[RuleGroup], texts: Texts, times: Range | None, options: Options
) -> tuple[DataFrame, Held | None]:
    """The rows in sorted partitions, by section where sections are time slices or parts of the
    rules. Columns of `texts` are sent as numbers."""
    schema, key = parts[0].query.schema, parts[0].key
    order = [named(name) for name in schema.order]
    rows = _relevant(frame, parts)
    for name, values in texts.items():
        rows = rows.withColumn(safe(name), _numbered(values, named(name)))
    if key is None and not all(part.single for part in parts):
        return _sliced(frame, rows, parts, times, options)
    if len(parts) == 1:
        if key is None:
            return rows.sortWithinPartitions(*order), None
        reach = Reach(parts[0].merged.reach)
        rows, owned = by_key(frame, rows, schema, key, reach, options)
        return rows, None if owned is None else {n: (0, range_) for n, range_ in owned.items()}
    if key is not None:
        rows = rows.filter(named(key).isNotNull())
        rows = _spread(rows, options, *key_columns(frame.types, schema, [key]), named(_PART))
    rows = rows.withColumnRenamed(_PART, SECTION_COLUMN)
    held = {n: (n, _ALWAYS) for n in range(len(parts))}
    return rows.sortWithinPartitions(named(SECTION_COLUMN), *order), held


def by_key(
    frame: Frame,
    rows: DataFrame,
    schema: Schema,
    key: str,
    reach: Reach | None,
    options: Options,
) -> tuple[DataFrame, Mapping[int, Range] | None]:
    """The rows in sorted partitions by their key. With `reach`, hot keys are cut: then by section,
    of which each owns a range of match ends."""
    rows = rows.filter(named(key).isNotNull())
    columns = key_columns(frame.types, schema, [key])
    hash_ = F.xxhash64(*columns)
    clock = microseconds(named(schema.time), frame.types[schema.time])
    order = [named(name) for name in schema.order]
    if reach is not None and options.partitioning == "auto":
        partitions = shuffle_partitions(frame, options)
        hot = look(rows, hash_, clock, schema.time, reach, partitions)
        if hot is not None:
            rows = _spread(hot.rows(rows, hash_, clock), options, named(SECTION_COLUMN))
            return rows.sortWithinPartitions(named(SECTION_COLUMN), *order), hot.owned
    return _spread(rows, options, *columns).sortWithinPartitions(*order), None


def _spread(rows: DataFrame, options: Options, *columns: Column) -> DataFrame:
    if options.partitions is None:
        return rows.repartition(*columns)
    return rows.repartition(options.partitions, *columns)


def _sliced(
    frame: Frame, rows: DataFrame, parts: Sequence[RuleGroup], times: Range | None, options: Options
) -> tuple[DataFrame, Held | None]:
    """A section for each slice of time and each part of the rules."""
    schema = parts[0].query.schema
    order = [named(name) for name in schema.order]
    _, shuffled = tasks(frame, options)
    reach = max(part.merged.reach for part in parts)
    cut = None if times is None else cut_between(times, reach, shuffled)
    if cut is None or cut.count * len(parts) == 1:
        return rows.repartition(1).sortWithinPartitions(*order), None
    count = cut.count * len(parts)
    partitions = max(shuffled, count)
    numbers = salts(partitions)[:count]
    rows = replace(cut, salts=tuple(range(cut.count))).rows(
        rows, schema.time, frame.types[schema.time]
    )
    part = named(_PART) if len(parts) > 1 else F.lit(0)
    place = part * cut.count + named(SECTION_COLUMN) + 1
    section = F.element_at(F.array(*map(F.lit, numbers)), place)
    rows = rows.withColumn(SECTION_COLUMN, section).drop(_PART)
    rows = rows.repartition(partitions, named(SECTION_COLUMN))
    held = {number: (n // cut.count, cut.range(n % cut.count)) for n, number in enumerate(numbers)}
    return rows.sortWithinPartitions(named(SECTION_COLUMN), *order), held


def _relevant(frame: Frame, parts: Sequence[RuleGroup]) -> DataFrame:
    """Drop the columns that no rule reads and the rows that no rule can take. With several parts,
    copy a row to each part that can take it."""
    required = tuple(dict.fromkeys(name for part in parts for name in part.required))
    rows = frame.events.select(*map(named, required))
    rows = rows.filter(placed(parts[0].query.schema.time, None))
    if len(parts) == 1:
        return rows.filter(group_takes(frame, parts[0]))
    copies = (F.when(group_takes(frame, part), F.lit(n)) for n, part in enumerate(parts))
    return rows.withColumn(_PART, F.explode(F.array_compact(F.array(*copies))))


def group_takes(frame: Frame, part: RuleGroup) -> Column:
    """A condition that holds for every row that any rule can take."""
    if part.counts_all:
        return F.lit(True)
    translated = map(Translator(frame.types).column, necessary(part))
    conditions = [condition for condition in translated if condition is not None]
    return combine(and_, conditions) if conditions else F.lit(True)
