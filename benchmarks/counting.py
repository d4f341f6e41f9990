"""`python -m benchmarks.counting [--quick]`: answers in process, in events per CPU-second.

Each case counts matches and is compared with another way to the same answer: with enumerating (as
an iterator's matches are for SESSION), with the same query over a longer window, with the query
that returns the matches, or with DuckDB, which computes each window from its own events. The
answers of both are compared, where they are the same, or the run ends with exit code 1, as it does
if a target is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import cepheid as cep
from benchmarks.experiments.writing import RESULTS
from benchmarks.measure import BATCH
from benchmarks.report import provenance, write_json
from benchmarks.rivals import duckdb_query
from benchmarks.row_patterns import least
from benchmarks.tree import run_arguments
from cepheid.options import GivenOptions
from cepheid.workloads import fraud, stocks

SEED = 2009
STOCKS: GivenOptions = {"time": "ts", "type": "name"}
THREE = {"IBM": 1, "Sun": 1, "Oracle": 1}
QUERY_4 = "PATTERN IBM; Sun; Oracle WHERE IBM.price > Sun.price WITHIN 200 units RETURN count(*)"
QUERY_5 = "PATTERN IBM; Sun; Oracle WITHIN {} units RETURN count(*)"
RISING = (
    "PATTERN Oracle; IBM+ b {}; Sun WHERE b.price > PREV(b.price) WITHIN 200 units RETURN count(*)"
)
MODES = {"RUNS": 2_000, "PREFIXES": 20_000, "": 20_000}
"""How closures take their events, and of how many events they are enumerated."""
FRAUD = """
PATTERN s1 ; s2 ; big
WHERE   s1.card = s2.card = big.card AND [kind = 'purchase']
  AND   s1.amount < 100 AND s2.amount < 100 AND big.amount > 250
