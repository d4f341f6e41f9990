"""Queries over streaming DataFrames that read each other's matches and answers: what they find in a
table, each once, through restarts, with late events and open windows."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from tests.spark.streaming_harness import EPOCH, FAR, Course, run, run_twice

OPTIONS: dict[str, Any] = {"time": "ts", "type": "type"}

PAIR = (
    "INTO Pair PATTERN A a ; B b WHERE [id] WITHIN 6 seconds "
    "RETURN a.id AS id, a.n AS first, b.n AS n"
)
LEFT = "INTO Left PATTERN A a ; !B b WHERE [id] WITHIN 5 seconds RETURN a.id AS id, a.n AS n"
BUSY = (
    "INTO Busy PATTERN A a GROUP BY TUMBLE(10 seconds) HAVING count(*) > 2 "
    "RETURN window_start, count(*) AS n"
)

CHAINS: dict[str, list[str]] = {
    "SameKey": [
        PAIR,
        "INTO SameKey PATTERN Pair p ; C c WHERE [id] WITHIN 9 seconds "
        "RETURN p.first, p.n, c.n AS c",
    ],
    "OtherKey": [
        PAIR,
        "INTO OtherKey PATTERN Pair p ; C c WHERE p.n % 3 = c.id WITHIN 9 seconds "
        "RETURN p.n, c.n AS c",
    ],
    "KnownLater": [
        LEFT,
        "INTO KnownLater PATTERN C c ; !Left l ; C d WHERE [id] WITHIN 9 seconds "
        "RETURN c.n, d.n AS d",
    ],
    "Alone": [PAIR, "INTO Alone FROM Pair p GROUP BY p.id, TUMBLE(20 seconds) "
                      "RETURN p.id, count(*) AS n, max(p.n) AS m"],
    "AfterAnswers": [
        BUSY,
        "INTO AfterAnswers PATTERN Busy b ; C c WITHIN 8 seconds RETURN b.n, c.n AS c",
    ],
    "Three": [
        LEFT,
        "INTO Again PATTERN Left l ; A a WHERE [id] WITHIN 9 seconds RETURN a.id AS id, a.n AS n",
        "INTO Three PATTERN Again g ; B b WHERE [id] WITHIN 9 seconds RETURN g.n, b.n AS b",
    ],
    "Diamond": [
        PAIR,
        "INTO Next PATTERN Pair p ; C c FROM ticks, Pair WHERE [id] WITHIN 9 seconds "
        "RETURN p.id AS id, c.n AS n",
        "INTO Diamond PATTERN Pair p ; Next x WHERE [id] WITHIN 40 seconds RETURN p.n, x.n AS c",
    ],
    "Named": [
        "INTO Chosen PATTERN B b WHERE b.n % 2 = 0 RETURN b.id AS key, b.n AS n",
        "INTO Named PATTERN Chosen b ; Chosen c WHERE [key] WITHIN 9 seconds RETURN b.n, c.n AS c",
    ],
}  # fmt: skip


def events(count: int = 90, seed: int = 5) -> pa.Table:
    """In order, some of them simultaneous; the last one is far later, and ends all windows."""
    random = np.random.default_rng(seed)
    seconds = np.cumsum(random.choice([0, 1, 1, 2], count)) + EPOCH
    seconds[-1] += FAR
    kinds = random.choice(["A", "B", "C"], count)
    kinds[-1] = "X"
    return pa.table(
        {
            "n": np.arange(count),
            "ts": pa.array(seconds * 1_000_000).cast(pa.timestamp("us", "UTC")),
            "type": pa.array(kinds),
            "id": random.integers(0, 3, count),
        }
    )


EVENTS = events()


def parts(table: pa.Table) -> list[pa.Table]:
    last = table.num_rows - 1
    bounds = [0, 41, 42, last, last + 1]
    return [table.slice(a, b - a) for a, b in pairwise(bounds)]


def plain(rows: list[dict[str, Any]]) -> Counter[str]:
    """Without times, which JSON writes otherwise."""
    kept = [{k: v for k, v in row.items() if not hasattr(v, "year")} for row in rows]
    return Counter(
        str({k: v for k, v in row.items() if not k.startswith(("match_", "window_"))})
        for row in kept
    )


def expected(name: str) -> Counter[str]:
    rows = plain(cep.match(EVENTS, CHAINS[name], jit=False, **OPTIONS)[name].to_pylist())
    assert len(rows) > 3
    return rows


def test_through_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    names = ("OtherKey", "KnownLater", "AfterAnswers")
    courses = [Course(name, CHAINS[name], parts(EVENTS), OPTIONS) for name in names]
    outcome = run_twice(spark, tmp_path, courses)
    for name in names:
        assert plain(outcome.matches[name]) == expected(name), name


def test_late_events(spark: SparkSession, tmp_path: Path) -> None:
    """Some late by less than the delay, and one by more: no operator takes that."""
    chance = np.random.default_rng(3)
    seconds = EVENTS["ts"].cast(pa.int64()).to_numpy() // 1_000_000
    late = seconds + chance.integers(0, 5, len(seconds))
    shuffled = EVENTS.take(pa.array(np.argsort(late, kind="stable")))
    *first, last = parts(shuffled)
    files = [*first, pa.concat_tables([shuffled.slice(1, 1), last]), last.slice(0, 0)]
    outcome = run(spark, tmp_path, [Course("SameKey", CHAINS["SameKey"], files, OPTIONS, delay=5)])
    assert plain(outcome.matches["SameKey"]) == expected("SameKey")
    assert outcome.total("events") == EVENTS.num_rows + 1
    assert outcome.total("late") == 1
    assert outcome.total("matches") == len(outcome.matches["SameKey"])


@pytest.mark.slow
def test_other_chains(spark: SparkSession, tmp_path: Path) -> None:
    names = ("Alone", "Three", "Diamond", "Named")
    courses = [Course(name, CHAINS[name], parts(EVENTS), OPTIONS) for name in names]
    outcome = run(spark, tmp_path, courses)
    for name in names:
        assert plain(outcome.matches[name]) == expected(name), name


def stream(spark: SparkSession) -> DataFrame:
    rate = spark.readStream.format("rate").load()
    return rate.select(
        F.col("timestamp").alias("ts"),
        F.lit("A").alias("type"),
        F.lit(1).alias("id"),
        F.col("value").alias("n"),
    )


OPERATORS = {
    "SameKey": 1,
    "OtherKey": 2,
    "KnownLater": 1,
    "Alone": 2,
    "AfterAnswers": 3,
    "Three": 1,
    "Diamond": 1,
    "Named": 1,
}


@pytest.mark.parametrize("name", CHAINS)
def test_queries_whose_keys_agree_share_an_operator(spark: SparkSession, name: str) -> None:
    """Answers have one of their own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no key connects the variables")
        matches = cep.match(stream(spark), CHAINS[name], **OPTIONS)[name]
    plan = matches._jdf.queryExecution().analyzed().toString()
    assert plan.count("TransformWithState") == OPERATORS[name]


OPEN = "INTO Open PATTERN A a => !B b WHERE b.id > 1 WITHIN 5 seconds"
REFUSED = [
    ([OPEN, "PATTERN Open o ; C c WITHIN 9 seconds"], {}, "no time bounds when matches of `Open`"),
    (
        [BUSY.replace("HAVING count(*) > 2 ", ""), "PATTERN Busy b ; C c WITHIN 9 seconds"],
        {},
        "answers of `Busy` about windows without matches",
    ),
    (CHAINS["SameKey"], {"heartbeat": "1 second"}, "queries that read each other's matches wait"),
]


@pytest.mark.parametrize(("queries", "options", "message"), REFUSED)
def test_refused(
    spark: SparkSession, queries: list[str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(cep.CepheidError, match=message):
        cep.match(stream(spark), queries, **OPTIONS, **options)
