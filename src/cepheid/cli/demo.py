"""`make demo`: find stolen cards in a million transactions, with Spark."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import cepheid as cep
from cepheid.cli.failure import exit_cleanly
from cepheid.cli.files import Format
from cepheid.cli.generate import write_events
from cepheid.cli.progress import spark_tasks
from cepheid.spark.session import PANDAS_NOTICE, local_session
from cepheid.workloads import fraud

EVENTS = 1_000_000
SAMPLE = 10

QUERY = """\
PATTERN s1 ; s2 ; big
WHERE   s1.card = s2.card = big.card
  AND   [kind = 'purchase']
  AND   s1.amount < 100 AND s2.amount < 100 AND big.amount > 250
WITHIN  12 hours
RETURN  big.card AS card, s1.ts AS tested, s1.amount AS small, s2.amount AS small_too,
        big.ts AS spent, big.amount AS large, big.country AS country, big.id AS id
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the run amounts to."""

    events: int
    matches: int
    seconds: float
    planted: int
    found: int

    def table(self) -> Table:
        table = Table(show_header=False, box=None)
        table.add_row("events", f"{self.events:,}")
        table.add_row("matches", f"{self.matches:,}")
        table.add_row("seconds", f"{self.seconds:.2f}")
        table.add_row("events/s", f"{self.events / self.seconds:,.0f}")
        table.add_row("planted frauds found", f"{self.found:,} of {self.planted:,}")
        return table


def demo(folder: Path, rows: int = EVENTS) -> Figures:
    """Generate, match, show. The events are kept in `folder` for the next time."""
    console = Console()
    events = event_file(folder, rows)
    console.rule("query")
    console.print(QUERY, markup=False)

    with console.status("starting Spark"):
        spark = local_session(app="cepheid demo")
    try:
        data = spark.read.parquet(str(events))
        console.rule("plan")
        console.print(cep.Query(QUERY).explain(data, time="ts", tie="id"), markup=False)
        matches = cep.match(data, QUERY, time="ts", tie="id")
        begin = time.perf_counter()
        with spark_tasks(spark, "matching"):
            matches.write.mode("overwrite").parquet(str(folder / "matches"))
        seconds = time.perf_counter() - begin
    finally:
        spark.stop()

    result = pq.read_table(folder / "matches")
    planted, found = planted_and_found(events, result)
    figures = Figures(rows, result.num_rows, seconds, planted, found)
    console.rule("some of the matches")
    console.print(sample(result))
    console.rule("figures")
    console.print(figures.table())
    return figures


def event_file(folder: Path, rows: int) -> Path:
    """The file of events, made now if it isn't there."""
    path = folder / f"fraud-{rows}.parquet"
    if not path.exists():
        write_events("making events", fraud.batches(rows), fraud.SCHEMA, rows, path, Format.PARQUET)
    return path


def planted_and_found(events: Path, matches: pa.Table) -> tuple[int, int]:
    """How many frauds were planted, and how many large purchases of theirs are in a match."""
    columns = ["id", "planted", "amount"]
    planted = (pc.field("planted").is_valid()) & (pc.field("amount") > fraud.LARGE)
    large = pq.read_table(events, columns=columns, filters=planted)["id"]
    return len(large), pc.sum(pc.is_in(large, pc.unique(matches["id"]))).as_py() or 0


def sample(matches: pa.Table) -> Table:
    """The first few matches by time."""
    names = [
        name for name in matches.column_names if name not in ("id", "match_start", "match_end")
    ]
    table = Table(*names)
    for row in matches.sort_by("spent").slice(0, SAMPLE).select(names).to_pylist():
        table.add_row(*(_cell(row[name]) for name in names))
    return table


def _cell(value: object) -> str:
    return f"{value:%d %b %H:%M:%S}" if hasattr(value, "strftime") else str(value)


def main() -> None:
    warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build/demo")
    with exit_cleanly():
        demo(folder)


if __name__ == "__main__":
    main()
