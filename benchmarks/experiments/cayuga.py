"""Cayuga's double top (5.2.2, figure 20): iterations, resubscription, and two ways in SQL.

A double top is five extrema in a row: a minimum A, a maximum B of at least 1.2 A, a minimum C near
A, a maximum D near B, and a minimum E that is not above A.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import cepheid as cep
from benchmarks.cases import Workload
from benchmarks.experiments.experiment import (
    THROUGHPUT,
    Experiment,
    Found,
    Program,
    Setting,
    Way,
    ahead,
)
from benchmarks.experiments.programs import as_users_do, over_table
from benchmarks.rivals import duckdb_query

STOCKS = 24
SEED = 2005
PRICES = 1_126_350
"""Ten times as many as in the paper."""

ITERATIONS = """
PATTERN r => s => a+ PREFIXES => b+ PREFIXES => c+ PREFIXES => d+ PREFIXES => e+ PREFIXES => f
WHERE   [name]
  AND   r.price < s.price
  AND   FIRST(a.price) < s.price       AND a.price < PREV(a.price)
  AND   FIRST(b.price) > LAST(a.price) AND b.price > PREV(b.price)
  AND   FIRST(c.price) < LAST(b.price) AND c.price < PREV(c.price)
  AND   FIRST(d.price) > LAST(c.price) AND d.price > PREV(d.price)
  AND   FIRST(e.price) < LAST(d.price) AND e.price < PREV(e.price)
  AND   f.price > LAST(e.price)
HAVING  LAST(b.price) >= 1.2 * LAST(a.price)
  AND   LAST(c.price) BETWEEN 0.9 * LAST(a.price) AND 1.1 * LAST(a.price)
  AND   LAST(d.price) BETWEEN 0.9 * LAST(b.price) AND 1.1 * LAST(b.price)
  AND   LAST(e.price) <= LAST(a.price)
RETURN  s.name AS name, LAST(a.price) AS A, LAST(b.price) AS B, LAST(c.price) AS C,
        LAST(d.price) AS D, LAST(e.price) AS E
"""
EXTREMA = """
PATTERN s1 -> s2 -> s3
WHERE   [name]
HAVING  (s2.price > s1.price AND s2.price > s3.price)
   OR   (s2.price < s1.price AND s2.price < s3.price)
RETURN  s2.name AS name, s2.price AS price
"""
RESUBSCRIBED = """
PATTERN e0 -> e1 -> e2 -> e3 -> e4 -> e5
WHERE   [name]
HAVING  e2.price >= 1.2 * e1.price
  AND   e3.price BETWEEN 0.9 * e1.price AND 1.1 * e1.price
  AND   e4.price BETWEEN 0.9 * e2.price AND 1.1 * e2.price
  AND   e5.price <= e1.price
RETURN  e1.name AS name, e1.price AS A, e2.price AS B, e3.price AS C, e4.price AS D, e5.price AS E
"""


def prices(smoothing: int, rows: int) -> pa.Table:
    """Closing prices of 24 stocks, day by day: each moves around a level of its own, and is the
    average of the last `smoothing` days."""
    random = np.random.default_rng(SEED)
    days = -(-rows // STOCKS)
    logs = np.zeros((days + smoothing - 1, STOCKS))
    for day in range(1, len(logs)):
        logs[day] = 0.97 * logs[day - 1] + random.normal(0, 0.12, STOCKS)
    summed = np.cumsum(np.vstack((np.zeros((1, STOCKS)), 100 * np.exp(logs))), axis=0)
    smooth = (summed[smoothing:] - summed[:-smoothing]) / smoothing
    names = pa.array([f"stock {n}" for n in range(STOCKS)])
    codes = np.tile(np.arange(STOCKS, dtype=np.int8), days)[:rows]
    return pa.table(
        {
            "ts": np.arange(rows),
            "name": pa.DictionaryArray.from_arrays(codes, names),
            "price": smooth.ravel()[:rows],
        }
    )


# ── counting ──


def count(table: pa.Table) -> int:
    """Stock by stock, from the list of its extrema; the maximum before A must have one before it,
    as the queries' first event does."""
    names = table["name"].combine_chunks().indices.to_numpy()
    price = table["price"].to_numpy()
    return sum(_tops(price[names == n]) for n in range(STOCKS))


def _tops(price: NDArray[np.float64]) -> int:
    rises = np.diff(price) > 0
    found = price[1:-1][rises[:-1] != rises[1:]]
    if len(found) < 6:
        return 0
    _, a, b, c, d, e = (found[n : len(found) - 5 + n] for n in range(6))
    near = (0.9 * a <= c) & (c <= 1.1 * a) & (0.9 * b <= d) & (d <= 1.1 * b)
    return int(((b >= 1.2 * a) & near & (e <= a)).sum())


# ── ways ──


