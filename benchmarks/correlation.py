"""`python -m benchmarks.correlation [--quick]`: do the estimates rank plans as the clock does?

Over the plans and settings of ZStream's figures 8 to 13: Spearman's correlation of the estimated
and the measured cost per event. At least 0.9 is required; a run that finds less ends with exit
code 1.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import pyarrow as pa
from matplotlib import pyplot
from rich.console import Console
from rich.table import Table

from benchmarks.experiments import zstream
from benchmarks.experiments.drawing import COLORS, MARKERS
from benchmarks.experiments.experiment import INVERSE_COST, THROUGHPUT, Experiment, Figure
from benchmarks.experiments.running import FULL, QUICK, Laboratory
from benchmarks.experiments.writing import PAGE, RESULTS
from benchmarks.fitting import spearman
from benchmarks.report import Record, origin, provenance, replace_section, write_json
from benchmarks.tree import add_dry_run, may_record

NAMES = {"fig9": "query 4", "fig11": "query 5", "fig13": "query 6"}
"""The figures that show estimates beside throughput: together, figures 8 to 13."""

REQUIRED = 0.9
BEGIN, END = "<!-- correlation: begin -->", "<!-- correlation: end -->"


@dataclass(frozen=True)
class Pair:
    """A plan in a setting: nanoseconds per event, as estimated and as measured."""

    query: str
    setting: str
    plan: str
    estimated: float
    measured: float


def pairs(query: str, figure: Figure) -> list[Pair]:
    return [
        Pair(query, spot.label, way, point.cost, 1e9 * point.cpu / point.events)
        for spot, points in figure.points.items()
        for way, point in points.items()
    ]


def correlation(found: list[Pair]) -> float:
    return spearman([p.estimated for p in found], [p.measured for p in found])


def document(found: list[Pair], quick: bool) -> Record:
    by_query = {
        query: round(correlation([p for p in found if p.query == query]), 4)
        for query in dict.fromkeys(p.query for p in found)
    }
    return {
        **provenance(quick),
        "required": REQUIRED,
        "spearman": round(correlation(found), 4),
        "by_query": by_query,
        "holds": correlation(found) >= REQUIRED,
        "pairs": [
            {
                "query": p.query,
                "setting": p.setting,
                "plan": p.plan,
                "estimated_ns_per_event": round(p.estimated, 2),
                "measured_ns_per_event": round(p.measured, 2),
            }
            for p in found
        ],
    }


def draw(found: list[Pair], title: str, path: Path) -> None:
    drawing, axes = pyplot.subplots(figsize=(6.4, 5.2), layout="constrained")
    for number, query in enumerate(dict.fromkeys(p.query for p in found)):
        points = [p for p in found if p.query == query]
        axes.scatter(
            [p.measured for p in points],
            [p.estimated for p in points],
            color=COLORS[number],
            marker=MARKERS[number],
            label=query,
        )
    ends = [min(p.measured for p in found), max(p.measured for p in found)]
    axes.plot(ends, ends, color="#999999", linewidth=0.8, linestyle="--", label="equal")
    axes.set(xscale="log", yscale="log", title=title)
    axes.set_xlabel("measured, ns of processor time per event")
    axes.set_ylabel("estimated, ns per event")
    axes.legend(frameon=False, fontsize=9)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(drawing)


def measured(laboratory: Laboratory, experiments: dict[str, Experiment]) -> list[Pair]:
    """The plans of these experiments, all of which show both metrics."""
    assert all({INVERSE_COST, THROUGHPUT} <= set(e.metrics) for e in experiments.values())
    return [p for query, e in experiments.items() for p in pairs(query, laboratory.run(e))]


def show(figures: Record, console: Console) -> None:
    columns = ("query", "setting", "plan", "estimated ns", "measured ns")
    table = Table(*columns, title="cost per event")
    for pair in figures["pairs"]:
        estimated, clocked = pair["estimated_ns_per_event"], pair["measured_ns_per_event"]
        names = (pair["query"], pair["setting"], pair["plan"])
        table.add_row(*names, f"{estimated:,.1f}", f"{clocked:,.1f}")
    console.print(table)
    console.print(verdict(figures), highlight=False)


def verdict(figures: Record) -> str:
    single = ", ".join(f"{query}: {value:.3f}" for query, value in figures["by_query"].items())
    return (
        f"{'✓' if figures['holds'] else '✗'} rank correlation {figures['spearman']:.3f} "
        f"(at least {REQUIRED}); {single}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.correlation", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the events, one run each")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="instead of results/")
    add_dry_run(parser)
    given = parser.parse_args()
    recording = not given.quick and not given.out and not given.dry_run
    if recording and not may_record():
        return 1
    console = Console(emoji=False, width=None if sys.stdout.isatty() else 140)
    pa.set_cpu_count(1)
    by_name = {e.name: e for e in zstream.EXPERIMENTS}
    with console.status("starting") as status:
        laboratory = Laboratory(QUICK if given.quick else FULL, status.update)
        found = measured(laboratory, {query: by_name[name] for name, query in NAMES.items()})
    figures = document(found, given.quick)
    show(figures, console)
    if folder := RESULTS if recording else given.out:
        write_json(folder / "correlation.json", figures)
        title = f"rank correlation {figures['spearman']:.3f}"
        draw(found, title, folder / "correlation.png")
    if recording:
        replace_section(PAGE, BEGIN, END, f"{verdict(figures)}. _{origin(figures)}_\n")
    return 0 if figures["holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
