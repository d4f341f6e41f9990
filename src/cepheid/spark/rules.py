"""Sets of rules over Spark DataFrames: a pass and a shuffle for each group of them.

All rules of a group keep the events of different keys apart, so they share the partitions; those
without a key share slices of time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import and_

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from cepheid.engine.merged.found import MATCH, RULE
from cepheid.engine.merged.group import Group, matches, necessary
from cepheid.engine.merged.residual import Residual, found_by
from cepheid.engine.merged.typed import typed
from cepheid.engine.output import MATCH_END, MATCH_START
from cepheid.errors import DataError
from cepheid.options import Options
from cepheid.schemas import bind_streams
from cepheid.spark.arrange import Cut, cut_of, key_columns, placed
from cepheid.spark.batch import Data, frames_of, merge_streaming, merge_streams
from cepheid.spark.expressions import Translator, combine, named
from cepheid.spark.schema import UNKNOWN, arrow_schema, spark_schema
from cepheid.spark.session import PANDAS_NOTICE, adopt_session
from cepheid.spark.streaming.packing import Mapped
from cepheid.spark.streaming.time import with_watermark
from cepheid.spark.worker import SECTION_COLUMN, gather, owned, sections


@dataclass(frozen=True)
class Frame:
    """The events, merged if there are several streams, as Spark and as Arrow see them."""

    events: DataFrame
    schema: pa.Schema

    @property
    def types(self) -> dict[str, t.DataType]:
        return {field.name: field.dataType for field in self.events.schema.fields}


def read(data: Data, options: Options) -> Frame:
    """The events; of a stream, with a watermark."""
    adopt_session(frames_of(data)[0].sparkSession)
    streaming = any(frame.isStreaming for frame in frames_of(data))
    if not isinstance(data, Mapping):
        events = with_watermark(data, options.time) if streaming else data
        return Frame(events, arrow_schema(data.schema))
    schemas = {name: arrow_schema(frame.schema) for name, frame in data.items()}
    merged, _ = bind_streams(schemas, options)
    if streaming:
        return Frame(merge_streaming(data, merged, options.time), merged)
    return Frame(merge_streams(data, merged), merged)


def match_group(
    frame: Frame, group: Group, rules: pa.Table, schema: pa.Schema, options: Options
) -> DataFrame:
    """What the rules of a group find; `schema` has the columns of that."""
    rows, cut = _arranged(frame, group, options)
    jit = options.jit

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if cut is None:
            yield from matches(group, rules, schema, gather(batches), jit)
            return
        for section, part in sections(gather(batches)):
            found = matches(group, rules, schema, part, jit)
            yield from owned(found, cut.owned[section])

    return _mapped(rows, run, schema)


def as_found(
    found: DataFrame,
    numbers: NDArray[np.int64],
    residual: Residual | None,
    rules: pa.Table,
    schema: pa.Schema,
) -> DataFrame:
    """The matches of a query as those of the rules that it stands for."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield found_by(rules, numbers, residual, batch, schema)

    return _mapped(found, run, schema)


def typed_of(found: DataFrame, rule: str, schema: pa.Schema) -> DataFrame:
    """The matches of a rule in those of all, as columns of their own types."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield typed(batch, schema)

    own = found.filter(named(RULE) == rule).select(*map(named, (MATCH, MATCH_START, MATCH_END)))
    return _mapped(own, run, schema)


def _mapped(rows: DataFrame, run: Mapped, schema: pa.Schema) -> DataFrame:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        return rows.mapInArrow(run, spark_schema(schema))


def union(frame: Frame, found: list[DataFrame], schema: pa.Schema) -> DataFrame:
    if not found:
        return frame.events.sparkSession.createDataFrame([], spark_schema(schema))
    whole, *others = found
    for other in others:
        whole = whole.unionByName(other)
    return whole


def _arranged(frame: Frame, group: Group, options: Options) -> tuple[DataFrame, Cut | None]:
    """The rows in partitions, each in order; and the slices, where they are slices of time."""
    schema, types = group.query.schema, frame.types
    order = [named(name) for name in schema.order]
    rows = _relevant(frame, group)
    if group.single:
        return rows.sortWithinPartitions(*order), None
    if group.key is not None:
        key = key_columns(types, schema, [group.key])
        rows = rows.filter(named(group.key).isNotNull())
        spread = rows.repartition(*key)
        if options.partitions is not None:
            spread = rows.repartition(options.partitions, *key)
        return spread.sortWithinPartitions(*order), None
    shuffled = options.partitions or int(
        rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200
    )
    cut = cut_of(rows, schema.time, types[schema.time], group.merged.reach, shuffled)
    if cut is None or cut.count < 2:
        return rows.repartition(1).sortWithinPartitions(*order), None
    rows = cut.rows(rows, schema.time, types[schema.time])
    rows = rows.repartition(shuffled, named(SECTION_COLUMN))
    return rows.sortWithinPartitions(named(SECTION_COLUMN), *order), cut


def _relevant(frame: Frame, group: Group) -> DataFrame:
    """Without the columns that no rule reads, and without rows that none can take."""
    for name in group.required:
        if frame.schema.field(name).type == UNKNOWN:
            kind = frame.types[name].simpleString()
            raise DataError(f"column `{name}` is {kind}, which can't be read in a query")
    rows = frame.events.select(*(named(name) for name in group.required))
    rows = rows.filter(placed(group.query.schema.time, None))
    translated = map(Translator(frame.types).column, necessary(group))
    conditions = [condition for condition in translated if condition is not None]
    if not conditions or group.counts_all:
        return rows
    return rows.filter(combine(and_, conditions))
