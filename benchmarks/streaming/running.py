"""Running a streaming query to the end of its files, and what each of its batches took.

A batch's processor time is that of all processes (this one, Java, the Python workers) from the
end of the batch before to its own, so that whatever else the machine does, it doesn't count.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

from benchmarks.measure import Timing
from benchmarks.pipeline import processor_seconds
from benchmarks.streaming.cases import COLUMNS, Stream
from cepheid.spark.start.session import PANDAS_NOTICE, local_session
from cepheid.spark.streaming.status.reports import status

CORES = 2
WARM_UP = 2
"""Batches that don't count: workers start, and kernels are loaded."""

_OUTPUT = "output"


@dataclass(frozen=True)
class Batch:
    """What a batch took, how many rows came out, and how many the operator holds, in how many
    bytes of the state store."""

    number: int
    time: Timing
    events: int
    output: int
    rows: int
    size: int


def typical(batches: Sequence[Batch]) -> Timing:
    """By the median, since a busy machine has outliers."""
    return Timing(median(b.time.cpu for b in batches), median(b.time.wall for b in batches))


class Progress(StreamingQueryListener):
    """Takes down every batch that had input, and tells of it."""

    def __init__(self, tell: Callable[[Batch], None] = lambda _: None) -> None:
        self.batches: list[Batch] = []
        self.ended = threading.Event()
        self._tell = tell
        self._cpu = processor_seconds()

    def onQueryStarted(self, event: Any) -> None:
        self._cpu = processor_seconds()

    def onQueryProgress(self, event: Any) -> None:
        before, self._cpu = self._cpu, processor_seconds()
        report = json.loads(event.progress.json)
        if report["numInputRows"]:
            held = status(report)
            output = report["observedMetrics"][_OUTPUT]["rows"]
            time = Timing(self._cpu - before, held.seconds)
            batch = Batch(held.batch, time, report["numInputRows"], output, held.rows, held.size)
            self.batches.append(batch)
            self._tell(batch)

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        self.ended.set()


@contextmanager
def session(config: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
    spark = local_session(f"local[{CORES}]", app="cepheid benchmarks", config=config)
    try:
        yield spark
    finally:
        spark.stop()


def read(spark: SparkSession, stream: Stream) -> DataFrame:
    """A file for each batch."""
    reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(stream.files()))


@contextmanager
def running(
    frame: DataFrame, tell: Callable[[Batch], None] = lambda _: None, **trigger: Any
) -> Iterator[tuple[Any, Progress]]:
    """A query whose output is counted and dropped; its checkpoint is dropped in the end."""
    streams = frame.sparkSession.streams
    progress = Progress(tell)
    streams.addListener(progress)
    checkpoint = tempfile.mkdtemp(prefix="cepheid-stream-")
    counted = frame.observe(_OUTPUT, F.count(F.lit(1)).alias("rows"))
    writer = counted.writeStream.format("noop").option("checkpointLocation", checkpoint)
    try:
        query = (writer.trigger(**trigger) if trigger else writer).start()
        try:
            yield query, progress
        finally:
            query.stop()
            progress.ended.wait(60)
    finally:
        streams.removeListener(progress)
        shutil.rmtree(checkpoint, ignore_errors=True)


def run(frame: DataFrame) -> list[Batch]:
    """All batches of a query over files."""
    with running(frame, availableNow=True) as (query, progress):
        query.awaitTermination()
        progress.ended.wait(60)
    return progress.batches
