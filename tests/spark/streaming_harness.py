"""Runs queries over streams of files, many in one streaming query: starting one takes seconds.

Every query reads a folder of its own, file by file; all of them share batches and, since Spark
takes the least, a watermark. So streams of one run keep time in the same way.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from cepheid.algebra.query import BoundQuery, Clock
from cepheid.algebra.types import Type
from cepheid.errors import PlanError, QueryError, UnsupportedError
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Source
from cepheid.options import Limit, Options
from cepheid.planner import prepare
from cepheid.planner.bounds import require_bounds, uncut
from cepheid.spark.columns.schema import spark_schema
from cepheid.spark.streaming.status.reports import Status, status
from tests.corpus.reader import KIND, START, TIME, Case, bound, table
from tests.oracle.events import Event
from tests.spark.harness import ROW, Rows, event_table, found

FAR = 1000
"""Ticks after which the fillers come."""

PARTITIONS = "spark.sql.shuffle.partitions"

EPOCH = 1_700_000_000
"""Seconds at which time begins, where it is a timestamp."""


@dataclass(frozen=True)
class Course:
    """A query over a stream that comes in parts, or over several streams, by name; or several
    queries, of which the one with the course's name is collected. `delay`: by how many seconds
    events may be late."""

    name: str
    query: str | Sequence[str]
    parts: Sequence[pa.Table] | Mapping[str, Sequence[pa.Table]]
    options: Mapping[str, Any]
    delay: int | None = None

    def frames(self, spark: SparkSession, folder: Path) -> Any:
        if isinstance(self.parts, Mapping):
            return {
                name: self.frame(spark, folder / name, parts) for name, parts in self.parts.items()
            }
        return self.frame(spark, folder, self.parts)

    def frame(self, spark: SparkSession, folder: Path, parts: Sequence[pa.Table]) -> DataFrame:
        write(parts, folder)
        frame = read(spark, folder, parts[0].schema)
        if self.delay is None:
            return frame
        return frame.withWatermark(self.options["time"], f"{self.delay} seconds")


@dataclass(frozen=True)
class Outcome:
    """The matches of each query, and what each batch reported."""

    matches: Mapping[str, list[dict[str, Any]]]
    batches: Sequence[Status] = field(default_factory=tuple)

    def rows(self, name: str) -> Rows:
        return found([dict(row) for row in self.matches[name]])

    def total(self, what: str) -> int:
        return sum(getattr(batch, what) for batch in self.batches)


def write(parts: Sequence[pa.Table], folder: Path, first: int = 0) -> None:
    """A file for each part, which Spark takes in this order."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts, first):
        hidden, path = folder / f".{number}.parquet", folder / f"{number:04}.parquet"
        pq.write_table(part, hidden)
        os.utime(hidden, (number + 1, number + 1))
        hidden.rename(path)


def read(spark: SparkSession, folder: Path, schema: pa.Schema) -> DataFrame:
    files = spark.readStream.schema(spark_schema(schema)).option("maxFilesPerTrigger", 1)
    return files.parquet(str(folder))


def joined(spark: SparkSession, folder: Path, courses: Sequence[Course]) -> DataFrame:
    """The matches of all queries as one stream: the name of each query, and its matches as JSON."""
    branches: list[DataFrame] = []
    for number, course in enumerate(courses):
        data = course.frames(spark, folder / str(number))
        options = {"jit": False, "buckets": 3, **course.options}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="no key connects the variables")
            matches = cep.match(data, course.query, **options)
        if isinstance(matches, dict):
            matches = matches[course.name]
        if dict(matches.dtypes)["match_end"] == "timestamp":
            ends = {name: F.unix_micros(name) for name in ("match_start", "match_end")}
            matches = matches.withColumns(ends)
        text = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
        branches.append(matches.select(F.lit(course.name).alias("name"), text.alias("match")))
    return reduce(DataFrame.unionAll, branches)


def run(spark: SparkSession, folder: Path, courses: Sequence[Course]) -> Outcome:
    """All queries, as one, until their files are read."""
    with one_partition(spark):
        rows, batches = collect(joined(spark, folder, courses))
    return Outcome(_by_name(rows, courses), batches)


