"""The batch runtime against the oracle and the in-process runtime, under every partitioning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.errors import DataError, PlanError, QueryError
from tests.corpus.reader import cases
from tests.spark.harness import (
    again,
    event_table,
    expected,
    found,
    frame,
    in_process,
    on_spark,
)

ALL = ("auto", "key", "partial", "slices", "single")
UNKEYED = ("auto", "slices", "single")
EVENTS = ("auto", "single")

CORPUS = {
    "keys/[id]": ALL,
    "keys/[id] reaches the negation": ALL,
    "keys/different names": ALL,
    "keys/different names, events of the whole stream": ("auto", "key", "partial", "single"),
    "keys/composite": ALL,
    "keys/NULL takes part in nothing": ALL,
    "keys/NaN is a key of its own": ALL,
    "keys/equality of some is no key": (*UNKEYED, "partial"),
    "events/per key": ("auto", "key", "partial", "single"),
    "events/negated end": EVENTS,
    "events/simultaneous rows in tie-break order": EVENTS,
    "closure/keyed, aggregates per key": ALL,
    "closure/equality with one neighbor only": UNKEYED,
    "closure/ordered by the tie-break": UNKEYED,
    "closure/leading": UNKEYED,
    "closure/trailing": UNKEYED,
    "negation/start": UNKEYED,
    "negation/end": UNKEYED,
    "conjunction/same type, distinct events": UNKEYED,
    "disjunction/same event by both branches": UNKEYED,
    "optional/simultaneous ones by tie-break": UNKEYED,
}

USUAL = {
    *("keys/[id]", "keys/different names", "keys/composite", "keys/NULL takes part in nothing"),
    *("keys/NaN is a key of its own", "events/per key", "closure/keyed, aggregates per key"),
    *("closure/trailing", "negation/end", "disjunction/same event by both branches"),
    *("keyed", "two names", "some connected", "waits", "branches", "events, keyed"),
    *("a time before", "left to the engine"),
}
"""Those of every run: each way of partitioning, with and without a key. A job takes seconds."""


def chosen(names: Iterable[str]) -> list[Any]:
    """The others are for the long run."""
    return [pytest.param(n, marks=() if n in USUAL else pytest.mark.slow) for n in names]


@pytest.mark.some(3)
@pytest.mark.parametrize("name", chosen(CORPUS))
def test_corpus(spark: SparkSession, name: str) -> None:
    """The stream three times over, so that slices cut through it."""
    (case,) = (c for c in cases() if c.name == name)
    events = again(case.events, 3)
    want = expected(case, events)
    assert bool(want) == bool(case.expected)
    data = frame(spark, event_table(case, events))
    options: dict[str, Any] = {"time": "ts", "type": "type", "tie": case.schema.tie}
    options |= {"params": case.params, "partitions": 3}
    got = on_spark(data, case.query_text, CORPUS[name], **options)
    assert got == dict.fromkeys(CORPUS[name], want)


def stream(rows: int, seed: int = 1) -> pa.Table:
    """Events of four types with few keys; `row` is the place in the input and the tie-break."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "row": np.arange(rows),
            "ts": np.sort(random.integers(0, 4 * rows, rows)),
            "name": random.choice(["A", "B", "C", "D"], rows),
            "id": pa.array(random.integers(0, 9, rows), mask=random.random(rows) < 0.05),
            "other": random.integers(0, 9, rows),
            "x": random.random(rows).round(2),
        }
    )