WITHIN  12 hours
"""
SYMBOLS = 100
WINDOWS = (
    "FROM ticks t GROUP BY t.symbol, {} RETURN t.symbol, count(*) AS n, sum(t.x) AS s, max(t.x)"
)


@dataclass(frozen=True)
class Run:
    """A way to an answer: what runs, over so many events. `total` says what answers are compared
    by."""

    name: str
    events: int
    total: Callable[[], int]


@dataclass(frozen=True)
class CountingCase:
    """The first run is measured; `holds` is given its CPU-seconds and those of the other."""

    name: str
    run: Run
    other: Run
    target: str
    holds: Callable[[float, float], bool]
    same: bool = True


def ticks_of(rows: int, selectivity: Mapping[tuple[str, str], float] | None = None) -> pa.Table:
    return stocks.generate(rows, SEED, rates=THREE, selectivity=selectivity)


def minutes(rows: int) -> pa.Table:
    """Ticks of many symbols, a thousand a minute; times are seconds."""
    draw = np.random.default_rng(SEED)
    return pa.table(
        {
            "ts": np.sort(draw.integers(0, rows * 60 // 1000, rows)),
            "symbol": draw.integers(0, SYMBOLS, rows),
            "x": draw.integers(0, 1000, rows),
        }
    )


def counted(text: str, table: pa.Table, **options: Any) -> int:
    """The sum of the first column of the answers."""
    found = cep.match(table, text, **options)
    return int(np.asarray(found.column(0).to_numpy(), np.float64).sum())


def enumerated(text: str, table: pa.Table, **options: Any) -> int:
    """The same of an iterator, whose answers need a window. With SESSION any event may complete
    one, so nothing is counted in rounds."""
    text = text.replace(" RETURN", " GROUP BY SESSION(1000000000 units) RETURN")
    batches = iter(table.to_batches(max_chunksize=BATCH))
    found = cep.match(batches, text, **options).read_all()
    return int(np.asarray(found.column(0).to_numpy(), np.float64).sum())


def rows_of(text: str, table: pa.Table, **options: Any) -> int:
    return int(cep.match(table, text, **options).num_rows)


def recomputed(table: pa.Table) -> Callable[[], int]:
    """The same windows in SQL, which puts each event into all of its windows."""
    statement = """
        SELECT symbol, start, count(*) AS n, sum(x) AS s, max(x) AS most
        FROM (SELECT symbol, x, (ts // 60 - unnest(range(60))) * 60 AS start FROM events)
        GROUP BY symbol, start
    """
    return duckdb_query(table, statement)


def faster(factor: float) -> Callable[[float, float], bool]:
    return lambda own, other: own * factor <= other


def at_most(factor: float) -> Callable[[float, float], bool]:
    return lambda own, other: own <= factor * other


def rate(events: int, least_rate: float) -> Callable[[float, float], bool]:
    return lambda own, other: events / own >= least_rate


def cases(part: int) -> Iterator[CountingCase]:
    rows = 2_000_000 // part
    table = ticks_of(rows)
    short = Run("window 200", rows, partial(counted, QUERY_5.format(200), table, **STOCKS))
    few = ticks_of(rows // 20)
    yield CountingCase(
        "query 5, window 200",
        short,
        Run("enumerated", rows // 20, partial(enumerated, QUERY_5.format(200), few, **STOCKS)),
        "at least 10 million events/s",
        rate(rows, 10e6),
        same=False,
    )
    long = Run("window 20,000", rows, partial(counted, QUERY_5.format(20_000), table, **STOCKS))
    yield CountingCase(
        "query 5, window 20,000",
        long,
        short,
        "at most twice the time of window 200",
        at_most(2),
        same=False,
    )
    always = {("IBM", "Sun"): 1.0}
    small = ticks_of(150_000 // part, always)
    yield CountingCase(
        "query 4, selectivity 1",
        Run("counted", rows, partial(counted, QUERY_4, ticks_of(rows, always), **STOCKS)),
        Run("enumerated", small.num_rows, partial(enumerated, QUERY_4, small, **STOCKS)),
        "at least 20 times as fast as enumerating",
        faster(20 * small.num_rows / rows),
        same=False,
    )
    if (one := counted(QUERY_4, few, **STOCKS)) != (other := enumerated(QUERY_4, few, **STOCKS)):
        raise SystemExit(f"WRONG ANSWER: query 4: counted {one:,}, enumerated {other:,}")
    for mode, count in MODES.items():
        text, part_of = RISING.format(mode), ticks_of(count)
        if (one := counted(text, part_of, **STOCKS)) != enumerated(text, part_of, **STOCKS):
            raise SystemExit(f"WRONG ANSWER: rising {mode}: counted {one:,}")
        yield CountingCase(
            f"rising IBM+ {mode or 'maximal'}",
            Run("counted", rows // 4, partial(counted, text, table.slice(0, rows // 4), **STOCKS)),
            Run("enumerated", count, partial(enumerated, text, part_of, **STOCKS)),
            "at least 5 times as fast as enumerating",
            faster(5 * count / (rows // 4)),
            same=False,
        )
    subsets = pa.table({"ts": np.arange(rows // 4)})
    text = "PATTERN a+ SUBSETS WITHIN {} RETURN approx_count(*)"
    yield CountingCase(
        "a+ SUBSETS, 1,000 events in a window",
        Run("1,000", rows // 4, partial(rows_of, text.format(1000), subsets, time="ts")),
        Run("100", rows // 4, partial(rows_of, text.format(100), subsets, time="ts")),
        "at least 100,000 events/s",
        rate(rows // 4, 1e5),
    )
    cards = fraud.generate(rows // 2, SEED)
    options: dict[str, Any] = {"time": "ts", "tie": "id"}
    grouped = f"{FRAUD} GROUP BY big.card, TUMBLE(1 hour) RETURN count(*) AS n, big.card"
    plain = f"{FRAUD} RETURN big.card AS card, big.ts AS ts"
    yield CountingCase(
        "fraud by card and hour",
        Run("grouped", rows // 2, partial(counted, grouped, cards, **options)),
        Run("its matches", rows // 2, partial(rows_of, plain, cards, **options)),
        "at most 1.3 times the query alone",
        at_most(1.3),
    )
    ticks = minutes(rows)
    hop = Run("HOP", rows, partial(rows_of, WINDOWS.format("HOP(60, 3600)"), ticks, time="ts"))
    tumble = Run("TUMBLE", rows, partial(rows_of, WINDOWS.format("TUMBLE(60)"), ticks, time="ts"))
    yield CountingCase(
        "HOP(1 minute, 1 hour)",
        hop,
        tumble,
        "at most 1.5 times TUMBLE(1 minute)",
        at_most(1.5),
        same=False,
    )
    yield CountingCase(
        "HOP(1 minute, 1 hour)",
        hop,
        Run("events in all of their windows", rows, recomputed(ticks)),
        "at least twice as fast as recomputing each window",
        faster(2),
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counting", description=__doc__)
    given = run_arguments(parser, quick="a tenth of the events")
    if given is None:
        return 1
    pa.set_cpu_count(1)
    shown = Table(title="Answers in process", title_justify="left")
    for head in ("case", "M events/CPU-s", "against", "M events/CPU-s", "times", "target", ""):
        shown.add_column(head)
    records, met = [], True
    for case in cases(10 if given.quick else 1):
        own, seconds = least(case.run.total)
        other, others = least(case.other.total)
        if case.same and own != other:
            raise SystemExit(f"WRONG ANSWER: {case.name}: {own:,}, {case.other.name} {other:,}")
        holds = case.holds(seconds, others)
        met = met and holds
        rates = (case.run.events / seconds, case.other.events / others)
        shown.add_row(
            case.name,
            f"{rates[0] / 1e6:.2f}",
            case.other.name,
            f"{rates[1] / 1e6:.2f}",
            f"{rates[0] / rates[1]:.2f}",
            case.target,
            "✓" if holds else "✗",
        )
        records.append(
            {
                "case": case.name,
                "events": case.run.events,
                "cpu_seconds": round(seconds, 4),
                "other": case.other.name,
                "other_events": case.other.events,
                "other_cpu_seconds": round(others, 4),
                "target": case.target,
                "holds": holds,
            }
        )
    Console(emoji=False, width=None if sys.stdout.isatty() else 160).print(shown)
    if given.recording:
        figures = {**provenance(False), "holds": met, "figures": records}
        write_json(RESULTS.parent / "counting.json", figures)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
