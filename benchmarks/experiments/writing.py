"""Reports of experiments: tables to look at, JSON to keep, and a section of their page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from benchmarks.experiments.experiment import Experiment, Figure, Metric, Point, Verdict
from benchmarks.report import (
    Record,
    begun,
    origin,
    provenance,
    replace_section,
    short,
)
from benchmarks.tree import HERE

RESULTS = HERE / "results" / "experiments"
PAGE = RESULTS / "README.md"
BEGIN, END = "<!-- experiments: begin -->", "<!-- experiments: end -->"


def verdicts(experiment: Experiment, figure: Figure) -> list[tuple[str, bool, Verdict]]:
    """Each claim's text, whether it is a must, and how it came out."""
    return [(claim.text, claim.must, claim.check(figure)) for claim in experiment.claims]


def record(experiment: Experiment, figure: Figure, quick: bool) -> Record:
    """All of an experiment that is written to a file."""
    points = [
        {"panel": spot.panel, "setting": spot.label, "way": way}
        | {name: value for name, value in asdict(point).items() if value}
        for spot, ways in figure.points.items()
        for way, point in ways.items()
    ]
    return {
        **provenance(quick),
        "name": experiment.name,
        "title": experiment.title,
        "x": experiment.x,
        "note": experiment.note,
        "tables": [_table(experiment, figure, metric) for metric in experiment.metrics],
        "claims": [
            {"text": text, "must": must, "holds": found.holds, "detail": found.detail}
            for text, must, found in verdicts(experiment, figure)
        ],
        "points": points,
    }


def _table(experiment: Experiment, figure: Figure, metric: Metric) -> Record:
    """Settings by ways, as text."""
    rows = []
    for spot, points in figure.points.items():
        label = f"{spot.panel}: {spot.label}" if spot.panel else spot.label
        values = [_cell(metric, points[way], points) for way in figure.ways()]
        rows.append([label, *values])
    return {"title": metric.label, "head": [experiment.x, *figure.ways()], "rows": rows}


def _cell(metric: Metric, point: Point, points: Mapping[str, Point]) -> str:
    return short(metric.value(point, points)) + (" (stopped)" if point.stopped else "")


def rich_tables(figures: Record) -> Iterator[Table]:
    for found in figures["tables"]:
        table = Table(title=f"{figures['title']}: {found['title']}")
        for number, heading in enumerate(found["head"]):
            table.add_column(heading, justify="right" if number else "left")
        for row in found["rows"]:
            table.add_row(*row)
        yield table


def claim_lines(figures: Record) -> list[str]:
    """
    >>> claim_lines({"claims": [{"text": "a", "must": True, "holds": False, "detail": "2 ×"}]})
    ['✗ must: a (2 ×)']
    """
    return [
        f"{'✓' if claim['holds'] else '✗'} {'must: ' if claim['must'] else ''}{claim['text']} "
        f"({claim['detail']})"
        for claim in figures["claims"]
    ]


def failed(figures: Record) -> bool:
    """Whether something that must hold doesn't."""
    return any(claim["must"] and not claim["holds"] for claim in figures["claims"])


def table_texts(figures: Record) -> Iterator[str]:
    """Each table of the figures, after a line with its title."""
    for table in figures["tables"]:
        lines = [table["head"], ["---"] * len(table["head"]), *table["rows"]]
        yield f"{begun(table['title'])}:"
        yield "\n".join("| " + " | ".join(line) + " |" for line in lines)


def markdown(figures: Record) -> str:
    """The experiment's part of the page."""
    parts = [f"### {figures['title']}", f"`python -m benchmarks.experiments {figures['name']}`"]
    parts += table_texts(figures)
    parts.append(f"![{figures['title']}]({figures['name']}.png)")
    if figures["claims"]:
        parts.append("\n".join(f"- {line}" for line in claim_lines(figures)))
    if figures["note"]:
        parts.append(figures["note"].strip())
    parts.append(f"_{origin(figures)}_")
    return "\n\n".join(parts) + "\n"


def update_page(names: list[str], folder: Path = RESULTS, path: Path = PAGE) -> None:
    """Put all experiments that have been run at full size into the page, in this order."""
    files = [folder / f"{name}.json" for name in names]
    known = [json.loads(file.read_text()) for file in files if file.exists()]
    text = "\n".join(markdown(figures) for figures in known if not figures["quick"])
    replace_section(path, BEGIN, END, f"\n{text}\n")
