"""The figures as a plot, as JSON, and as a section of the README."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from benchmarks.experiments.drawing import COLORS, MARKERS
from benchmarks.experiments.writing import claim_lines
from benchmarks.placement.figure import PANELS, Figure
from benchmarks.placement.model import WAYS
from benchmarks.report import HERE, README, Record, origin, replace_section

RESULTS = HERE / "results" / "placement.json"
PLOT = HERE.parent / "docs" / "rules" / "placement.svg"
BEGIN, END = "<!-- placement: begin -->", "<!-- placement: end -->"


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
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without dates and random names inside, the same figures make the same file.
    with pyplot.rc_context({"svg.hashsalt": path.name}):
        drawing.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(drawing)


def markdown(figures: Record) -> str:
    parts = [f"### {figures['title']}", "`python -m benchmarks.placement`"]
    parts.append(f"Supported queries, the mean of {figures['seeds']} seeds:")
    for table in figures["tables"]:
        lines = [table["head"], ["---"] * len(table["head"]), *table["rows"]]
        parts.append(f"{table['title'].capitalize()}:")
        parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
    parts.append(f"![{figures['title']}](../docs/rules/placement.svg)")
    parts.append("\n".join(f"- {line}" for line in claim_lines(figures)))
    parts.append(figures["note"])
    parts.append(f"_{origin(figures)}_")
    return "\n\n".join(parts) + "\n"


def update_readme(figures: Record, path: Path = README) -> None:
    replace_section(path, BEGIN, END, f"\n{markdown(figures)}\n")
