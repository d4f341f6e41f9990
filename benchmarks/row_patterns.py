"""`python -m benchmarks.row_patterns [--quick]`: MATCH_RECOGNIZE in process, in rows per
CPU-second.

A million trades of 20,000 accounts, and three patterns whose conditions are masks. Each is compared
with a loop written by hand for it, and the first with window functions of Polars and DuckDB; all
return the same number of matches, or the run ends with exit code 1. Then one partition grows: the
time per row must stay as it is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import cepheid as cep
from benchmarks.experiments.writing import RESULTS
from benchmarks.loops import jit
from benchmarks.report import provenance, write_json
from benchmarks.tree import run_arguments

ROWS, ACCOUNTS = 1_000_000, 20_000
REPEATS = 3
TARGET = 4e6
"""Rows per CPU-second."""

GROWTH = (100_000, 300_000, 1_000_000)
MOST_GROWTH = 1.5
"""How many times the time per row of the smallest partition that of the largest may be."""

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class RowCase:
    name: str
    clause: str
    loop: Callable[[Integers, Doubles], int]


@dataclass(frozen=True)
class RowFigures:
    """CPU-seconds of the matcher and of the others, by name."""

    case: str
    rows: int
    matches: int
    seconds: float
    others: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return self.rows / self.seconds


def trades(rows: int, accounts: int, seed: int = 7) -> pa.Table:
    """In the order of their time, of accounts in turns that are drawn."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "account": random.integers(0, accounts, rows),
            "ts": np.arange(rows),
            "amount": random.uniform(0, 1000, rows),
        }
    )


# ── by hand ──────────────────────────────────────────────────────────────────


@jit
def _rises(account: Integers, amount: Doubles) -> int:
    matches, row, end = 0, 0, len(account)
    while row < end:
        last = row
        while last + 1 < end and account[last + 1] == account[row]:
            if amount[last + 1] <= amount[last]:
                break
            last += 1
        falls = last + 1 < end and account[last + 1] == account[row]
        if last > row and falls and amount[last + 1] < amount[last]:
            matches += 1
        row = last + 1
    return matches


@jit
def _shapes(account: Integers, amount: Doubles) -> int:
    matches, row, end = 0, 0, len(account)
    while row < end:
        low = row
        while low + 1 < end and account[low + 1] == account[row] and amount[low + 1] < amount[low]:
            low += 1
        top = low
        while top + 1 < end and account[top + 1] == account[row] and amount[top + 1] > amount[top]:
            top += 1
        if low > row and top > low:
            matches += 1
            row = top + 1
        else:
            row += 1
    return matches


@jit
def _between(account: Integers, amount: Doubles) -> int:
    matches, row, end = 0, 0, len(account)
    while row < end:
        if amount[row] >= 100:
            row += 1
            continue
        last = row + 1
        while last < end and account[last] == account[row] and 100 <= amount[last] < 900:
            last += 1
        if last < end and account[last] == account[row] and amount[last] >= 900:
            matches += 1
            row = last + 1
        else:
            row += 1
    return matches


def _by_hand(loop: Callable[[Integers, Doubles], int], table: pa.Table) -> int:
    account = table["account"].to_numpy()
    order = np.argsort(account, kind="stable")
    return int(loop(account[order], table["amount"].to_numpy()[order]))


CASES = (
    RowCase(
        "A B+ C",
        """MEASURES A.ts AS first, count(B.*) AS n AFTER MATCH SKIP TO LAST C PATTERN (A B+ C)
        DEFINE B AS B.amount > PREV(B.amount), C AS C.amount < PREV(C.amount)""",
        _rises,
    ),
    RowCase(
        "A DOWN+ UP+",
        """MEASURES A.ts AS first, LAST(DOWN.ts) AS low, LAST(UP.ts) AS last
        PATTERN (A DOWN+ UP+)
        DEFINE DOWN AS amount < PREV(amount), UP AS amount > PREV(amount)""",
        _shapes,
    ),
    RowCase(
        "A (B | C)* D",
        """MEASURES A.ts AS first, D.ts AS last PATTERN (A (B | C)* D)
        DEFINE A AS amount < 100, B AS amount >= 100 AND amount < 500,
               C AS amount >= 500 AND amount < 900, D AS amount >= 900""",
        _between,
    ),
)


def statement(case: RowCase) -> str:
    return f"SELECT * FROM trades MATCH_RECOGNIZE (PARTITION BY account ORDER BY ts {case.clause})"


# ── window functions ─────────────────────────────────────────────────────────


