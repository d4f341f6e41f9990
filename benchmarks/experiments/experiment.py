"""An experiment as data: settings × ways to evaluate, what is looked at, and what must hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from benchmarks.cases import Workload

Need = Literal["time", "estimate", "profile"]
"""What has to be done for a metric: runs against the clock, a plan's estimate, a counted run."""


@dataclass(frozen=True)
class Found:
    """What a program found, and how many seconds went into the part of it that is looked at: for
    a chain, sequence scan and construction, without reading events and writing matches."""

    matches: int
    inside: float = 0.0


Program = Callable[[Workload, Mapping[str, Any], pa.Schema, Iterator[pa.RecordBatch]], Found]
"""Finds the matches of a workload's query in batches of events of this schema."""


@dataclass(frozen=True)
class Way:
    """A way to evaluate: its name in the legend, and the options that ask for it. `analyzed`: the
    planner is given statistics that were gathered from the events, before the clock starts.

    With a `program`, that is what runs: a plan that no option asks for, or no engine of ours at
    all. After `limit` seconds of processor time a run gets no more events: its throughput is then
    that of the events which it got, and what it found is not compared.
    """

    name: str
    options: Mapping[str, Any]
    analyzed: bool = False
    program: Program | None = None
    limit: float = math.inf


@dataclass(frozen=True)
class Setting:
    """A point of the x-axis. `panel` is the part of the figure that it belongs to.

    `segments` cut one run into pieces that are timed apart: the label of each and its share of the
    rows. Such a setting makes a point for every segment, and one for the whole.
    """

    label: str
    workload: Workload
    panel: str = ""
    segments: tuple[tuple[str, float], ...] = ()

    def labels(self) -> tuple[str, ...]:
        return (*(name for name, _ in self.segments), self.label)


@dataclass(frozen=True)
class Point:
    """What one way did in one setting. `cost` is the estimate in nanoseconds per event, `records`
    all that its operators made, `held` the most that they kept, `peak` the most bytes that the
    engine had, `chosen` the plan, if the planner was free to choose; `stopped`: the time was up
    before the events were, of which there are `events` until then. `inside` are the seconds of the
    part that is looked at, if there is one."""

    events: int
    matches: int
    cpu: float = 0.0
    wall: float = 0.0
    cost: float = 0.0
    records: int = 0
    held: int = 0
    peak: int = 0
    chosen: str = ""
    stopped: bool = False
    inside: float = 0.0

    @property
    def rate(self) -> float:
        """Events per second of processor time."""
        return self.events / self.cpu

    @property
    def inner_rate(self) -> float:
        """Events per second of the part that is looked at; of events none of which it saw, any."""
        return self.events / self.inside if self.inside else math.inf


@dataclass(frozen=True)
class Spot:
    """Where a point stands in a figure."""

    panel: str
    label: str


@dataclass(frozen=True)
class Figure:
    """The points of an experiment, by spot and by the name of the way."""

    points: Mapping[Spot, Mapping[str, Point]]

    def panels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(spot.panel for spot in self.points))

    def spots(self, panel: str) -> tuple[Spot, ...]:
        return tuple(spot for spot in self.points if spot.panel == panel)

    def ways(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(way for points in self.points.values() for way in points))

    def at(self, label: str, panel: str = "") -> Mapping[str, Point]:
        return self.points[Spot(panel, label)]


@dataclass(frozen=True)
class Metric:
    """What the y-axis shows: a figure of one point, or of a point among those of its setting."""

    label: str
    value: Callable[[Point, Mapping[str, Point]], float]
    need: Need = "time"
    log: bool = True


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, and the figures that say so."""

    holds: bool
    detail: str


@dataclass(frozen=True)
class Claim:
    """What a paper says of its figure. A `must` decides whether the experiment fails; the others
    are reported as they come out."""

    text: str
    check: Callable[[Figure], Verdict]
    must: bool = False


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper. `note` is what a reader has to know about ours: what
    differs, and why."""

    name: str
    title: str
    x: str
    settings: tuple[Setting, ...]
    ways: tuple[Way, ...]
    metrics: tuple[Metric, ...]
    claims: tuple[Claim, ...] = ()
    note: str = ""
    bars: bool = False

    def needs(self) -> frozenset[Need]:
        return frozenset(metric.need for metric in self.metrics)


# ── metrics ──

THROUGHPUT = Metric("events per second", lambda point, _: point.rate)
INSIDE = Metric(
    "events per second of scan and construction alone", lambda point, _: point.inner_rate
)
INVERSE_COST = Metric("1 / estimated cost", lambda point, _: 1 / point.cost, "estimate")
RECORDS = Metric("records made per event", lambda point, _: point.records / point.events, "profile")
PEAK = Metric("peak memory, MB", lambda point, _: point.peak / 1e6, "profile", log=False)
HELD = Metric("most intermediate records held", lambda point, _: point.held, "profile")


def gain_over(base: str) -> Metric:
    """How much more throughput than one of the ways has, in percent."""
    return Metric(
        f"throughput over {base}, %",
        lambda point, others: 100 * (others[base].cpu / point.cpu - 1),
        log=False,
    )


# ── claims ──


def seconds(point: Point) -> float:
    return point.cpu


def cost(point: Point) -> float:
    return point.cost


Speed = Callable[[Point], float]


def whole(point: Point) -> float:
    return point.rate


