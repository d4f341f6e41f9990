"""Written rules that begin alike and end differently: joined where that pays, and each alone.

Five beginnings that no merged automaton takes (two events in any order, groups), and eight ends for
each of them; and five of these rules that have no more than classes of events in common. Both ways
take all rules over the same events, and must find the same.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

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

BEGINNINGS = {
    "refused": ("(login a & decline b)", "a.country <> b.country"),
    "changed": ("(pin_change a & decline b)", "b.amount > 50"),
    "abroad": ("(purchase a & purchase b)", "a.amount < 30 AND b.amount > 90"),
    "spree": ("login a ; purchase+ g ; purchase b", "g.amount < 50 AND b.amount > 100"),
    "tried": ("pin_change a ; decline+ g ; purchase b", "b.amount > 60"),
}
"""By name, patterns with events a and b, and the conditions on them."""

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
ALIKE, UNLIKE = "that begin alike", "that read the same events"
UNLIKE_RULES = (
    "refused-more", "changed-large", "abroad-back", "spree-declined", "tried-again",
)  # fmt: skip
MORE_EVENTS = 4


@dataclass(frozen=True)
class Way:
    """Seconds are of processor time; those to match are of the fastest turn."""

    queries: int
    compiling: float
    matching: float


@dataclass(frozen=True)
class Found:
    """What both ways find with a set of rules, and what each of them takes."""

    which: str
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


def measure(size: Size, say: Say) -> tuple[Found, ...]:
    events = fraud.generate(MORE_EVENTS * size.events, SEED)
    every = rules()
    sets = {ALIKE: every, UNLIKE: every.select(UNLIKE_RULES)}
    return tuple(_measured(which, given, events, size, say) for which, given in sets.items())


def _measured(which: str, given: RuleSet, events: pa.Table, size: Size, say: Say) -> Found:
    ready: dict[str, tuple[list[CompiledRules], float]] = {}
    sets = {JOINED: [given], ALONE: [given.select([name]) for name in given]}
    for way, parts in sets.items():
        begin = time.process_time()
        compiled = [compile_rules(part.templates, events.schema, OPTIONS) for part in parts]
        ready[way] = compiled, time.process_time() - begin
    matching = dict.fromkeys(WAYS, float("inf"))
    tables: dict[str, pa.Table] = {}
    for turn in range(1 + size.repeats):
        for way, (compiled, _) in ready.items():
            say(f"rules {which}, {way}, turn {turn}")
            begin = time.process_time()
            tables[way] = pa.concat_tables(_matched(part, events) for part in compiled)
            if turn:  # the first has loaded the kernels
                matching[way] = min(matching[way], time.process_time() - begin)
    check(tables)
    ways = {
        way: Way(sum(len(part.runs) for part in compiled), seconds, matching[way])
        for way, (compiled, seconds) in ready.items()
    }
    return Found(which, len(given), events.num_rows, tables[JOINED].num_rows, ways)


def check(tables: Mapping[str, pa.Table]) -> None:
    """Both ways have the same rows."""
    joined, alone = (Counter(map(str, tables[way].to_pylist())) for way in WAYS)
    for row in (joined - alone) + (alone - joined):
        raise WrongAnswer(f"joined and alone differ in {row}")
    if not joined:
        raise WrongAnswer("no rule finds anything")


def _matched(compiled: CompiledRules, events: pa.Table) -> pa.Table:
    schema = alert_schema(compiled.rules, events.schema.field(OPTIONS.time).type)
    return pa.Table.from_batches(run(compiled, events, schema, OPTIONS), schema)


# ── to keep ──


def verdicts(found: Iterable[Found]) -> Iterator[Verdict]:
    for one in found:
        times = f"{one.times:.1f} ×"
        if one.which == ALIKE:
            text = f"{one.rules} rules {one.which} are at least 2 times as fast joined as alone"
            yield Verdict(text, one.times >= 2, times)
        else:
            text = f"{one.rules} rules {one.which} are no slower joined than alone"
            yield Verdict(text, one.times >= 0.95, times)


def record(found: tuple[Found, ...], quick: bool) -> Record:
    head = ["way", "queries", "s to compile", "s to match", "events per second"]
    tables = [
        {
            "title": f"{one.rules} rules {one.which}, {one.events:,} events, "
            f"{one.matches:,} matches",
            "head": head,
            "rows": [
                [
                    name,
                    f"{way.queries}",
                    f"{way.compiling:.2f}",
                    f"{way.matching:.2f}",
                    short(one.events / way.matching),
                ]
                for name, way in one.ways.items()
            ],
        }
        for one in found
    ]
    return {
        **provenance(quick),
        "name": "joined",
        "title": "Written rules that have parts in common",
        "tables": tables,
        "claims": [asdict(verdict) for verdict in verdicts(found)],
        "sets": {
            one.which: {
                name: {
                    "queries": way.queries,
                    "compiling": round(way.compiling, 3),
                    "matching": round(way.matching, 3),
                }
                for name, way in one.ways.items()
            }
            for one in found
        },
    }
