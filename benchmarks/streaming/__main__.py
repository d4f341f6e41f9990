"""`python -m benchmarks.streaming speed [PARTS…] [--quick]`, `… soak [--minutes] [--events]` and
`… start [--against SOURCES]`"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.experiments.writing import claim_lines, failed, rich_tables
from benchmarks.measure import WrongAnswer
from benchmarks.report import Record
from benchmarks.streaming import soak, speed, start, writing
from benchmarks.streaming.running import session
from benchmarks.tree import add_dry_run, commit, may_record


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.streaming",
        description="Measure queries over streams: the cost of a batch, and a run without an end.",
        epilog="Runs at full size are kept in results/streaming, with a README.md.",
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    fast = kinds.add_parser("speed", help="what a batch costs")
    fast.add_argument("parts", nargs="*", choices=[*speed.PARTS, []], help="by default, all")
    fast.add_argument("--quick", action="store_true", help="a tenth of the events, a few batches")
    fast.add_argument("--turns", type=int, default=speed.TURNS, help="runs of each way, in turns")
    long = kinds.add_parser("soak", help="whether memory and batch time stay flat")
    long.add_argument("--minutes", type=float, default=30)
    long.add_argument("--events", type=int, default=50_000_000)
    first = kinds.add_parser("start", help="what it takes until a first batch is done")
    first.add_argument("--queries", type=int, nargs="*", default=[1, 5], help="how many at once")
    first.add_argument("--turns", type=int, default=start.TURNS)
    first.add_argument("--against", type=Path, help="the folder `src` of another version")
    for parts in (fast, long, first):
        add_dry_run(parts)
    return parser.parse_args()


def show(console: Console, figures: Record) -> None:
    for table in rich_tables(figures):
        console.print(table)
    for line in claim_lines(figures):
        console.print(line, highlight=False)


def starts(given: argparse.Namespace, console: Console) -> int:
    ours = Path(__file__).parents[2] / "src"
    other = {} if given.against is None else {named(given.against): given.against.resolve()}
    with console.status("starting") as status:
        versions = {**other, start.NOW: ours}
        figures = start.measure(given.queries, versions, given.turns, status.update)
    show(console, figures)
    if not given.dry_run:
        writing.keep(figures)
        writing.update_page()
    return int(failed(figures))


def named(sources: Path) -> str:
    """Another version, by its commit."""
    return f"before ({commit(sources.resolve()) or 'no commit'})"


def main() -> int:
    given = arguments()
    console = Console(emoji=False, width=None if sys.stdout.isatty() else 160)
    recording = not getattr(given, "quick", False) and not given.dry_run
    if recording and not may_record():
        return 1
    if given.kind == "start":
        return starts(given, console)
    shown: list[Record] = []
    config = soak.CONFIG if given.kind == "soak" else speed.CONFIG
    try:
        with console.status("starting") as status, session(config) as spark:
            if given.kind == "speed":
                setup = speed.Setup(spark, status.update, given.turns, given.quick)
                for figures in speed.measure(given.parts, setup):
                    shown.append(figures)
                    show(console, figures)
                    if recording:
                        writing.keep(figures)
            else:
                samples = soak.soak(spark, given.minutes, given.events, status.update)
                shown.append(soak.record(samples))
                show(console, shown[-1])
                if recording:
                    writing.keep_soak(shown[-1], samples)
    except WrongAnswer as wrong:
        console.print(f"[bold red]WRONG ANSWER[/]: {wrong}", highlight=False)
        return 1
    if recording:
        writing.update_page()
    return int(any(map(failed, shown)))


if __name__ == "__main__":
    sys.exit(main())
