"""The figures as plots, as JSON, and as a section of the page beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

from benchmarks.experiments.drawing import COLORS, MARKERS
from benchmarks.experiments.writing import claim_lines, table_texts
from benchmarks.report import Record, origin, replace_section, write_json
from benchmarks.rules.claims import WAYS
from benchmarks.rules.figures import SWEEPS
from benchmarks.tree import HERE
from cepheid.workloads.cayuga import TEMPLATES

RESULTS = HERE / "results" / "rules"
PAGE = RESULTS / "README.md"
PLOTS = HERE.parent / "docs" / "rules"
BEGIN, END = "<!-- rules: begin -->", "<!-- rules: end -->"
PARTS = (
    *SWEEPS,
    "iterations",
    "closures",
    "families",
    "family_spark",
    "joined",
    "size",
    "spark",
)

FIGURES = {
    "cayuga16": (
        "Cayuga, figure 16: events per second",
        ("templates", "zipf", "selectivity", "counted"),
    ),
    "cayuga17": ("Cayuga, figure 17: Filter rules, shared or not", ("sharing",)),
}
COLUMNS = 2
PAPER = {
    "templates": "The paper's graph of 100,000 Filter rules has 48 k + 71 k + 96 k nodes; an event "
    "satisfies about 100 predicates, 6,000 to 16,000 nodes are active, and there are 41 matches "
    "(171 of 400,000 rules). With two equalities and two ranges drawn for every step, as its table "
    "says, rules are less alike and less often satisfied than that; `counted` has the other case. "
    "Filter is the slowest here, not the third: an event satisfies four primary predicates more, "
    "and ends instances by them. How much of the difference that is, wasn't measured.",
    "zipf": "The paper has 101,000 nodes in the first level at 0.8, and 36,000 at 1.4.",
    "selectivity": "In the paper the rate falls with the square of the selectivity, since two "
    "predicates vary. Here the predicates that an event satisfies grow so, but an event also costs "
    "what doesn't depend on them.",
    "counted": "The first event has to equal the primary value alone. That comes nearer to what "
    "the paper counts: 41 and 171 matches, 6,000 to 16,000 active nodes, 48,000 nodes in the first "
    "level; but not to its 71,000 and 96,000 in the others, nor to its 100 predicates. Instances "
    "are those held, some of which are over. The answer is looked up for the first 10,000 rules. "
    "One run of each.",
    "sharing": "*Indexed, not merged*: every rule has nodes of its own, all indexes stay. *One by "
    "one*: 20 of the rules, each as a query of its own, planned and compiled before; the time of "
    "all is theirs, times as many. "
    "*Index over predicates alone*: it says for every event whose predicates it satisfies, and "
    "each rule runs a query of its own over the events that it gets (`rules/filtered.py`); the "
    "index and what it delivers are timed for all rules, 20 of the queries. In the paper, sharing "
    "is faster by a factor of 100 than that.",
    "iterations": "The events with the primary value between the steps are bound, and counted or "
    "added up (`rules/iterations.py`): Cayuga's μ with what it iterates over, where "
    "NonDeterministic has it with the identity. One run of each.",
    "closures": "A login, small purchases, and a large one (`rules/closures.py`): rules differ in "
    "five values. *One query for all*: what some rule finds, and each rule tests its own "
    "conditions on that. *One by one*: each rule as a query with its constants, planned and "
    "compiled before. Both have to find the same.",
    "families": "33 queries with parameters, as a detection team would write them "
    "(`rules/families.py`), over card transactions. *Table*: a query and a row for each rule. "
    "*Written*: each rule is a query with its constants. *Mixed*: half of each. Seconds include "
    "compiling the set. The rules of a small set are compared with each rule by itself, and the "
    "ways of a family have to find the same. The second table has rules of all families, mixed. A "
    "compiled set is changed by one rule that is added, or taken out.",
    "family_spark": "Rules of all families, mixed, over a file of events: on Spark, and in one "
    "thread of one process, which have to find as many matches of each rule. Seconds are on the "
    "wall, and include compiling the set. *Planning* is what happens before the first task.",
    "joined": "Two events in any order or a group between two, of logins, declines, purchases and "
    "changed PINs, and then something else (`rules/joined.py`): rules that begin alike have all "
    "but their end in common. *Joined*: as a set of rules is run. *Each alone*: each rule as a set "
    "of its own. Both are planned before, adapt to the events, and have to find the same.",
    "size": "*Template*: one query and a table in Parquet. *Written*: each rule is a query with "
    "its constants, in one file of text, and those that only differ in plain conditions are "
    "parsed and bound together: these have thousands of combinations of them. *Pickled* "
    "is what would be sent to another process. *Start*: 1,000 rules, 1,000 events; without kernels "
    "on the disk, they are compiled first.",
    "spark": "Five templates (a PIN changed and money spent without a login; two small purchases "
    "and a large one; a card in two countries; a purchase declined and a smaller one made; three "
    "purchases of rising amounts), 200 rules each: eight countries, five windows, five limits. "
    "*Alone*: the rule of each template with the longest window and the weakest limits, run as a "
    "query of its own. The answers of all rules are DuckDB's. CPU is that of Spark's Java and all "
    "Python processes.",
}


def keep(figures: Record, folder: Path = RESULTS) -> None:
    write_json(folder / f"{figures['name']}.json", figures)


def kept(folder: Path = RESULTS) -> dict[str, Record]:
    """All parts that have been run at full size."""
    files = {name: folder / f"{name}.json" for name in PARTS}
    known = {name: json.loads(f.read_text()) for name, f in files.items() if f.exists()}
    return {name: figures for name, figures in known.items() if not figures["quick"]}


# ── plots ──


def draw(known: Mapping[str, Record], folder: Path = PLOTS) -> None:
    for name, (title, parts) in FIGURES.items():
        panels = [known[part] for part in parts if part in known]
        if panels:
            _draw(title, panels, folder / f"{name}.svg")


def _draw(title: str, panels: list[Record], path: Path) -> None:
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    drawing, grid = pyplot.subplots(
        rows, columns, figsize=(5.6 * columns, 3.6 * rows), squeeze=False, layout="constrained"
    )
    for axes, figures in zip(grid.flat, panels, strict=False):
        _panel(axes, figures)
    for unused in list(grid.flat)[len(panels) :]:
        unused.set_visible(False)
    handles, names = grid[0, 0].get_legend_handles_labels()
    drawing.legend(
        handles, names, loc="outside lower center", ncols=len(names), fontsize=9, frameon=False
    )
    drawing.suptitle(title, fontsize=12)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without dates and random names inside, the same figures make the same file.
    with pyplot.rc_context({"svg.hashsalt": path.name}):
        drawing.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(drawing)


def _panel(axes: Axes, figures: Record) -> None:
    curves = WAYS if figures["name"] == "sharing" else tuple(TEMPLATES)
    for color, marker, curve in zip(COLORS, MARKERS, curves, strict=False):
        points = [point for point in figures["points"] if point["curve"] == curve]
        if not points:
            continue
        places, heights = [p["x"] for p in points], [p["rate"] for p in points]
        axes.plot(places, heights, color=color, marker=marker, label=curve)
        axes.set_xticks(places)
    if figures["name"] == "sharing":
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(numticks=9))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    if figures["x"] == "rules":
        axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.set_title(figures["title"].removeprefix("Cayuga, "), fontsize=9)
    axes.set_xlabel(figures["x"], fontsize=9)
    axes.set_ylabel("events per second", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(axis="y", alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


# ── text ──


def markdown(figures: Record) -> str:
    parts = [f"### {figures['title']}", f"`python -m benchmarks.rules {figures['name']}`"]
    parts += table_texts(figures)
    for name, (title, shown) in FIGURES.items():
        if shown[-1] == figures["name"]:
            parts.append(f"![{title}](../../../docs/rules/{name}.svg)")
    parts.append("\n".join(f"- {line}" for line in claim_lines(figures)))
    parts.append(PAPER[figures["name"]])
    parts.append(f"_{origin(figures)}_")
    return "\n\n".join(parts) + "\n"


def update_page(known: Mapping[str, Record], path: Path = PAGE) -> None:
    text = "\n".join(markdown(figures) for figures in known.values())
    replace_section(path, BEGIN, END, f"\n{text}\n")
