"""Figures 16 and 17, and what the paper and our own targets say of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean

from benchmarks.report import Record, provenance, short
from benchmarks.rules.running import OPTIONS, Load, Point, Run, load, measure
from cepheid.rules import RuleSet
from cepheid.workloads.cayuga import TEMPLATES, Parameters

Say = Callable[[str], None]
WAYS = ("merged and indexed", "indexed, not merged", "one by one")
MERGED, APART, ALONE = WAYS
COUNTS = (100_000, 200_000, 400_000)


@dataclass(frozen=True)
class Size:
    """Rules and events are divided by these for a quick look; `sample` is how many rules are run
    one by one; `answered` of how many the answer is looked up, where that is much work."""

    rules: int = 1
    events: int = 100_000
    repeats: int = 5
    sample: int = 20
    answered: int = 10_000


FULL = Size()
QUICK = Size(rules=50, events=10_000, repeats=1, sample=3, answered=500)


@dataclass(frozen=True)
class Verdict:
    """A claim, whether it holds, the figures that say so, and whether it must."""

    text: str
    holds: bool
    detail: str
    must: bool = False


@dataclass(frozen=True)
class Sweep:
    """A figure: points by curve and by what varies."""

    name: str
    title: str
    x: str
    points: Mapping[tuple[str, float], Point]

    @property
    def curves(self) -> list[str]:
        return list(dict.fromkeys(curve for curve, _ in self.points))

    @property
    def settings(self) -> list[float]:
        return list(dict.fromkeys(x for _, x in self.points))

    def rates(self, curve: str) -> list[float]:
        return [self.points[curve, x].rate for x in self.settings]


# ── figure 16 ──


def templates(size: Size, say: Say) -> Sweep:
    settings = {float(n // size.rules): (n, Parameters()) for n in COUNTS}
    title = "Cayuga, figure 16(a): number of rules"
    return _swept("templates", title, "rules", settings, size, say)


def zipf(size: Size, say: Say) -> Sweep:
    settings = {z: (200_000, Parameters((z, 1.0, 0.8))) for z in (0.8, 1.0, 1.2, 1.4)}
    title = "Cayuga, figure 16(b): similarity of rules"
    return _swept("zipf", title, "Zipf's exponent, first step", settings, size, say)


def selectivity(size: Size, say: Say) -> Sweep:
    shares = (0.5, 0.6, 0.7, 0.8, 0.9)
    settings = {s: (200_000, Parameters(selectivity=s)) for s in shares}
    title = "Cayuga, figure 16(c): selectivity of ranges"
    return _swept("selectivity", title, "selectivity of a range", settings, size, say)


def counted(size: Size, say: Say) -> Sweep:
    """Rules whose first step is as common as the paper's own counts say."""
    settings = {float(n // size.rules): (n, Parameters(first_equalities=1)) for n in COUNTS}
    few = replace(size, repeats=1)
    title = "Cayuga, figure 16(a), with a common first step"
    return _swept("counted", title, "rules", settings, few, say, ("Filter",), size.answered)


def _swept(
    name: str,
    title: str,
    x: str,
    settings: Mapping[float, tuple[int, Parameters]],
    size: Size,
    say: Say,
    curves: Sequence[str] = tuple(TEMPLATES),
    answered: int | None = None,
) -> Sweep:
    points: dict[tuple[str, float], Point] = {}
    with ExitStack() as stack:
        loads: dict[float, Load] = {}
        for setting, (rules, parameters) in settings.items():
            say(f"{name} {setting:g}: rules and answers")
            given = load(rules // size.rules, size.events, parameters, answered)
            loads[setting] = stack.enter_context(given)
        for curve in curves:
            say(f"{name}: {curve}")
            runs = {(curve, setting): Run(curve, given) for setting, given in loads.items()}
            points |= measure(runs, size.repeats)
    return Sweep(name, title, x, points)


# ── figure 17 ──


def sharing(size: Size, say: Say) -> Sweep:
    points: dict[tuple[str, float], Point] = {}
    for rules in (n // size.rules for n in (10_000, 20_000, 40_000)):
        with load(rules, size.events, Parameters()) as given:
            say(f"{rules:,} rules")
            ways = {
                (MERGED, rules): Run("Filter", given),
                (APART, rules): Run("Filter", given, True),
            }
            points |= measure(ways, size.repeats)
            points[ALONE, rules] = one_by_one(given, size.sample)
    title = "Cayuga, figure 17: what sharing and indexes bring"
    return Sweep("sharing", title, "rules", points)


def one_by_one(given: Load, sample: int) -> Point:
    """Some of the rules, each as a query of its own; the time of all is taken to be that of these,
    times as many. Each is run twice, and the second time counts: kernels are compiled then."""
    rules = RuleSet.from_template("Filter", TEMPLATES["Filter"], given.rules)
    chosen = list(rules)[:: max(1, len(rules) // sample)][:sample]
    seconds, matches = [], 0
    for name in chosen:
        rules[name].match(given.events, OPTIONS)
        begin = time.process_time()
        matches += rules[name].match(given.events, OPTIONS).num_rows
        seconds.append(time.process_time() - begin)
    total = mean(seconds) * len(rules)
    steps = (len(rules),) * 3
    return Point(len(rules), given.events.num_rows, total, matches, steps, 0.0, 0, 0.0)


# ── claims ──


def verdicts(sweep: Sweep) -> Iterator[Verdict]:
    match sweep.name:
        case "templates":
            yield at_least(sweep, "Filter", sweep.settings[0], 10_000)
            yield at_least(sweep, "Filter", sweep.settings[-1], 3_000)
            yield above(sweep, 1_000)
            yield sublinear(sweep)
            yield alike(sweep, "LinearStat", "LinearDyn")
            yield ordered(sweep)
        case "zipf":
            yield rising(sweep, "the more alike the rules are, the higher is the rate")
            yield fewer_nodes(sweep)
        case "selectivity":
            yield falling(sweep, "the more values a range holds, the lower is the rate")
        case "counted":
            yield above(sweep, 1_000)
            yield sublinear(sweep)
        case "sharing":
            yield times(sweep, MERGED, ALONE, 100)
            yield more(sweep)


def at_least(sweep: Sweep, curve: str, x: float, rate: float) -> Verdict:
    found = sweep.points[curve, x].rate
    text = f"{x:,.0f} {curve} rules: at least {rate:,} events per second"
    return Verdict(text, found >= rate, f"{found:,.0f}", must=True)


def above(sweep: Sweep, rate: float) -> Verdict:
    found = min(point.rate for point in sweep.points.values())
    text = f"as in the paper, all rates are above {rate:,} events per second"
    return Verdict(text, found > rate, f"{found:,.0f}", must=True)


def sublinear(sweep: Sweep) -> Verdict:
    """The cost of an event, and the number of rules, from the first setting to the last."""
    first, last = sweep.settings[0], sweep.settings[-1]
    grown = {c: sweep.points[c, first].rate / sweep.points[c, last].rate for c in sweep.curves}
    detail = ", ".join(f"{curve} {factor:.1f} ×" for curve, factor in grown.items())
    text = f"the cost of an event grows less than the rules do ({last / first:g} ×)"
    return Verdict(text, max(grown.values()) < last / first, detail, must=True)


def alike(sweep: Sweep, one: str, other: str) -> Verdict:
    ratios = [a / b for a, b in zip(sweep.rates(one), sweep.rates(other), strict=True)]
    text = f"{one} and {other} are almost the same (within a fifth)"
    holds = all(0.8 <= ratio <= 1.25 for ratio in ratios)
    return Verdict(text, holds, ", ".join(f"{ratio:.2f}" for ratio in ratios))


def ordered(sweep: Sweep) -> Verdict:
    """The paper's curves from the top to the bottom, with a twentieth for chance."""
    curves = ("LinearStat", "Filter", "NonDeterministic", "NonDeterministicAgg")
    worst = {
        f"{a} and {b}": min(x / y for x, y in zip(sweep.rates(a), sweep.rates(b), strict=True))
        for a, b in pairwise(curves)
    }
    detail = ", ".join(f"{pair} {ratio:.2f} ×" for pair, ratio in worst.items())
    text = "the more complex a template is, the lower is the rate"
    return Verdict(text, min(worst.values()) > 0.95, detail)


def rising(sweep: Sweep, text: str) -> Verdict:
    grown = {c: sweep.rates(c)[-1] / sweep.rates(c)[0] for c in sweep.curves}
    detail = ", ".join(f"{curve} {factor:.2f} ×" for curve, factor in grown.items())
    return Verdict(text, min(grown.values()) > 1, detail)


def falling(sweep: Sweep, text: str) -> Verdict:
    fallen = {c: sweep.rates(c)[0] / sweep.rates(c)[-1] for c in sweep.curves}
    square = (sweep.settings[-1] / sweep.settings[0]) ** 2
    detail = ", ".join(f"{curve} {factor:.2f} ×" for curve, factor in fallen.items())
    return Verdict(text, min(fallen.values()) > 1, f"{detail}; the square is {square:.2f}")


def fewer_nodes(sweep: Sweep) -> Verdict:
    nodes = [sweep.points["Filter", x].levels[0] for x in sweep.settings]
    text = "and the fewer are the nodes of the first level"
    holds = all(one > other for one, other in pairwise(nodes))
    return Verdict(text, holds, ", ".join(f"{count:,}" for count in nodes), must=True)


def times(sweep: Sweep, better: str, worse: str, factor: float) -> Verdict:
    first = sweep.settings[0]
    found = sweep.points[better, first].rate / sweep.points[worse, first].rate
    text = f"{first:,.0f} rules {better} are at least {factor:g} times as fast as {worse}"
    return Verdict(text, found >= factor, f"{found:,.0f} ×", must=True)


def more(sweep: Sweep) -> Verdict:
    last = sweep.settings[-1]
    merging = sweep.points[MERGED, last].rate / sweep.points[APART, last].rate
    indexing = sweep.points[APART, last].rate / sweep.points[ALONE, last].rate
    text = "as in the paper, indexes bring most, and merging little"
    detail = f"{indexing:,.0f} ×, then {merging:.2f} ×"
    return Verdict(text, indexing > merging, detail)


# ── to keep ──


def record(sweep: Sweep, quick: bool) -> Record:
    tables = [_rates(sweep)]
    if sweep.name != "sharing":
        tables.append(_graphs(sweep))
    return {
        **provenance(quick),
        "name": sweep.name,
        "title": sweep.title,
        "x": sweep.x,
        "tables": tables,
        "claims": [
            {"text": v.text, "must": v.must, "holds": v.holds, "detail": v.detail}
            for v in verdicts(sweep)
        ],
        "points": [
            {
                "curve": curve,
                "x": x,
                "rules": point.rules,
                "events": point.events,
                "seconds": round(point.seconds, 4),
                "rate": round(point.rate, 1),
                "matches": point.matches,
                "levels": list(point.levels),
                "predicates": round(point.predicates, 2),
                "instances": point.instances,
                "compiling": round(point.compiling, 2),
            }
            for (curve, x), point in sweep.points.items()
        ],
    }


def _rates(sweep: Sweep) -> Record:
    rows = [
        [f"{x:,g}", *(short(sweep.points[curve, x].rate) for curve in sweep.curves)]
        for x in sweep.settings
    ]
    return {"title": "events per second", "head": [sweep.x, *sweep.curves], "rows": rows}


def _graphs(sweep: Sweep) -> Record:
    """What there is for Filter rules, and what happens."""
    head = [sweep.x, "nodes", "predicates of an event", "instances", "matches", "s to compile"]
    points = [(x, sweep.points["Filter", x]) for x in sweep.settings]
    rows = [
        [
            f"{x:,g}",
            " + ".join(short(count) for count in p.levels),
            f"{p.predicates:.1f}",
            f"{p.instances:,}",
            f"{p.matches:,}",
            f"{p.compiling:.1f}",
        ]
        for x, p in points
    ]
    return {"title": "the Filter rules", "head": head, "rows": rows}


SWEEPS: Mapping[str, Callable[[Size, Say], Sweep]] = {
    "templates": templates,
    "zipf": zipf,
    "selectivity": selectivity,
    "counted": counted,
    "sharing": sharing,
}
