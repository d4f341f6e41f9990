"""Automata and AFTER MATCH on Spark: the oracle's matches, however the work is cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

import cepheid as cep
from cepheid.errors import PlanError
from tests.corpus.reader import Case, bound, cases
from tests.spark.harness import (
    HOW,
    ROW,
    Rows,
    again,
    event_table,
    expected,
    frame,
    in_process,
    on_spark,
)

FILES = (
    "after_match.txt",
    "distinct_automata.txt",
    "durations_next.txt",
    "exception.txt",
    "groups.txt",
    "limit.txt",
    "modes.txt",
    "next.txt",
    "papers_automata.txt",
    "reduce_automata.txt",
    "previous_automata.txt",
    "strict.txt",
)
USUAL = ("after_match.txt", "limit.txt", "modes.txt", "next.txt", "strict.txt")
"""Those of every run; the others are for the long one."""
INPUT_ORDER = {
    "after match/simultaneous matches by input order",
    "limit/simultaneous matches by input order",
}
"""Cases that a cluster may answer otherwise: it doesn't keep the input order."""


def options(case: Case) -> dict[str, Any]:
    schema = case.schema
    return {
        "time": schema.time,
        "start": schema.start,
        "type": schema.type,
        "tie": schema.tie,
        "params": case.params,
        "partitions": 3,
        "jit": False,
    }


def ways(case: Case) -> Iterator[str]:
    """As it is done by itself; with a key, also as it could be done."""
    yield "auto"
    if bound(case).key:
        yield from ("partial", "slices")


def named(matches: DataFrame, case: Case, how: str) -> DataFrame:
    """Matches by the rows that they bind, in columns that are the same for every case."""
    bindings = []
    for field in matches.schema.fields[:-2]:
        column = F.col(f"`{field.name}`")[ROW]
        several = isinstance(field.dataType, t.ArrayType)
        rows = column if several else F.when(column.isNotNull(), F.array(column))
        bindings += [F.lit(field.name), rows]
    return matches.select(
        F.lit(case.name).alias("case"),
        F.lit(how).alias(HOW),
        F.create_map(*bindings).alias("bindings"),
        "match_start",
        "match_end",
    )


def collected(matches: Sequence[DataFrame]) -> dict[tuple[str, str], Rows]:
    found: dict[tuple[str, str], Rows] = {}
    for row in reduce(DataFrame.unionAll, matches).collect():
        bindings = ((v, tuple(rows or ())) for v, rows in sorted(row.bindings.items()))
        one = (*bindings, row.match_start, row.match_end)
        found.setdefault((row.case, row.how), Counter())[one] += 1
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "file", [pytest.param(f, marks=() if f in USUAL else pytest.mark.slow) for f in FILES]
)
def test_corpus(spark: SparkSession, file: str) -> None:
    """The stream three times over, so that slices cut through it; a file at once, since jobs take
    longer than their work."""
    matches: list[DataFrame] = []
    want: dict[tuple[str, str], Rows] = {}
    for case in cases(file)[::8]:
        if case.name in INPUT_ORDER or case.schema.streams is not None:
            continue
        events = again(case.events, 3)
        data = frame(spark, event_table(case, events))
        oracle = expected(case, events)
        for how in ways(case):
            try:
                found = cep.match(data, case.query_text, partitioning=how, **options(case))
            except PlanError:
                assert how != "auto"
                continue
            matches.append(named(found, case, how))
            if oracle:
                want[case.name, how] = oracle
    assert collected(matches) == want


def stream(rows: int, seed: int = 1) -> pa.Table:
    """Events of four types, some without a key; `row` is the place in the input and the tie."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "row": np.arange(rows),
            "ts": np.sort(random.integers(0, 3 * rows, rows)),
            "name": random.choice(["A", "B", "C", "D"], rows),
            "id": pa.array(random.integers(0, 5, rows), mask=random.random(rows) < 0.05),
            "other": random.integers(0, 5, rows),
            "x": random.random(rows).round(2),
        }
    )


WHERE = {"time": "ts", "type": "name", "tie": "row"}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("query", "partitionings"),
    [
        (
            "PATTERN A a -> B b => !D d ; C+ c WHERE [id] AND b.x > a.x WITHIN 90",
            ("key", "slices", "partial"),
        ),
        ("PATTERN A a => B b WHERE a.id = b.other WITHIN 50", ("slices", "single")),
        (
            "PATTERN A a -> (B b @ 20) ; !C c WHERE a.x < b.x AND c.x > 0.8 WITHIN 40",
            ("slices", "single"),
        ),
        (
            "PATTERN A a -> B b WHERE a.id = b.other AFTER MATCH SKIP PAST LAST EVENT",
            ("key", "partial", "single"),
        ),
        ("PATTERN A a AFTER MATCH SKIP TO NEXT EVENT", ("auto", "single")),
        ("PATTERN A a => !B b WITHIN 2", ("auto", "single")),
    ],
)
def test_random_events(spark: SparkSession, query: str, partitionings: tuple[str, ...]) -> None:
    """As in process, on more events than the oracle could go through."""
    events = stream(900)
    want = in_process(events, query, jit=False, **WHERE)
    assert want
    got = on_spark(frame(spark, events), query, partitionings, partitions=3, **WHERE)
    assert got == dict.fromkeys(partitionings, want)


def test_other_streams_break_a_strict_pattern(spark: SparkSession) -> None:
    """Also rows of a stream that the pattern doesn't name; FROM leaves it out."""
    streams = {
        "A": spark.createDataFrame(pa.table({"ts": [1, 5], "id": [1, 1]})),
        "B": spark.createDataFrame(pa.table({"ts": [3, 6], "id": [1, 1]})),
        "C": spark.createDataFrame(pa.table({"ts": [2], "note": ["x"]})),
    }
    text = "PATTERN A a => B b {} RETURN a.ts AS a, b.ts AS b"
    rows = cep.match(streams, text.format(""), time="ts", jit=False).collect()
    assert [tuple(row)[:2] for row in rows] == [(5, 6)]
    named = cep.match(streams, text.format("FROM A, B"), time="ts", jit=False).collect()
    assert sorted(tuple(row)[:2] for row in named) == [(1, 3), (5, 6)]