def resubscription(
    workload: Workload,
    options: Mapping[str, Any],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Found:
    """An extremum lasts from the price before it to the price after it, so it overlaps the next
    one if that is a day later, and would not be followed by it. To find the same as the others, it
    is an event at its end."""
    extrema = cep.match(pa.Table.from_batches(batches, schema), EXTREMA, **options)
    ended = extrema.select(["name", "price", "match_end"])
    return Found(cep.match(ended, RESUBSCRIBED, time="match_end").num_rows)


_CHECKS = """
    b >= 1.2 * a AND c BETWEEN 0.9 * a AND 1.1 * a AND d BETWEEN 0.9 * b AND 1.1 * b AND e <= a
"""
WINDOWS = f"""
    WITH neighbors AS (
        SELECT name, ts, price, lag(price) OVER own AS before, lead(price) OVER own AS after
        FROM events WINDOW own AS (PARTITION BY name ORDER BY ts)
    ),
    extrema AS (SELECT * FROM neighbors WHERE (price - before) * (after - price) < 0),
    rows AS (
        SELECT name, lag(price) OVER own AS s, price AS a, lead(price) OVER own AS b,
               lead(price, 2) OVER own AS c, lead(price, 3) OVER own AS d,
               lead(price, 4) OVER own AS e
        FROM extrema WINDOW own AS (PARTITION BY name ORDER BY ts)
    )
    SELECT name, a, b, c, d, e FROM rows WHERE s IS NOT NULL AND {_CHECKS}
"""
"""Neighbors by window functions: what CQL1 writes by hand."""

_JOINED = " ".join(f"JOIN numbered e{n} ON e{n}.place = e{n - 1}.place + 1" for n in range(1, 6))
SELF_JOINS = f"""
    WITH stocks AS (SELECT name, 1000000000 * row_number() OVER () AS base
                    FROM (SELECT DISTINCT name FROM events)),
    quotes AS MATERIALIZED (
        SELECT name, price, base + row_number() OVER (PARTITION BY name ORDER BY ts) AS place
        FROM events JOIN stocks USING (name)
    ),
    extrema AS (
        SELECT s2.name, s2.price, s2.place
        FROM quotes s1
        JOIN quotes s2 ON s2.place = s1.place + 1
        JOIN quotes s3 ON s3.place = s2.place + 1
        WHERE (s2.price - s1.price) * (s3.price - s2.price) < 0
    ),
    numbered AS MATERIALIZED (
        SELECT name, price, base + row_number() OVER (PARTITION BY name ORDER BY place) AS place
        FROM extrema JOIN stocks USING (name)
    ),
    rows AS (
        SELECT e0.name, e1.price AS a, e2.price AS b, e3.price AS c, e4.price AS d, e5.price AS e
        FROM numbered e0 {_JOINED}
    )
    SELECT * FROM rows WHERE {_CHECKS}
"""
"""A three-way self-join for the extrema, as in CQL2, and a self-join for each further one. Stock
and number are one value: with two, DuckDB joins by the stock alone, which takes minutes."""


def duckdb(sql: str) -> Program:
    return over_table(lambda workload, table: duckdb_query(table, sql)())


def setting(label: str, panel: str, smoothing: int, rows: int) -> Setting:
    workload = Workload(
        f"double top, {smoothing} days, {rows:,} prices",
        ITERATIONS,
        rows,
        lambda n: prices(smoothing, n),
        count,
        {"time": "ts"},
    )
    return Setting(label, workload, panel)


SMOOTHING, VOLUME = "by days of smoothing", "by prices, smoothed over 5 days"

EXPERIMENTS = (
    Experiment(
        "cayuga20",
        "Cayuga, figure 20: double top",
        "days of smoothing; prices",
        (
            *(setting(f"{days}", SMOOTHING, days, PRICES) for days in (1, 2, 5, 10, 20)),
            *(
                setting(f"{rows // 1000} k", VOLUME, 5, rows)
                for rows in (112_635, 300_000, 3_000_000)
            ),
        ),
        (
            Way("iterations", {}, program=as_users_do),
            Way("resubscription", {}, program=resubscription),
            Way("SQL, window functions", {}, program=duckdb(WINDOWS)),
            Way("SQL, self-joins", {}, program=duckdb(SELF_JOINS)),
        ),
        (THROUGHPUT,),
        (
            ahead("iterations", "SQL, self-joins", must=True),
            ahead("resubscription", "SQL, self-joins", must=True),
            ahead("iterations", "SQL, window functions"),
            ahead("iterations", "resubscription"),
        ),
        "24 stocks; prices are drawn, not real. The iterations begin at the maximum before A, so "
        "that every double top is one match and all ways find the same. DuckDB, on one thread, is "
        "in the place of STREAM: window functions are what the paper's hand-optimized CQL1 does, "
        "self-joins are CQL2. In the paper, iterations were far ahead of resubscription, and had "
        "four times the throughput of CQL2. Here resubscription is ahead, too: its queries are "
        "compiled as well as the other, and check HAVING for few extrema, where iterations look "
        "from every price for the next five turns before they can check it.",
    ),
)
