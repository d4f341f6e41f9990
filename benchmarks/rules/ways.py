"""The same rules compiled in several ways over the same events: what each way takes, and that all
of them find the same."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from benchmarks.measure import WrongAnswer
from benchmarks.report import Record, short
from benchmarks.rules.figures import Say
from cepheid.engine.attribution.json_rows import alert_schema
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import CompiledRules, compile_rules
from cepheid.rules.run.process import run

OPTIONS = Options("ts", type="kind", tie="id")
COLUMNS = ["way", "queries", "s to compile", "s to match", "events per second"]


@dataclass(frozen=True)
class Way:
    """Seconds are of processor time; those to match are of the fastest turn."""

    queries: int
    compiling: float
    matching: float


def measure_ways(
    sets: Mapping[str, Sequence[RuleSet]],
    events: pa.Table,
    repeats: int,
    queries: Callable[[CompiledRules], int],
    say: Say,
) -> tuple[dict[str, Way], int]:
    """What each way takes, and how many matches there are. The ways take turns, `queries` counts
    those of compiled rules."""
    ready: dict[str, tuple[list[CompiledRules], float]] = {}
    say("compiling")
    for way, parts in sets.items():
        begin = time.process_time()
        compiled = [compile_rules(part.templates, events.schema, OPTIONS) for part in parts]
        ready[way] = compiled, time.process_time() - begin
    matching = dict.fromkeys(sets, float("inf"))
    tables: dict[str, pa.Table] = {}
    for turn in range(1 + repeats):
        for way, (compiled, _) in ready.items():
            say(f"{way}, turn {turn}")
            begin = time.process_time()
            tables[way] = pa.concat_tables(_matches(part, events) for part in compiled)
            if turn:  # the first has loaded the kernels
                matching[way] = min(matching[way], time.process_time() - begin)
    matches = check(tables)
    ways = {
        way: Way(sum(map(queries, compiled)), seconds, matching[way])
        for way, (compiled, seconds) in ready.items()
    }
    return ways, matches


def check(tables: Mapping[str, pa.Table]) -> int:
    """How many rows each way has: all have the same ones."""
    (first, rows), *others = ((way, Counter(map(str, t.to_pylist()))) for way, t in tables.items())
    for other, other_rows in others:
        for row in (rows - other_rows) + (other_rows - rows):
            raise WrongAnswer(f"{first} and {other} differ in {row}")
    if not rows:
        raise WrongAnswer("no rule finds anything")
    return rows.total()


def _matches(compiled: CompiledRules, events: pa.Table) -> pa.Table:
    schema = alert_schema(compiled.rules, events.schema.field(OPTIONS.time).type)
    return pa.Table.from_batches(run(compiled, events, schema, OPTIONS), schema)


# ── to keep ──


def table(title: str, ways: Mapping[str, Way], events: int) -> Record:
    rows = [
        [
            name,
            f"{way.queries}",
            f"{way.compiling:.2f}",
            f"{way.matching:.2f}",
            short(events / way.matching),
        ]
        for name, way in ways.items()
    ]
    return {"title": title, "head": COLUMNS, "rows": rows}


def figures(ways: Mapping[str, Way]) -> Record:
    return {
        name: {
            "queries": way.queries,
            "compiling": round(way.compiling, 3),
            "matching": round(way.matching, 3),
        }
        for name, way in ways.items()
    }
