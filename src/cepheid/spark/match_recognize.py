"""MATCH_RECOGNIZE over a DataFrame: Spark partitions and sorts the rows, workers match them.

A stream goes through buckets with state (`streaming/row_pipeline`)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from cepheid.algebra.kinds import check_readable, readable, reasons
from cepheid.algebra.nested_columns import read_fields
from cepheid.errors import DataError
from cepheid.language.diagnostics import Source
from cepheid.language.traversal import parameters
from cepheid.options import Options
from cepheid.row_patterns.bound import BoundRecognition, bind, check_conditions
from cepheid.row_patterns.endless import check_endless
from cepheid.row_patterns.recognition_summary import RecognitionSummary, order_text, summary
from cepheid.row_patterns.recognize import RecognitionProfile, profiled
from cepheid.row_patterns.recognize import recognize as recognize_table
from cepheid.row_patterns.syntax import Recognition, SortKey
from cepheid.row_patterns.whole_partitions import whole_partitions
from cepheid.spark.columns.column_names import named
from cepheid.spark.columns.entrance import entered
from cepheid.spark.columns.extraction import with_paths
from cepheid.spark.columns.schema import event_schema, spark_schema
from cepheid.spark.partitions.batch_sizes import gather
from cepheid.spark.start.session import PANDAS_NOTICE, adopt_session
from cepheid.spark.streaming.clock.ahead import hold_back
from cepheid.spark.streaming.clock.time import with_watermark
from cepheid.spark.streaming.stateful.buckets import DEFAULT

_PROFILE = "rows long, partitions long, matches long, steps long, backtracks long"


@dataclass(frozen=True)
class ReadFrame:
    """A bound clause, and what it reads of a DataFrame, with these columns. A stream has others,
    too, on which its watermark may be."""

    bound: BoundRecognition
    rows: DataFrame
    schema: pa.Schema


def recognize(
    recognition: Recognition,
    source: Source,
    frame: DataFrame,
    params: Mapping[str, object],
    dead_letters: bool = False,
) -> DataFrame:
    """The rows that MATCH_RECOGNIZE returns. A wrong clause is an error here, before any job. On a
    stream `dead_letters` adds a column for rows that can be in no match."""
    read = _read(recognition, source, frame, params)
    bound = read.bound
    result = recognize_table(bound, read.schema.empty_table()).schema
    if frame.isStreaming:
        text = clause_text(recognition, source, params)
        return _recognize_stream(read, result, text, dead_letters)
    if not bound.partition:
        warnings.warn(
            "MATCH_RECOGNIZE without PARTITION BY runs in one task: Spark can't divide the work",
            stacklevel=6,
        )

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_partitions(gather(batches), bound.partition):
            recognized = recognize_table(bound, table)
            yield from recognized.cast(result).to_batches()

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        return _arranged(read).mapInArrow(run, spark_schema(result))


def clause_text(recognition: Recognition, source: Source, params: Mapping[str, object]) -> str:
    """The clause, and what its parameters stand for: a stream resumes with the same."""
    text = " ".join(source.text[recognition.span.start : recognition.span.end].split())
    return " ".join([text, *(f":{name} = {params[name]!r}" for name in parameters(recognition))])


def _recognize_stream(
    read: ReadFrame, result: pa.Schema, text: str, dead_letters: bool
) -> DataFrame:
    from cepheid.spark.streaming.row_pipeline import recognize_stream

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        return recognize_stream(read.bound, read.rows, read.schema, result, text, dead_letters)


def explain(
    recognition: Recognition,
    source: Source,
    table: str,
    frame: DataFrame,
    params: Mapping[str, object],
    analyze: bool,
) -> RecognitionSummary:
    """How `recognize` runs; with `analyze` it is run, and its rows are dropped."""
    read = _read(recognition, source, frame, params)
    bound = read.bound
    keys = ", ".join(bound.partition)
    if frame.isStreaming:
        if analyze:
            raise DataError("analyze=True runs the clause to its end, and a stream has none")
        by = f"by {keys}, in {DEFAULT} buckets" if keys else "none, so there is one bucket"
        order = f"; each row waits until the watermark has passed {bound.order[0].column}"
        return summary(recognition, bound, source, table, "on a Spark stream", by + order)
    by = f"by {keys}, shuffled" if keys else "none, so one task does all of the work"
    order = f"; each partition sorted by {order_text(bound.order)}" if bound.order else ""
    profile = _profile(read) if analyze else None
    return summary(recognition, bound, source, table, "on Spark", by + order, profile)


def _profile(read: ReadFrame) -> RecognitionProfile:
    bound = read.bound
    names = [field.split()[0] for field in _PROFILE.split(", ")]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in whole_partitions(gather(batches), bound.partition):
            _, profile = profiled(bound, table)
            yield pa.RecordBatch.from_pydict(
                dict(zip(names, ([figure] for figure in astuple(profile)), strict=True))
            )

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        figures = _arranged(read).mapInArrow(run, _PROFILE)
    (row,) = figures.groupBy().sum().collect()
    return RecognitionProfile(*(figure or 0 for figure in row))


def _read(
    recognition: Recognition, source: Source, frame: DataFrame, params: Mapping[str, object]
) -> ReadFrame:
    adopt_session(frame.sparkSession)
    events = entered(frame)
    schema = readable(event_schema(events))
    bound = bind(recognition, schema, source, params)
    check_readable(reasons(schema), bound.reads)
    check_conditions(recognition, bound, schema, source)
    if frame.isStreaming:
        check_endless(recognition, bound, source)
        time = bound.order[0].column
        events = with_watermark(hold_back(events, Options(time=time)), time)
        extracted = with_paths(events, bound.reads)
        return ReadFrame(bound, extracted, _fields(schema, bound.reads))
    rows = with_paths(events, bound.reads).select(*(named(name) for name in bound.reads))
    return ReadFrame(bound, rows, _fields(schema, bound.reads))


def _fields(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    fields = read_fields(schema, names)
    return pa.schema([fields.field(name) for name in names])


def _arranged(read: ReadFrame) -> DataFrame:
    keys = [named(name) for name in read.bound.partition]
    order = [*keys, *map(_sort_column, read.bound.order)]
    rows = read.rows.repartition(*keys) if keys else read.rows.repartition(1)
    return rows.sortWithinPartitions(*order) if order else rows


def _sort_column(key: SortKey) -> Column:
    column = named(key.column)
    first = not key.descending if key.nulls_first is None else key.nulls_first
    if key.descending:
        return column.desc_nulls_first() if first else column.desc_nulls_last()
    return column.asc_nulls_first() if first else column.asc_nulls_last()
