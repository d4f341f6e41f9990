"""Figures 16 and 17 of the paper."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from statistics import mean

import pyarrow as pa

from benchmarks.measure import WrongAnswer
from benchmarks.report import Record, provenance, short
from benchmarks.rules.claims import ALONE, APART, MERGED, PREDICATES, Sweep, verdicts
from benchmarks.rules.filtered import index_alone
from benchmarks.rules.running import OPTIONS, Load, Point, Run, load, measure
from cepheid.inprocess import execution
from cepheid.inprocess.frames import EventTable
from cepheid.options import Options
from cepheid.planner import Prepared, prepare
from cepheid.rules import RuleSet
from cepheid.workloads.cayuga import TEMPLATES, Parameters

Say = Callable[[str], None]
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
            ways: dict[tuple[str, float], Run] = {
                (MERGED, rules): Run("Filter", given),
                (APART, rules): Run("Filter", given, True),
            }
            points |= measure(ways, size.repeats)
            points[PREDICATES, rules] = index_alone(given, size.sample)
            points[ALONE, rules] = one_by_one(given, size.sample)
    title = "Cayuga, figure 17: what sharing and indexes bring"
    return Sweep("sharing", title, "rules", points)


def one_by_one(given: Load, sample: int) -> Point:
    """Some of the rules, each as a query of its own; the time of all is taken to be that of these,
    times as many. As with merged rules, matching alone is timed, and not what prepares it: binding,
    planning, and a first run, which loads the kernels."""
    rules = RuleSet.from_template("Filter", TEMPLATES["Filter"], given.rules)
    numbers = range(0, len(rules), max(1, len(rules) // sample))[:sample]
    answer = Counter(given.answers.found("Filter")["rule"].to_pylist())
    names = list(rules)
    seconds, matches = [], 0
    for number in numbers:
        rule = rules[names[number]]
        options = replace(OPTIONS, params=rule.params)
        prepared = prepare(rule.query.bind(given.events.schema, options), options)
        _alone(prepared, given.events, options)
        begin = time.process_time()
        found = _alone(prepared, given.events, options)
        seconds.append(time.process_time() - begin)
        if found != answer[number]:
            raise WrongAnswer(f"{rule.name} alone finds {found} matches, not {answer[number]}")
        matches += found
    total = mean(seconds) * len(rules)
    steps = (len(rules),) * 3
    return Point(len(rules), given.events.num_rows, total, matches, steps, 0.0, 0, 0.0)


def _alone(prepared: Prepared, events: pa.Table, options: Options) -> int:
    _, batches = execution.run(prepared, EventTable.of(events), options)
    return sum(batch.num_rows for batch in batches)


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
        "claims": [asdict(verdict) for verdict in verdicts(sweep)],
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
