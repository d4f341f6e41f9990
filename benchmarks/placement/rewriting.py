"""Figures 9 and 10: what rewriting is worth on a single node, on the real engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from statistics import mean

from benchmarks.placement.engine import (
    Run,
    Streams,
    Timed,
    answer,
    one_query,
    operator_by_operator,
    streams,
    timed,
)
from benchmarks.placement.figure import Verdict
from benchmarks.placement.model import WORKLOADS, Workload
from benchmarks.placement.queries import OPERATORS, RATES, drawn
from benchmarks.report import Record, provenance, short
from cepheid.planner.placement import cost, rewrite
from cepheid.planner.placement.operators import Operator
from cepheid.planner.placement.ordering import ROUNDING

ISSUED, REWRITTEN, ONE = "as issued", "rewritten", "one query"
NOISE = 3.0
"""Percent by which rewriting may seem to lose where it changes nothing."""


@dataclass(frozen=True)
class Effort:
    """`sizes` are the operators of a query in figure 9, with so many queries of each; `numbers` the
    queries in figure 10. Each seed has a stream of so many seconds, and queries of its own."""

    sizes: tuple[int, ...]
    queries: int
    numbers: tuple[int, ...]
    seeds: int
    seconds: int
    repeats: int


FULL = Effort((1, 2, 3, 5, 8), 8, (1, 5, 10, 15, 20), seeds=5, seconds=200, repeats=3)
QUICK = Effort((1, 5), 1, (1, 2), seeds=1, seconds=30, repeats=1)


@dataclass(frozen=True)
class Measured:
    """A query: what it takes, and what the cost model says of it, as issued and rewritten."""

    timed: Timed
    cost: Mapping[str, float]


Queries = Mapping[tuple[Workload, int, int], tuple[Measured, ...]]
"""By workload, operators and seed."""


@dataclass(frozen=True)
class Figure:
    effort: Effort
    queries: Queries

    def own(self, workload: Workload, operators: int, number: int) -> list[list[Measured]]:
        """The first so many queries of each seed."""
        seeds = range(self.effort.seeds)
        return [list(self.queries[workload, operators, seed][:number]) for seed in seeds]

    def supported(self, workload: Workload, operators: int, way: str) -> float:
        """Operators that one processor can run in real time; the mean of all seeds."""
        runs = self.own(workload, operators, self.effort.queries)
        return mean(operators * len(run) * self.effort.seconds / _spent(run, way) for run in runs)

    def throughput(self, workload: Workload, number: int, way: str) -> float:
        """Events of all sources per second, if so many queries run."""
        events = sum(RATES.values()) * self.effort.seconds
        runs = self.own(workload, OPERATORS, number)
        return mean(events / _spent(run, way) for run in runs)

    def gain(self, workload: Workload, operators: int) -> float:
        """How many more operators are supported when rewritten, in percent."""
        found = (self.supported(workload, operators, way) for way in (REWRITTEN, ISSUED))
        return _percent(*found)

    def faster(self, workload: Workload, number: int) -> float:
        """How much more throughput there is when rewritten, in percent."""
        found = (self.throughput(workload, number, way) for way in (REWRITTEN, ISSUED))
        return _percent(*found)

    def modeled(self, workload: Workload, operators: int, number: int) -> float:
        """What the cost model says that the same queries would gain."""
        runs = self.own(workload, operators, number)
        inverse = [
            mean(1 / sum(query.cost[way] for query in run) for run in runs)
            for way in (REWRITTEN, ISSUED)
        ]
        return _percent(*inverse)


def _spent(run: list[Measured], way: str) -> float:
    return sum(query.timed.seconds[way] for query in run)


def _percent(better: float, worse: float) -> float:
    return 100 * (better / worse - 1)


def measure(effort: Effort, say: Callable[[str], None] = lambda text: None) -> Figure:
    """Every query of both figures once; those of five operators are in both."""
    found: dict[tuple[Workload, int, int], tuple[Measured, ...]] = {}
    for seed, workload, operators in product(range(effort.seeds), WORKLOADS, effort.sizes):
        sources = streams(effort.seconds, seed)
        number = max(effort.queries, *effort.numbers) if operators == OPERATORS else effort.queries
        trees = islice(drawn(workload, seed, operators), number)
        say(f"seed {seed}: {workload}, {number} queries of {operators} operators")
        measured = [
            _measured(tree, workload, sources, effort.repeats, f"{workload} {seed}.{n}")
            for n, tree in enumerate(trees)
        ]
        found[workload, operators, seed] = tuple(measured)
    return Figure(effort, found)


def _measured(
    tree: Operator, workload: Workload, sources: Streams, repeats: int, who: str
) -> Measured:
    shapes = {ISSUED: tree, REWRITTEN: rewrite(tree, RATES)}
    ways: dict[str, Run] = {
        name: operator_by_operator(shape, sources) for name, shape in shapes.items()
    }
    if workload == "next":
        ways[ONE] = one_query(tree, sources)
    first = {name: table.slice(0, 50) for name, table in sources.items()}
    for shape in (tree, shapes[REWRITTEN]):
        operator_by_operator(shape, first)()
    if workload == "next":
        one_query(tree, first)()
    costs = {name: cost(shape, RATES) for name, shape in shapes.items()}
    return Measured(timed(ways, answer(tree, sources), repeats, who), costs)


# ── what the paper says ──


def verdicts(figure: Figure) -> Iterator[Verdict]:
    yield ahead(figure)
    yield grows(figure, "next")
    yield grows(figure, "union")
    yield below(figure)
    yield between(figure)
    yield doubled(figure)
    yield fifth(figure)
    yield steady(figure)


def ahead(figure: Figure) -> Verdict:
    most = max(figure.effort.sizes)
    found = {workload: figure.gain(workload, most) for workload in WORKLOADS}
    text = f"queries of {most} operators: more are supported when rewritten"
    return Verdict(text, min(found.values()) > 0, _gains(found), must=True)


def grows(figure: Figure, workload: Workload) -> Verdict:
    sizes = [size for size in figure.effort.sizes if size > 1]
    few, many = (figure.gain(workload, size) for size in (sizes[0], sizes[-1]))
    text = (
        f"{workload}: what rewriting gains increases with the size of queries "
        f"({sizes[0]} to {sizes[-1]} operators)"
    )
    return Verdict(text, many > few, f"{few:+.0f} % to {many:+.0f} %")


def below(figure: Figure) -> Verdict:
    sizes = [size for size in figure.effort.sizes if size >= OPERATORS]
    pairs = [(figure.gain("union", size), figure.gain("next", size)) for size in sizes]
    detail = ", ".join(f"{one:+.0f} % and {other:+.0f} %" for one, other in pairs)
    text = f"union gains less than next, from {sizes[0]} operators on"
    return Verdict(text, all(one < other for one, other in pairs), detail)


def between(figure: Figure) -> Verdict:
    sizes = [size for size in figure.effort.sizes if size >= OPERATORS]
    rows = [{w: figure.gain(w, size) for w in WORKLOADS} for size in sizes]
    detail = "; ".join(
        f"{size} operators: {_gains(row)}" for size, row in zip(sizes, rows, strict=True)
    )
    holds = all(sorted(row.values())[1] == row["mix"] for row in rows)
    return Verdict("mix is between the two", holds, detail)


def doubled(figure: Figure) -> Verdict:
    found = [figure.faster("next", number) for number in figure.effort.numbers]
    text = "next: throughput is doubled in many cases (at half of the numbers of queries)"
    often = sum(gain >= 100 for gain in found)
    detail = f"at {often} of {len(found)}: " + ", ".join(f"{gain:+.0f} %" for gain in found)
    return Verdict(text, 2 * often >= len(found), detail)


def fifth(figure: Figure) -> Verdict:
    found = mean(figure.faster("union", number) for number in figure.effort.numbers)
    text = "union: about 20 % more throughput on average (within 10)"
    return Verdict(text, abs(found - 20) <= 10, f"{found:+.0f} %")


def steady(figure: Figure) -> Verdict:
    """By the model no query gets slower; by the clock one may."""
    changed = [
        query.timed.seconds
        for queries in figure.queries.values()
        for query in queries
        if query.cost[REWRITTEN] < (1 - ROUNDING) * query.cost[ISSUED]
    ]
    slower = sum(s[REWRITTEN] > (1 + NOISE / 100) * s[ISSUED] for s in changed)
    text = f"no query gets slower by rewriting (by more than {NOISE:g} %)"
    return Verdict(text, not slower, f"{slower} of the {len(changed)} that it changes do")


def _gains(found: Mapping[Workload, float]) -> str:
    return ", ".join(f"{workload} {gain:+.0f} %" for workload, gain in found.items())


# ── to keep ──


def record(figure: Figure, quick: bool) -> Record:
    effort = figure.effort
    return {
        **provenance(quick),
        "name": "rewriting",
        "title": "NEXT, figures 9 and 10: rewriting on a single node",
        "seeds": effort.seeds,
        "seconds": effort.seconds,
        "tables": [
            *(_supported(figure, workload) for workload in WORKLOADS),
            *(_throughput(figure, workload) for workload in WORKLOADS),
        ],
        "claims": [
            {"text": v.text, "must": v.must, "holds": v.holds, "detail": v.detail}
            for v in verdicts(figure)
        ],
        "curves": list(_curves(figure)),
        "points": [
            {
                "workload": workload,
                "operators": operators,
                "seed": seed,
                "seconds": [
                    {way: round(s, 5) for way, s in query.timed.seconds.items()}
                    for query in queries
                ],
                "matches": [query.timed.matches for query in queries],
                "modeled": [
                    {way: round(c, 2) for way, c in query.cost.items()} for query in queries
                ],
            }
            for (workload, operators, seed), queries in figure.queries.items()
        ],
    }


def _ways(workload: Workload) -> list[str]:
    return [ISSUED, REWRITTEN, *([ONE] if workload == "next" else [])]


def _curves(figure: Figure) -> Iterator[Record]:
    """What is drawn: for each figure and workload, a curve for each way."""
    for workload in WORKLOADS:
        for way in _ways(workload):
            ys = [figure.supported(workload, size, way) for size in figure.effort.sizes]
            yield _curve(9, workload, way, figure.effort.sizes, ys)
    for workload in WORKLOADS:
        for way in _ways(workload):
            ys = [figure.throughput(workload, number, way) for number in figure.effort.numbers]
            yield _curve(10, workload, way, figure.effort.numbers, ys)


def _curve(
    number: int, workload: Workload, way: str, xs: tuple[int, ...], ys: list[float]
) -> Record:
    whole = [round(y) for y in ys]
    return {"figure": number, "workload": workload, "way": way, "x": list(xs), "y": whole}


def _supported(figure: Figure, workload: Workload) -> Record:
    ways, number = _ways(workload), figure.effort.queries
    rows = [
        [
            str(size),
            *(f"{figure.supported(workload, size, way):,.0f}" for way in ways),
            f"{figure.gain(workload, size):+.0f} %",
            f"{figure.modeled(workload, size, number):+.0f} %",
        ]
        for size in figure.effort.sizes
    ]
    head = ["operators of a query", *ways, "rewriting gains", "by the cost model"]
    return {"title": f"figure 9, {workload}: operators supported", "head": head, "rows": rows}


def _throughput(figure: Figure, workload: Workload) -> Record:
    ways = _ways(workload)
    rows = [
        [
            str(number),
            *(short(figure.throughput(workload, number, way)) for way in ways),
            f"{figure.faster(workload, number):+.0f} %",
            f"{figure.modeled(workload, OPERATORS, number):+.0f} %",
        ]
        for number in figure.effort.numbers
    ]
    head = ["queries", *ways, "rewriting gains", "by the cost model"]
    return {"title": f"figure 10, {workload}: events per second", "head": head, "rows": rows}
