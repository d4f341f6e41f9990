"""`python -m benchmarks.choice [--dry-run] [NAME…]`: is the plan that Cepheid takes the best one?

ZStream's queries 4 to 8, the thesis' queries 5 to 15 and sweeps of SASE, each run as it is without
options, and under every plan that can be forced: trees, stacks or automata, and each way to move
results. Processor time, the best of several runs that take turns, over batches as a stream has
them. The run without options starts without statistics, and pays for finding its plan.

The correlation is that of estimated and measured cost over all forced plans: trees, stacks and
automata together, with the statistics of the events.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from rich.console import Console

import cepheid as cep
from benchmarks import cases
from benchmarks.experiments import thesis, trades
from benchmarks.experiments.experiment import Setting, Way
from benchmarks.experiments.running import Trial
from benchmarks.experiments.synthetic import Chain, Stream
from benchmarks.experiments.synthetic import workload as chain
from benchmarks.experiments.writing import RESULTS
from benchmarks.fitting import spearman
from benchmarks.report import provenance, write_json
from benchmarks.tree import run_arguments
from cepheid.errors import CepheidError
from cepheid.plan.nodes import Plan
from cepheid.planner.search import search

ALLOWED = 1.15
"""How much longer than the best plan the choice may take."""
REQUIRED = 0.9
DEFAULT = Way("default", {})
TURNS, SECONDS = 3, 0.4
THESIS = (
    *(trades.QUERY_5, trades.QUERY_6, trades.QUERY_7, trades.QUERY_8, trades.QUERY_9),
    *(trades.QUERY_10, trades.QUERY_11, trades.QUERY_12, trades.QUERY_13),
    *(trades.QUERY_14, trades.QUERY_15),
)
ZSTREAM = ("q4 1/4", "q4 1/32", "q5 10:1:1", "q5 1:10:10", "q6", "q7 1:1:1", "q7 1:10:1", "q8")


@dataclass(frozen=True)
class Run:
    """A plan of a workload: milliseconds for its events, and as estimated if it is forced."""

    workload: str
    way: str
    milliseconds: float
    estimated: float | None


def workloads() -> Iterator[cases.Workload]:
    found = {c.workload.name: c.workload for c in cases.CASES if c.name.startswith(ZSTREAM)}
    yield from found.values()
    for window in (thesis.SHORT, thesis.LONG):
        for query in THESIS:
            yield trades.workload("even", query, window, 200_000)
    rare = {v: float(1 if v == thesis.LAST else 50) for v in trades.STOCKS}
    yield trades.workload("f 50 times as rare", trades.QUERY_15, 100, 50_000, rare)
    for length in (3, 5):
        yield chain(f"length {length}", Chain(length), Stream(), 300_000)
    for window in (1_000, 10_000):
        yield chain(f"within {window}", Chain(window=window), Stream(), 200_000)
    yield chain("predicate", Chain(simple=True, compared=True), Stream(), 300_000)
    yield chain("negation", Chain(negated=1), Stream(), 200_000)


def forced(workload: cases.Workload, schema: pa.Schema, statistics: Any) -> Iterator[Way]:
    """The plans that can be forced, one of each kind."""
    bound = cep.Query(workload.query).bind(schema, **workload.columns)
    known: list[Plan] = []
    for engine in ("tree", "nfa"):
        for shape in ("auto", "left-deep", "right-deep") if engine == "tree" else ("auto",):
            for moved in ("push", "lazy", "pull", "pass-down"):
                options: dict[str, Any] = {"engine": engine, "plan": shape, "propagation": moved}
                try:
                    found = search(bound, statistics, **options)
                except CepheidError:
                    continue
                if found.plan not in known:
                    known.append(found.plan)
                    name = " ".join(v for v in options.values() if v != "auto")
                    yield Way(name, {**options, "adapt": None, "stats": statistics})


def runs(workload: cases.Workload) -> list[Run]:
    table = workload.events(workload.rows)
    trial = Trial(Setting(workload.name, workload), table, workload.loop(table))
    statistics = cep.analyze(table, workload.query, **workload.columns)
    ways = [DEFAULT, *forced(workload, table.schema, statistics)]
    best: dict[str, float] = {}
    spent = dict.fromkeys((way.name for way in ways), 0.0)
    options = {way.name: {**workload.columns, **way.options} for way in ways}
    for way in ways:
        trial.warm_up(way, options[way.name])
    for turn in range(100):
        pending = [w for w in ways if turn < TURNS or spent[w.name] < SECONDS]
        for way in pending:
            (point,) = trial.timed(way, options[way.name]).values()
            spent[way.name] += point.cpu
            best[way.name] = min(point.cpu, best.get(way.name, point.cpu))
    costs = {way.name: _cost(workload, way.options, table) for way in ways if way is not DEFAULT}
    return [
        Run(workload.name, name, round(1e3 * cpu, 2), costs.get(name)) for name, cpu in best.items()
    ]


def _cost(workload: cases.Workload, options: Mapping[str, Any], table: pa.Table) -> float:
    """Milliseconds for all events, as estimated: the cost is for a window, in each of whose units
    there is an event, or fewer if the statistics say so."""
    bound = cep.Query(workload.query).bind(table.schema, **workload.columns)
    given = {name: options[name] for name in ("engine", "plan", "propagation")}
    found = search(bound, options["stats"], **given)
    assert found.plan.window is not None
    at = table[workload.columns["time"]].combine_chunks().cast(pa.int64()).to_numpy()
    windows = float(at[-1] - at[0]) / found.plan.window.size
    return round(1e-6 * found.winner.cost * windows, 2)


def show(found: list[Run], console: Console) -> float:
    """A line for each plan; the worst of the choices."""
    forced = [run for run in found if run.estimated is not None]
    default = next(run for run in found if run.estimated is None)
    least = min(run.milliseconds for run in forced)
    worst = default.milliseconds / least
    mark = "✓" if worst <= ALLOWED else "✗"
    console.print(f"{mark} {default.workload}: {default.milliseconds} ms, {worst:.2f} × the best")
    for run in sorted(forced, key=lambda run: run.milliseconds):
        console.print(f"    {run.way}: {run.milliseconds} ms, estimated {run.estimated}")
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choice", description=__doc__)
    parser.add_argument("names", nargs="*", help="only workloads whose names begin so")
    given = run_arguments(parser, "a turn each")
    if given is None:
        return 1
    console = Console(emoji=False, highlight=False, width=140)
    pa.set_cpu_count(1)
    every: list[Run] = []
    times: dict[str, float] = {}
    for workload in workloads():
        if not given.names or workload.name.startswith(tuple(given.names)):
            found = runs(workload)
            times[workload.name] = round(show(found, console), 3)
            every += found
    forced = [run for run in every if run.estimated is not None]
    rank = spearman([r.estimated or 0.0 for r in forced], [r.milliseconds for r in forced])
    missed = [name for name, worst in times.items() if worst > ALLOWED]
    console.print(f"rank correlation {rank:.3f} over {len(forced)} plans (at least {REQUIRED})")
    console.print(f"the choice is within {ALLOWED} of the best for {len(times) - len(missed)} of")
    console.print(f"{len(times)}; not for {', '.join(missed) or 'none'}")
    if given.recording and not given.names:
        record = {"times_the_best": times, "spearman": round(rank, 4)}
        document = {**provenance(), **record, "runs": list(map(asdict, every))}
        write_json(RESULTS / "choice.json", document)
    return 1 if missed or rank < REQUIRED else 0


if __name__ == "__main__":
    sys.exit(main())
