"""What experiments compare with: counts, loops, searches and SQL, against plain definitions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import duckdb
import pyarrow as pa
import pytest

import cepheid as cep
from benchmarks.experiments import cayuga, sase, strict
from benchmarks.experiments.basic import basic
from benchmarks.experiments.experiment import Program
from benchmarks.experiments.stackplans import Change, selection, stacks, strategy
from benchmarks.experiments.synthetic import COLUMNS, Chain, Stream, count, workload
from cepheid.plan.nodes import Equivalence

pytestmark = pytest.mark.slow

ROWS = 600
PLAIN = {"jit": False}

CHAINS = {
    "two": Chain(2, window=150),
    "no tests": Chain(3, 0, window=60),
    "two tests": Chain(3, 2, window=400),
    "predicates": Chain(3, 1, 300, simple=True, compared=True),
    "negated after the first": Chain(3, 1, 200, negated=1),
    "negated before the last": Chain(3, 1, 200, negated=2),
    "four": Chain(4, 1, 200),
}


def events() -> pa.Table:
    return Stream(6, {"a1": 4, "a2": 2}).events(ROWS)


def plain_sql(chain: Chain) -> str:
    """Every combination of events that satisfies all of the query."""
    names = [f"e{n}" for n in range(1, chain.length + 1)]
    where = [f"{name}.type = '{name.upper()}'" for name in names]
    where += [f"{a}.ts < {b}.ts" for a, b in pairwise(names)]
    where += [f"{names[-1]}.ts - e1.ts < {chain.window}"]
    tests = range(1, chain.tests + 1)
    where += [f"{name}.a{t} = e1.a{t}" for t in tests for name in names[1:]]
    where += ["e1.a3 = 1"] * chain.simple
    where += [f"{names[-2]}.a4 < {names[-1]}.a4"] * chain.compared
    if chain.negated:
        before, after = names[chain.negated - 1], names[chain.negated]
        same = "".join(f" AND n.a{t} = e1.a{t}" for t in tests)
        where.append(
            f"NOT EXISTS (SELECT 1 FROM events n WHERE n.type = 'N' AND n.ts > {before}.ts "
            f"AND n.ts < {after}.ts{same})"
        )
    tables = ", ".join(f"events {name}" for name in names)
    return f"SELECT count(*) FROM {tables} WHERE {' AND '.join(where)}"


def by_sql(table: pa.Table, sql: str) -> int:
    with duckdb.connect() as connection:
        connection.register("events", table)
        row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


def found(program: Program, chain: Chain, table: pa.Table, size: int = 77) -> int:
    own = workload("test", chain, Stream(), ROWS)
    return program(own, PLAIN, table.schema, batches(table, size)).matches


def batches(table: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    return iter(table.to_batches(max_chunksize=size))


@pytest.mark.parametrize("name", CHAINS)
def test_the_count_of_a_chain_is_that_of_plain_sql(name: str) -> None:
    chain, table = CHAINS[name], events()
    matches = by_sql(table, plain_sql(chain))
    assert matches > 0
    assert count(table, chain) == matches


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("length", [2, 3, 4])
def test_the_basic_search_finds_all_sequences(length: int, early: bool) -> None:
    chain, table = Chain(length, 0, window=50), events()
    assert found(basic(early), chain, table) == count(table, chain)


@pytest.mark.parametrize(
    "change",
    [
        strategy(Equivalence.PARTITION),
        strategy(Equivalence.PARTITION, scan_window=False),
        strategy(Equivalence.MULTIPLE),
        strategy(Equivalence.FILTERING),
        selection(0),
        selection(1),
        selection(None, comparisons=False),
        selection(None, filters=False),
    ],
)
@pytest.mark.parametrize(
    "chain", [Chain(3, 2, 400, simple=True, compared=True), Chain(3, 1, 200, negated=1)]
)
def test_stacks_find_all_sequences_whatever_is_above_them(change: Change, chain: Chain) -> None:
    table = events()
    assert found(stacks(change), chain, table) == count(table, chain)


@pytest.mark.parametrize("chain", [Chain(2, 1), Chain(4, 1), Chain(3, 2)])
def test_self_joins_by_buckets_of_time_find_all_sequences(chain: Chain) -> None:
    short = Chain(chain.length, chain.tests, 100)
    table = events()
    assert len(sase.join(short).split("JOIN")) == chain.length
    rows = by_sql(table, f"SELECT count(*) FROM ({sase.join(short)})")
    assert rows == count(table, short) > 0


def test_a_chain_reads_as_the_paper_writes_it() -> None:
    bound = cep.Query(Chain(3, 2, negated=1).text).bind(events().schema, **COLUMNS)
    assert [variable.types for variable in bound.variables.values()] == [
        ("E1",), ("N",), ("E2",), ("E3",)
    ]  # fmt: skip
    assert len(bound.key) == 2


# ── strict ──


def naive_strict(table: pa.Table, window: int) -> int:
    """Key by key, from every A: the Bs that follow at once and rise, then a C."""
    rows = table.to_pylist()
    total = 0
    for key in {row["id"] for row in rows}:
        own = [row for row in rows if row["id"] == key]
        for start, row in enumerate(own):
            end = start + 1
            while end < len(own) and own[end]["type"] == "B":
                end += 1
            group = [r["x"] for r in own[start + 1 : end]]
            total += (
                row["type"] == "A"
                and end < len(own)
                and own[end]["type"] == "C"
                and bool(group)
                and group == sorted(group)
                and own[end]["ts"] - row["ts"] < window
            )
    return total


@pytest.mark.parametrize("window", [strict.FOREVER, 60])
def test_all_ways_of_the_strict_pattern_find_as_many(window: int) -> None:
    table = strict.events(2_000).set_column(2, "id", pa.array([n * 7 % 23 for n in range(2_000)]))
    expected = naive_strict(table, window)
    assert expected > 0
    assert strict.count(table, window) == expected
    assert by_sql(table, f"SELECT count(*) FROM ({strict.sql(window)})") == expected
    within = "" if window == strict.FOREVER else f"WITHIN {window} units\n"
    query = strict.QUERY.replace("RETURN", f"{within}RETURN")
    assert cep.match(table, query, time="ts", type="type", jit=False).num_rows == expected


# ── double top ──


def naive_tops(prices: list[float]) -> int:
    """Every extremum that has six in a row from the one before it on."""
    turns = [
        now
        for before, now, after in zip(prices, prices[1:], prices[2:], strict=False)
        if (now > before and now > after) or (now < before and now < after)
    ]
    total = 0
    for a, b, c, d, e in zip(turns[1:], turns[2:], turns[3:], turns[4:], turns[5:], strict=False):
        near = 0.9 * a <= c <= 1.1 * a and 0.9 * b <= d <= 1.1 * b
        total += b >= 1.2 * a and near and e <= a
    return total


@pytest.mark.parametrize("smoothing", [1, 3])
def test_all_ways_of_the_double_top_find_as_many(smoothing: int) -> None:
    table = cayuga.prices(smoothing, 24_000)
    expected = sum(
        naive_tops([r["price"] for r in table.to_pylist() if r["name"] == f"stock {n}"])
        for n in range(cayuga.STOCKS)
    )
    assert expected > 0
    assert cayuga.count(table) == expected
    own = cayuga.setting("", "", smoothing, 24_000).workload
    for way in cayuga.EXPERIMENTS[0].ways:
        assert way.program is not None
        given = batches(table, 5_000)
        assert way.program(own, {"time": "ts"}, table.schema, given).matches == expected, way.name
