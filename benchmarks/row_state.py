"""`python -m benchmarks.row_state [--quick]`: how streams of MATCH_RECOGNIZE keep partitions.

Every partition has an open match of five rows, which WITHIN ends an hour later. Then batches come:
small ones of 200 rows in 20 partitions, and large ones of 100,000 rows over all. The same rows go
through four layouts of state:

- *pages*: as it is, some partitions in each page;
- *a page each*: a page for each partition;
- *whole buckets*: all partitions of a bucket in one page;
- *keys*: each partition is a key of Spark's state.

The second and the last are run with 500 partitions and no more: what every partition of a batch
costs there can be seen from these.

CPU seconds are those of all processes, the median of some batches, with the empty batch that moves
the watermark after each. Bytes are those that the batch hands to the state store.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from benchmarks.experiments.writing import RESULTS
from benchmarks.report import provenance, write_json
from benchmarks.streaming.running import run, session
from benchmarks.tree import run_arguments
from cepheid.language.diagnostics import Source
from cepheid.row_patterns.bound import BoundRecognition, bind
from cepheid.row_patterns.clause import parse_recognition
from cepheid.spark.columns.column_names import named
from cepheid.spark.columns.schema import spark_schema
from cepheid.spark.streaming import row_pipeline
from cepheid.spark.streaming.stateful.buckets import DEFAULT
from cepheid.spark.streaming.stateful.packed_rows import BUCKET_COLUMN
from cepheid.streaming.buckets.row_bucket import RowsJob, open_rows
from cepheid.streaming.buckets.row_pages import PER_PAGE, PLACE

FEW, MANY = 500, 20_000
OPEN_ROWS = 5
SMALL, LARGE = 200, 100_000
TOUCHED = 20
"""Partitions that a small batch touches, at most."""

BATCHES, WARM_UP = 4, 1
SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("x", pa.int64())])
CLAUSE = """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY t
    MEASURES FIRST(UP.t) AS a, LAST(UP.t) AS b
    PATTERN (UP+ DOWN) WITHIN INTERVAL '1' HOUR
    DEFINE UP AS x >= 0, DOWN AS x < 0)"""
NO_LIMIT = 1 << 40
LAYOUTS = {"pages": PER_PAGE, "a page each": 1, "whole buckets": NO_LIMIT, "keys": NO_LIMIT}
"""How many partitions a page has."""


@dataclass(frozen=True)
class StateFigures:
    """A batch, typically. `kept` are the bytes of the state after it."""

    layout: str
    partitions: int
    rows: int
    cpu_seconds: float
    written: int
    kept: int


@dataclass(frozen=True)
class StateCase:
    partitions: int
    rows: int

    def batches(self) -> Iterator[pa.Table]:
        """First the open matches, in the order of time; then the batches that are measured."""
        rng = np.random.default_rng(18)
        everywhere = np.tile(np.arange(self.partitions), OPEN_ROWS)
        yield _rows(everywhere, 0, 60)
        for number in range(WARM_UP + BATCHES):
            touched = self.partitions
            if self.rows == SMALL:
                touched = min(TOUCHED, self.partitions)
            some = rng.choice(self.partitions, touched, replace=False)
            yield _rows(rng.choice(some, self.rows), 120 + 60 * number, 50)


def _rows(keys: np.ndarray[Any, Any], begin: int, seconds: int) -> pa.Table:
    """Rows of these partitions, over so many seconds. One in ten ends a match."""
    at = (np.linspace(begin, begin + seconds, len(keys)) * 1e6).astype(
        np.int64
    ) + 1_700_000_000 * 10**6
    x = np.where(np.arange(len(keys)) % 10 == 9, -1, 1) if begin else np.ones(len(keys), np.int64)
    return pa.table([pa.array(keys), pa.array(at), pa.array(x)], SCHEMA.names).cast(SCHEMA)


def _job(layout: str) -> RowsJob:
    source = Source(CLAUSE[CLAUSE.index("(") + 1 : -1])
    recognition = parse_recognition(source)
    return RowsJob(bind(recognition, SCHEMA, source), SCHEMA, layout, 1, LAYOUTS[layout])


class CountingCells:
    """A bucket's state, which counts the bytes that are written and kept."""

    def __init__(self) -> None:
        self.kept: dict[int | None, bytes] = {}
        self.written = 0

    def header(self) -> bytes | None:
        return self.kept.get(None)

    def set_header(self, data: bytes) -> None:
        self._write(None, data)

    def remove_header(self) -> None:
        del self.kept[None]

    def segment(self, number: int) -> bytes | None:
        return self.kept.get(number)

    def set_segment(self, number: int, data: bytes) -> None:
        self._write(number, data)

    def remove_segment(self, number: int) -> None:
        del self.kept[number]

    def _write(self, place: int | None, data: bytes) -> None:
        self.written += len(data)
        self.kept[place] = data


