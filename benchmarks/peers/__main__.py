"""`python -m benchmarks.peers [NAMES…]`: the engine beside a hand-written loop, DuckDB and Polars,
on one thread each and on all cores each."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console

from benchmarks.measure import WrongAnswer
from benchmarks.peers.program import NAMES
from benchmarks.peers.workloads import WORKLOADS, PeerWorkload
from benchmarks.report import Record, origin, provenance, replace_section, short, write_json
from benchmarks.tree import HERE, run_arguments

RESULTS = HERE / "results" / "peers.json"
PAGE = HERE / "README.md"
BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
REPEATS = 3
LOOP, ENGINE, *PEERS = NAMES

HEADINGS = (
    "query",
    "events",
    "matches",
    "events/s",
    "× DuckDB",
    "× Polars",
    "× loop",
    "all cores: events/s",
    "× DuckDB",
    "× Polars",
    "× one thread",
)


def measured(workload: PeerWorkload, rows: int, repeats: int) -> Record:
    """The figures of all programs, each of which must make as many matches as the loop."""
    cores = os.cpu_count() or 1
    record: Record = {"name": workload.name, "query": workload.text, "events": rows}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.arrow"
        table = workload.events(rows)
        with pa.OSFile(str(path), "w") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        del table
        runs = [(name, 1) for name in NAMES] + [(name, cores) for name in NAMES if name != LOOP]
        for name, threads in runs:
            figures = _in_a_process(name, workload.name, path, threads, repeats)
            counted = figures.pop("matches")
            if counted != [record.setdefault("matches", counted[0])]:
                raise WrongAnswer(
                    f"{workload.name}: {name} makes {counted} matches, the loop {record['matches']}"
                )
            record[f"{name}, all cores" if threads > 1 else name] = figures
    return record


def _in_a_process(name: str, workload: str, path: Path, threads: int, repeats: int) -> Record:
    program = [sys.executable, "-m", "benchmarks.peers.program"]
    arguments = [name, workload, str(path), str(threads), str(repeats)]
    done = subprocess.run([*program, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    figures: Record = json.loads(done.stdout)
    return figures


def cells(record: Record) -> list[str]:
    """A line of the table. Above 1 the engine is ahead: by processor time on one thread, on the
    wall on all cores."""
    alone, together = record[ENGINE], record.get(f"{ENGINE}, all cores")
    cpu = [f"{record[name]['cpu'] / alone['cpu']:.2f}" for name in (*PEERS, LOOP)]
    line = [
        record["query"],
        short(record["events"]),
        short(record["matches"]),
        short(record["events"] / alone["cpu"]),
        *cpu,
    ]
    if together is None:
        return [*line, "", "", "", ""]
    walls = [f"{record[f'{name}, all cores']['wall'] / together['wall']:.2f}" for name in PEERS]
    gain = f"{alone['wall'] / together['wall']:.2f}"
    return [*line, short(record["events"] / together["wall"]), *walls, gain]


def markdown(figures: Record) -> str:
    rows = [list(HEADINGS), ["---"] * len(HEADINGS), *map(cells, figures["cases"])]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{table}\n\n{origin(figures)}\n"


def record_figures(records: list[Record]) -> None:
    """Replace these cases in the recorded figures; parts may be measured one by one, at one
    commit."""
    figures: Record = {**provenance(), "cases": []}
    if RESULTS.exists():
        before = json.loads(RESULTS.read_text())
        if before["commit"] == figures["commit"]:
            figures["cases"] = before["cases"]
    known = {record["name"]: record for record in [*figures["cases"], *records]}
    figures["cases"] = [known[w.name] for w in WORKLOADS if w.name in known]
    write_json(RESULTS, figures)
    replace_section(PAGE, BEGIN, END, markdown(figures))


def run(names: list[str], quick: bool, recording: bool, console: Console) -> None:
    """Measure and show these queries, or all. `WrongAnswer` if programs differ."""
    records: list[Record] = []
    for workload in WORKLOADS:
        if names and workload.name not in names:
            continue
        rows = workload.rows // 10 if quick else workload.rows
        records.append(measured(workload, rows, 1 if quick else REPEATS))
        line = zip(HEADINGS[1:], cells(records[-1])[1:], strict=True)
        console.print(
            f"{workload.text}: " + ", ".join(f"{head} {cell}" for head, cell in line),
            highlight=False,
        )
    if recording:
        record_figures(records)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("names", nargs="*", help=f"some of them: {', '.join(names)}")
    given: Any = run_arguments(parser, quick="a tenth of the events, one run each")
    if given is None:
        return 1
    if unknown := set(given.names) - set(names):
        parser.error(f"there is no {', '.join(sorted(unknown))}, but {', '.join(names)}")
    console = Console(emoji=False)
    try:
        run(given.names, given.quick, given.recording, console)
    except WrongAnswer as wrong:
        console.print(f"[bold red]WRONG ANSWER[/]: {wrong}", highlight=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
