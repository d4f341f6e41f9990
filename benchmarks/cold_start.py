"""`python -m benchmarks.cold_start [NAMES…]`: what the first call of a query takes.

Of a machine that never ran a query, of one that ran another query, and of one that ran this one:
that depends on the kernels in the folder for caches. All in processor time, in a process of its
own, once the libraries are imported. Matches come in batches, so that the first can be there before
the last; a query without a window is run on a table, which gives all at once. Beside that, what
compiling all kernels takes ahead, and a call in which there is hardly anything to match.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

import pyarrow as pa
from rich.console import Console

import cepheid as cep
from benchmarks.experiments.cayuga import ITERATIONS, prices
from benchmarks.peers.workloads import WORKLOADS
from benchmarks.report import Record, origin, provenance, replace_section, write_json
from benchmarks.tree import HERE, run_arguments
from cepheid.engine import run
from cepheid.engine.operators.base import FOREVER
from cepheid.options import GivenOptions

RESULTS = HERE / "results" / "cold_start.json"
PAGE = HERE / "README.md"
BEGIN, END = "<!-- cold start: begin -->", "<!-- cold start: end -->"
ROWS, FEW, SMOOTHING = 50_000, 10, 5
CALLS = 30
"""Calls over a few rows, of which the median counts."""

OTHER = "q5"
"""The query that a machine has run before."""

Call = Literal["match", "warm", "few"]


@dataclass(frozen=True, slots=True)
class ColdQuery:
    text: str
    query: str
    events: Callable[[int], pa.Table]
    columns: GivenOptions


QUERIES: Mapping[str, ColdQuery] = {
    **{w.name: ColdQuery(w.text, w.query, w.events, w.columns) for w in WORKLOADS},
    "top": ColdQuery(
        "double top", ITERATIONS, lambda rows: prices(SMOOTHING, rows), {"time": "ts"}
    ),
}
HEADINGS = (
    "query",
    "first query of a machine: first matches",
    "of a new shape: first matches",
    "all",
    "known: first matches",
    "compiling ahead",
    "ten rows",
)


def seconds(name: str, call: Call) -> tuple[float, float]:
    """In this process: until the first matches, and until the last."""
    run.COMPILE_AT = FOREVER  # not as in other benchmarks
    query = QUERIES[name]
    table = query.events(ROWS)
    options: dict[str, Any] = {**query.columns, "threads": 1}
    began = time.process_time()
    parsed = cep.Query(query.query)
    if call == "warm":
        cep.warm(parsed, table, **query.columns)
        return time.process_time() - began, 0.0
    windowed = "WITHIN" in query.query
    given = iter(table.to_batches()) if windowed else table
    matches: Any = parsed.match(given, **options)
    batches = matches if windowed else iter(matches.to_batches())
    next((batch for batch in batches if batch.num_rows), None)
    first = time.process_time() - began
    for _ in batches:
        pass
    if call == "match":
        return first, time.process_time() - began
    taken: list[float] = []
    for _ in range(CALLS):
        began = time.process_time()
        parsed.match(table.slice(0, FEW), **options)
        taken.append(time.process_time() - began)
    return median(taken), 0.0


def measured(name: str) -> Record:
    """Seconds of processor time."""
    with tempfile.TemporaryDirectory() as folder:
        empty, other = Path(folder) / "empty", Path(folder) / "other"
        first, _ = _in_a_process(name, "match", empty)
        _in_a_process(OTHER, "warm", other)
        shutil.copytree(other, before := Path(folder) / "before")
        new, all_new = _in_a_process(name, "match", before)
        return {
            "name": name,
            "query": QUERIES[name].text,
            "first": first,
            "new": new,
            "all": all_new,
            "compiling": _in_a_process(name, "warm", other)[0],
            "known": _in_a_process(name, "match", other)[0],
            "few": _in_a_process(name, "few", other)[0],
        }


def _in_a_process(name: str, call: Call, folder: Path) -> tuple[float, float]:
    program = (
        "from benchmarks.cold_start import seconds; import sys; print(*seconds(*sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, name, call],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "XDG_CACHE_HOME": str(folder)},
    )
    first, last = done.stdout.split()
    return round(float(first), 5), round(float(last), 5)


def cells(record: Record) -> list[str]:
    whole = [f"{record[name]:.2f} s" for name in ("first", "new", "all", "known", "compiling")]
    return [record["query"], *whole, f"{1e3 * record['few']:.1f} ms"]


def markdown(figures: Record) -> str:
    rows = [list(HEADINGS), ["---"] * len(HEADINGS), *map(cells, figures["cases"])]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{table}\n\n{origin(figures)}\n"


def measure_all(names: list[str], recording: bool, console: Console) -> None:
    """Measure and show these, or all."""
    records: list[Record] = []
    for name in names or list(QUERIES):
        records.append(measured(name))
        line = zip(HEADINGS[1:], cells(records[-1])[1:], strict=True)
        said = ", ".join(f"{head} {cell}" for head, cell in line)
        console.print(f"{records[-1]['query']}: {said}", highlight=False)
    if recording and not names:
        figures = {**provenance(), "cases": records}
        write_json(RESULTS, figures)
        replace_section(PAGE, BEGIN, END, markdown(figures))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold_start", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of them: {', '.join(QUERIES)}")
    given = run_arguments(parser, quick="one query")
    if given is None:
        return 1
    if unknown := set(given.names) - set(QUERIES):
        parser.error(f"there is no {', '.join(sorted(unknown))}, but {', '.join(QUERIES)}")
    names = given.names or ([OTHER] if given.quick else [])
    measure_all(names, given.recording, Console(emoji=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
