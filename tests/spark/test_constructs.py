"""Every construct on Spark, in batches and on streams, as a query and as a rule of a set: the
oracle's matches. Jobs take longer than their work, so all queries are in one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from tests.constructs import CONSTRUCTS, OPTIONS, Rows, data, expected, row
from tests.spark.streaming_harness import Course, one_partition, run

pytestmark = [
    pytest.mark.filterwarnings("ignore:no key connects"),
    pytest.mark.filterwarnings("ignore:.*compares texts that look like numbers"),
]

ESSENTIAL = ("a time at the end", "a limit of each key", "a fold so far")
"""Those of every run."""

SETS = [
    pytest.param(ESSENTIAL, id="some"),
    pytest.param(tuple(CONSTRUCTS), id="all", marks=pytest.mark.slow),
]


def by_name(found: Iterable[tuple[str, int, int, str]]) -> Mapping[str, Rows]:
    rows: dict[str, Rows] = defaultdict(Rows)
    for name, start, end, values in found:
        rows[name][row(start, end, json.loads(values))] += 1
    return rows


def oracle(names: Iterable[str]) -> Mapping[str, Rows]:
    rows = {name: expected(name) for name in names}
    assert all(rows.values())
    return rows


def in_rows(frame: DataFrame, name: Any, values: Any) -> DataFrame:
    ends = (F.unix_micros(end) for end in ("match_start", "match_end"))
    return frame.select(name, *ends, values)


def in_parts() -> list[pa.Table]:
    """The events, late by up to four seconds, and one that moves the time beyond all windows."""
    events = data()
    late = np.argsort(
        np.array(events["ts"].cast(pa.int64()))
        + 10**6 * np.random.default_rng(1).integers(0, 4, events.num_rows),
        kind="stable",
    )
    end = events.slice(0, 1).set_column(0, "ts", pa.array([10**11], events["ts"].type))
    end = end.set_column(end.column_names.index("type"), "type", pa.array(["X"]))
    parts = [events.take(pa.array(part)) for part in np.array_split(late, 3)]
    return [*parts, end]


@pytest.mark.parametrize("names", SETS[1:])
def test_batches(spark: SparkSession, names: tuple[str, ...]) -> None:
    events = spark.createDataFrame(data()).repartition(3, F.rand(1))
    found: list[DataFrame] = []
    for name in names:
        matches = cep.match(events, CONSTRUCTS[name], partitions=2, jit=False, **OPTIONS)
        values = F.to_json(F.struct(*matches.columns[:-2]))
        found.append(in_rows(matches, F.lit(name), values))
    rows = reduce(DataFrame.unionAll, found).collect()
    assert by_name(map(tuple, rows)) == oracle(names)


@pytest.mark.parametrize("names", SETS)
def test_streams(spark: SparkSession, tmp_path: Path, names: tuple[str, ...]) -> None:
    parts = in_parts()
    courses = [Course(name, CONSTRUCTS[name], parts, OPTIONS, delay=5) for name in names]
    matches = run(spark, tmp_path, courses).matches
    found = (
        (name, own.pop("match_start"), own.pop("match_end"), json.dumps(own))
        for name, rows in matches.items()
        for own in rows
    )
    assert by_name(found) == oracle(names)


@pytest.mark.parametrize("names", SETS)
def test_rules_in_batches(spark: SparkSession, names: tuple[str, ...]) -> None:
    rules = cep.RuleSet.of({name: CONSTRUCTS[name] for name in names})
    events = spark.createDataFrame(data()).repartition(3, F.rand(1))
    found = rules.match(events, partitions=2, jit=False, **OPTIONS)
    rows = in_rows(found, "rule", "match").collect()
    assert by_name(map(tuple, rows)) == oracle(names)


@pytest.mark.parametrize("names", SETS)
def test_rules_over_streams(spark: SparkSession, tmp_path: Path, names: tuple[str, ...]) -> None:
    rules = cep.RuleSet.of({name: CONSTRUCTS[name] for name in names})
    course = Course("rules", "", in_parts(), OPTIONS, delay=5)
    stream = course.frame(spark, tmp_path / "in", in_parts())
    with one_partition(spark):
        found = rules.match(stream, buckets=2, jit=False, **OPTIONS)
        running = found.writeStream.format("memory").queryName("rules_of_constructs")
        running.trigger(availableNow=True).start().awaitTermination()
    rows = in_rows(spark.table("rules_of_constructs"), "rule", "match").collect()
    assert by_name(map(tuple, rows)) == oracle(names)
