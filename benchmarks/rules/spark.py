"""A fraud desk's rules on Spark, against the most expensive of them alone.

Rules and single rules take turns in one session, so that what else the machine does meets all; the
processor time of all processes is measured beside the time on the wall. Of each, the fastest turn
counts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial, reduce
from operator import or_
from typing import Any

from benchmarks.measure import Timing, WrongAnswer
from benchmarks.pipeline import event_file, fastest, processor_seconds
from benchmarks.report import Record, Verdict, provenance, short
from benchmarks.rules import desk
from cepheid.options import Options
from cepheid.rules import Rule, RuleSet

Say = Callable[[str], None]

EVENTS, WARM_UP, TURNS = 5_000_000, 100_000, 3
CORES = 2
MOST = 4.0
OPTIONS = Options("ts", type="kind", tie="id")
ALL = "all"


def rule_set() -> RuleSet:
    return reduce(or_, map(desk.rule_set, desk.TEMPLATES))


def measure(quick: bool, say: Say, turns: int = TURNS) -> Record:
    from cepheid.spark.start.session import PANDAS_NOTICE, local_session

    warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
    rows = EVENTS // 10 if quick else EVENTS
    say("making events")
    path, few = event_file(rows), event_file(WARM_UP)
    answers = {name: desk.answers(name, path) for name in desk.TEMPLATES}
    rules = rule_set()
    spark = local_session(f"local[{CORES}]", app="cepheid benchmarks")
    try:
        events, prefix = spark.read.parquet(str(path)), spark.read.parquet(str(few))
        check(rules.match(events, OPTIONS), answers)
        for name, run in runs(rules).items():
            say(f"warming up: {name}")
            run(prefix)
        timings: dict[str, list[Timing]] = {}
        for turn in range(1 if quick else turns):
            for name, run in runs(rules).items():
                say(f"{name}, turn {turn + 1}")
                cpu, wall = processor_seconds(), time.perf_counter()
                found = run(events)
                timing = Timing(processor_seconds() - cpu, time.perf_counter() - wall)
                timings.setdefault(name, []).append(timing)
                expect(name, found, answers)
        plan = str(rules.explain(events, OPTIONS))
    finally:
        spark.stop()
    best = {name: fastest(turns) for name, turns in timings.items()}
    return record(best, answers, rows, plan, quick)


def runs(rules: RuleSet) -> dict[str, Callable[[Any], int]]:
    """What is measured, each a number of matches: all rules, and of each template the rule that
    most events satisfy, by itself."""
    found: dict[str, Callable[[Any], int]] = {
        ALL: lambda events: int(rules.match(events, OPTIONS).count())
    }
    for name in desk.TEMPLATES:
        found[desk.widest(name)] = partial(_alone, rules[desk.widest(name)])
    return found


def _alone(rule: Rule, events: Any) -> int:
    return int(rule.match(events, OPTIONS).count())


def check(found: Any, answers: Mapping[str, Mapping[str, int]]) -> None:
    """Whether every rule has as many matches as in SQL."""
    counted = {row["rule"]: row["count"] for row in found.groupBy("rule").count().collect()}
    expected = {rule: count for counts in answers.values() for rule, count in counts.items()}
    if counted != expected:
        wrong = {r for r in counted.keys() | expected if counted.get(r) != expected.get(r)}
        raise WrongAnswer(f"{len(wrong)} rules find other matches, {min(wrong)} among them")


def expect(name: str, found: int, answers: Mapping[str, Mapping[str, int]]) -> None:
    expected = (
        sum(sum(counts.values()) for counts in answers.values())
        if name == ALL
        else answers[name.rpartition("-")[0]].get(name, 0)
    )
    if found != expected:
        raise WrongAnswer(f"{name}: {found:,} matches where there are {expected:,}")


def verdicts(best: Mapping[str, Timing], rules: int) -> Iterator[Verdict]:
    alone = [timing for name, timing in best.items() if name != ALL]
    cpu = best[ALL].cpu / max(t.cpu for t in alone)
    wall = best[ALL].wall / max(t.wall for t in alone)
    text = f"{rules:,} rules cost at most {MOST:g} times as much as the most expensive one"
    detail = f"CPU {cpu:.2f} ×, wall {wall:.2f} ×"
    yield Verdict(text, max(cpu, wall) <= MOST, detail, must=True)
    each = sum(t.cpu for t in alone) / len(alone) * rules / best[ALL].cpu
    yield Verdict("and less than a hundredth of all one by one", each >= 100, f"CPU 1/{each:,.0f}")


def record(
    best: Mapping[str, Timing],
    answers: Mapping[str, Mapping[str, int]],
    events: int,
    plan: str,
    quick: bool,
) -> Record:
    rules = sum(len(desk.TEMPLATES[name].rows) for name in desk.TEMPLATES)
    matches = {ALL: sum(sum(counts.values()) for counts in answers.values())}
    matches |= {rule: n for counts in answers.values() for rule, n in counts.items()}
    rows = [
        [
            f"{rules:,} rules" if name == ALL else f"{name}, alone",
            f"{matches.get(name, 0):,}",
            f"{timing.cpu:.1f} ({timing.wall:.1f})",
            short(events / timing.cpu),
            f"{best[ALL].cpu / timing.cpu:.2f} ({best[ALL].wall / timing.wall:.2f})",
        ]
        for name, timing in best.items()
    ]
    head = ["", "matches", "CPU (wall) s", "events a CPU second", "all rules cost, × (wall)"]
    title = f"{short(events)} events, local[{CORES}]"
    return {
        **provenance(quick),
        "name": "spark",
        "title": "A fraud desk's rules on Spark",
        "tables": [{"title": title, "head": head, "rows": rows}],
        "claims": [asdict(verdict) for verdict in verdicts(best, rules)],
        "plan": plan.splitlines(),
        "figures": {name: {"cpu": t.cpu, "wall": t.wall} for name, t in best.items()},
    }
