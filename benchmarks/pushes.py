"""`python -m benchmarks.pushes [NAMES…] [--quick]`: what a push costs while the window grows.

A stream comes in small batches, and the window may be a thousand times as long. Every push brings
as many matches, whatever the window: the events of a session are near each other, and no session's
key comes twice. So what grows with the window is what the engine does for events that have nothing
to do with the batch. At most 2 times the cost at one batch per window is allowed; a run in which it
is more ends with exit code 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

import cepheid as cep
from cepheid.engine.run import Engine
from cepheid.options import Options
from cepheid.planner import prepare

ROWS = 1_000
"""Of a push."""

WINDOWS = (1, 10, 100, 1_000)
"""In pushes."""

PUSHES = 300
ALLOWED = 2.0
FILLING = 100_000
"""Rows of the batches that fill the window, which are not measured."""

SESSION = 4
"""Events of a session."""

TYPES = np.array([0, 1, 2, 3, 0, 3, 1, 2], np.int8)
"""A, B, C and D; in every other session, D comes after A."""


@dataclass(frozen=True, slots=True)
class Case:
    """A pattern under one plan; `{window}` is in milliseconds, of which each has one event."""

    name: str
    query: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of processor time per push; the mean has its share of what is done rarely."""

    median: float
    mean: float
    matches: float


CHAIN = """PATTERN A a ; B b ; C c WHERE a.id = b.id AND b.id = c.id WITHIN {window} ms
RETURN a.place, b.price, c.ts"""
BETWEEN = """PATTERN A a ; !D d ; C c WHERE a.id = d.id AND d.id = c.id WITHIN {window} ms
RETURN a.place, a.price, c.ts"""
AFTER = """PATTERN A a ; B b ; !D d WHERE a.id = b.id AND b.id = d.id WITHIN {window} ms
RETURN a.place, b.price, b.ts"""

CASES = (
    Case("tree", CHAIN, {"engine": "tree", "plan": "left-deep"}),
    Case("stacks", CHAIN, {"engine": "nfa"}),
    Case("negation between", BETWEEN, {"engine": "tree", "plan": "left-deep"}),
    Case("negation on top", BETWEEN, {"engine": "tree", "negation": "top"}),
    Case("negation after", AFTER, {"engine": "tree", "plan": "left-deep"}),
)


def events(begin: int, rows: int) -> pa.RecordBatch:
    """Sessions one after the other, so that all pushes are alike."""
    numbers = np.arange(begin, begin + rows)
    return pa.record_batch(
        {
            "ts": pa.array(numbers * 1_000, pa.timestamp("us")),
            "type": pa.DictionaryArray.from_arrays(
                pa.array(TYPES[numbers % len(TYPES)]), ["A", "B", "C", "D"]
            ),
            "id": pc.binary_join_element_wise(
                "session", pa.array(numbers // SESSION).cast(pa.string()), " "
            ),
            "place": pc.binary_join_element_wise(
                "place", pa.array(numbers % 997).cast(pa.string()), " "
            ),
            "price": pa.array((numbers % 1_009) * 0.25),
        }
    )


def engine(case: Case, window: int) -> Engine:
    """An engine that keeps its plan."""
    schema = events(0, 1).schema
    options = Options(time="ts", type="type", adapt=None, **case.options)
    query = cep.Query(case.query.format(window=window)).bind(schema, options)
    return prepare(query, options).engine(schema)


def measured(case: Case, window: int, pushes: int) -> Cost:
    """The cost of pushes into a window that is full, and from which events expire."""
    running = engine(case, window * ROWS)
    begin = 0
    for rows in (*_filling(2 * window * ROWS), *[ROWS] * 20):
        _count(running, events(begin, rows))
        begin += rows
    costs: list[float] = []
    matches = 0
    for _ in range(pushes):
        batch = events(begin, ROWS)
        begin += ROWS
        began = time.process_time()
        matches += _count(running, batch)
        costs.append(1e3 * (time.process_time() - began))
    return Cost(statistics.median(costs), statistics.fmean(costs), matches / pushes)


def _filling(rows: int) -> Iterator[int]:
    for begin in range(0, rows, FILLING):
        yield min(FILLING, rows - begin)


def _count(running: Engine, batch: pa.RecordBatch) -> int:
    return sum(matches.num_rows for matches in running.push(batch))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pushes", description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of cases: tree, stacks, negation")
    parser.add_argument("--quick", action="store_true", help="a tenth of the pushes")
    given = parser.parse_args()
    pa.set_cpu_count(1)
    pushes = PUSHES // 10 if given.quick else PUSHES
    table = Table(title=f"pushes of {ROWS:,} events: median (mean) ms", title_justify="left")
    table.add_column("plan")
    for window in WINDOWS:
        table.add_column(f"window {window:,} ×", justify="right")
    table.add_column("ratio", justify="right")
    table.add_column("matches", justify="right")
    worst = 0.0
    for case in CASES:
        if given.names and not any(case.name.startswith(name) for name in given.names):
            continue
        costs = [measured(case, window, pushes) for window in WINDOWS]
        ratio = costs[-1].median / costs[0].median
        worst = max(worst, ratio)
        cells = [f"{cost.median:.2f} ({cost.mean:.2f})" for cost in costs]
        counts = sorted({f"{cost.matches:.0f}" for cost in costs})
        table.add_row(case.name, *cells, f"{ratio:.2f}", "/".join(counts))
    console = Console(emoji=False)
    console.print(table)
    holds = worst <= ALLOWED
    console.print(f"{'✓' if holds else '✗'} at most {worst:.2f} times ({ALLOWED} are allowed)")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