def _polars(frame: pl.DataFrame) -> int:
    """Runs of rises, of which another begins after them: amounts are all different."""
    rising = pl.col("amount") > pl.col("amount").shift(1).over("account")
    runs = (
        frame.lazy()
        .sort("account", "ts")
        .with_columns(run=(~rising.fill_null(False)).cum_sum().over("account"))
        .group_by("account", "run", maintain_order=True)
        .agg(first=pl.col("ts").first(), n=pl.len() - 1)
        .with_columns(later=pl.col("run").shift(-1).over("account"))
        .filter((pl.col("n") > 0) & pl.col("later").is_not_null())
    )
    return runs.collect().height


_DUCKDB = """
    WITH d AS (SELECT *, lag(amount) OVER (PARTITION BY account ORDER BY ts) AS p FROM trades),
    g AS (SELECT account, ts, sum(CASE WHEN amount > p THEN 0 ELSE 1 END)
          OVER (PARTITION BY account ORDER BY ts ROWS UNBOUNDED PRECEDING) AS run FROM d),
    r AS (SELECT account, run, min(ts) AS first, count(*) - 1 AS n FROM g GROUP BY account, run),
    l AS (SELECT *, lead(run) OVER (PARTITION BY account ORDER BY run) AS later FROM r)
    SELECT account, first, n FROM l WHERE n > 0 AND later IS NOT NULL
"""


def _duckdb(connection: duckdb.DuckDBPyConnection) -> int:
    return int(connection.sql(_DUCKDB).to_arrow_table().num_rows)


# ── measuring ────────────────────────────────────────────────────────────────


def least(run: Callable[[], int], repeats: int = REPEATS) -> tuple[int, float]:
    """What it returns, and the least CPU-seconds of some runs, after one that isn't counted."""
    result, seconds = run(), float("inf")
    for _ in range(repeats):
        begin = time.process_time()
        result = run()
        seconds = min(seconds, time.process_time() - begin)
    return result, seconds


def _matches(text: str, table: pa.Table) -> int:
    return int(cep.sql(text, {"trades": table}).num_rows)


def figures(case: RowCase, table: pa.Table) -> RowFigures:
    text = statement(case)
    matches, seconds = least(partial(_matches, text, table))
    programs: dict[str, Callable[[], int]] = {"loop": lambda: _by_hand(case.loop, table)}
    if case is CASES[0]:
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        connection = duckdb.connect(config={"threads": 1})
        connection.register("trades", table)
        programs |= {"Polars": lambda: _polars(frame), "DuckDB": lambda: _duckdb(connection)}
    others: dict[str, float] = {}
    for name, program in programs.items():
        answer, others[name] = least(program)
        if answer != matches:
            raise SystemExit(f"WRONG ANSWER: {case.name}: {name} {answer}, Cepheid {matches}")
    return RowFigures(case.name, table.num_rows, matches, seconds, others)


def growth(sizes: tuple[int, ...]) -> list[RowFigures]:
    """One partition of so many rows."""
    measured: list[RowFigures] = []
    for size in sizes:
        table = trades(size, 1)
        text = statement(CASES[2])
        matches, seconds = least(partial(_matches, text, table))
        measured.append(RowFigures("one partition", size, matches, seconds))
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.row_patterns", description=__doc__)
    given = run_arguments(parser, quick="a tenth of the rows")
    if given is None:
        return 1
    part = 10 if given.quick else 1
    table = trades(ROWS // part, ACCOUNTS // part)
    cases = [figures(case, table) for case in CASES]
    grown = growth(tuple(size // part for size in GROWTH))
    slower = (grown[-1].seconds / grown[-1].rows) / (grown[0].seconds / grown[0].rows)
    holds = min(case.rate for case in cases) >= TARGET and slower <= MOST_GROWTH
    console = Console(emoji=False)
    shown = Table(title="MATCH_RECOGNIZE in process", title_justify="left")
    for head in ("pattern", "rows", "matches", "M rows/CPU-s", "× loop", "× Polars", "× DuckDB"):
        shown.add_column(head, justify="left" if head == "pattern" else "right")
    for item in (*cases, *grown):
        ratios = [item.others.get(name) for name in ("loop", "Polars", "DuckDB")]
        texts = ["" if other is None else f"{item.seconds / other:.2f}" for other in ratios]
        shown.add_row(
            item.case, f"{item.rows:,}", f"{item.matches:,}", f"{item.rate / 1e6:.2f}", *texts
        )
    console.print(shown)
    mark = "✓" if holds else "✗"
    console.print(
        f"{mark} at least 4 M rows per CPU-second; a long partition costs {slower:.2f} times"
    )
    if given.recording:
        rows = [
            {
                "case": item.case,
                "rows": item.rows,
                "matches": item.matches,
                "cpu_seconds": round(item.seconds, 4),
                "others": {name: round(s, 4) for name, s in item.others.items()},
            }
            for item in (*cases, *grown)
        ]
        write_json(
            RESULTS.parent / "row_patterns.json",
            {**provenance(False), "holds": holds, "growth": round(slower, 3), "figures": rows},
        )
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
