"""Streams on Spark, cut into micro-batches at random: the matches are the oracle's."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from tests.corpus.reader import Case, bound, cases
from tests.properties.full_strategies import full_cases
from tests.spark.harness import expected
from tests.spark.streaming_harness import (
    Course,
    collect,
    course_of,
    drawn,
    run,
    run_twice,
    streamable,
    ticks,
    with_fillers,
    write,
)

IN_ORDER = (
    "nested/a field as the key",
    "nested/CONTAINS of another event",
    "keys/[id] reaches the negation",
    "keys/different names",
    "keys/equality of some is no key",
    "after match/per key",
)
LATE = (
    "keys/different names, events of the whole stream",
    "events/negated end",
    "negation/end",
)
CHOSEN_BY_TIME_AND_NUMBER = (
    "eql/a missing event at the end",
    "limit/per key",
    "after match/for a time, per key",
    "reduce/a sum in HAVING",
    "strict/closures side by side, by key",
)
TOGETHER = 10
"""Queries of one run."""


def check(spark: SparkSession, folder: Path, chosen: Sequence[Case], delay: int | None) -> None:
    courses: list[Course] = []
    want: dict[str, Any] = {}
    for seed, case in enumerate(chosen):
        events = with_fillers(bound(case), case.events)
        courses.append(course_of(case, events, seed, delay))
        want[case.name] = expected(case, events)
    outcome = run(spark, folder, courses)
    got = {name: outcome.rows(name) for name in want}
    assert {n: ticks(rows) if delay else rows for n, rows in got.items()} == want
    assert sum(sum(rows.values()) for rows in want.values())
    assert outcome.total("late") == 0
    parts = [part for course in courses for part in course.parts]
    assert outcome.total("events") == sum(part.num_rows for part in parts)


def named(*names: str) -> list[Case]:
    return [case for case in cases() if case.name in names]


def random_cases(count: int, in_seconds: bool) -> list[Case]:
    """Random queries that find something."""
    found = (
        case
        for case in drawn(full_cases(), 4 * count + 40)
        if streamable(case, in_seconds) and expected(case, case.events)
    )
    return [case for case, _ in zip(found, range(count), strict=False)]


@pytest.mark.essential
def test_some_streams(spark: SparkSession, tmp_path: Path) -> None:
    check(spark, tmp_path, named("keys/[id]", "events/negated end"), None)


@pytest.mark.slow  # `test_some_streams` and the restart below match in order in every run
@pytest.mark.classic
def test_events_in_order(spark: SparkSession, tmp_path: Path) -> None:
    """Matched in their batch. Time is a number."""
    check(spark, tmp_path, [*named(*IN_ORDER), *random_cases(1, False)], None)


@pytest.mark.slow
@pytest.mark.classic
def test_events_late_by_some_seconds(spark: SparkSession, tmp_path: Path) -> None:
    """They wait until the watermark passes them. Time is a timestamp."""
    check(spark, tmp_path, [*named(*LATE), *random_cases(1, True)], 5)


@pytest.mark.slow
@pytest.mark.classic
def test_absences_limits_pauses_folds_and_runs_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    chosen = named(*CHOSEN_BY_TIME_AND_NUMBER)
    streams = [with_fillers(bound(case), case.events) for case in chosen]
    courses = [
        course_of(c, events, n) for n, (c, events) in enumerate(zip(chosen, streams, strict=True))
    ]
    assert all(len(course.parts) > 2 for course in courses)
    outcome = run_twice(spark, tmp_path, courses)
    want = {c.name: expected(c, events) for c, events in zip(chosen, streams, strict=True)}
    assert len(want) == len(CHOSEN_BY_TIME_AND_NUMBER) and all(want.values())
    assert {name: outcome.rows(name) for name in want} == want


def packs(slow: Sequence[Case]) -> list[Sequence[Case]]:
    return [slow[n : n + TOGETHER] for n in range(0, len(slow), TOGETHER)]


@pytest.mark.slow
@pytest.mark.parametrize("delay", [None, 5])
def test_the_corpus(spark: SparkSession, tmp_path: Path, delay: int | None) -> None:
    chosen = [case for case in cases() if streamable(case, delay is not None)]
    for number, pack in enumerate(packs(chosen)):
        check(spark, tmp_path / str(number), pack, delay)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [None, 5])
def test_random_queries(spark: SparkSession, tmp_path: Path, delay: int | None) -> None:
    for number, pack in enumerate(packs(random_cases(40, delay is not None))):
        check(spark, tmp_path / str(number), pack, delay)


# ── by hand ──

SECOND = pa.timestamp("us", "UTC")


def at(*seconds: int | None) -> pa.Array:
    return pa.array([None if s is None else s * 10**6 for s in seconds], pa.int64()).cast(SECOND)


@pytest.mark.classic
def test_streams_released_by_others_and_single_events(spark: SparkSession, tmp_path: Path) -> None:
    """Several streams as a dict, in which time goes on by the events of one, even of no class; and
    queries in which a match is one event."""
    orders = [
        pa.table({"ts": at(10, 11), "id": [1, 2], "n": [1, 2]}),
        pa.table({"ts": at(12, 20), "id": [3, 9], "n": [3, 4]}),
        pa.table({"ts": at(90), "id": [9], "n": [5]}),
    ]
    payments = [
        pa.table({"ts": at(12), "order": [2], "n": [6]}),
        pa.table({"ts": at(13, 40), "order": [3, 1], "n": [7, 8]}),
        pa.table({"ts": at(95), "order": [7], "n": [9]}),
    ]
    unpaid = Course(
        "unpaid",
        "PATTERN orders o ; !payments p WHERE o.id = p.order AND o.id < 9 WITHIN 15 seconds "
        "RETURN o.n AS n",
        {"orders": orders, "payments": payments},
        {"time": "ts"},
    )
    single = Course(
        "single", "PATTERN o WHERE o.n > 1 AND o.n < 5 RETURN o.n AS n", orders, {"time": "ts"}
    )
    outcome = run(spark, tmp_path, [unpaid, single])
    assert [row["n"] for row in outcome.matches["unpaid"]] == [1]
    assert sorted(row["n"] for row in outcome.matches["single"]) == [2, 3, 4]


@pytest.mark.classic
def test_a_single_file_is_matched_in_its_batch(spark: SparkSession, tmp_path: Path) -> None:
    """No event comes after the last one, and the watermark stays a millisecond behind it."""
    events = pa.table({"ts": at(1, 2), "name": ["A", "B"], "id": [1, 1]})
    courses = [
        Course(
            operator,
            f"PATTERN A a {operator} B b WHERE [id] WITHIN 5 seconds RETURN b.id AS id",
            [events],
            {"time": "ts", "type": "name"},
        )
        for operator in (";", "->", "=>")
    ]
    outcome = run(spark, tmp_path, courses)
    assert {name: len(rows) for name, rows in outcome.matches.items()} == {";": 1, "->": 1, "=>": 1}
    assert [batch.matches for batch in outcome.batches if batch.matches] == [3]


@pytest.mark.classic
def test_counted_keys_that_are_quiet_are_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    """Of id 1 the events are 9 seconds apart, of id 2 more; at the end nothing is held."""
    parts = [
        pa.table({"ts": at(1, 2), "name": ["A", "A"], "id": [1, 2]}),
        pa.table({"ts": at(10, 30), "name": ["B", "B"], "id": [1, 2]}),
        pa.table({"ts": at(90), "name": ["A"], "id": [1]}),
        pa.table({"ts": at(900), "name": ["A"], "id": pa.array([None], pa.int64())}),
    ]
    query = "PATTERN A a ; B b WHERE [id] WITHIN 3 EVENTS RETURN a.id AS id"
    options = {"time": "ts", "type": "name", "idle": "10 seconds"}
    outcome = run(spark, tmp_path, [Course("quiet", query, parts, options)])
    assert [row["id"] for row in outcome.matches["quiet"]] == [1]
    held = [batch.rows for batch in outcome.batches]
    assert held[0] == 2 and held[-1] == 0
    stream = spark.readStream.schema("ts long, id long").parquet(str(tmp_path / "0"))
    with pytest.raises(
        cep.OptionError, match="idle= is for queries with a key and WITHIN n EVENTS"
    ):
        cep.match(stream, "PATTERN a ; b WHERE [id] WITHIN 5", time="ts", idle="1 day")
    rules = cep.RuleSet.of({"pair": "PATTERN a ; b WHERE [id] WITHIN 5"})
    with pytest.raises(cep.OptionError, match="idle= is for a single query"):
        rules.match(stream, time="ts", idle="1 day")


@pytest.mark.classic
def test_all_in_one_bucket_is_said(spark: SparkSession, tmp_path: Path) -> None:
    write([pa.table({"ts": [1], "id": [1]})], tmp_path)
    stream = spark.readStream.schema("ts long, id long").parquet(str(tmp_path))
    with pytest.warns(UserWarning, match="all its events go through one bucket"):
        cep.match(stream, "PATTERN a ; b WITHIN 5", time="ts")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cep.match(stream, "PATTERN a ; b WHERE [id] WITHIN 5", time="ts")
        cep.match(stream, "PATTERN a ; b WITHIN 5", time="ts", partitioning="single")


LINES = (
    # A time that isn't one, and a line that is cut off.
    [
        {"ts": "2024-01-01T00:00:10Z", "name": "A", "id": 1, "n": 1},
        {"ts": "yesterday", "name": "B", "id": 1, "n": 2},
        {"ts": "2024-01-01T00:00:11Z", "name": "A", "id": 2, "n": 3},
    ],
    [
        {"name": "B", "id": 1, "n": 4},
        {"ts": "2024-01-01T00:00:12Z", "name": "B", "id": 1, "n": 5},
        {"ts": "2024-01-01T00:00:13Z", "name": "B", "id": "two", "n": 6},
    ],
    # The watermark has passed 12 seconds.
    [
        {"ts": "2024-01-01T00:00:11Z", "name": "B", "id": 2, "n": 7},
        {"ts": "2024-01-01T00:00:16Z", "name": "B", "id": 2, "n": 8},
    ],
    [{"ts": "2024-01-01T01:00:00Z", "name": "C", "id": 9, "n": 9}],
)


def test_bad_input_in_the_middle(spark: SparkSession, tmp_path: Path) -> None:
    """It is counted and routed, and the query goes on."""
    for number, lines in enumerate(LINES):
        text = "\n".join(json.dumps(line) for line in lines)
        text += '\n{"ts": "2024-01-01T00:' if number == 1 else ""
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        os.utime(path, (number + 1, number + 1))
    source = spark.readStream.schema("ts timestamp, name string, id long, n long")
    stream = source.option("maxFilesPerTrigger", 1).json(str(tmp_path))
    query = "PATTERN A a ; B b WHERE [id] WITHIN 10 seconds RETURN a.n AS a, b.n AS b"
    matches = cep.match(stream, query, time="ts", type="name", jit=False)
    dead = cep.rejected(stream, time="ts")
    pairs = matches.select("a", "b")
    letters = dead.select(F.lit(None).cast("long").alias("a"), F.col("n").alias("b"))
    rows, batches = collect(pairs.unionAll(letters))
    found = [(row["a"], row["b"]) for row in rows]
    assert sorted(pair for pair in found if pair[0] is not None) == [(1, 5), (3, 8)]
    assert sorted(str(n) for a, n in found if a is None) == ["2", "4", "None"]
    assert sum(batch.events for batch in batches) == 10
    assert [batch.rejected for batch in batches if batch.events] == [1, 2, 0, 0]
    assert sum(batch.late for batch in batches) == 1
    assert sum(batch.matches for batch in batches) == 2


@pytest.mark.classic
def test_an_event_ahead_of_the_clock_moves_no_watermark(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Otherwise all that comes after it would be late."""
    parts = [
        pa.table({"ts": at(10), "name": ["A"], "id": [1]}),
        pa.table({"ts": at(253_370_764_800, 11), "name": ["Z", "Z"], "id": [1, 1]}),  # 9999
        pa.table({"ts": at(12), "name": ["B"], "id": [1]}),
        pa.table({"ts": at(100), "name": ["Z"], "id": [1]}),
    ]
    query = "PATTERN A a ; B b WHERE [id] WITHIN 5 seconds RETURN a.id AS id"
    options = {"time": "ts", "type": "name"}
    outcome = run(spark, tmp_path, [Course("jump", query, parts, options, 5)])
    assert [row["id"] for row in outcome.matches["jump"]] == [1]
    assert [batch.future for batch in outcome.batches if batch.events] == [0, 1, 0, 0]
    assert (outcome.total("late"), outcome.total("rejected")) == (0, 0)


@pytest.mark.classic
def test_keys_that_see_no_other_event(spark: SparkSession, tmp_path: Path) -> None:
    """Of 200 keys, half never get their second event; they are reported when time has passed, also
    by events that no variable takes."""
    random = np.random.default_rng(5)
    first = random.permutation(200)
    opened = pa.table({"ts": at(*range(1, 201)), "name": ["open"] * 200, "id": first})
    done = [int(n) for n in first if n % 2]
    closed = pa.table(
        {"ts": at(*range(201, 301)), "name": ["close"] * 100, "id": pa.array(done, pa.int64())}
    )
    other = pa.table({"ts": at(900), "name": ["other"], "id": pa.array([None], pa.int64())})
    query = "PATTERN open o ; !close c WHERE [id] WITHIN 500 seconds RETURN o.id AS id"
    course = Course("left open", query, [opened, closed, other], {"time": "ts", "type": "name"})
    outcome = run(spark, tmp_path, [course])
    found = sorted(row["id"] for row in outcome.matches["left open"])
    assert found == [n for n in range(200) if not n % 2]
    last = [batch for batch in outcome.batches if batch.matches]
    assert [batch.events for batch in last] == [0]