def run_twice(spark: SparkSession, folder: Path, courses: Sequence[Course]) -> Outcome:
    """The same with a restart when half of the files are read."""
    for last in (False, True):
        begun = [
            course if last else replace(course, parts=list(course.parts)[: len(course.parts) // 2])
            for course in courses
        ]
        with one_partition(spark):
            stream = joined(spark, folder / "events", begun).writeStream.format("json")
            options = {"path": str(folder / "found"), "checkpointLocation": str(folder / "state")}
            stream.options(**options).trigger(availableNow=True).start().awaitTermination()
    rows = spark.read.schema("name string, match string").json(str(folder / "found")).collect()
    return Outcome(_by_name(rows, courses))


def _by_name(rows: Sequence[Any], courses: Sequence[Course]) -> dict[str, list[dict[str, Any]]]:
    by_name: dict[str, list[dict[str, Any]]] = {course.name: [] for course in courses}
    for row in rows:
        by_name[row["name"]].append(json.loads(row["match"]))
    return by_name


@contextmanager
def one_partition(spark: SparkSession) -> Iterator[None]:
    """Every task has its own cost: buckets of so few events share one."""
    before = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, "1")
    yield
    spark.conf.set(PARTITIONS, str(before))


def collect(stream: DataFrame) -> tuple[list[Any], list[Status]]:
    """The rows of a stream whose input ends, and what its batches reported."""
    name = f"rows_{uuid4().hex}"
    query = stream.writeStream.format("memory").queryName(name).outputMode("append")
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()
    rows = stream.sparkSession.table(name).collect()
    return rows, [status(progress) for progress in running.recentProgress]


# ── cases ──


def streamable(case: Case, in_seconds: bool = False) -> bool:
    """Whether a stream with these events, and then fillers, decides everything; with ticks that
    are seconds, if the query says nothing else of time than how long its window is."""
    text = case.query_text
    if case.schema.streams is not None or case.schema.unit is not None or "RETURN" in text:
        return False
    if any(t in (Type.DATE, Type.TIMESTAMP) for t in case.schema.columns.values()):
        return False
    if in_seconds and not re.search(r"WITHIN \d+( EVENTS)?(\n| USING| AFTER|$)", text):
        return False
    if in_seconds and re.search(r"\bts\b|\bbegin\b|duration|OCCURS|@", text):
        return False
    query = bound(case)
    if query.window is None or not all(v.types for v in query.variables.values()):
        return False
    if any(e.values[TIME] is None for e in case.events) or not case.events:
        return False
    try:
        require_bounds(query, Limit(total=1000), Span(0, 0), Source("", ""))
        prepared = prepare(query, Options(TIME))
    except (PlanError, QueryError, UnsupportedError):
        return False
    return prepared.query.nothing is None and "strict" not in str(uncut(query) or "")


def drawn(strategy: st.SearchStrategy[Case], count: int) -> list[Case]:
    """Random cases, the same in every run."""
    found: list[Case] = []

    @settings(
        max_examples=count,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(case: Case) -> None:
        found.append(case)

    draw()
    distinct = {case.query_text: case for case in found}
    return [replace(case, name=f"random {n}") for n, case in enumerate(distinct.values())]


def with_fillers(query: BoundQuery, events: Sequence[Event]) -> tuple[Event, ...]:
    """Then come events that no variable takes, much later: they move time on, and fill the windows
    that count events, of every key."""
    assert all(v.types for v in query.variables.values())
    window = query.window
    counted = window is not None and window.clock is Clock.EVENTS
    placed = [e for e in events if e.values[TIME] is not None]
    at = max(e.time for e in placed) + FAR
    fillers: list[Event] = []
    for _ in range(window.size + 1 if counted and window is not None else 1):
        for event in placed:
            values = {**event.values, KIND: "filler", TIME: at}
            start = None if event.start is None else at
            if start is not None:
                values[START] = start
            index = len(events) + len(fillers)
            if ROW in values:
                values[ROW] = index
            fillers.append(Event(index, at, values, start))
    return (*events, *fillers)


def course_of(case: Case, events: Sequence[Event], seed: int, delay: int | None = None) -> Course:
    """The case as a stream that is cut at random. With a delay, its ticks are seconds, and events
    are late at random; those of one time stay in the order of the input, which may count."""
    random = np.random.default_rng(seed)
    query = bound(case)
    fillers = [n for n, e in enumerate(events) if e.values[KIND] == "filler"]
    times = np.array([e.time for e in events], np.int64)
    distinct, which = np.unique(times, return_inverse=True)
    late = (
        np.zeros(len(distinct), np.int64)
        if delay is None
        else random.integers(0, delay, len(distinct))
    )
    arrival = times + late[which]
    places = {n: rank for rank, n in enumerate(_in_order(query, events))}
    order = sorted(range(len(events)), key=lambda n: (arrival[n], places[n]))
    has_rows = ROW in case.schema.columns
    data = table(case.schema, events) if has_rows else event_table(case, events)
    text = case.query_text
    if delay is not None:
        text = re.sub(r"WITHIN (\d+)\b(?! EVENTS)", r"WITHIN \1 seconds", text)
        data = _in_seconds(data)
    data = data.take(pa.array(order))
    options = {"time": TIME, "type": KIND, "tie": case.schema.tie, "params": case.params}
    if case.schema.start is not None:
        options["start"] = START
    whole = data.num_rows - len(fillers)
    parts = [*cut(data.slice(0, whole), random), data.slice(whole)]
    return Course(case.name, text, parts, options, delay)


def _in_order(query: BoundQuery, events: Sequence[Event]) -> list[int]:
    columns = query.schema.order

    def place(n: int) -> Any:
        return [(v is not None, v) for v in (events[n].values[c] for c in columns)]

    return sorted(range(len(events)), key=lambda n: (place(n), n))


def _in_seconds(data: pa.Table) -> pa.Table:
    for name in (TIME, START):
        if name in data.column_names:
            ticks = [None if t is None else (EPOCH + t) * 10**6 for t in data[name].to_pylist()]
            times = pa.array(ticks, pa.int64()).cast(pa.timestamp("us", "UTC"))
            data = data.set_column(data.column_names.index(name), name, times)
    return data


def ticks(rows: Rows) -> Rows:
    """Matches in seconds, as the oracle names them."""

    def tick(micros: int) -> int:
        return micros // 10**6 - EPOCH

    return type(rows)({(*row[:-2], tick(row[-2]), tick(row[-1])): n for row, n in rows.items()})


def cut(data: pa.Table, random: np.random.Generator) -> list[pa.Table]:
    """Into one part, into parts of one row, or at random; sometimes with an empty one."""
    rows = data.num_rows
    how = random.choice(["whole", "single", "random", "random", "random"])
    if how == "single" and rows > 5:
        how = "random"
    inner = {
        "whole": [],
        "single": range(1, rows),
        "random": np.sort(random.integers(0, rows + 1, random.integers(1, 4))),
    }[str(how)]
    bounds = [0, *(int(b) for b in inner), rows]
    return [data.slice(a, b - a) for a, b in pairwise(bounds)]