QUERIES = {
    "keyed": ("PATTERN A a ; !B b ; C c WHERE [id] AND a.x < c.x WITHIN 90", ALL),
    "two names": ("PATTERN A a ; B+ b ; A c WHERE a.id = b.other = c.id WITHIN 90", ALL),
    "two names in any order": ("PATTERN A a & ANY(A, B) b WHERE a.id = b.other WITHIN 60", ALL),
    "some connected": (
        "PATTERN A a ; !D d ; B b ; C c WHERE a.id = c.other AND d.id = a.id AND b.x < 0.3 "
        "WITHIN 60",
        ("auto", "partial", "slices"),
    ),
    "waits": ("PATTERN A a ; B b ; !C c WHERE a.x < 0.1 AND b.x < 0.3 WITHIN 30", UNKEYED),
    "a time before": (
        "PATTERN !C c FOR 40 ; A a ; B b WHERE a.x < 0.3 AND b.x < 0.5 WITHIN 30",
        UNKEYED,
    ),
    "a time behind": ("PATTERN A a ; !C c FOR 20 ; B b WHERE a.x < 0.1 WITHIN 60", UNKEYED),
    "a time at the end": ("PATTERN A a ; !B b FOR 40 WHERE [id]", ("auto", "key", "single")),
    "a group first": ("PATTERN C* c ; A a ; B b WHERE a.x < 0.1 WITHIN 25", UNKEYED),
    "a group last": ("PATTERN A a ; D d ; B+ b WHERE a.x < 0.1 WITHIN 25", UNKEYED),
    "branches": ("PATTERN A a ; (B b | C c) WHERE a.x < b.x AND a.x > c.x WITHIN 15", UNKEYED),
    "events, keyed": ("PATTERN A a ; B b WHERE [id] WITHIN 4 EVENTS", ("auto", "single")),
    "events": ("PATTERN A a ; B b WHERE b.x > 0.7 WITHIN 3 EVENTS", ("auto", "single")),
    "one event": ("PATTERN A a WHERE a.x > 0.9", UNKEYED),
    "one of some events": ("PATTERN A a WHERE a.x > 0.9 WITHIN 3 EVENTS", UNKEYED),
    "left to the engine": (
        "PATTERN A a ; B b WHERE lower(a.name) = 'a' AND sqrt(b.x) < 0.5 AND a.id = b.other "
        "WITHIN 40",
        ALL,
    ),
}


@pytest.mark.some(3)
@pytest.mark.parametrize("query", chosen(QUERIES))
def test_random_events(spark: SparkSession, query: str) -> None:
    events, (text, partitionings) = stream(900), QUERIES[query]
    options: dict[str, Any] = {"time": "ts", "type": "name", "tie": "row"}
    want = in_process(events, text, jit=False, **options)
    assert want
    got = on_spark(frame(spark, events), text, partitionings, **options, partitions=3)
    assert got == dict.fromkeys(partitionings, want)


def test_simultaneous_events(spark: SparkSession) -> None:
    """Without a tie-break, and all at few times: copies of a row must not be taken for two."""
    random = np.random.default_rng(3)
    events = pa.table(
        {
            "row": np.arange(300),
            "ts": random.integers(0, 150, 300),
            "id": random.integers(0, 4, 300),
            "other": random.integers(0, 4, 300),
        }
    )
    text = "PATTERN a & b WHERE a.id = b.other WITHIN 9"
    want = in_process(events, text, time="ts")
    assert on_spark(frame(spark, events), text, ALL, time="ts") == dict.fromkeys(ALL, want)


def test_kernels_are_compiled_in_workers(spark: SparkSession) -> None:
    events = stream(400)
    text = "PATTERN A a ; B b WHERE [id] WITHIN 90"
    rows = cep.match(frame(spark, events), text, time="ts", type="name", tie="row").collect()
    got = found(row.asDict(True) for row in rows)
    assert got == in_process(events, text, time="ts", type="name", tie="row")


def test_many_classes(spark: SparkSession) -> None:
    """More than a mask has bits: the engine classifies the rows itself."""
    count = 70
    events = pa.table({"row": range(count), "ts": range(count), "x": range(count)})
    branches = " | ".join(f"v{n}" for n in range(count))
    where = " AND ".join(f"v{n}.x = {n}" for n in range(count))
    query = f"PATTERN {branches} WHERE {where}"
    rows = cep.match(frame(spark, events), query, time="ts", jit=False).collect()
    assert sorted(row.match_end for row in rows) == list(range(count))


def test_long_decimals(spark: SparkSession) -> None:
    """A key that Spark and the engine may round differently: nothing is partitioned by it."""
    events = stream(200)
    events = events.set_column(3, "id", events["id"].cast(pa.decimal128(38, 5)))
    options: dict[str, Any] = {"time": "ts", "type": "name", "tie": "row"}
    for text in ("PATTERN A a ; B b WHERE [id] WITHIN 60", QUERIES["events, keyed"][0]):
        want = in_process(events, text, **options)
        assert want
        assert on_spark(frame(spark, events), text, **options) == {"auto": want}
    assert "key id (" not in str(cep.Query(text).explain(frame(spark, events), **options))


def test_no_events(spark: SparkSession) -> None:
    data = frame(spark, stream(5)).filter("ts < 0")
    got = on_spark(data, QUERIES["keyed"][0], ALL, time="ts", type="name")
    assert got == {p: Counter() for p in ALL}


