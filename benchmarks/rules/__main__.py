"""`python -m benchmarks.rules [PARTS…] [--quick]`"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from benchmarks.experiments.writing import claim_lines, failed, rich_tables
from benchmarks.measure import WrongAnswer
from benchmarks.report import Record
from benchmarks.rules import (
    closures,
    family_runs,
    family_spark,
    iterations,
    joined,
    sizes,
    spark,
)
from benchmarks.rules.figures import FULL, QUICK, SWEEPS, Say, record
from benchmarks.rules.writing import PARTS, draw, keep, kept, update_page
from benchmarks.tree import add_dry_run, may_record


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rules",
        description="Hundreds of thousands of rules over one stream: Cayuga's technical benchmark.",
        epilog="Runs at full size are kept in results/rules, with a README.md.",
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="by default, all")
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the rules, few events")
    add_dry_run(parser)
    return parser.parse_args()


def measured(part: str, quick: bool, say: Say) -> Record:
    size = QUICK if quick else FULL
    if part == "size":
        return sizes.record(sizes.measure(size, say), quick)
    if part == "iterations":
        return iterations.record(iterations.measure(size, say), quick)
    if part == "closures":
        return closures.record(closures.measure(size, say), quick)
    if part == "joined":
        return joined.record(joined.measure(size, say), quick)
    if part == "families":
        return family_runs.record(family_runs.measure(quick, say), quick)
    if part == "family_spark":
        return family_spark.measure(quick, say)
    if part == "spark":
        return spark.measure(quick, say)
    return record(SWEEPS[part](size, say), quick)


def main() -> int:
    given = arguments()
    recording = not given.quick and not given.dry_run
    if recording and not may_record():
        return 1
    console = Console(emoji=False, width=None if sys.stdout.isatty() else 160)
    shown: list[Record] = []
    with console.status("starting") as status:
        for part in given.parts or PARTS:
            try:
                figures = measured(part, given.quick, status.update)
            except WrongAnswer as wrong:
                console.print(f"[bold red]WRONG ANSWER[/]: {wrong}", highlight=False)
                return 1
            shown.append(figures)
            for table in rich_tables(figures):
                console.print(table)
            for line in claim_lines(figures):
                console.print(line, highlight=False, markup=False)
            if recording:
                keep(figures)
    if recording:
        known = kept()
        draw(known)
        update_page(known)
    return int(any(map(failed, shown)))


if __name__ == "__main__":
    sys.exit(main())
