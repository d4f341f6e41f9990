"""What families of rules take, as a table, as written rules and mixed, and how that grows with the
number of rules.

Seconds are of processor time and include compiling the set; a first run on a few events has loaded
the kernels. Before anything is timed, the rules of a small set are compared with each rule alone,
and the ways of a family have to find the same.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median

import pyarrow as pa

from benchmarks.measure import WrongAnswer
from benchmarks.report import Record, Verdict, provenance, short
from benchmarks.rules.families import FAMILIES, WAYS, Family, all_families, rules_of
from benchmarks.rules.figures import Say
from cepheid.engine.attribution.json_rows import RULE
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules
from cepheid.workloads import fraud

OPTIONS = Options("ts", type="kind", tie="id")
SEED = 1
WARM_UP = 2_000
CHECKED_RULES, CHECKED_EVENTS = 12, 6_000
MOST_TIMES, MOST_APART = 20.0, 1.5
VELOCITY_RATE = 20_000
UNMEASURED = 0.1
"""Seconds below which the ways of a family aren't compared: most of that is fixed."""


@dataclass(frozen=True)
class Scale:
    """How many rules a family has, the sizes of the curve, the events of both, how many rules of
    velocity run, and how many a set has that changes."""

    rules: int = 500
    events: int = 100_000
    curve: tuple[int, ...] = (33, 330, 1_000, 3_300, 10_000, 20_000, 100_000)
    velocity: int = 10_000
    changed: int = 100_000


FULL = Scale()
QUICK = Scale(12, 3_000, (33, 66), 50, 200)
VELOCITY, CHANGED = FAMILIES["three of a kind"], FAMILIES["pair"]


@dataclass(frozen=True)
class FamilyPoint:
    """Seconds of one rule (the median of a few), and of all by way."""

    one: float
    ways: Mapping[str, float]
    matches: int

    @property
    def times(self) -> float:
        """How many times one rule the slowest way takes."""
        return max(self.ways.values()) / self.one

    @property
    def apart(self) -> float:
        """How many times the table the written rules take."""
        return self.ways["written"] / self.ways["table"]


@dataclass(frozen=True)
class CurvePoint:
    rules: int
    compiling: float
    matching: float
    matches: int


@dataclass(frozen=True)
class ChangePoint:
    """Seconds of compiling a set, of adding one rule to it, and of taking one out."""

    rules: int
    whole: float
    added: float
    removed: float


@dataclass(frozen=True)
class Measured:
    scale: Scale
    families: Mapping[str, FamilyPoint]
    curve: Sequence[CurvePoint]
    velocity: CurvePoint
    change: ChangePoint


def measure(
    quick: bool, say: Say, scale: Scale | None = None, families: Sequence[Family] | None = None
) -> Measured:
    chosen = scale or (QUICK if quick else FULL)
    events = fraud.generate(chosen.events, SEED)
    points = {}
    for family in FAMILIES.values() if families is None else families:
        say(f"{family.name}: checking")
        check(family)
        say(f"{family.name}: {chosen.rules} rules")
        points[family.name] = point_of(family, chosen.rules, events)
    curve = []
    for count in chosen.curve:
        say(f"{count:,} rules of all families")
        curve.append(curve_point(partial(all_families, "mixed", count, SEED), events))
    say(f"{chosen.velocity:,} rules of {VELOCITY.name}")
    velocity = curve_point(partial(VELOCITY.as_table, chosen.velocity, SEED), events)
    say("a rule more, and one less")
    change = change_point(CHANGED.as_table(chosen.changed, SEED), events.schema)
    return Measured(chosen, points, curve, velocity, change)


