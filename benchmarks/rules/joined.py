"""Written rules that begin alike and end differently: joined where that pays, and each alone.

Five beginnings that no merged automaton takes (two events in any order, groups), eight ends for each
of them. Both ways take all rules over the same events, and must find the same.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

import pyarrow as pa

from benchmarks.measure import WrongAnswer
from benchmarks.report import Record, Verdict, provenance, short
from benchmarks.rules.figures import Say, Size
from benchmarks.rules.running import SEED
from cepheid.engine.merged.found import found_schema
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compiling import Compiled, compile_rules
from cepheid.rules.matching import run
from cepheid.workloads import fraud

BEGINNINGS = {
    "refused": ("(login a & decline b)", "a.country <> b.country"),
    "changed": ("(pin_change a & decline b)", "b.amount > 50"),
    "abroad": ("(purchase a & purchase b)", "a.amount < 30 AND b.amount > 90"),
    "spree": ("login a ; purchase+ g ; purchase b", "g.amount < 50 AND b.amount > 100"),
    "tried": ("pin_change a ; decline+ g ; purchase b", "b.amount > 60"),
}
"""By name, patterns with events a and b, and what is asked of them."""

ENDS = {
    "more": ("purchase z", "z.amount > b.amount"),
    "large": ("purchase z", "z.amount > 250"),
    "back": ("purchase z", "z.country <> a.country"),
    "declined": ("decline z", "z.amount > 100"),
    "again": ("login z", "z.country = a.country"),
    "reset": ("pin_change z", "z.country <> a.country"),
    "unseen": ("!login n ; purchase z", "z.amount > 150"),
    "kept": ("!decline n ; login z", "n.amount > 80"),
}
OPTIONS = Options("ts", type="kind", tie="id")
WAYS = ("joined", "each alone")
JOINED, ALONE = WAYS


@dataclass(frozen=True)
class Way:
    """Seconds are of processor time; those to match are of the fastest turn."""

    runs: int
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
        return self.ways[ALONE].matching / self.ways[JOINED].matching


def rules() -> RuleSet:
    return RuleSet.of(
        {
            f"{begin}-{end}": f"PATTERN {pattern} ; {last} WHERE [card] AND {asked} AND {too} "
            "WITHIN 5 days RETURN a.card, a.id AS first, z.id AS last"
            for begin, (pattern, asked) in BEGINNINGS.items()
            for end, (last, too) in ENDS.items()
        }
    )


def measure(size: Size, say: Say) -> Found:
    events = fraud.generate(size.events, SEED)
    given = rules()
    ready: dict[str, tuple[Compiled, float]] = {}
    begin = time.process_time()
    compiled = compile_rules(given.templates, events.schema, OPTIONS)
    ready[JOINED] = compiled, time.process_time() - begin
    ready[ALONE] = replace(compiled, joints=()), time.process_time() - begin
    matching = dict.fromkeys(WAYS, float("inf"))
    tables: dict[str, pa.Table] = {}
    for turn in range(1 + size.repeats):
        for way, (compiled, _) in ready.items():
            say(f"{way}, turn {turn}")
            begin = time.process_time()
            tables[way] = _matched(compiled, events)
            if turn:  # the first has loaded the kernels
                matching[way] = min(matching[way], time.process_time() - begin)
    check(tables)
    ways = {
        way: Way(len(compiled.runs), seconds, matching[way])
        for way, (compiled, seconds) in ready.items()
    }
    return Found(len(given), events.num_rows, tables[JOINED].num_rows, ways)


def check(tables: Mapping[str, pa.Table]) -> None:
    """Both ways have the same rows."""
    joined, alone = (Counter(map(str, tables[way].to_pylist())) for way in WAYS)
    for row in (joined - alone) + (alone - joined):
        raise WrongAnswer(f"joined and alone differ in {row}")
    if not joined:
        raise WrongAnswer("no rule finds anything")


def _matched(compiled: Compiled, events: pa.Table) -> pa.Table:
    schema = found_schema(compiled.rules, events.schema.field(OPTIONS.time).type)
    return pa.Table.from_batches(run(compiled, events, schema, OPTIONS), schema)
