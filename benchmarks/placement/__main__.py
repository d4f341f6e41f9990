"""`python -m benchmarks.placement [cluster | rewriting] [--quick]`"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from rich.console import Console

from benchmarks.experiments.writing import claim_lines, failed, rich_tables
from benchmarks.placement import claims, figure, rewriting
from benchmarks.placement.writing import (
    RESULTS,
    REWRITING,
    draw,
    draw_rewriting,
    update_page,
    update_rewriting,
)
from benchmarks.report import Record, write_json
from benchmarks.tree import add_dry_run, may_record


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.placement",
        description="NEXT's experiments: how many queries modeled nodes support, by how operators "
        "are placed; and what rewriting is worth on this engine.",
        epilog="A run at full size is kept in results/, with results/placement/README.md.",
    )
    parser.add_argument(
        "what",
        nargs="?",
        choices=("cluster", "rewriting"),
        default="cluster",
        help="figure 11 on modeled nodes, or figures 9 and 10 on the engine; by default the first",
    )
    parser.add_argument("--quick", action="store_true", help="few nodes, seeds and queries")
    add_dry_run(parser)
    return parser.parse_args()


def cluster(quick: bool, recording: bool, say: Callable[[str], None]) -> Record:
    found = figure.simulate(figure.QUICK if quick else figure.FULL, say)
    figures = figure.record(found, quick)
    if recording:
        write_json(RESULTS, figures)
        draw(found)
        update_page(figures)
    return figures


def single_node(quick: bool, recording: bool, say: Callable[[str], None]) -> Record:
    found = rewriting.measure(rewriting.QUICK if quick else rewriting.FULL, say)
    figures = claims.record(found, quick)
    if recording:
        write_json(REWRITING, figures)
        draw_rewriting(figures)
        update_rewriting(figures)
    return figures


def main() -> int:
    given = arguments()
    recording = not given.quick and not given.dry_run
    if recording and not may_record():
        return 1
    console = Console(emoji=False, width=None if sys.stdout.isatty() else 140)
    with console.status("starting") as status:
        run = cluster if given.what == "cluster" else single_node
        figures = run(given.quick, recording, status.update)
    for table in rich_tables(figures):
        console.print(table)
    for line in claim_lines(figures):
        console.print(line, highlight=False, markup=False)
    return int(failed(figures))


if __name__ == "__main__":
    sys.exit(main())
