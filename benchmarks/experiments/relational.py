"""Relational queries, for which the thesis has no experiments: windows that overlap, joins of
several streams, and counting against enumerating.

Every way returns the same number, which `loop` finds by hand: of the answers of a window query, of
the combinations of a join, of matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import cepheid as cep
from benchmarks.cases import STOCK_COLUMNS, Workload, ticks
from benchmarks.experiments.experiment import (
    THROUGHPUT,
    Experiment,
    Found,
    Program,
    Setting,
    Way,
    ahead,
    at_least,
    keeps,
)
from benchmarks.experiments.programs import over_table
from benchmarks.loops import jit
from benchmarks.rivals import duckdb_query

SEED = 2009
SYMBOLS = 100
SLIDE = 60
RATIOS = (1, 4, 16, 60, 240)
JOINS = (100, 300, 1_000, 3_000)
STREAMS = ("A", "B", "C")
KEYS = 100
MATCHES = {"1": 8, "10": 24, "100": 74, "1,000": 233, "10,000": 735}
"""The windows in which there are so many matches per event."""

Ints = NDArray[np.int64]


def number(batches: pa.Table | pa.RecordBatchReader) -> int:
    """The sum of the first column of the answers."""
    table = batches if isinstance(batches, pa.Table) else batches.read_all()
    return int(np.asarray(table.column(0).to_numpy(), np.int64).sum())


def counted(
    workload: Workload,
    options: Mapping[str, Any],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Found:
    """The events are a table, so the matches may be counted."""
    table = pa.Table.from_batches(batches, schema)
    return Found(number(cep.match(table, workload.query, **options)))


def folded(
    workload: Workload,
    options: Mapping[str, Any],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Found:
    """The matches of an iterator are found and folded, for SESSION. Its answers need a window."""
    text = workload.query.replace("RETURN", "GROUP BY SESSION(1000000000 units) RETURN")
    return Found(number(cep.match(batches, text, **options)))


def sql(statement: Callable[[Workload], str]) -> Program:
    return over_table(lambda workload, table: duckdb_query(table, statement(workload))())


# ── windows that overlap ──


def symbols(rows: int) -> pa.Table:
    """A thousand ticks a minute, of many symbols; times are seconds."""
    draw = np.random.default_rng(SEED)
    return pa.table(
        {
            "ts": np.sort(draw.integers(0, max(1, rows * 60 // 1000), rows)),
            "symbol": draw.integers(0, SYMBOLS, rows),
            "x": draw.integers(0, 1000, rows),
        }
    )


def recomputed(size: int, table: pa.Table) -> int:
    """Each window from its own events, with NumPy; returns the number of groups."""
    time, symbol, x = (table[name].to_numpy() for name in ("ts", "symbol", "x"))
    first, last = (int(time[0]) - size) // SLIDE + 1, int(time[-1]) // SLIDE
    starts = np.arange(first, last + 1) * SLIDE
    begins, ends = np.searchsorted(time, starts), np.searchsorted(time, starts + size)
    groups = 0
    for begin, end in zip(begins, ends, strict=True):
        own, values, most = symbol[begin:end], x[begin:end], np.zeros(SYMBOLS, np.int64)
        count = np.bincount(own, minlength=SYMBOLS)
        np.bincount(own, weights=values, minlength=SYMBOLS)
        np.maximum.at(most, own, values)
        groups += int(np.count_nonzero(count))
    return groups


def by_itself(
    workload: Workload,
    options: Mapping[str, Any],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Found:
    return Found(workload.loop(pa.Table.from_batches(batches, schema)))


def _hop(ratio: int) -> Workload:
    size = SLIDE * ratio
    query = (
        f"FROM events e GROUP BY e.symbol, HOP({SLIDE}, {size}) "
        "RETURN e.symbol, window_start, count(*) AS n, sum(e.x) AS total, max(e.x) AS most"
    )
    name = f"HOP, range {ratio} times the slide"
    return Workload(name, query, 500_000, symbols, partial(recomputed, size), {"time": "ts"})


def _in_windows(workload: Workload) -> str:
    ratio = int(workload.name.split()[2])
    return f"""
        SELECT symbol, start, count(*) AS n, sum(x) AS total, max(x) AS most
        FROM (SELECT symbol, x, (ts // {SLIDE} - unnest(range({ratio}))) * {SLIDE} AS start
              FROM events)
        GROUP BY symbol, start
    """


# ── joins ──


def streams(rows: int) -> pa.Table:
    draw = np.random.default_rng(SEED)
    codes = pa.array(draw.integers(0, len(STREAMS), rows), pa.int8())
    return pa.table(
        {
            "ts": np.arange(rows),
            "type": pa.DictionaryArray.from_arrays(codes, pa.array(STREAMS)),
            "id": draw.integers(0, KEYS, rows),
        }
    )


@jit
def _joined(ts: Ints, code: Ints, id_: Ints, window: int, ways: int, keys: int) -> int:
    """Each combination belongs to its last event: the others are in the window before."""
    held = np.zeros((keys, 3), np.int64)
    total, begin = 0, 0
    for i in range(len(ts)):
        while ts[begin] <= ts[i] - window:
            held[id_[begin], code[begin]] -= 1
            begin += 1
        if code[i] < ways:
            many = 1
            for other in range(ways):
                if other != code[i]:
                    many *= held[id_[i], other]
            total += many
        held[id_[i], code[i]] += 1
    return total


def _join_count(ways: int, window: int, table: pa.Table) -> int:
    codes = table["type"].combine_chunks().indices.to_numpy().astype(np.int64)
    ts, id_ = table["ts"].to_numpy(), table["id"].to_numpy()
    return int(_joined(ts, codes, id_, window, ways, KEYS))


def _join(ways: int, window: int) -> Workload:
    names = STREAMS[:ways]
    sources = ", ".join(f"{name} {name.lower()}" for name in names)
    equal = " = ".join(f"{name.lower()}.id" for name in names)
    times = ", ".join(f"{name.lower()}.ts AS {name.lower()}" for name in names)
    query = f"FROM {sources} WHERE {equal} WITHIN {window} RETURN a.id AS id, {times}"
    return Workload(
        f"{ways}-way join within {window}",
        query,
        150_000,
        streams,
        partial(_join_count, ways, window),
        {"time": "ts", "type": "type"},
    )


def _joins_sql(workload: Workload) -> str:
    ways, window = int(workload.name[0]), int(workload.name.split()[-1])
    names = STREAMS[:ways]
    parts = [f"a AS (SELECT id, ts, ts // {window} AS bucket FROM events WHERE type = 'A')"]
    near = f"ts // {window} + unnest([-1, 0, 1]) AS bucket"
    parts += [
        f"{n.lower()} AS (SELECT id, ts, {near} FROM events WHERE type = '{n}')" for n in names[1:]
    ]
    joins = " ".join(f"JOIN {n.lower()} USING (id, bucket)" for n in names[1:])
    times = ", ".join(f"{n.lower()}.ts" for n in names)
    return f"""
        WITH {", ".join(parts)} SELECT a.id, {times} FROM a {joins}
        WHERE greatest({times}) - least({times}) < {window}
    """


def counted_join(
    workload: Workload,
    options: Mapping[str, Any],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Found:
    text = f"{workload.query.split(' RETURN')[0]} RETURN count(*)"
    table = pa.Table.from_batches(batches, schema)
    return Found(number(cep.match(table, text, **options)))


# ── counting against enumerating ──


@jit
def _chains(code: Ints, price: NDArray[np.float64], window: int, compared: bool) -> int:
    """From each IBM on, one event a time unit: the Suns so far that fit, at each Oracle."""
    total = 0
    for i in range(len(code)):
        if code[i] == 0:
            fitting = 0
            for j in range(i + 1, min(len(code), i + window)):
                if code[j] == 1 and (not compared or price[i] > price[j]):
                    fitting += 1
                elif code[j] == 2:
                    total += fitting
    return total


def _chain_count(window: int, compared: bool, table: pa.Table) -> int:
    names = np.array(table["name"].to_pylist())
    codes = np.full(len(names), -1, np.int64)
    for code, name in enumerate(("IBM", "Sun", "Oracle")):
        codes[names == name] = code
    return int(_chains(codes, table["price"].to_numpy(), window, compared))


def _chain(window: int, compared: bool) -> Workload:
    condition = "WHERE IBM.price > Sun.price" if compared else ""
    text = f"PATTERN IBM; Sun; Oracle {condition} WITHIN {window} units RETURN count(*)"
    rates = {"IBM": 1, "Sun": 1, "Oracle": 1}
    name = f"{'query 4' if compared else 'query 5'} within {window}"
    return Workload(
        name, text, 300_000, ticks(rates), partial(_chain_count, window, compared), STOCK_COLUMNS
    )


FREE, COMPARED = "no condition between events", "IBM.price > Sun.price"
ENUMERATED = Way("enumerated and folded", {}, program=folded, limit=20)

EXPERIMENTS = (
    Experiment(
        "relational-windows",
        "Windows that overlap: aggregates by symbol, RANGE over SLIDE",
        "RANGE / SLIDE",
        tuple(Setting(str(ratio), _hop(ratio)) for ratio in RATIOS),
        (
            Way("slices", {}),
            Way("each window by itself", {}, program=by_itself),
            Way("DuckDB", {}, program=sql(_in_windows)),
        ),
        (THROUGHPUT,),
        (
            keeps(0.66, "slices", "1", "60"),
            at_least(2, "slices", "DuckDB", "60"),
            ahead("slices", "each window by itself", ("240",)),
        ),
        "A slide is a minute, and a minute has a thousand events of 100 symbols. Count, sum and "
        "greatest value are asked for. A window by itself is recomputed with NumPy from the events "
        "in it; DuckDB puts each event into all of its windows, and groups.",
    ),
    Experiment(
        "relational-joins",
        "Windowed joins of two and three streams",
        "window",
        tuple(Setting(f"{w:,}", _join(n, w), f"{n} streams") for n in (2, 3) for w in JOINS),
        (
            Way("matches", {}),
            Way("counted", {}, program=counted_join),
            Way("DuckDB", {}, program=sql(_joins_sql), limit=60),
        ),
        (THROUGHPUT,),
        (
            at_least(2, "matches", "DuckDB", "1,000", "2 streams"),
            at_least(2, "matches", "DuckDB", "1,000", "3 streams"),
            keeps(0.5, "counted", "100", "3,000", "3 streams"),
        ),
        "One event a time unit, of three streams and 100 keys; all combinations that agree on the "
        "key and lie less than the window apart. DuckDB joins on the key and on buckets of time.",
    ),
    Experiment(
        "relational-counting",
        "Counting against enumerating",
        "matches per event",
        tuple(
            Setting(label, _chain(window, compared), COMPARED if compared else FREE)
            for compared in (False, True)
            for label, window in MATCHES.items()
        ),
        (Way("counted", {}, program=counted), ENUMERATED),
        (THROUGHPUT,),
        (
            keeps(0.5, "counted", "1", "10,000", FREE),
            keeps(0.5, "counted", "1", "10,000", COMPARED),
            at_least(20, "counted", "enumerated and folded", "10,000", COMPARED),
            at_least(500, "counted", "enumerated and folded", "10,000", FREE),
        ),
        "Queries 4 and 5 of ZStream over equally frequent classes. The window makes the number of "
        "matches; with a condition on prices it is half of what the axis says, or more.",
    ),
)
