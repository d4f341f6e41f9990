"""`python -m benchmarks.peers.program NAME WORKLOAD EVENTS THREADS REPEATS`: times one program on
events from a file, and prints the figures as a line of JSON.

Each program runs in a process of its own: Polars reads the number of its threads when it is
imported, and what one leaves in memory can't slow down the next.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from benchmarks.peers.polars_queries import PolarsQuery

PREFIX = 50_000
NAMES = ("loop", "Cepheid", "DuckDB", "Polars")


def program(name: str, workload: str, threads: int) -> Callable[[pa.Table], Callable[[], int]]:
    """What prepares the program for events, which are then where the program likes them."""
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    os.environ["OMP_NUM_THREADS"] = "1"
    pa.set_cpu_count(threads)
    from benchmarks.peers.workloads import WORKLOADS

    given = next(w for w in WORKLOADS if w.name == workload)
    match name:
        case "loop":
            return lambda table: lambda: given.loop(table)
        case "Cepheid":
            import cepheid as cep

            query = cep.Query(given.query)
            options: dict[str, Any] = {**given.columns, "threads": threads}
            return lambda table: lambda: query.match(table, **options).num_rows
        case "DuckDB":
            return lambda table: _duckdb(table, given.duckdb, threads)
        case _:
            return lambda table: _polars(table, given.polars, threads)


def _duckdb(table: pa.Table, sql: str, threads: int) -> Callable[[], int]:
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    connection.execute("SET preserve_insertion_order = false")
    connection.register("arrow", table)
    connection.execute("CREATE TABLE events AS SELECT * FROM arrow")
    connection.unregister("arrow")
    return lambda: int(connection.sql(sql).to_arrow_table().num_rows)


def _polars(table: pa.Table, query: PolarsQuery, threads: int) -> Callable[[], int]:
    import polars as pl

    assert pl.thread_pool_size() == threads
    events = pl.from_arrow(table)
    return lambda: sum(frame.height for frame in query(pl, events))


def timed(
    prepare: Callable[[pa.Table], Callable[[], int]], table: pa.Table, repeats: int
) -> dict[str, Any]:
    """The least time of several runs, after one on a part of the events."""
    prepare(table.slice(0, PREFIX))()
    run = prepare(table)
    cpus: list[float] = []
    walls: list[float] = []
    matches: set[int] = set()
    for _ in range(repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        matches.add(run())
        cpus.append(time.process_time() - cpu)
        walls.append(time.perf_counter() - wall)
    return {"cpu": min(cpus), "wall": min(walls), "matches": sorted(matches)}


def main(name: str, workload: str, events: str, threads: str, repeats: str) -> None:
    prepare = program(name, workload, int(threads))
    with pa.memory_map(events) as source:
        table = pa.ipc.open_file(source).read_all()
    print(json.dumps(timed(prepare, table, int(repeats))))


if __name__ == "__main__":
    main(*sys.argv[1:])
