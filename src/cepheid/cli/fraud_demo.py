"""What `make demo` does: find stolen cards in a million transactions, with Spark."""

from __future__ import annotations

import sys
import time
import warnings
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.table import Table
from rich.text import Text

import cepheid as cep
from cepheid.cli.commands.generate import write_events
from cepheid.cli.output.failure import ended_by_signals, exit_cleanly
from cepheid.cli.output.progress import spark_tasks
from cepheid.cli.output.show import RunSummary, console, sample
from cepheid.cli.spark_session import spark_session
from cepheid.files.formats import Format
from cepheid.files.guard import Guard
from cepheid.spark.start.session import PANDAS_NOTICE
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


def demo(folder: Path, rows: int = EVENTS) -> RunSummary:
    """Generate, match, show. The events are kept in `folder` for the next time."""
    screen = console()
    events = event_file(folder, rows)
    screen.rule("query")
    screen.print(QUERY, markup=False, soft_wrap=True)

    with spark_session("local[*]", app="cepheid demo") as spark:
        data = spark.read.parquet(str(events))
        screen.rule("plan")
        plan = cep.Query(QUERY).explain(data, time="ts", tie="id")
        screen.print(str(plan), markup=False, soft_wrap=True)
        matches = cep.match(data, QUERY, time="ts", tie="id")
        begin = time.perf_counter()
        guard = Guard(overwrite=True)
        with (
            spark_tasks(spark, "matching"),
            guard.new_folder(folder / "matches", "--output", "the demo") as partial,
        ):
            matches.write.parquet(str(partial))
        seconds = time.perf_counter() - begin

    result = pq.read_table(folder / "matches")
    planted, detected = planted_and_detected(events, result)
    figures = RunSummary(rows, result.num_rows, seconds)
    screen.rule("some of the matches")
    screen.print(earliest(result, screen.width))
    screen.rule("figures")
    screen.print(figures.table({"planted frauds found": f"{detected:,} of {planted:,}"}))
    return figures


def event_file(folder: Path, rows: int) -> Path:
    """The file of events, made now if it isn't there."""
    path = folder / f"fraud-{rows}.parquet"
    if not path.exists():
        write_events(
            "making events", fraud.batches(rows), fraud.SCHEMA, rows, path, Format.PARQUET, Guard()
        )
    return path


def planted_and_detected(events: Path, matches: pa.Table) -> tuple[int, int]:
    """How many frauds were planted, and how many large purchases of theirs are in a match."""
    columns = ["id", "planted", "amount"]
    planted = (pc.field("planted").is_valid()) & (pc.field("amount") > fraud.LARGE)
    large = pq.read_table(events, columns=columns, filters=planted)["id"]
    return len(large), pc.sum(pc.is_in(large, pc.unique(matches["id"]))).as_py() or 0


def earliest(matches: pa.Table, width: int) -> Table | Text:
    """The first few matches by time, one line each."""
    hidden = ("id", "match_start", "match_end")
    names = [name for name in matches.column_names if name not in hidden]
    rows = matches.sort_by("spent").slice(0, SAMPLE).select(names).to_pylist()
    for row in rows:
        row.update({n: v.replace(microsecond=0) for n, v in row.items() if isinstance(v, datetime)})
    return sample(names, rows, width)


def main() -> None:
    warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build/demo")
    with exit_cleanly(), ended_by_signals():
        demo(folder)