def check(family: Family, rules: int = CHECKED_RULES, events: int = CHECKED_EVENTS) -> int:
    """How many matches a small set has: every rule as many as by itself, however it is written."""
    data = fraud.generate(events, SEED, days=4, cards=events // 120, fraud=0.01)
    alone: Counter[str] = Counter()
    for name, rule in family.as_table(rules, SEED).items():
        count = rule.match(data, OPTIONS).num_rows
        alone.update({name: count} if count else {})
    for way in WAYS:
        found = counted(rules_of(family, way, rules, SEED).match(data, OPTIONS))
        if found != alone:
            wrong = min(n for n in found.keys() | alone if found[n] != alone[n])
            raise WrongAnswer(
                f"{wrong}, {way}: {found[wrong]} matches, and {alone[wrong]} by itself"
            )
    if not alone:
        raise WrongAnswer(f"{family.name}: no rule finds anything")
    return alone.total()


def counted(alerts: pa.Table) -> Counter[str]:
    return Counter(alerts[RULE].to_pylist())


def point_of(family: Family, rules: int, events: pa.Table) -> FamilyPoint:
    ones = [seconds(partial(rules_of, family, "table", 1, SEED + n), events)[0] for n in range(3)]
    ways, found = {}, {}
    for way in WAYS:
        ways[way], alerts = seconds(partial(rules_of, family, way, rules, SEED), events)
        found[way] = counted(alerts)
    for way in WAYS[1:]:
        if found[way] != found[WAYS[0]]:
            raise WrongAnswer(f"{family.name}: {WAYS[0]} and {way} find other matches")
    return FamilyPoint(median(ones), ways, found[WAYS[0]].total())


def seconds(made: Callable[[], RuleSet], events: pa.Table) -> tuple[float, pa.Table]:
    """The processor time of compiling and matching, and the alerts. A set keeps what it compiled,
    so the one that is measured is new."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what single rules can never match
        made().match(events.slice(0, WARM_UP), OPTIONS)
        rules = made()
        begin = time.process_time()
        alerts = rules.match(events, OPTIONS)
        return time.process_time() - begin, alerts


def curve_point(made: Callable[[], RuleSet], events: pa.Table) -> CurvePoint:
    rules = made()
    begin = time.process_time()
    compile_rules(rules.templates, events.schema, OPTIONS, deals=True, ends=True)
    compiling = time.process_time() - begin
    total, alerts = seconds(made, events)
    return CurvePoint(len(rules), compiling, max(total - compiling, 0.0), alerts.num_rows)


def change_point(rules: RuleSet, columns: pa.Schema) -> ChangePoint:
    """The rule that comes is written, and has been compiled before: what is measured is the set."""
    names = [f"{CHANGED.name} {n}" for n in range(2)]
    more = CHANGED.written(1, SEED + 1)
    new = RuleSet.of({"new": more[names[0]].query})
    new.compile(columns, OPTIONS)
    begin = time.process_time()
    ready = rules.compile(columns, OPTIONS)
    whole = time.process_time()
    (ready | new).compile(columns, OPTIONS)
    added = time.process_time()
    ready.without(names[1]).compile(columns, OPTIONS)
    removed = time.process_time()
    return ChangePoint(len(rules), whole - begin, added - whole, removed - added)


# ── to keep ──


def verdicts(measured: Measured) -> Iterator[Verdict]:
    points = measured.families
    slowest = max(points, key=lambda name: points[name].times)
    text = f"no family takes more than {MOST_TIMES:g} times as long as one rule"
    detail = f"{points[slowest].times:.0f} × ({slowest})"
    yield Verdict(text, points[slowest].times <= MOST_TIMES, detail)
    long = [name for name in points if max(points[name].ways.values()) > UNMEASURED]
    if long:
        widest = max(long, key=lambda name: points[name].apart)
        text = f"written rules take at most {MOST_APART:g} times as long as a table"
        detail = f"{points[widest].apart:.1f} × ({widest})"
        yield Verdict(text, points[widest].apart <= MOST_APART, detail)
    reached = measured.scale.events / measured.velocity.matching
    text = f"{measured.velocity.rules:,} velocity rules run at {VELOCITY_RATE:,} events/s"
    yield Verdict(text, reached >= VELOCITY_RATE, f"{short(reached)} events/s")
    change = measured.change
    text = f"one of {change.rules:,} rules comes or goes in a tenth of the time of all"
    longest = max(change.added, change.removed)
    yield Verdict(text, 10 * longest <= change.whole, f"{1000 * longest:.0f} ms")
    for count, most, rate in ((20_000, 10.0, 20_000), (100_000, None, 5_000)):
        for point in measured.curve:
            if point.rules == count:
                reached = measured.scale.events / point.matching
                text = f"{count:,} rules run at {rate:,} events/s"
                yield Verdict(text, reached >= rate, f"{short(reached)} events/s")
                if most is not None:
                    text = f"{count:,} rules compile in {most:g} s"
                    yield Verdict(text, point.compiling <= most, f"{point.compiling:.1f} s")


def record(measured: Measured, quick: bool) -> Record:
    events, change = measured.scale.events, measured.change
    return {
        **provenance(quick),
        "name": "families",
        "title": "Families of rules of a detection team",
        "tables": [
            {
                "title": f"CPU seconds, {measured.scale.rules} rules, {events:,} events",
                "head": ["family", "one rule", *WAYS, "times one", "matches"],
                "rows": [
                    [
                        name,
                        f"{point.one:.3f}",
                        *(f"{point.ways[way]:.2f}" for way in WAYS),
                        f"{point.times:.0f}",
                        f"{point.matches:,}",
                    ]
                    for name, point in measured.families.items()
                ],
            },
            {
                "title": f"rules of all families, {events:,} events",
                "head": ["rules", "s to compile", "s to match", "events per second", "matches"],
                "rows": [
                    [f"{point.rules:,}", *_of_curve(point, events)] for point in measured.curve
                ],
            },
            {
                "title": f"{VELOCITY.name}, {events:,} events",
                "head": ["rules", "s to compile", "s to match", "events per second", "matches"],
                "rows": [[f"{measured.velocity.rules:,}", *_of_curve(measured.velocity, events)]],
            },
            {
                "title": "ms to change a compiled set",
                "head": ["rules", "all of them", "one more", "one less"],
                "rows": [
                    [
                        f"{change.rules:,}",
                        *(f"{1000 * s:.0f}" for s in (change.whole, change.added, change.removed)),
                    ]
                ],
            },
        ],
        "claims": [asdict(verdict) for verdict in verdicts(measured)],
        "families": {name: asdict(point) for name, point in measured.families.items()},
        "curve": [asdict(point) for point in measured.curve],
        "velocity": asdict(measured.velocity),
        "change": asdict(change),
    }


def _of_curve(point: CurvePoint, events: int) -> list[str]:
    rate = short(events / point.matching)
    return [f"{point.compiling:.2f}", f"{point.matching:.2f}", rate, f"{point.matches:,}"]