def inner(point: Point) -> float:
    return point.inner_rate


def _of(speed: Speed) -> str:
    return " in scan and construction" if speed is inner else ""


def at_least(
    factor: float,
    fast: str,
    slow: str,
    label: str,
    panel: str = "",
    speed: Speed = whole,
    must: bool = True,
) -> Claim:
    """One way is so many times as fast as another in one setting."""

    def check(figure: Figure) -> Verdict:
        points = figure.at(label, panel)
        found = speed(points[fast]) / speed(points[slow])
        return Verdict(found >= factor, f"{found:.2f} ×")

    text = f"at {label}, {fast} is at least {factor:g} times as fast as {slow}{_of(speed)}"
    return Claim(text, check, must)


def reaches(rate: float, way: str) -> Claim:
    """One way takes so many events per second in every setting."""

    def check(figure: Figure) -> Verdict:
        found = [points[way].rate for points in figure.points.values()]
        return Verdict(min(found) >= rate, ", ".join(f"{f / 1e6:.2f} M" for f in found))

    return Claim(f"{way} takes at least {rate / 1e6:g} million events per second", check, True)


def keeps(share: float, way: str, of: str, to: str, panel: str = "") -> Claim:
    """From one setting to another, a way keeps so much of its throughput."""

    def check(figure: Figure) -> Verdict:
        found = figure.at(to, panel)[way].rate / figure.at(of, panel)[way].rate
        return Verdict(found >= share, f"{found:.2f}")

    return Claim(f"at {to}, {way} keeps {share:g} of its throughput at {of}", check, True)


def out_of_reach(way: str, label: str, panel: str = "") -> Claim:
    """A way isn't done when its time is up."""

    def check(figure: Figure) -> Verdict:
        point = figure.at(label, panel)[way]
        return Verdict(point.stopped, f"{point.events:,} events in {point.cpu:.1f} s")

    return Claim(f"at {label}, {way} is stopped by the time limit", check, True)


def ahead(
    fast: str,
    slow: str,
    labels: tuple[str, ...] = (),
    panels: tuple[str, ...] = (),
    must: bool = False,
    speed: Speed = whole,
) -> Claim:
    """One way is faster than another in these settings; in all, if none are named."""

    def check(figure: Figure) -> Verdict:
        found = [
            speed(points[fast]) / speed(points[slow])
            for spot, points in figure.points.items()
            if (not labels or spot.label in labels) and (not panels or spot.panel in panels)
        ]
        low, high = min(found), max(found)
        detail = f"{low:.2f} to {high:.2f} ×" if len(found) > 1 else f"{low:.2f} ×"
        return Verdict(low > 1, detail)

    where = f"at {', '.join(labels)}" if labels else "in every setting"
    of = f" ({'; '.join(panels)})" if panels else ""
    return Claim(f"{fast} is faster than {slow}{_of(speed)} {where}{of}", check, must)


def near_the_best(
    way: str, share: float, rivals: tuple[str, ...], labels: tuple[str, ...]
) -> Claim:
    """One way takes at most so much longer than the best of the rivals."""

    def check(figure: Figure) -> Verdict:
        found = {
            label: figure.at(label)[way].cpu / min(figure.at(label)[r].cpu for r in rivals)
            for label in labels
        }
        detail = ", ".join(f"{label}: {factor:.2f} ×" for label, factor in found.items())
        return Verdict(max(found.values()) <= 1 + share, detail)

    where = ", ".join(labels)
    text = f"{way} is within {share:.0%} of the best of the fixed plans at {where}"
    return Claim(text, check, True)


def spread(factor: float, rivals: tuple[str, ...]) -> Claim:
    """In every setting, the worst of the rivals is so many times slower than the best."""

    def check(figure: Figure) -> Verdict:
        found = []
        for points in figure.points.values():
            times = [points[r].cpu for r in rivals]
            found.append(max(times) / min(times))
        return Verdict(min(found) >= factor, ", ".join(f"{f:.2f} ×" for f in found))

    text = f"the worst plan is at least {factor:g} times slower than the best in every setting"
    return Claim(text, check, True)


def best_at(
    best: Mapping[str, str], rivals: tuple[str, ...], what: str, value: Callable[[Point], float]
) -> Claim:
    """In each of the settings, the named way has the least of something among the rivals."""

    def check(figure: Figure) -> Verdict:
        found = {}
        for label in best:
            values = {way: value(figure.at(label)[way]) for way in rivals}
            found[label] = min(values, key=values.__getitem__)
        detail = ", ".join(f"{label}: {way}" for label, way in found.items())
        return Verdict(found == dict(best), detail)

    expected = ", ".join(f"{way} at {label}" for label, way in best.items())
    return Claim(f"{what}: {expected}", check)


def same_choice(tolerance: float = 0.1) -> Claim:
    """Whoever believes the estimates picks a plan that is the fastest, or nearly."""

    def check(figure: Figure) -> Verdict:
        worst = 1.0
        for points in figure.points.values():
            picked = min(points.values(), key=cost)
            worst = max(worst, picked.cpu / min(map(seconds, points.values())))
        return Verdict(worst <= 1 + tolerance, f"at most {worst:.2f} × the fastest")

    text = (
        f"in every setting the cheapest plan by estimate is within {tolerance:.0%} of the fastest"
    )
    return Claim(text, check)
