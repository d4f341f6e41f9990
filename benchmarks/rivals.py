"""What a user would write instead: joins on time buckets in DuckDB and in Polars, tuned by hand.

A window is no equality, but time buckets are: with buckets as long as the window, the later events
of a match lie in the bucket of its first event or in the next one. So each later event is listed
under its own bucket and under the one before, and all joins are equalities on the first event's
bucket; what is too far or out of order is filtered. Shorter buckets make fewer wrong candidates
and more copies, so each library and query has the number of buckets per window that was fastest.

Each function takes the events and returns what is to be timed, so that the events are already
where the library likes them: in its own format, in memory. Both run on one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa

Rival = Callable[[pa.Table], Callable[[], int]]

WINDOW = 200
HOURS = 10

BATCH = 1 << 17
"""Rows that DuckDB hands over at a time."""


# ── DuckDB ──


def duckdb_query(table: pa.Table, sql: str) -> Callable[[], int]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET preserve_insertion_order = false")
    connection.register("arrow", table)
    connection.execute("CREATE TABLE events AS SELECT * FROM arrow")
    connection.unregister("arrow")
    return lambda: sum(b.num_rows for b in connection.sql(sql).to_arrow_reader(BATCH))


def duckdb_sequence(buckets: int, predicate: str = "true") -> Rival:
    size, copies = WINDOW // buckets, f"bucket - unnest(range({buckets + 1})) AS bucket"
    sql = f"""
        WITH ticks AS (SELECT name, price, ts, ts // {size} AS bucket FROM events),
        ibm AS (SELECT price, ts, bucket FROM ticks WHERE name = 'IBM'),
        sun AS (SELECT price, ts, {copies} FROM ticks WHERE name = 'Sun'),
        oracle AS (SELECT price, ts, {copies} FROM ticks WHERE name = 'Oracle')
        SELECT ibm.price, sun.price, oracle.price, ibm.ts, oracle.ts
        FROM ibm JOIN sun USING (bucket) JOIN oracle USING (bucket)
        WHERE sun.ts > ibm.ts AND sun.ts < ibm.ts + {WINDOW} AND {predicate}
          AND oracle.ts > sun.ts AND oracle.ts < ibm.ts + {WINDOW}
    """
    return lambda table: duckdb_query(table, sql)


def duckdb_web(table: pa.Table) -> Callable[[], int]:
    copies = "ip, url, time, bucket - unnest(range(2)) AS bucket"
    sql = f"""
        WITH page AS (
            SELECT *, epoch_us(time) // {HOURS * 3_600_000_000} AS bucket
            FROM events WHERE category IN ('publication', 'project', 'courses')
        ),
        a AS (SELECT * FROM page WHERE category = 'publication'),
        b AS (SELECT {copies} FROM page WHERE category = 'project'),
        c AS (SELECT {copies} FROM page WHERE category = 'courses')
        SELECT a.ip, a.url, b.url, c.url, a.time, c.time
        FROM a JOIN b USING (ip, bucket) JOIN c USING (ip, bucket)
        WHERE b.time > a.time AND b.time < a.time + INTERVAL {HOURS} HOUR
          AND c.time > b.time AND c.time < a.time + INTERVAL {HOURS} HOUR
    """
    return duckdb_query(table, sql)


# ── Polars ──


def single_threaded_polars() -> Any:
    """Polars reads the number of its threads when it is first imported; see `__main__`."""
    import polars

    assert polars.thread_pool_size() == 1, "set POLARS_MAX_THREADS=1 before polars is imported"
    return polars


def polars_sequence(
    buckets: int, stretch: int, predicate: Callable[[Any], Any] | None = None
) -> Rival:
    """`stretch` is the time whose matches are made at once: Polars has to hold them all."""

    def prepare(table: pa.Table) -> Callable[[], int]:
        pl = single_threaded_polars()
        events = pl.from_arrow(table.select(["name", "price", "ts"]))
        first, second, last = pl.col("first"), pl.col("second"), pl.col("last")
        near = [second > first, second < first + WINDOW]
        near += [predicate(pl)] if predicate else []

        def count() -> int:
            total = 0
            for ibm, sun, oracle in stretches(pl, events, buckets, stretch):
                pairs = ibm.join(sun, on="bucket").filter(*near)
                matches = pairs.join(oracle, on="bucket").filter(
                    last > second, last < first + WINDOW
                )
                total += matches.select("ibm", "sun", "oracle", "first", "last").collect().height
            return total

        return count

    return prepare


def stretches(pl: Any, events: Any, buckets: int, stretch: int) -> Iterator[list[Any]]:
    """IBM, Sun and Oracle with their buckets, for one stretch of IBM's time after the other."""
    size = WINDOW // buckets
    events = events.with_columns(bucket=pl.col("ts") // size)
    copies = pl.int_ranges(pl.col("bucket") - buckets, pl.col("bucket") + 1)
    ibm, sun, oracle = (events.filter(pl.col("name") == n) for n in ("IBM", "Sun", "Oracle"))
    sides = [
        ibm.select("bucket", first="ts", ibm="price"),
        sun.select(copies, second="ts", sun="price").explode("bucket").sort("bucket"),
        oracle.select(copies, last="ts", oracle="price").explode("bucket").sort("bucket"),
    ]
    step = stretch // size
    edges = pl.Series(range(0, (events["bucket"].max() or 0) + 1 + step, step))
    cuts = [side["bucket"].search_sorted(edges, "left").to_list() for side in sides]
    for n in range(len(edges) - 1):
        yield [
            side.slice(cut[n], cut[n + 1] - cut[n]).lazy()
            for side, cut in zip(sides, cuts, strict=True)
        ]


def polars_web(table: pa.Table) -> Callable[[], int]:
    pl = single_threaded_polars()
    events = pl.from_arrow(table)
    window = timedelta(hours=HOURS)
    bucket = pl.col("time").dt.epoch("us") // (HOURS * 3_600_000_000)

    def pages(category: str, n: str, copies: int) -> Any:
        names = {f"url_{n}": "url", f"time_{n}": "time"}
        chosen = events.lazy().filter(pl.col("category") == category)
        under = pl.int_ranges(bucket + 1 - copies, bucket + 1).alias("bucket")
        return chosen.select("ip", under, **names).explode("bucket")

    a, b, c = pl.col("time_a"), pl.col("time_b"), pl.col("time_c")

    def count() -> int:
        pairs = pages("publication", "a", 1).join(pages("project", "b", 2), on=["ip", "bucket"])
        pairs = pairs.filter(b > a, b < a + window)
        matches = pairs.join(pages("courses", "c", 2), on=["ip", "bucket"])
        matches = matches.filter(c > b, c < a + window)
        columns = ("ip", "url_a", "url_b", "url_c", "time_a", "time_c")
        return int(matches.select(columns).collect().height)

    return count