def test_streams(spark: SparkSession) -> None:
    """Several streams: columns of one name are brought to one type, missing ones are NULL."""
    trades = pa.table({"ts": [1, 4, 8], "symbol": ["X", "Y", "X"], "price": [1.5, 2.5, 3.5]})
    news = pa.table(
        {
            "ts": pa.array([2, 5, None], pa.int32()),
            "about": ["X", "Y", "Y"],
            "price": pa.array([1, 3, 9], pa.int32()),
        }
    )
    query = (
        "PATTERN trades t ; news n WHERE t.symbol = n.about AND t.price < n.price WITHIN 10 "
        "RETURN t.symbol AS symbol, t.price AS before, n.price AS after"
    )
    data = {"trades": spark.createDataFrame(trades), "news": spark.createDataFrame(news)}
    rows = cep.match(data, query, time="ts", jit=False).collect()
    assert [tuple(row) for row in rows] == [("Y", 2.5, 3.0, 4, 5)]
    dead = cep.rejected(data, time="ts")
    assert [tuple(row) for row in dead["news"].collect()] == [(None, "Y", 9)]


@pytest.mark.essential
def test_transform(spark: SparkSession) -> None:
    events = spark.createDataFrame(pa.table({"ts": [1, 2, 5], "name": ["A", "B", "B"]}))
    query = "PATTERN A a ; B b WITHIN 3 RETURN b.ts AS b"
    result = events.transform(lambda d: cep.match(d, query, time="ts", type="name", jit=False))
    assert result.columns == ["b", "match_start", "match_end"]
    assert [tuple(row) for row in result.collect()] == [(2, 1, 2)]


def test_dead_letters(spark: SparkSession) -> None:
    events = spark.createDataFrame(
        pa.table({"ts": [1, None, 2, None], "name": ["A", "A", "B", "C"], "n": [1, 2, 3, 4]})
    )
    assert sorted(row.n for row in cep.rejected(events, time="ts").collect()) == [2, 4]
    query = "PATTERN A a ; B b WITHIN 3 RETURN a.n AS a, b.n AS b"
    rows = cep.match(events, query, time="ts", type="name", jit=False).collect()
    assert [tuple(row) for row in rows] == [(1, 3, 1, 2)]
    with pytest.raises(DataError, match="no column `when`"):
        cep.rejected(events, time="when")


@pytest.mark.parametrize(
    ("query", "options", "error", "message"),
    [
        ("PATTERN A a", {"time": "t"}, DataError, "no column `t`.*did you mean `ts`"),
        ("PATTERN A a", {"time": "name"}, DataError, "must be a timestamp, a date or an integer"),
        ("PATTERN A a", {"type": "kind"}, DataError, "no column `kind`"),
        ("PATTERN A a", {"tie": "nr"}, DataError, "no column `nr`"),
        ("PATTERN A a WHERE a.prise > 1", {}, QueryError, "no attribute `prise`"),
        ("PATTERN A a WHERE a.name > 1", {}, QueryError, "CEP2"),
        ("PATTERN A a -> B b WITHIN 5 AFTER MATCH SKIP TO LAST c", {}, QueryError, "CEP2"),
        ("PATTERN A a ; B b WITHIN 5", {"partitioning": "key"}, PlanError, "needs a key"),
        ("PATTERN A a ; B b WITHIN 5", {"partitioning": "partial"}, PlanError, "an equality"),
        ("PATTERN A a ; B b WITHIN 5 EVENTS", {"partitioning": "slices"}, PlanError, "in time"),
    ],
)
def test_errors_come_before_any_job(
    spark: SparkSession,
    query: str,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    """The rows can't be computed, so that a job would fail with another error."""
    columns = "ts long, name string, x double"
    events = spark.range(1).mapInArrow(_no_rows, columns)
    with pytest.raises(error, match=message):
        cep.match(events, query, **{"time": "ts", "type": "name", **options})


def _no_rows(batches: Any) -> Any:
    raise AssertionError("a job was started")


def test_mixed_streams(spark: SparkSession) -> None:
    table = pa.table({"ts": [1]})
    with pytest.raises(DataError, match="must all be Spark"):
        cep.match({"a": spark.createDataFrame(table), "b": table}, "PATTERN a", time="ts")


def test_endless_data(spark: SparkSession) -> None:
    """What would hold ever more of a stream is refused, before anything is started."""
    endless = spark.readStream.format("rate").load()
    with pytest.raises(QueryError, match=r"CEP407.*may never end(.|\n)*add WITHIN 10 minutes"):
        cep.match(endless, "PATTERN a -> b", time="timestamp")
    with pytest.raises(QueryError, match="CEP407"):
        cep.match({"s": endless}, "PATTERN s a => s b", time="timestamp")
    with pytest.warns(UserWarning, match="no key connects"):
        found = cep.match(endless, "PATTERN a -> b", time="timestamp", limit=cep.Limit(total=9))
    assert found.isStreaming
