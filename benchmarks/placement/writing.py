"""The figures as a plot, as JSON, and as a section of the page beside them."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import EngFormatter

from benchmarks.experiments.drawing import COLORS, MARKERS
from benchmarks.experiments.writing import claim_lines
from benchmarks.placement.figure import PANELS, Figure
from benchmarks.placement.model import WAYS
from benchmarks.report import Record, begun, origin, replace_section
from benchmarks.tree import HERE

RESULTS = HERE / "results" / "placement.json"
PLOT = HERE.parent / "docs" / "rules" / "placement.svg"
BEGIN, END = "<!-- placement: begin -->", "<!-- placement: end -->"

REWRITING = HERE / "results" / "placement" / "rewriting.json"
PAGE = REWRITING.with_name("README.md")
REWRITING_PLOT = REWRITING.with_suffix(".svg")
REWRITING_SECTION = "<!-- rewriting: begin -->", "<!-- rewriting: end -->"


def draw(figure: Figure, path: Path = PLOT) -> None:
    """A panel for each workload, a curve for each way."""
    drawing, grid = pyplot.subplots(2, 2, figsize=(11.2, 7.2), layout="constrained")
    for axes, panel in zip(grid.flat, PANELS, strict=True):
        for color, marker, way in zip(COLORS, MARKERS, WAYS, strict=False):
            heights = [figure.at(panel, nodes, way) for nodes in figure.size.nodes]
            axes.plot(figure.size.nodes, heights, color=color, marker=marker, label=way.name)
        axes.set_ylim(bottom=0)
        axes.set_title(panel, fontsize=9)
        axes.set_xlabel("nodes", fontsize=9)
        axes.set_ylabel("supported queries", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(axis="y", alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    handles, names = grid[0, 0].get_legend_handles_labels()
    drawing.legend(
        handles, names, loc="outside lower center", ncols=len(names), fontsize=9, frameon=False
    )
    drawing.suptitle("NEXT, figure 11: queries of five operators on modeled nodes", fontsize=12)
    _save(drawing, path)


def draw_rewriting(figures: Record, path: Path = REWRITING_PLOT) -> None:
    """Figure 9 above figure 10, a panel for each workload, a curve for each way."""
    workloads = list(dict.fromkeys(curve["workload"] for curve in figures["curves"]))
    labels = {9: ("operators of a query", "operators supported"), 10: ("queries", "events/s")}
    drawing, grid = pyplot.subplots(
        2, len(workloads), figsize=(11.2, 6.4), layout="constrained", sharey="row"
    )
    for row, (number, (x, y)) in enumerate(labels.items()):
        for axes, workload in zip(grid[row], workloads, strict=True):
            curves = [
                c for c in figures["curves"] if (c["figure"], c["workload"]) == (number, workload)
            ]
            for color, marker, curve in zip(COLORS, MARKERS, curves, strict=False):
                axes.plot(curve["x"], curve["y"], color=color, marker=marker, label=curve["way"])
                axes.set_xticks(curve["x"])
            if number == 10:
                axes.set_yscale("log")
            else:
                axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
            axes.set_title(f"figure {number}: {workload}", fontsize=9)
            axes.set_xlabel(x, fontsize=9)
            axes.set_ylabel(y, fontsize=9)
            axes.tick_params(labelsize=8)
            axes.grid(axis="y", alpha=0.3, linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
    handles, names = grid[0, 0].get_legend_handles_labels()
    drawing.legend(
        handles, names, loc="outside lower center", ncols=len(names), fontsize=9, frameon=False
    )
    drawing.suptitle(figures["title"], fontsize=12)
    _save(drawing, path)


def _save(drawing: Drawing, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without dates and random names inside, the same figures make the same file.
    with pyplot.rc_context({"svg.hashsalt": path.name}):
        drawing.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(drawing)


def markdown(figures: Record) -> str:
    said = f"Supported queries, the mean of {figures['seeds']} seeds:"
    plot = "../../../docs/rules/placement.svg"
    return _markdown(figures, "python -m benchmarks.placement", said, plot)


def rewriting_markdown(figures: Record) -> str:
    said = (
        f"The mean of {figures['seeds']} seeds, each with {figures['seconds']} seconds of events:"
    )
    plot = "rewriting.svg"
    return _markdown(figures, "python -m benchmarks.placement rewriting", said, plot)


def _markdown(figures: Record, command: str, said: str, plot: str) -> str:
    parts = [f"### {figures['title']}", f"`{command}`", said]
    for table in figures["tables"]:
        lines = [table["head"], ["---"] * len(table["head"]), *table["rows"]]
        parts.append(f"{begun(table['title'])}:")
        parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
    parts.append(f"![{figures['title']}]({plot})")
    parts.append("\n".join(f"- {line}" for line in claim_lines(figures)))
    parts.append(figures["note"])
    parts.append(f"_{origin(figures)}_")
    return "\n\n".join(parts) + "\n"


def update_page(figures: Record, path: Path = PAGE) -> None:
    replace_section(path, BEGIN, END, f"\n{markdown(figures)}\n")


def update_rewriting(figures: Record, path: Path = PAGE) -> None:
    replace_section(path, *REWRITING_SECTION, f"\n{rewriting_markdown(figures)}\n")
