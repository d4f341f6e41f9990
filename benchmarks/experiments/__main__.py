"""`python -m benchmarks.experiments NAMES… [--quick] [--out FOLDER]`"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from benchmarks.experiments import cayuga, relational, sase, strict, thesis, zstream
from benchmarks.experiments.drawing import draw
from benchmarks.experiments.running import FULL, QUICK, Laboratory
from benchmarks.experiments.writing import (
    RESULTS,
    claim_lines,
    failed,
    record,
    rich_tables,
    update_page,
)
from benchmarks.measure import WrongAnswer
from benchmarks.report import write_json
from benchmarks.tree import add_dry_run, may_record

EXPERIMENTS = {
    e.name: e
    for e in (
        *zstream.EXPERIMENTS,
        *thesis.EXPERIMENTS,
        *sase.EXPERIMENTS,
        *cayuga.EXPERIMENTS,
        *strict.EXPERIMENTS,
        *relational.EXPERIMENTS,
    )
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.experiments",
        description="Repeat the papers' experiments: a table, a plot and the data of each.",
        epilog="experiments: " + ", ".join(EXPERIMENTS),
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="an experiment, or all")
    parser.add_argument("--quick", action="store_true", help="a tenth of the events, one run each")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="where plots and data go, instead of results/"
    )
    add_dry_run(parser)
    return parser.parse_args()


def main() -> int:
    given = arguments()
    console = Console(emoji=False, width=None if sys.stdout.isatty() else 140)
    pa.set_cpu_count(1)
    names = list(EXPERIMENTS) if "all" in given.names else given.names
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        console.print(f"no experiment {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}")
        return 2
    recording = not given.quick and not given.out and not given.dry_run
    if recording and not may_record():
        return 1
    folder = RESULTS if recording else given.out
    missed = []
    with console.status("starting") as status:
        laboratory = Laboratory(QUICK if given.quick else FULL, status.update)
        for name in names:
            experiment = EXPERIMENTS[name]
            try:
                figure = laboratory.run(experiment)
            except WrongAnswer as wrong:
                console.print(f"[bold red]WRONG ANSWER[/]: {wrong}", highlight=False)
                return 1
            figures = record(experiment, figure, given.quick)
            for table in rich_tables(figures):
                console.print(table)
            for line in claim_lines(figures):
                console.print(line, highlight=False, markup=False)
            if folder:
                write_json(folder / f"{name}.json", figures)
                draw(experiment, figure, folder / f"{name}.png")
            missed += [name] if failed(figures) else []
    if recording:
        update_page(list(EXPERIMENTS))
    if missed:
        console.print(f"[bold red]what must hold doesn't[/]: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
