"""`cepheid run --engine spark`: the same run as a Spark job."""

from __future__ import annotations

import time as clock
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import StringType

import cepheid as cep
from cepheid.cli.arguments import Input
from cepheid.cli.progress import spark_tasks
from cepheid.cli.run_rules import refuse_wrong
from cepheid.cli.session import spark_session
from cepheid.cli.show import Figures, PerRule
from cepheid.cli.target import Result, Target, refuse_nested
from cepheid.engine.attribution.json_rows import RULE
from cepheid.files.formats import (
    Format,
    existing_files,
    is_deep,
    is_local,
    output_format,
    spark_format,
    spark_path,
)
from cepheid.files.guard import Guard
from cepheid.options import Options
from cepheid.query import Query
from cepheid.rules import RuleSet
from cepheid.spark.schema import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_on_spark(
    query: Query | RuleSet,
    sources: tuple[Input, ...],
    options: Options,
    target: Target,
    master: str,
) -> Result:
    """Match in a Spark session made for it; the output is a folder, as Spark writes."""
    for source in sources:
        if is_local(source.path):
            existing_files(source.path)
    with spark_session(master, app="cepheid run") as spark:
        return _run(spark, query, sources, options, target)


def _run(
    spark: SparkSession,
    query: Query | RuleSet,
    sources: tuple[Input, ...],
    options: Options,
    target: Target,
) -> Result:
    frames = {source.name or "": _read(spark, source, options.time) for source in sources}
    data: Any = frames if all(frames) else frames[""]  # of several streams, one frame comes back
    if isinstance(query, RuleSet):
        refuse_wrong(query, data, options, target)
    matches: DataFrame = query.match(data, options)
    refuse_nested(arrow_schema(matches.schema), target.written)
    begin = clock.perf_counter()
    # Kept, so that counting and showing them doesn't match once more.
    matches = matches.persist()
    with ExitStack() as stack, spark_tasks(spark, "matching"):
        found = matches.count()
        if target.output is not None:
            made_by = query.name if isinstance(query, Query) else "a set of rules"
            _write(matches, target.output, target.format, target.guard, "--output", made_by, stack)
        if target.rejected is not None:
            _write_rejected(frames, options.time, target.rejected, target.guard, stack)
    seconds = clock.perf_counter() - begin
    first = [] if target.output else matches.sort("match_end", "match_start").head(target.limit)
    events, rejected = 0, 0
    for frame in frames.values():
        row = frame.select(F.count("*"), F.count_if(F.col(options.time).isNull())).first()
        assert row is not None
        events, rejected = events + row[0], rejected + row[1]
    rows = [row.asDict(recursive=True) for row in first]
    figures = Figures(events, found, seconds, rejected)
    if not isinstance(query, RuleSet):
        return Result(matches.columns, rows, figures)
    counts = {row[RULE]: row["count"] for row in matches.groupBy(RULE).count().collect()}
    return Result(matches.columns, rows, figures, PerRule(len(query), counts))


def _read(spark: SparkSession, source: Input, time: str) -> DataFrame:
    """The events of an input. Text in the time column is a time."""
    reader = spark.read.option("recursiveFileLookup", is_deep(source.path))
    path = spark_path(source.path)
    match source.format:
        case Format.PARQUET:
            data = reader.parquet(path)
        case Format.CSV | Format.TSV:
            sep = source.format.delimiter
            data = reader.csv(path, sep=sep, header=True, inferSchema=True)
        case Format.JSON:
            data = reader.option("inferTimestamp", "true").json(path)
    texts = [f.name for f in data.schema if f.name == time and isinstance(f.dataType, StringType)]
    return data.withColumns({name: F.col(name).cast("timestamp") for name in texts})


def _write(
    data: DataFrame,
    place: str,
    format: Format,
    guard: Guard,
    option: str,
    made_by: str,
    stack: ExitStack,
) -> None:
    """Write a folder that gets its name when the stack ends; at an address, it has it at once."""
    name, settings = spark_format(format, place)
    if is_local(place):
        place = str(stack.enter_context(guard.new_folder(Path(place), option, made_by)))
    data.write.mode("error").format(name).options(**settings).save(place)


def _write_rejected(
    frames: dict[str, DataFrame], time: str, place: str, guard: Guard, stack: ExitStack
) -> None:
    """The dead letters; those of several streams with the columns of all."""
    dead, *others = (cep.rejected(frame, time) for frame in frames.values())
    for other in others:
        dead = dead.unionByName(other, allowMissingColumns=True)
    format = output_format(Path(place))
    _write(dead, place, format, guard, "--rejected", "rejected rows", stack)