def bytes_written(layout: str, case: StateCase) -> tuple[int, int]:
    """What a batch writes, by the median, and what is kept in the end. Each batch is followed by an
    empty one, with the watermark that it has brought."""
    job, cells = _job(layout), defaultdict[int, CountingCells](CountingCells)
    before, written, watermark = 0, [], 0
    for batch in case.batches():
        keys = batch["k"].to_numpy()
        buckets = keys if layout == "keys" else keys % DEFAULT
        places = pa.array(keys // DEFAULT * 2654435761 % (1 << 31), pa.int32())
        arriving = batch.append_column(PLACE, places)
        for rows in (arriving, arriving.slice(0, 0)):
            for bucket in np.unique(buckets).tolist():
                part = rows.filter(pa.array(buckets == bucket)) if rows.num_rows else rows
                opened = open_rows(job, cells[bucket])
                opened.step(cells[bucket], part.to_batches(), watermark)
                opened.save(cells[bucket], watermark)
            watermark = batch["t"].cast(pa.int64()).to_numpy()[-1] - 1
        total = sum(cell.written for cell in cells.values())
        written.append(total - before)
        before = total
    kept = sum(len(data) for cell in cells.values() for data in cell.kept.values())
    return int(median(written[1 + WARM_UP :])), kept


def processor_time(spark: SparkSession, layout: str, case: StateCase) -> float:
    """Of a batch on Spark, by the median."""
    folder = Path(tempfile.mkdtemp(prefix="cepheid-state-"))
    try:
        for number, batch in enumerate(case.batches()):
            pq.write_table(batch, folder / f"{number:03}.parquet")
        reader = spark.readStream.schema(spark_schema(SCHEMA)).option("maxFilesPerTrigger", 1)
        with kept_as(layout):
            stream = cep.sql(CLAUSE, {"events": reader.parquet(str(folder))})
        batches = run(stream)
    finally:
        shutil.rmtree(folder)
    return median(batch.time.cpu for batch in batches[1 + WARM_UP :])


@contextmanager
def kept_as(layout: str) -> Iterator[None]:
    bucketed = by_partition if layout == "keys" else row_pipeline._bucketed
    job = partial(RowsJob, per_page=LAYOUTS[layout])
    with patch.multiple(row_pipeline, RowsJob=job, _bucketed=bucketed):
        yield


def by_partition(rows: DataFrame, in_time: Column, bound: BoundRecognition) -> DataFrame:
    key = named("k").cast("int")
    return rows.withColumns({BUCKET_COLUMN: F.when(in_time, key), PLACE: F.lit(0)})


def measure(spark: SparkSession, quick: bool) -> Iterator[StateFigures]:
    large = LARGE // 10 if quick else LARGE
    processor_time(spark, "pages", StateCase(8, SMALL))  # Java compiles what it runs often
    cases = ((8, SMALL), (FEW, SMALL), (FEW, large), (MANY, SMALL), (MANY, large))
    for case in (StateCase(*numbers) for numbers in cases):
        for layout in LAYOUTS:
            if case.partitions > FEW and layout not in ("pages", "whole buckets"):
                continue
            written, kept = bytes_written(layout, case)
            cpu = round(processor_time(spark, layout, case), 2)
            yield StateFigures(layout, case.partitions, case.rows, cpu, written, kept)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.row_state", description=__doc__)
    given = run_arguments(parser, quick="a tenth of the rows")
    if given is None:
        return 1
    figures: list[StateFigures] = []
    with session() as spark:
        for item in measure(spark, given.quick):
            figures.append(item)
            print(
                f"{item.partitions:>7,} partitions {item.rows:>8,} rows  {item.layout:<14}"
                f"{item.cpu_seconds:>7.2f} CPU s {item.written:>12,} bytes written"
                f" {item.kept:>12,} kept"
            )
    if given.recording:
        path = RESULTS.parent / "row_state.json"
        write_json(path, {**provenance(False), "figures": [asdict(item) for item in figures]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
