"""What the paper and our own targets say of the figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.report import Verdict
from benchmarks.rules.running import Point

WAYS = ("merged and indexed", "indexed, not merged", "index over predicates alone", "one by one")
MERGED, APART, PREDICATES, ALONE = WAYS


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
            yield at_least(sweep, "Filter", sweep.settings[0], 10_000, must=False)
            yield at_least(sweep, "Filter", sweep.settings[-1], 3_000, must=False)
            yield above(sweep, 1_000)
            yield sublinear(sweep)
        case "sharing":
            yield times(sweep, MERGED, ALONE, 100)
            yield times(sweep, MERGED, PREDICATES, 100, must=False)
            yield more(sweep)


def at_least(sweep: Sweep, curve: str, x: float, rate: float, must: bool = True) -> Verdict:
    found = sweep.points[curve, x].rate
    text = f"{x:,.0f} {curve} rules: at least {rate:,} events per second"
    return Verdict(text, found >= rate, f"{found:,.0f}", must)


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


def times(sweep: Sweep, better: str, worse: str, factor: float, must: bool = True) -> Verdict:
    first = sweep.settings[0]
    found = sweep.points[better, first].rate / sweep.points[worse, first].rate
    text = f"{first:,.0f} rules {better} are at least {factor:g} times as fast as {worse}"
    return Verdict(text, found >= factor, f"{found:,.0f} ×", must)


def more(sweep: Sweep) -> Verdict:
    last = sweep.settings[-1]
    merging = sweep.points[MERGED, last].rate / sweep.points[APART, last].rate
    indexing = sweep.points[APART, last].rate / sweep.points[ALONE, last].rate
    text = "as in the paper, indexes bring most, and merging little"
    detail = f"{indexing:,.0f} ×, then {merging:.2f} ×"
    return Verdict(text, indexing > merging, detail)
