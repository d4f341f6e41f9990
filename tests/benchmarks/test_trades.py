"""The thesis' events and queries: the loop that counts, against plain SQL and by hand."""

from __future__ import annotations

from itertools import pairwise

import duckdb
import pyarrow as pa
import pytest

from benchmarks.experiments import trades
from benchmarks.experiments.trades import STOCKS, SixStocks

QUERIES = [
    trades.QUERY_5,
    trades.QUERY_6,
    trades.QUERY_7,
    trades.QUERY_8,
    trades.QUERY_9,
    trades.QUERY_10,
    trades.QUERY_11,
    trades.QUERY_12,
    trades.QUERY_13,
    trades.QUERY_14,
    trades.QUERY_15,
]


def by_sql(table: pa.Table, query: SixStocks, window: int) -> int:
    """Every combination of events in order; of a repeated one it is enough that there is one."""
    bound = [v for v in STOCKS if v not in query.closures]
    conditions = [f"{v}.name = '{STOCKS[v]}'" for v in bound]
    conditions += [f"{a}.ts < {b}.ts" for a, b in pairwise(bound)]
    conditions += [f"{v}.ts < a.ts + {window}" for v in bound[1:]]
    conditions += query.comparisons
    names = list(STOCKS)
    for v in query.closures:
        before, after = names[names.index(v) - 1], names[names.index(v) + 1]
        conditions.append(
            f"EXISTS (SELECT 1 FROM events {v} WHERE {v}.name = '{STOCKS[v]}' AND {v}.price < 100 "
            f"AND {before}.ts < {v}.ts AND {v}.ts < {after}.ts)"
        )
    tables = ", ".join(f"events {v}" for v in bound)
    with duckdb.connect() as connection:
        connection.register("events", table)
        sql = f"SELECT count(*) FROM {tables} WHERE {' AND '.join(conditions)}"
        row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: f"query {q.number}")
def test_the_loop_counts_what_plain_sql_counts(query: SixStocks) -> None:
    table = trades.trades(200, top=1 if query.number < 7 else 200)
    matches = by_sql(table, query, 40)
    assert matches > 0
    assert trades.count(table, query, 40) == matches


def made(*prices: int) -> pa.Table:
    """One event of each stock in the order of the pattern."""
    names = pa.array(list(STOCKS.values()))
    zeros, number = [0] * 6, list(range(6))
    columns = {"id": number, "name": names, "price": list(prices)}
    return pa.table({**columns, "type": zeros, "volume": zeros, "ts": number})


def test_a_match_is_shorter_than_the_window() -> None:
    table = made(1, 2, 3, 1, 2, 3)
    assert trades.count(table, trades.QUERY_5, window=6) == 1
    assert trades.count(table, trades.QUERY_5, window=5) == 0


def test_phases_take_turns() -> None:
    phases = ({("a", "price"): -1}, {("a", "price"): -2})
    rows = trades.trades(400, phases=phases, phase_rows=100).to_pylist()
    of_ibm = [(row["ts"] // 100, row["price"]) for row in rows if row["name"] == "IBM"]
    assert {price for turn, price in of_ibm if turn % 2 == 0} == {-1}
    assert {price for turn, price in of_ibm if turn % 2 == 1} == {-2}
    others = [row["price"] for row in rows if row["name"] != "IBM"]
    assert min(others) >= 0


def test_rates_decide_how_frequent_a_stock_is() -> None:
    table = trades.trades(6_000, {**trades.EVEN, "a": 5.0})
    share = table["name"].to_pylist().count("IBM") / table.num_rows
    assert share == pytest.approx(0.5, abs=0.03)