WINDOW = "each slice has a copy of the window before it"
DIFFERENT = "`=>` and STRICT read the whole stream, because the key has different names"
KEY = "WHERE connects all variables by the key, so matches never cross keys"


@pytest.mark.parametrize(
    ("query", "layout", "reason"),
    [
        ("A -> B WHERE [id]", "key id", KEY),
        ("A -> B", "single", "there is no window"),
        ("A -> B WITHIN 5", "slices", f"no key connects all variables; {WINDOW}"),
        ("A -> B WITHIN 5 EVENTS", "single", "the window counts events of the whole stream"),
        ("A a => B b WHERE [id]", "key id", KEY),
        ("A a => B b WHERE a.id = b.other WITHIN 5", "slices", f"{DIFFERENT}; {WINDOW}"),
        (
            "A a => B b WHERE a.id = b.other",
            "single",
            f"{DIFFERENT}, and there is no window",
        ),
        ("A a -> B b WHERE a.id = b.other", "key id = other", KEY),
        (
            "A ; B WITHIN 5 AFTER MATCH NO SKIP",
            "slices",
            f"no key connects all variables; {WINDOW}",
        ),
        (
            "A ; B WITHIN 5 AFTER MATCH SKIP TO NEXT EVENT",
            "single",
            "AFTER MATCH chooses among all matches, and no key partitions them",
        ),
        ("A ; B WHERE [id] WITHIN 5 AFTER MATCH SKIP TO NEXT EVENT", "key id", KEY),
        ("A a WHERE [id] AFTER MATCH SKIP TO NEXT EVENT", "key id", KEY),
        ("A ; B WHERE [id] WITHIN 5 LIMIT 2 PER KEY", "key id", KEY),
        ("A ; B WHERE [id] WITHIN 5 LIMIT 2", "single", "LIMIT counts all matches"),
        ("A a LIMIT 2", "single", "LIMIT counts all matches"),
        (
            "A a => !B b WITHIN 5",
            "single",
            "a strict negation depends on the next event, however late it is",
        ),
        (
            "A a => !B b ; C* c WITHIN 5",
            "single",
            "a strict negation depends on the next event, however late it is",
        ),
        (
            "A a => !B b ; C+ c WITHIN 5",
            "slices",
            f"no key connects all variables; {WINDOW}",
        ),
        ("A+ RUNS WITHIN 5", "slices", f"no key connects all variables; {WINDOW}"),
    ],
)
def test_how_the_work_is_cut(spark: SparkSession, query: str, layout: str, reason: str) -> None:
    events = spark.createDataFrame(stream(1))
    found = cep.Query(f"PATTERN {query}").explain(events, time="ts", type="name", partitions=4)
    distribution = dict(found.distribution)
    assert distribution["partitioning"].startswith(layout)
    assert distribution["why"] == reason


@pytest.mark.parametrize(
    ("query", "partitioning", "message"),
    [
        ("A a -> B b -> C c WHERE b.id = c.id WITHIN 5", "partial", "need a key"),
        ("A a ; B b ; C c WHERE b.id = c.id WITHIN 5 AFTER MATCH SKIP TO LAST b", "partial", "key"),
        ("A a => B b WHERE a.id = b.other WITHIN 5", "partial", "an equality"),
        ("A a => B b WHERE a.id = b.other WITHIN 5", "key", "read the whole stream"),
        ("A -> B WHERE [id]", "slices", "in time: there is no window"),
        ("A ; B WITHIN 5 AFTER MATCH SKIP PAST LAST EVENT", "slices", "in time: AFTER MATCH"),
        ("A => !B WITHIN 5", "slices", "in time: a strict negation"),
        ("A ; B WHERE [id] WITHIN 5 LIMIT 2", "key", "LIMIT counts all matches"),
        ("A ; B WHERE [id] WITHIN 5 LIMIT 2", "slices", "LIMIT counts all matches"),
        ("A ; B WHERE [id] WITHIN 5 LIMIT 2", "partial", "LIMIT needs PER KEY"),
    ],
)
def test_what_would_change_the_matches_is_refused(
    spark: SparkSession, query: str, partitioning: str, message: str
) -> None:
    events = spark.createDataFrame(stream(1))
    options: dict[str, Any] = {"time": "ts", "type": "name", "partitioning": partitioning}
    with pytest.raises(PlanError, match=message):
        cep.match(events, f"PATTERN {query}", **options)


def test_the_limit_holds_in_workers(spark: SparkSession) -> None:
    """The error says what is wrong and what to add, in whatever Spark wraps it."""
    events = spark.createDataFrame(
        pa.table({"ts": range(8), "name": [*"AAAAAAA", "X"], "id": [1] * 8})
    )
    text = "PATTERN A a -> B b WHERE [id]"
    options: dict[str, Any] = {"time": "ts", "type": "name", "jit": False}
    found = cep.match(events, text, limit=cep.Limit(per_key=4), **options)
    with pytest.raises(
        PythonException, match=r"StateLimitError: \d events .*\(per_key\), and the limit is 4.*Add"
    ):
        found.collect()
    assert cep.match(events, text, limit=cep.Limit(per_key=7), **options).count() == 0
