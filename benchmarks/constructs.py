"""`python -m benchmarks.constructs [--quick]`: constructs of the language, each against the
simplest query that does as much: FOR against a plain negation, texts against numbers.

The two of a pair take turns. Of several runs the one with the least CPU time counts. If a pair has
a limit and misses it, the run ends with exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

import cepheid as cep
from benchmarks.experiments.writing import RESULTS
from benchmarks.report import provenance, write_json
from benchmarks.tree import run_arguments

ROWS, KEYS = 200_000, 2_000
REPEATS = 3
ANY = 1e9
"""No limit: the figure is for readers."""

PAIR = "PATTERN A a ; B b WHERE {} AND a.x < 50000 WITHIN 900 RETURN a.ts AS t"
GROUP = (
    "PATTERN A a ; B+ b ; A c WHERE a.x < 100000 AND c.x < 20000 AND {} WITHIN 100 RETURN a.ts AS t"
)
LONG = "PATTERN A a ; B+ b ; A c WHERE a.x < 3000 AND c.x < 3000 AND {} > 5 WITHIN 2000 RETURN a.ts"


@dataclass(frozen=True)
class Pair:
    """A construct, and what it is compared with; it may take `most` times as long.

    `rows` are as many as show the effect: where little is left to do, few show the call's costs.
    """

    name: str
    query: str
    base: str
    most: float = ANY
    rows: int = ROWS


@dataclass(frozen=True)
class PairFigures:
    pair: Pair
    matches: int
    seconds: float
    base_seconds: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.base_seconds


def on_texts(name: str, form: str, condition: str) -> Pair:
    texts, numbers = condition.replace("$", "s"), condition.replace("$", "x")
    return Pair(name, form.format(texts), form.format(numbers), 5)


def timed_negations(rows: int) -> tuple[Pair, ...]:
    """`!P FOR d` at each place, against a plain negation there."""
    places = {
        "at the end": (
            "PATTERN A a ; !B b FOR 20 WHERE [k] RETURN a.ts AS t",
            "PATTERN A a ; !B b WHERE [k] WITHIN 20 RETURN a.ts AS t",
        ),
        "before an event": (
            "PATTERN !B b FOR 200 ; A a WHERE [k] RETURN a.ts AS t",
            "PATTERN !B b ; A a WHERE [k] WITHIN 200 RETURN a.ts AS t",
        ),
        "before two events": (
            "PATTERN !B b FOR 200 ; A a ; A c WHERE [k] WITHIN 900 RETURN a.ts AS t",
            "PATTERN !B b ; A a ; A c WHERE [k] WITHIN 900 RETURN a.ts AS t",
        ),
        "in the middle": (
            "PATTERN A a ; !B b FOR 100 ; A c WHERE [k] WITHIN 900 RETURN a.ts AS t",
            "PATTERN A a ; !B b ; A c WHERE [k] WITHIN 900 RETURN a.ts AS t",
        ),
    }
    return tuple(
        Pair(f"!P FOR d {place}, {rows:,} events", query, base, 1.5, rows)
        for place, (query, base) in places.items()
    )


PAIRS = (
    *timed_negations(ROWS),
    *timed_negations(4 * ROWS),
    Pair(
        "count(DISTINCT b.x), groups of 1,000",
        LONG.format("count(DISTINCT b.x)"),
        LONG.format("count(b.x)"),
        3,
    ),
    Pair(
        "LIMIT 1 PER KEY, keys that repeat 100 times",
        "PATTERN A a ; B b WHERE [k] WITHIN 1000000 RETURN a.ts AS t, b.ts AS u LIMIT 1 PER KEY",
        "PATTERN A a ; B b WHERE [k] WITHIN 1000000 RETURN a.ts AS t, b.ts AS u",
        0.2,
        1_000_000,
    ),
    Pair(
        "AFTER MATCH SKIP FOR d",
        "PATTERN A a ; B b WHERE [k] WITHIN 500 AFTER MATCH SKIP FOR 50 RETURN a.ts AS t",
        "PATTERN A a ; B b WHERE [k] WITHIN 500 AFTER MATCH SKIP PAST LAST EVENT RETURN a.ts AS t",
    ),
    Pair(
        "PREV with a default",
        GROUP.format("b.x > PREV(b.x, 0)"),
        GROUP.format("b.x > PREV(b.x)"),
    ),
    Pair(
        "reduce",
        GROUP.format("reduce(b, 0, acc -> acc + b.x) > 5"),
        GROUP.format("sum(b.x) > 5"),
    ),
    on_texts("order of texts", PAIR, "b.$ < a.$"),
    on_texts("greatest of texts", PAIR, "greatest(a.$, b.$) = a.$"),
    on_texts("PREV of texts", GROUP, "b.$ > PREV(b.$)"),
    on_texts("max of texts", GROUP, "max(b.$) > a.$"),
    on_texts("max of texts so far", GROUP, "b.$ >= max(b.$)"),
    Pair(
        "LIKE between texts",
        PAIR.format("b.s LIKE a.pattern"),
        PAIR.format("b.x % 19 = a.x % 19"),
        5,
    ),
    Pair(
        "RLIKE between texts, which isn't compiled",
        PAIR.format("b.s RLIKE a.expression").replace("50000", "1000"),
        PAIR.format("b.x % 19 = a.x % 19").replace("50000", "1000"),
    ),
)


def events(rows: int) -> pa.Table:
    random = np.random.default_rng(1)
    numbers = random.integers(0, 10**6, rows)
    return pa.table(
        {
            "ts": np.arange(rows),
            "type": random.choice(["A", "B"], rows),
            "k": random.integers(0, KEYS * rows // ROWS, rows),
            "x": numbers,
            "s": [f"k{number:07}" for number in numbers],
            "pattern": [f"%{number % 97:02}%" for number in numbers],
            "expression": [f"{number % 97:02}[0-9]" for number in numbers],
        }
    )


def figures(pair: Pair, table: pa.Table) -> PairFigures:
    match = partial(cep.match, table, time="ts", type="type")
    least = {pair.query: float("inf"), pair.base: float("inf")}
    matches = 0
    for turn in range(REPEATS + 1):
        for query in least:
            begin = time.process_time()
            found = match(query).num_rows
            if turn:
                least[query] = min(least[query], time.process_time() - begin)
            matches = found if query == pair.query else matches
    return PairFigures(pair, matches, least[pair.query], least[pair.base])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constructs", description=__doc__)
    given = run_arguments(parser, quick="a tenth of the events")
    if given is None:
        return 1
    part = 10 if given.quick else 1
    tables = {rows: events(rows // part) for rows in {pair.rows for pair in PAIRS}}
    measured = [figures(pair, tables[pair.rows]) for pair in PAIRS]
    for item in measured:
        limited = item.pair.most < ANY
        mark = " " if not limited else "✓" if item.ratio <= item.pair.most else "✗"
        limit = f"at most {item.pair.most}" if limited else ""
        print(f"{mark} {item.pair.name:<48} {item.ratio:>7.2f} times {limit}")
    holds = all(item.ratio <= item.pair.most for item in measured)
    if given.recording:
        rows = [
            {
                "construct": item.pair.name,
                "query": item.pair.query,
                "compared_with": item.pair.base,
                "rows": item.pair.rows,
                "matches": item.matches,
                "cpu_seconds": round(item.seconds, 4),
                "base_cpu_seconds": round(item.base_seconds, 4),
                "times": round(item.ratio, 2),
                "most": item.pair.most if item.pair.most < ANY else None,
            }
            for item in measured
        ]
        write_json(
            RESULTS.parent / "constructs.json",
            {**provenance(False), "holds": holds, "figures": rows},
        )
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
