"""Plots: one panel for each metric and part of an experiment, lines or clusters of bars."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, LogLocator

from benchmarks.experiments.experiment import Experiment, Figure, Metric

COLORS = ("#1f5f8b", "#d1701c", "#3a8a4d", "#8a4f9e", "#b3303b", "#6b6b6b")
MARKERS = ("o", "s", "^", "D", "v", "P")
COLUMNS = 2


def draw(experiment: Experiment, figure: Figure, path: Path) -> None:
    """Write the experiment's plot as a PNG."""
    parts = [(metric, panel) for metric in experiment.metrics for panel in figure.panels()]
    columns = min(COLUMNS, len(parts))
    rows = -(-len(parts) // columns)
    drawing, grid = pyplot.subplots(
        rows, columns, figsize=(5.6 * columns, 3.6 * rows), squeeze=False, layout="constrained"
    )
    axes = list(grid.flat)
    for (metric, panel), panel_axes in zip(parts, axes, strict=False):
        draw_panel(panel_axes, experiment, figure, metric, panel)
    for unused in axes[len(parts) :]:
        unused.set_visible(False)
    drawing.suptitle(fill(experiment.title, 60 * columns), fontsize=12)
    handles, names = axes[0].get_legend_handles_labels()
    drawing.legend(
        handles, names, loc="outside lower center", ncols=len(names), fontsize=9, frameon=False
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without the version of matplotlib inside, the same figures make the same file.
    drawing.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(drawing)


def draw_panel(
    axes: Axes, experiment: Experiment, figure: Figure, metric: Metric, panel: str
) -> None:
    spots = figure.spots(panel)
    places = range(len(spots))
    ways = figure.ways()
    for number, way in enumerate(ways):
        heights = [metric.value(figure.points[s][way], figure.points[s]) for s in spots]
        color = COLORS[number % len(COLORS)]
        if experiment.bars:
            width = 0.8 / len(ways)
            left = [place - 0.4 + width * (number + 0.5) for place in places]
            axes.bar(left, heights, width, color=color, label=way)
        else:
            marker = MARKERS[number % len(MARKERS)]
            axes.plot(places, heights, color=color, marker=marker, label=way)
    axes.set_xticks(places, [spot.label for spot in spots], fontsize=8)
    axes.set_xlabel(experiment.x, fontsize=9)
    axes.set_ylabel(metric.label, fontsize=9)
    axes.tick_params(axis="y", which="both", labelsize=8)
    if metric.log and not experiment.bars:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_minor_formatter(EngFormatter(sep=" "))
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    if panel:
        axes.set_title(panel, fontsize=9)
    axes.grid(axis="y", which="both", alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
