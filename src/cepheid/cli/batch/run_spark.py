"""`cepheid run --runtime spark`: the same run as a Spark job."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from cepheid.cli.arguments import InputSource
from cepheid.cli.batch.run_rules import columns_read, refuse_wrong
from cepheid.cli.batch.spark_inputs import SparkInput, open_spark_inputs
from cepheid.cli.inputs import input_options
from cepheid.cli.output.progress import spark_tasks
from cepheid.cli.output.show import REJECTED_SHOWN, PerRule, RunSummary
from cepheid.cli.spark_session import spark_session
from cepheid.cli.target import Result, Target, refuse_nested
from cepheid.engine.attribution.json_rows import RULE
from cepheid.files.formats import (
    Format,
    existing_files,
    is_local,
    output_format,
    spark_format,
)
from cepheid.files.guard import Guard
from cepheid.inprocess.notices import tell_undecided
from cepheid.options import Options
from cepheid.query import Query
from cepheid.rules import RuleSet
from cepheid.spark.columns.schema import arrow_schema
from cepheid.spark.event_files.parquet_files import unplaced
from cepheid.spark.event_files.text_values import for_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_on_spark(
    query: Query | RuleSet,
    sources: tuple[InputSource, ...],
    options: Options,
    target: Target,
    master: str,
) -> Result:
    """Match in a new Spark session; the output is a folder, as Spark writes."""
    for source in sources:  # what is wrong with them, before Spark starts
        input_options(source, options.time)
        if is_local(source.path):
            existing_files(source.path)
    with spark_session(master, app="cepheid run") as spark:
        return run_in_session(spark, query, sources, options, target)


def run_in_session(
    spark: SparkSession,
    query: Query | RuleSet,
    sources: tuple[InputSource, ...],
    options: Options,
    target: Target,
) -> Result:
    frames, lost = _read(spark, query, sources, options, target)
    data: Any = frames if all(frames) else frames[""]  # of several streams, one frame comes back
    matches: DataFrame = query.match(data, options)
    refuse_nested(arrow_schema(matches.schema), target.written)
    begin = clock.perf_counter()
    # Kept, so that counting and showing them doesn't match once more.
    matches = matches.persist()
    with ExitStack() as stack, spark_tasks(spark, "matching"):
        count = matches.count()
        if target.output is not None:
            made_by = query.name if isinstance(query, Query) else "a set of rules"
            write_folder(
                matches, target.output, target.format, target.guard, "--output", made_by, stack
            )
        if target.rejected is not None:
            format = output_format(Path(target.rejected))
            made_by = "rejected rows"
            write_folder(lost, target.rejected, format, target.guard, "--rejected", made_by, stack)
    seconds = clock.perf_counter() - begin
    if options.until is not None:
        # Workers return matches alone, so that what they left out is found by another run.
        tell_undecided(query.match(data, replace(options, until=None)).count() - count)
    first = [] if target.output else matches.sort("match_end", "match_start").head(target.limit)
    events, rejected = 0, 0
    for frame in frames.values():
        lost_here = unplaced(options.time, options.start, frame.columns)
        row = frame.select(F.count("*"), F.count_if(lost_here)).first()
        assert row is not None
        events, rejected = events + row[0], rejected + row[1]
    rows = [row.asDict(recursive=True) for row in first]
    figures = RunSummary(events, count, seconds, rejected)
    shown = [row.asDict() for row in lost.head(REJECTED_SHOWN)] if rejected else []
    if not isinstance(query, RuleSet):
        return Result(matches.columns, rows, figures, shown)
    counts = {row[RULE]: row["count"] for row in matches.groupBy(RULE).count().collect()}
    return Result(matches.columns, rows, figures, shown, PerRule(len(query), counts))


def _read(
    spark: SparkSession,
    query: Query | RuleSet,
    sources: tuple[InputSource, ...],
    options: Options,
    target: Target,
) -> tuple[dict[str, DataFrame], DataFrame]:
    """The events of the inputs, with the columns that are read, and the rejected rows."""
    queries = [query] if isinstance(query, Query) else [t.query for t in query.templates]
    inputs = open_spark_inputs(spark, sources, [q.syntax for q in queries], options)
    schemas = {name: input_.columns.schema for name, input_ in inputs.items()}
    known: Any = schemas if all(schemas) else schemas[""]
    if isinstance(query, RuleSet):
        refuse_wrong(query, known, options, target)
        read = {n for s in schemas.values() for n in columns_read(query.templates, s, options)}
    else:
        bound = query.bind(known, options)
        read = set(bound.schema.held(bound.required))
    wanted = {name: pa.schema([f for f in s if f.name in read]) for name, s in schemas.items()}
    frames = {name: input_.events(wanted[name]) for name, input_ in inputs.items()}
    return frames, rejected_rows(inputs, wanted)


def rejected_rows(inputs: Mapping[str, SparkInput], wanted: Mapping[str, pa.Schema]) -> DataFrame:
    """The rejected rows of all streams."""
    parts = []
    for name, input_ in inputs.items():
        rejected = input_.rejected(wanted[name])
        stream = F.lit(name or None).cast("string").alias("stream")
        parts.append(rejected.select(stream, *rejected.columns))
    return reduce(lambda input_, other: input_.union(other), parts)


def write_folder(
    data: DataFrame,
    place: str,
    format: Format,
    guard: Guard,
    option: str,
    made_by: str,
    stack: ExitStack,
) -> None:
    """Write a folder that gets its name when the stack ends; at a remote address it has its name at
    once."""
    name, settings = spark_format(format, place)
    if is_local(place):
        place = str(stack.enter_context(guard.new_folder(Path(place), option, made_by)))
    for_text(data, format).write.mode("error").format(name).options(**settings).save(place)
