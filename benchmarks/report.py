"""The figures as a table, as JSON, and as a section of the page beside them."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.measure import Result, seconds
from benchmarks.tree import DIRTY, HERE, commit

LATEST = HERE / "results" / "latest.json"
PAGE = HERE / "results" / "README.md"
OTHERS = ("loop", "DuckDB", "Polars")
LIBRARIES = ("numpy", "numba", "pyarrow", "duckdb", "polars", "pyspark")
TO_MEASURE_AGAIN = "Measured from a tree with uncommitted changes; to be measured again."
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"

Record = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """A claim, whether it holds, the figures that say so, and whether it must."""

    text: str
    holds: bool
    detail: str
    must: bool = False


def case_record(result: Result) -> Record:
    """The figures of a case; rates are per second of processor time."""
    target = result.case.target
    record: Record = {
        "name": result.case.name,
        "events": result.events,
        "matches": result.matches,
        **seconds(result.engine),
        "events_per_second": round(result.events_per_second),
        "matches_per_second": round(result.matches_per_second),
        "others": {name: seconds(timing) for name, timing in result.others.items()},
        "times": {name: round(result.engine.cpu / t.cpu, 2) for name, t in result.others.items()},
    }
    if target is not None:
        reached = record[f"{target.of}_per_second"]
        record["target"] = {
            "text": f"≥ {short(target.per_second)} {target.of}/s",
            "met": reached >= target.per_second,
        }
    return record


def document(records: list[Record], quick: bool) -> Record:
    """What a run amounts to, and what it ran on."""
    return {**provenance(quick), "cases": records}


def provenance(quick: bool = False) -> Record:
    """When, of which commit and on what figures were measured."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit(),
        "quick": quick,
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "system": platform.system(),
        },
        "versions": {"python": platform.python_version()} | {n: version(n) for n in LIBRARIES},
    }


def processor() -> str:
    """The processor's model; not the machine's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def write_json(path: Path, figures: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")


# ── tables ──

HEADINGS = ("case", "events", "matches", "CPU s", "wall s", "events/s", "matches/s")


def cells(record: Record) -> list[str]:
    """One row: figures that a case doesn't have stay empty."""
    times = record.get("times", {})
    return [
        record["name"],
        short(record["events"]),
        short(record["matches"]),
        _number(record["cpu_seconds"]),
        _number(record["wall_seconds"]),
        short(record["events_per_second"]),
        short(record["matches_per_second"]),
        *(_number(times.get(name)) for name in OTHERS),
        _verdict(record),
    ]


def headings() -> list[str]:
    return [*HEADINGS, *(f"× {name}" for name in OTHERS), "target"]


def rich_table(records: Iterable[Record]) -> Table:
    table = Table(title="rates per second of processor time; × is our time over the other's")
    for number, heading in enumerate(headings()):
        table.add_column(heading, justify="right" if 0 < number < len(headings()) - 1 else "left")
    for record in records:
        table.add_row(*cells(record))
    return table


def origin(figures: Record) -> str:
    """The provenance as a sentence, and a mark if no commit has what was measured."""
    machine, versions = figures["machine"], figures["versions"]
    said = ", ".join(f"{name} {number}" for name, number in versions.items())
    sentence = (
        f"Commit {figures['commit']}, {figures['date']}; {machine['cores']} cores of "
        f"{machine['processor']}; {said}."
    )
    is_dirty = (figures["commit"] or "").endswith(DIRTY)
    return f"{sentence} {TO_MEASURE_AGAIN}" if is_dirty else sentence


def markdown(figures: Record) -> str:
    """The section of the page."""
    rows = [headings(), ["---"] * len(headings()), *(cells(r) for r in figures["cases"])]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{origin(figures)}\n\n{table}\n"


def update_page(figures: Record, path: Path = PAGE) -> None:
    replace_section(path, BEGIN, END, markdown(figures))


def replace_section(path: Path, begin: str, end: str, text: str) -> None:
    """Put the text between the two marks of a file."""
    before, _, rest = path.read_text().partition(begin)
    after = rest.partition(end)[2]
    path.write_text(f"{before}{begin}\n{text}{end}{after}")


def _verdict(record: Record) -> str:
    target = record.get("target")
    return "" if target is None else f"{target['text']} {'✓' if target['met'] else '✗ missed'}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def begun(title: str) -> str:
    """As the beginning of a line.

    >>> begun("by rules, 5 M events")
    'By rules, 5 M events'
    """
    return title[:1].upper() + title[1:]


def short(value: float) -> str:
    """Three digits and a unit.

    >>> short(1_234_567), short(80e6), short(382)
    ('1.23 M', '80 M', '382')
    """
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
