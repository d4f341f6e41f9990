"""Reports: files to keep, plots, and the page beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from benchmarks.experiments.drawing import COLORS
from benchmarks.experiments.writing import claim_lines
from benchmarks.report import (
    Record,
    begun,
    origin,
    replace_section,
    short,
    write_json,
)
from benchmarks.streaming.soak import BATCH, WINDOW, Sample, write_csv
from benchmarks.streaming.speed import PARTS
from benchmarks.tree import HERE

RESULTS = HERE / "results" / "streaming"
PAGE = RESULTS / "README.md"
PLOTS = HERE.parent / "docs" / "streaming"
BEGIN, END = "<!-- streaming: begin -->", "<!-- streaming: end -->"


def keep(figures: Record, folder: Path = RESULTS) -> None:
    write_json(folder / f"{figures['name']}.json", figures)


def keep_soak(
    figures: Record, samples: Sequence[Sample], folder: Path = RESULTS, plots: Path = PLOTS
) -> None:
    keep(figures, folder)
    write_csv(folder / "soak.csv", samples)
    draw(samples, plots / "soak.svg")


def draw(samples: Sequence[Sample], path: Path) -> None:
    """The soak run: batch time above, memory below."""
    minutes = [s.seconds / 60 for s in samples]
    panels = (
        ("seconds of a batch", {"wall": "on the wall", "cpu": "processor time"}),
        (
            "resident memory, MB",
            {"java": "Java", "driver": "driver's Python", "workers": "Python workers"},
        ),
    )
    drawing, grid = pyplot.subplots(len(panels), figsize=(9, 6), sharex=True, layout="constrained")
    for axes, (label, lines) in zip(grid, panels, strict=True):
        for color, (name, text) in zip(COLORS, lines.items(), strict=False):
            values = [getattr(s, name) for s in samples]
            axes.plot(minutes, values, color=color, label=text, linewidth=1)
            top = max(getattr(s, name) for s in samples[5:] or samples)
            axes.set_ylim(0, max(axes.get_ylim()[1] if name != next(iter(lines)) else 0, 1.2 * top))
        axes.set_ylabel(label, fontsize=9)
        axes.legend(fontsize=8, frameon=False, ncols=3, loc="lower right")
        axes.grid(axis="y", alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    grid[-1].set_xlabel("minutes", fontsize=9)
    drawing.suptitle(
        f"{short(samples[-1].events)} events in batches of {short(BATCH)}, "
        f"{short(WINDOW)} in a window",
        fontsize=11,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without dates and random names inside, the same figures make the same file.
    with pyplot.rc_context({"svg.hashsalt": path.name}):
        drawing.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(drawing)


def markdown(figures: Record) -> str:
    parts = [f"### {figures['title']}"]
    if figures["name"] == "soak":
        parts.append("`python -m benchmarks.streaming soak`")
        parts.append(
            f"{figures['minutes']} minutes, {short(figures['events'])} events, "
            f"{short(figures['matches'])} matches; the second tenth of the run, once the window "
            "is full, against the last one:"
        )
    elif figures["name"] == "start":
        parts.append(f"`{figures['command']}`")
    else:
        turns = f" --turns {figures['turns']}"
        parts.append(f"`python -m benchmarks.streaming speed {figures['name']}{turns}`")
    for table in figures["tables"]:
        lines = [table["head"], ["---"] * len(table["head"]), *table["rows"]]
        parts.append(f"{begun(table['title'])}:")
        parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
    if figures["claims"]:
        parts.append("\n".join(f"- {line}" for line in claim_lines(figures)))
    if figures["name"] == "soak":
        parts.append("![Batch time and memory of the run](../../../docs/streaming/soak.svg)")
    parts.append(f"_{origin(figures)}_")
    return "\n\n".join(parts) + "\n"


def update_page(folder: Path = RESULTS, path: Path = PAGE) -> None:
    """Put all that has been run at full size into the page."""
    files = [folder / f"{name}.json" for name in (*PARTS, "start", "soak")]
    known = [json.loads(file.read_text()) for file in files if file.exists()]
    text = "\n".join(markdown(figures) for figures in known if not figures["quick"])
    replace_section(path, BEGIN, END, f"\n{text}\n")
