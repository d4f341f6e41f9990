"""A strict pattern per key, `A => B+ => C` with PREV: the engine, a loop, and window functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from benchmarks.cases import Workload
from benchmarks.experiments.experiment import (
    THROUGHPUT,
    Experiment,
    Program,
    Setting,
    Way,
    ahead,
    reaches,
)
from benchmarks.experiments.programs import as_users_do, over_table
from benchmarks.rivals import duckdb_query
from cepheid.options import GivenOptions

KEYS = 20_000
ROWS = 1_000_000
WINDOW = 200_000
SEED = 2007

QUERY = """
PATTERN A a => B+ b => C c
WHERE   [id] AND b.x > PREV(b.x)
RETURN  a.id AS id, count(b) AS n, last(b.x) AS x
"""
WITHIN = QUERY.replace("RETURN", f"WITHIN  {WINDOW} units\nRETURN")


def events(rows: int) -> pa.Table:
    """A fifth of the events are A, a fifth C; 20,000 keys at 1 million events."""
    random = np.random.default_rng(SEED)
    codes = random.choice(3, rows, p=[0.2, 0.6, 0.2]).astype(np.int8)
    return pa.table(
        {
            "ts": np.arange(rows),
            "type": pa.DictionaryArray.from_arrays(codes, pa.array(["A", "B", "C"])),
            "id": random.integers(0, max(1, KEYS * rows // ROWS), rows),
            "x": random.random(rows),
        }
    )


Ints = NDArray[np.int64]


# ── the floor: a loop for this one query ──


def count(table: pa.Table, window: int) -> int:
    """One pass over the events, with the state of each key; the result is written, too."""
    types = table["type"].combine_chunks()
    order = [types.dictionary.to_pylist().index(name) for name in ("A", "B", "C")]
    codes = np.argsort(order)[types.indices.to_numpy()].astype(np.int8)
    key, x, ts = (table[name].to_numpy() for name in ("id", "x", "ts"))
    keys = int(key.max(initial=-1)) + 1
    return int(_count(codes, key, x, ts, keys, window))


@njit(cache=True)
def _count(
    codes: NDArray[np.int8], key: Ints, x: NDArray[np.float64], ts: Ints, keys: int, window: int
) -> int:
    length = np.full(keys, -1, np.int64)  # elements of the group; -1: no A yet
    last = np.zeros(keys)
    start = np.zeros(keys, np.int64)
    rows = len(codes)
    ids, sizes = np.empty(rows, np.int64), np.empty(rows, np.int64)
    lasts = np.empty(rows)
    found = 0
    for i in range(rows):
        k, code = key[i], codes[i]
        if code == 0:
            length[k] = 0
            start[k] = ts[i]
        elif code == 1 and length[k] >= 0:
            if length[k] == 0 or x[i] > last[k]:
                length[k] += 1
                last[k] = x[i]
            else:
                length[k] = -1
        else:
            if code == 2 and length[k] > 0 and ts[i] - start[k] < window:
                ids[found], sizes[found], lasts[found] = k, length[k], last[k]
                found += 1
            length[k] = -1
    return found


# ── window functions ──


def sql(window: int) -> str:
    """Per key, events between an A and the next event that isn't a B are one group of rows: a
    group is a match if it has Bs, all of them rise, and a C follows."""
    return f"""
        WITH marked AS (
            SELECT id, ts, type, x,
                   lag(type) OVER own AS before, lag(x) OVER own AS previous,
                   sum(CASE WHEN type = 'B' THEN 0 ELSE 1 END) OVER own AS part
            FROM events WINDOW own AS (PARTITION BY id ORDER BY ts)
        ),
        runs AS (
            SELECT id, part, count(*) FILTER (type = 'B') AS n, max(x) FILTER (type = 'B') AS x,
                   bool_and(type <> 'B' OR before = 'A' OR x > previous) AS rising,
                   min(ts) AS start, bool_or(type = 'A') AS begins
            FROM marked GROUP BY id, part
        ),
        ends AS (SELECT id, part, ts FROM marked WHERE type = 'C')
        SELECT runs.id, n, x, start, ends.ts
        FROM runs JOIN ends ON runs.id = ends.id AND ends.part = runs.part + 1
        WHERE begins AND rising AND n > 0 AND ends.ts - start < {window}
    """


def duckdb(table: pa.Table, window: int) -> int:
    return duckdb_query(table, sql(window))()


def setting(label: str, query: str, window: int) -> Setting:
    columns: GivenOptions = {"time": "ts", "type": "type"}
    workload = Workload(
        f"strict {label}", query, ROWS, events, lambda table: count(table, window), columns
    )
    return Setting(label, workload)


FOREVER = 1 << 62
ENDS = {QUERY: FOREVER, WITHIN: WINDOW}


def _in_window(count: Callable[[pa.Table, int], int]) -> Program:
    """What counts in a table, given the window."""
    return over_table(lambda workload, table: count(table, ENDS[workload.query]))


EXPERIMENTS = (
    Experiment(
        "strict",
        "A strict pattern per key: `A => B+ => C` with PREV",
        "window",
        (setting("none", QUERY, FOREVER), setting(f"{WINDOW:,} events", WITHIN, WINDOW)),
        (
            Way("engine", {}, program=as_users_do),
            Way("loop", {}, program=_in_window(count)),
            Way("DuckDB, window functions", {}, program=_in_window(duckdb)),
        ),
        (THROUGHPUT,),
        (
            reaches(3e6, "engine"),
            ahead("engine", "DuckDB, window functions", must=True),
        ),
        "One million events of 20,000 keys, one thread. The loop is written for this one query: it "
        "goes over the events once, with the state of each key at hand. The engine lays the events "
        "out key by key, looks from every A for its matches, and keeps what later batches need.",
        bars=True,
    ),
)
