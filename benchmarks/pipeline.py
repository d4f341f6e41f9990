"""Spark: the card fraud query over a file, against the same pipeline with an idle engine.

Reading, filtering, shuffling, sorting, and Arrow to Python and back are what any engine would
cost there. The two pipelines take turns, so that what else the machine does meets both, and the
processor time of all processes is measured beside the time on the wall.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

import cepheid as cep
from benchmarks.answers import ANSWERS
from benchmarks.measure import Timing, WrongAnswer, seconds
from cepheid.cli.fraud_demo import QUERY
from cepheid.workloads import fraud

NAME = "spark fraud"
ROWS = 10_000_000
SEED = 2009
CORES = 2
RATIO = 1.6
FOLDER = Path("build/benchmarks")

PLAIN_SQL = """
    WITH purchase AS (SELECT id, ts, card, amount FROM '{path}' WHERE kind = 'purchase'),
    small AS (SELECT * FROM purchase WHERE amount < 100),
    big AS (SELECT * FROM purchase WHERE amount > 250)
    SELECT count(*)
    FROM big JOIN small s2 ON s2.card = big.card AND (s2.ts, s2.id) < (big.ts, big.id)
                          AND s2.ts > big.ts - INTERVAL 12 HOUR
             JOIN small s1 ON s1.card = big.card AND (s1.ts, s1.id) < (s2.ts, s2.id)
                          AND s1.ts > big.ts - INTERVAL 12 HOUR
"""


def event_file(rows: int, folder: Path = FOLDER) -> Path:
    """The events, made now if they aren't there."""
    path = folder / f"fraud-{SEED}-{rows}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        with pq.ParquetWriter(unfinished, fraud.SCHEMA) as writer:
            for batch in fraud.batches(rows, SEED):
                writer.write_batch(batch)
        unfinished.rename(path)
    return path


def count_by_sql(path: Path) -> int:
    """The number of matches, without our engine."""
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        row = connection.execute(PLAIN_SQL.format(path=path)).fetchone()
    assert row is not None
    return int(row[0])


def processor_seconds(root: int | None = None) -> float:
    """Processor time so far of a process (this one, if none is given), Spark's Java and the Python
    workers: of everything that it has started, and what they have (Linux only)."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may have any characters; the fields after it have none.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended, and counts with its parent
        process, parent = int(stat.parent.name), int(fields[1])
        ticks[process] = sum(int(field) for field in fields[11:15])
        children.setdefault(parent, []).append(process)
    total, found = 0, [os.getpid() if root is None else root]
    while found:
        process = found.pop()
        total += ticks[process]
        found += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")


def measure(
    quick: bool = False, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The figures of the pipeline, in the form of a case's."""
    from cepheid.options import Options
    from cepheid.spark import batch
    from cepheid.spark.partitions import worker
    from cepheid.spark.start.session import PANDAS_NOTICE, local_session

    warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
    rows = ROWS // 10 if quick else ROWS
    progress(f"{NAME}: making events")
    path, warm_up = event_file(rows), event_file(100_000)
    known = count_by_sql(path) if quick else ANSWERS[NAME]
    query, options = cep.Query(QUERY), Options(time="ts", tie="id")
    timings: dict[str, list[Timing]] = {"idle": [], "engine": []}
    runners = {"idle": worker.discard, "engine": worker.run}
    spark = local_session(f"local[{CORES}]", app="cepheid benchmarks")
    try:
        for file, repeats in ((warm_up, 1), (path, 1 if quick else 3)):
            data = spark.read.parquet(str(file))
            for turn in range(repeats):
                for name, runner in runners.items():
                    progress(f"{NAME}: {name}, {turn + 1} of {repeats}")
                    cpu, wall = processor_seconds(), time.perf_counter()
                    found = batch.match(query, data, options, runner).count()
                    timing = Timing(processor_seconds() - cpu, time.perf_counter() - wall)
                    if file == path:
                        timings[name].append(timing)
                        check(name, found, known)
    finally:
        spark.stop()
    return record(rows, known, fastest(timings["engine"]), fastest(timings["idle"]))


def fastest(timings: list[Timing]) -> Timing:
    """The least of either time, not necessarily of one run."""
    return Timing(min(t.cpu for t in timings), min(t.wall for t in timings))


def check(name: str, found: int, known: int) -> None:
    expected = 0 if name == "idle" else known
    if found != expected:
        raise WrongAnswer(f"{NAME}, {name}: {found:,} matches where there are {expected:,}")


def record(rows: int, matches: int, engine: Timing, idle: Timing) -> dict[str, Any]:
    """Both ratios have to meet the target."""
    cpu, wall = engine.cpu / idle.cpu, engine.wall / idle.wall
    text = f"≤ {RATIO} × idle (CPU {cpu:.2f}, wall {wall:.2f})"
    return {
        "name": f"{NAME} local[{CORES}]",
        "events": rows,
        "matches": matches,
        **seconds(engine),
        "events_per_second": round(rows / engine.cpu),
        "matches_per_second": round(matches / engine.cpu),
        "others": {"idle": seconds(idle)},
        "times": {"idle": round(cpu, 2), "idle (wall)": round(wall, 2)},
        "target": {"text": text, "met": max(cpu, wall) <= RATIO},
    }
