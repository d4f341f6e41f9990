"""Spark: the card fraud query over a file, against the same pipeline with an idle engine.

Reading, filtering, shuffling, sorting, and Arrow to Python and back are what any engine would
cost there. The two pipelines take turns, so that what else the machine does meets both.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

import cepheid as cep
from benchmarks.answers import ANSWERS
from benchmarks.measure import WrongAnswer
from cepheid.cli.demo import QUERY
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


def measure(
    quick: bool = False, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The figures of the pipeline, in the form of a case's. Seconds are of the clock on the wall:
    the work is done by other processes."""
    from cepheid.options import Options
    from cepheid.spark import batch, worker
    from cepheid.spark.session import PANDAS_NOTICE, local_session

    warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
    rows = ROWS // 10 if quick else ROWS
    progress(f"{NAME}: making events")
    path, warm_up = event_file(rows), event_file(100_000)
    known = count_by_sql(path) if quick else ANSWERS[NAME]
    query, options = cep.Query(QUERY), Options(time="ts", tie="id")
    seconds: dict[str, list[float]] = {"idle": [], "engine": []}
    runners = {"idle": worker.discard, "engine": worker.run}
    spark = local_session(f"local[{CORES}]", app="cepheid benchmarks")
    try:
        for file, repeats in ((warm_up, 1), (path, 1 if quick else 3)):
            data = spark.read.parquet(str(file))
            for turn in range(repeats):
                for name, runner in runners.items():
                    progress(f"{NAME}: {name}, {turn + 1} of {repeats}")
                    begin = time.perf_counter()
                    found = batch.match(query, data, options, runner).count()
                    elapsed = time.perf_counter() - begin
                    if file == path:
                        seconds[name].append(elapsed)
                        check(name, found, known)
    finally:
        spark.stop()
    return record(rows, known, min(seconds["engine"]), min(seconds["idle"]))


def check(name: str, found: int, known: int) -> None:
    expected = 0 if name == "idle" else known
    if found != expected:
        raise WrongAnswer(f"{NAME}, {name}: {found:,} matches where there are {expected:,}")


def record(rows: int, matches: int, engine: float, idle: float) -> dict[str, Any]:
    times = engine / idle
    return {
        "name": f"{NAME} local[{CORES}]",
        "events": rows,
        "matches": matches,
        "wall_seconds": round(engine, 3),
        "events_per_second": round(rows / engine),
        "matches_per_second": round(matches / engine),
        "others": {"idle": {"wall_seconds": round(idle, 3)}},
        "times": {"idle": round(times, 2)},
        "target": {"text": f"≤ {RATIO} × idle ({times:.2f})", "met": times <= RATIO},
    }
