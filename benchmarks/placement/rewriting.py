"""Figures 9 and 10: what rewriting is worth on a single node, on the real engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice, product
from statistics import mean

from benchmarks.next import cost, rewrite
from benchmarks.next.operators import Operator
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
from benchmarks.placement.model import WORKLOADS, Workload
from benchmarks.placement.queries import OPERATORS, RATES, drawn

ISSUED, REWRITTEN, ONE = "as issued", "rewritten", "one query"


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
        return mean(operators * len(run) * self.effort.seconds / spent(run, way) for run in runs)

    def throughput(self, workload: Workload, number: int, way: str) -> float:
        """Events of all sources per second, if so many queries run."""
        events = sum(RATES.values()) * self.effort.seconds
        runs = self.own(workload, OPERATORS, number)
        return mean(events / spent(run, way) for run in runs)

    def gain(self, workload: Workload, operators: int) -> float:
        """How many more operators are supported when rewritten, in percent."""
        found = (self.supported(workload, operators, way) for way in (REWRITTEN, ISSUED))
        return percent(*found)

    def faster(self, workload: Workload, number: int) -> float:
        """How much more throughput there is when rewritten, in percent."""
        found = (self.throughput(workload, number, way) for way in (REWRITTEN, ISSUED))
        return percent(*found)

    def modeled(self, workload: Workload, operators: int, number: int) -> float:
        """What the cost model says that the same queries would gain."""
        runs = self.own(workload, operators, number)
        inverse = [
            mean(1 / sum(query.cost[way] for query in run) for run in runs)
            for way in (REWRITTEN, ISSUED)
        ]
        return percent(*inverse)


def spent(run: list[Measured], way: str) -> float:
    return sum(query.timed.seconds[way] for query in run)


def percent(better: float, worse: float) -> float:
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
