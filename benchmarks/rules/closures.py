"""A template with a closure and an aggregate: one query for all its rules, and one for each.

A login, a run of small purchases, and a large one: rules differ in how large, where, how many, how
much in all, and how soon. Both ways take all rules over the same events, and must find the same.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product

import pyarrow as pa

from benchmarks.measure import WrongAnswer
from benchmarks.report import Record, Verdict, provenance, short
from benchmarks.rules.figures import Say, Size
from benchmarks.rules.running import SEED
from cepheid.engine.attribution.json_rows import alert_schema
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import CompiledRules, compile_rules
from cepheid.rules.run.process import run
from cepheid.workloads import fraud

QUERY = """
PATTERN login l ; purchase+ b ; purchase c
WHERE   [card] AND b.amount < 100
  AND   c.amount > :large AND (:country IS NULL OR c.country = :country)
HAVING  count(b) >= :many AND sum(b.amount) > :total
WITHIN  :hours hours
RETURN  c.card, c.id AS purchase, count(b) AS purchases, sum(b.amount) AS small
"""
RULES = 200
OPTIONS = Options("ts", type="kind", tie="id")
WAYS = ("one query for all", "one by one")
SHARED, ALONE = WAYS


@dataclass(frozen=True)
class Way:
    """Seconds are of processor time; those to match are of the fastest turn."""

    queries: int
    compiling: float
    matching: float


@dataclass(frozen=True)
class Found:
    """What both ways find, and what each of them takes."""

    rules: int
    events: int
    matches: int
    ways: Mapping[str, Way]

    @property
    def times(self) -> float:
        return self.ways[ALONE].matching / self.ways[SHARED].matching


def rules(count: int) -> RuleSet:
    """Every combination of a few values, in an order in which all values come soon."""
    values = {
        "large": (100, 150, 250, 400, 600),
        "country": (None, "US", "GB", "DE", "FR", "JP", "BR", "IN"),
        "many": (1, 2, 3),
        "total": (20, 50, 90, 140, 200),
        "hours": (24, 72, 120, 168),
    }
    every = list(product(*values.values()))
    rows = [every[n * 997 % len(every)] for n in range(count)]
    table = pa.table(dict(zip(values, map(list, zip(*rows, strict=True)), strict=True)))
    return RuleSet.from_template("spree", QUERY, table)


def measure(size: Size, say: Say) -> Found:
    events = fraud.generate(size.events, SEED)
    given = rules(max(2, RULES // size.rules))
    say("compiling")
    ready: dict[str, tuple[list[CompiledRules], float]] = {}
    sets = {SHARED: [given], ALONE: [given.select([name]) for name in given]}
    for way, parts in sets.items():
        begin = time.process_time()
        compiled = [compile_rules(part.templates, events.schema, OPTIONS) for part in parts]
        ready[way] = compiled, time.process_time() - begin
    matching = dict.fromkeys(WAYS, float("inf"))
    tables: dict[str, pa.Table] = {}
    for turn in range(1 + size.repeats):
        for way, (compiled, _) in ready.items():
            say(f"{way}, turn {turn}")
            begin = time.process_time()
            tables[way] = pa.concat_tables(_matched(part, events) for part in compiled)
            if turn:  # the first has loaded the kernels
                matching[way] = min(matching[way], time.process_time() - begin)
    check(tables)
    ways = {
        way: Way(sum(len(part.alone) for part in compiled), seconds, matching[way])
        for way, (compiled, seconds) in ready.items()
    }
    return Found(len(given), events.num_rows, tables[SHARED].num_rows, ways)


def check(tables: Mapping[str, pa.Table]) -> None:
    """Both ways have the same rows."""
    shared, alone = (Counter(map(str, tables[way].to_pylist())) for way in WAYS)
    for row in (shared - alone) + (alone - shared):
        raise WrongAnswer(f"one query for all and one by one differ in {row}")
    if not shared:
        raise WrongAnswer("no rule finds anything")


def _matched(compiled: CompiledRules, events: pa.Table) -> pa.Table:
    schema = alert_schema(compiled.rules, events.schema.field(OPTIONS.time).type)
    return pa.Table.from_batches(run(compiled, events, schema, OPTIONS), schema)


# ── to keep ──


def verdicts(found: Found) -> Iterator[Verdict]:
    text = f"one query for {found.rules} rules is at least 10 times as fast as {found.rules}"
    yield Verdict(text, found.times >= 10, f"{found.times:.0f} ×", must=True)


def record(found: Found, quick: bool) -> Record:
    rows = [
        [
            name,
            f"{way.queries}",
            f"{way.compiling:.2f}",
            f"{way.matching:.2f}",
            short(found.events / way.matching),
        ]
        for name, way in found.ways.items()
    ]
    head = ["way", "queries", "s to compile", "s to match", "events per second"]
    title = f"{found.rules} rules, {found.events:,} events, {found.matches:,} matches"
    return {
        **provenance(quick),
        "name": "closures",
        "title": "A template with a closure and an aggregate",
        "tables": [{"title": title, "head": head, "rows": rows}],
        "claims": [asdict(verdict) for verdict in verdicts(found)],
        "ways": {
            name: {
                "queries": way.queries,
                "compiling": round(way.compiling, 3),
                "matching": round(way.matching, 3),
            }
            for name, way in found.ways.items()
        },
    }
