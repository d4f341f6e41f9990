"""`cep.analyze` on DataFrames: what it finds in process, from rows that Spark has chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.workloads import stocks
from tests.spark.harness import frame

QUERY = """
    PATTERN IBM a ; Sun b ; Oracle c
    WHERE a.price > b.price AND c.price > b.price AND c.volume <= 250
    WITHIN 200"""
RATES = {"a": 0.25, "b": 0.5, "c": 0.25}
SHARES = {"c.volume <= 250": 0.25, "a.price > b.price": 1 / 8, "c.price > b.price": 3 / 4}


def ticks(rows: int, **named: Any) -> pa.Table:
    rates = {"IBM": 1, "Sun": 2, "Oracle": 1}
    selectivity = {("IBM", "Sun"): 1 / 8, ("Oracle", "Sun"): 3 / 4}
    return stocks.generate(rows, seed=5, rates=rates, selectivity=selectivity, **named)


def test_all_rows_give_what_they_give_in_process(spark: SparkSession) -> None:
    """The rows lie in several partitions, out of order."""
    table = ticks(5000)
    options = {"time": "ts", "type": "name"}
    found = cep.analyze(frame(spark, table), QUERY, **options)
    assert found == cep.analyze(table, QUERY, **options)
    assert found.rates == pytest.approx(RATES, rel=0.1)


@pytest.mark.some(1)
@pytest.mark.parametrize("interval", [None, 10_000])
def test_a_part_of_the_rows(spark: SparkSession, interval: int | None) -> None:
    """Rates are those of the whole stream: per unit of time, or per second. The share of pairs in
    a sample varies with the events in it: of 6,000 of b, by 0.005 (one standard deviation)."""
    data = frame(spark, ticks(40_000, interval=interval))
    query = QUERY if interval is None else QUERY.replace("200", "2 seconds")
    found = cep.analyze(data, query, time="ts", type="name", rows=12_000)
    scale = 1 if interval is None else 100
    assert found.rates == pytest.approx({v: r * scale for v, r in RATES.items()}, rel=0.08)
    assert found.selectivities == pytest.approx(SHARES, rel=0.15)


def test_windows_longer_than_the_sample(spark: SparkSession) -> None:
    data = frame(spark, ticks(20_000))
    query = QUERY.replace("200", "8000")
    found = cep.analyze(data, query, time="ts", type="name", rows=2000)
    assert found.rates == pytest.approx(RATES, rel=0.15)
    assert found.selectivities == pytest.approx(SHARES, rel=0.3)


def test_keys(spark: SparkSession) -> None:
    """Half of the events have one key: two agree with a probability of 1/4."""
    random = np.random.default_rng(1)
    hot = random.random(20_000) < 0.5
    keys = [f"user {n}" for n in np.where(hot, 7, random.integers(10, 10_000, 20_000))]
    names = random.choice(["A", "B"], 20_000)
    table = pa.table({"ts": np.arange(20_000), "name": names, "id": keys})
    query = "PATTERN A a ; B b WHERE [id] WITHIN 500"
    found = cep.analyze(frame(spark, table), query, time="ts", type="name", rows=8000)
    assert found.distinct == pytest.approx({"a.id": 4, "b.id": 4}, rel=0.15)
    assert found.heavy["b.id"] == pytest.approx({"user 7": 0.5}, rel=0.2)


def test_streams(spark: SparkSession) -> None:
    orders = pa.table({"ts": range(0, 1000, 2), "k": [1, 2] * 250})
    news = pa.table({"ts": range(1000), "word": ["x"] * 1000})
    other = pa.table({"ts": range(0, 100_000, 100), "k": [1] * 1000})
    streams = {"orders": orders, "news": news, "other": other}
    data = {name: frame(spark, table, 2) for name, table in streams.items()}
    query = "PATTERN orders o ; news n FROM orders, news WHERE o.k = 1 WITHIN 9"
    found = cep.analyze(data, query, time="ts")
    assert found == cep.analyze(streams, query, time="ts")
    assert found.rates == pytest.approx({"o": 0.5, "n": 1.0}, rel=0.01)


def test_no_rows(spark: SparkSession) -> None:
    table = ticks(10)
    empty = frame(spark, table).filter("price < 0")
    assert cep.analyze(empty, QUERY, time="ts", type="name") == cep.Statistics()
    timeless = table.set_column(4, "ts", pa.array([None] * 10, pa.int64()))
    found = cep.analyze(frame(spark, timeless), QUERY, time="ts", type="name")
    assert found == cep.Statistics()


def test_mistakes(spark: SparkSession) -> None:
    data = frame(spark, ticks(10))
    with pytest.raises(cep.DataError, match="rows must be a number from 1 up, not 0"):
        cep.analyze(data, QUERY, time="ts", type="name", rows=0)
    with pytest.raises(cep.DataError, match=r"no column `tss`.*did you mean `ts`"):
        cep.analyze(data, QUERY, time="tss", type="name")
    with pytest.raises(cep.QueryError, match="did you mean `price`"):
        cep.analyze(data, QUERY.replace("a.price", "a.prise"), time="ts", type="name")
