"""`python -m benchmarks.placement [--quick]`"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from benchmarks.experiments.writing import claim_lines, failed, rich_tables
from benchmarks.placement.figure import FULL, QUICK, record, simulate
from benchmarks.placement.writing import RESULTS, draw, update_readme
from benchmarks.report import write_json


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.placement",
        description="How many queries modeled nodes support, by how operators are placed.",
        epilog="A run at full size is kept in results/placement.json, and shown in README.md.",
    )
    parser.add_argument("--quick", action="store_true", help="few nodes, two seeds, fewer queries")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    console = Console(emoji=False, width=None if sys.stdout.isatty() else 140)
    with console.status("starting") as status:
        figure = simulate(QUICK if given.quick else FULL, status.update)
    figures = record(figure, given.quick)
    for table in rich_tables(figures):
        console.print(table)
    for line in claim_lines(figures):
        console.print(line, highlight=False, markup=False)
    if not given.quick:
        write_json(RESULTS, figures)
        draw(figure)
        update_readme(figures)
    return int(failed(figures))


if __name__ == "__main__":
    sys.exit(main())
