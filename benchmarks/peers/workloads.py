"""The queries, their events, and what each program makes of them.

Keyed queries are run with `tie="id"`, since the peers order by id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks import loops
from benchmarks.cases import QUERY_4, QUERY_5, QUERY_6, QUERY_7, QUERY_8, SEED, STOCK_COLUMNS, ticks
from benchmarks.peers import duckdb_queries, hand_loops, polars_queries
from benchmarks.peers.duckdb_queries import buckets as duckdb_buckets
from benchmarks.peers.polars_queries import PolarsQuery
from cepheid.options import GivenOptions
from cepheid.workloads import fraud, weblog

MILLION = 1_000_000

FRAUD = f"""
PATTERN s1 ; s2 ; big
WHERE   s1.card = s2.card = big.card AND [kind = 'purchase']
  AND   s1.amount < {hand_loops.SMALL} AND s2.amount < {hand_loops.SMALL}
  AND   big.amount > {hand_loops.LARGE}
WITHIN  {hand_loops.HOURS} hours
RETURN  big.card AS card, s1.id AS first, s2.id AS second, big.id AS last, big.amount AS amount
"""
STRICT_RUN = """
PATTERN a => b+ => c
WHERE   [account] AND b.price > PREV(b.price, a.price) AND c.price < LAST(b.price)
AFTER MATCH SKIP PAST LAST EVENT
RETURN  a.account AS account, a.id AS first, count(b) AS rises, c.id AS last
"""

ROWS_PER_ACCOUNT = 50
USES_PER_DAY = 8
"""Of a card: so often that matches cost something."""


@dataclass(frozen=True, slots=True)
class PeerWorkload:
    """A query, its events, and the same for a loop, DuckDB and Polars: each returns how many
    matches it has made, which it holds in memory then."""

    name: str
    text: str  # what the table calls it
    query: str
    rows: int
    events: Callable[[int], pa.Table]
    columns: GivenOptions
    loop: Callable[[pa.Table], int]
    duckdb: str
    polars: PolarsQuery


def trades(rows: int) -> pa.Table:
    """Trades of accounts in turns that are drawn, at prices that are all different."""
    random = np.random.default_rng(SEED)
    return pa.table(
        {
            "id": np.arange(rows),
            "ts": np.arange(rows) // 2,  # ties, which the id decides
            "account": random.integers(0, max(1, rows // ROWS_PER_ACCOUNT), rows),
            "price": random.uniform(0, 1000, rows),
        }
    )


def _cards(rows: int) -> pa.Table:
    cards = max(1, round(rows / 30 / USES_PER_DAY))
    return fraud.generate(rows, SEED, cards=cards)


def _stocks(
    name: str,
    text: str,
    query: str,
    events: Callable[[int], pa.Table],
    loop: Callable[[pa.Table], int],
    duckdb: str,
    polars: PolarsQuery,
) -> PeerWorkload:
    return PeerWorkload(name, text, query, 2 * MILLION, events, STOCK_COLUMNS, loop, duckdb, polars)


THREE: Mapping[str, float] = {"IBM": 1, "Sun": 1, "Oracle": 1}
RARE: Mapping[str, float] = {"IBM": 1, "Sun": 100, "Oracle": 100}
RARE_FOUR: Mapping[str, float] = {**RARE, "Google": 100}
OFTEN: Mapping[str, float] = {"IBM": 1, "Sun": 10, "Oracle": 1}

WORKLOADS = (
    _stocks(
        "q4",
        "query 4, selectivity 1/32",
        QUERY_4,
        ticks(THREE, {("IBM", "Sun"): 1 / 32}),
        loops.query_4,
        duckdb_buckets(3, 2, 200, "ibm.price > sun.price"),
        polars_queries.buckets(3, 4, 200, 200_000, [lambda pl: pl.col("ibm") > pl.col("sun")]),
    ),
    _stocks(
        "q5",
        "query 5, rates 1:100:100",
        QUERY_5,
        ticks(RARE),
        loops.query_5,
        duckdb_buckets(3, 4, 200),
        polars_queries.buckets(3, 4, 200, 200_000),
    ),
    _stocks(
        "q6",
        "query 6, rates 1:100:100:100",
        QUERY_6,
        ticks(RARE_FOUR),
        loops.query_6,
        duckdb_buckets(4, 2, 100, "oracle.price > sun.price AND oracle.price > google.price"),
        polars_queries.buckets(
            4,
            2,
            100,
            200_000,
            [
                lambda pl: pl.col("oracle") > pl.col("sun"),
                lambda pl: pl.col("oracle") > pl.col("google"),
            ],
        ),
    ),
    _stocks(
        "q7",
        "query 7, negation, rates 1:10:1",
        QUERY_7,
        ticks(OFTEN),
        loops.query_7,
        duckdb_queries.NEGATION,
        polars_queries.negation,
    ),
    PeerWorkload(
        "q8",
        "query 8, web log, keyed",
        QUERY_8,
        4 * MILLION,
        lambda rows: weblog.generate(rows, SEED),
        {"time": "time", "type": "category"},
        loops.query_8,
        duckdb_queries.WEB,
        polars_queries.web,
    ),
    PeerWorkload(
        "fraud",
        "card fraud, keyed",
        FRAUD,
        4 * MILLION,
        _cards,
        {"time": "ts", "tie": "id"},
        hand_loops.fraud,
        duckdb_queries.FRAUD,
        polars_queries.fraud,
    ),
    PeerWorkload(
        "strict",
        "strict run, keyed",
        STRICT_RUN,
        4 * MILLION,
        trades,
        {"time": "ts", "tie": "id"},
        hand_loops.strict_run,
        duckdb_queries.STRICT_RUN,
        polars_queries.strict_run,
    ),
)
