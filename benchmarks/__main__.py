"""`python -m benchmarks [NAMES…] [--quick] [--json PATH]`

A run of everything begins with the engine beside its peers, and with what first calls take; both
have programs of their own, too.
"""

from __future__ import annotations

import os

# Before anything imports these libraries: one thread, as for the engine and the loops.
os.environ["POLARS_MAX_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import sys
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from benchmarks import cold_start, pipeline
from benchmarks.cases import chosen
from benchmarks.measure import WrongAnswer, measure
from benchmarks.peers import __main__ as peers
from benchmarks.report import (
    LATEST,
    Record,
    case_record,
    document,
    rich_table,
    update_page,
    write_json,
)
from benchmarks.tree import add_dry_run, may_record


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the engine on the workloads of the papers, and the Spark pipeline.",
        epilog="A run of everything at full size updates the tables here and in results.",
    )
    parser.add_argument(
        "names", nargs="*", help="beginnings of cases: q4, 'q5 1:1:1', 'q8 left', spark; or all"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the events, one run each")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures to this file")
    add_dry_run(parser)
    return parser.parse_args()


def main() -> int:
    given = arguments()
    console = Console(
        emoji=False, width=None if sys.stdout.isatty() else 160
    )  # 1:100:1 is no emoji
    pa.set_cpu_count(1)
    cases = chosen(given.names)
    spark = not given.names or any(pipeline.NAME.startswith(name) for name in given.names)
    if not cases and not spark:
        console.print(f"no case begins with {' or '.join(given.names)}")
        return 2
    recording = not given.names and not given.quick and not given.dry_run
    if recording and not may_record():
        return 1
    records: list[Record] = []
    try:
        if not given.names:
            peers.run([], given.quick, recording, console)
            cold_start.measure_all([cold_start.OTHER] if given.quick else [], recording, console)
        with console.status("starting") as status:
            for result in measure(cases, given.quick, status.update):
                records.append(case_record(result))
                console.print(f"{result.case.name}: {result.engine.cpu:.2f} s", highlight=False)
            if spark:
                records.append(pipeline.measure(given.quick, status.update))
    except WrongAnswer as wrong:
        console.print(f"[bold red]WRONG ANSWER[/]: {wrong}", highlight=False)
        return 1
    console.print(rich_table(records))
    figures = document(records, given.quick)
    if given.json:
        write_json(given.json, figures)
    if recording:
        write_json(LATEST, figures)
        update_page(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
