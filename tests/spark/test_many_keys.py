"""Half a million keys that come once, over a stream that counts the events of each."""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import cepheid as cep
from tests.processes import python_workers
from tests.spark.streaming_harness import EPOCH, read, write

FILES, KEYS, ENDED = 10, 50_000, 100
"""A file is a minute of the stream. Of so many keys a second event comes in the next minute, before
the key is over, and of as many others two minutes later."""

QUERY = "PATTERN A a ; B b WHERE [id] WITHIN 5 EVENTS RETURN a.id AS id"


def minute(number: int) -> pa.Table:
    first = number * KEYS
    new = np.arange(KEYS)
    soon, late = np.arange(1000, 1000 + ENDED), np.arange(2000, 2000 + ENDED)
    again = [first - KEYS + soon] * (number > 0) + [first - 2 * KEYS + late] * (number > 1)
    ids = np.concatenate([first + new, *again])
    seconds = np.append(new * 60 / KEYS, np.full(len(ids) - KEYS, 30.0)) + 60 * number + EPOCH
    kinds = np.where(np.arange(len(ids)) < KEYS, "A", "B")
    at = pa.array((seconds * 1_000_000).astype(np.int64)).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": at, "name": kinds, "id": ids})


@pytest.mark.slow
@pytest.mark.classic
def test_keys_that_come_once(spark: SparkSession, tmp_path: Path) -> None:
    """What is held stays that of a few minutes, in the state and in memory."""
    files = [minute(number) for number in range(FILES)]
    write(files, tmp_path)
    frame = read(spark, tmp_path, files[0].schema)
    matches = cep.match(frame, QUERY, time="ts", type="name", idle="90 seconds")
    began = time.monotonic()
    query = matches.writeStream.format("memory").queryName("once").trigger(availableNow=True)
    running = query.start()
    peaks: dict[int, int] = {}
    while not running.awaitTermination(0.2):
        batch = int((running.lastProgress or {}).get("batchId", -1))
        peaks[batch] = max(peaks.get(batch, 0), memory_of_workers())
    took = time.monotonic() - began
    found = {row["id"] for row in spark.table("once").collect()}
    want = {
        first + key for first in range(0, (FILES - 1) * KEYS, KEYS) for key in range(1000, 1100)
    }
    assert found == want
    batches = [cep.status(progress) for progress in running.recentProgress]
    held = max(batch.rows for batch in batches)
    early = max(peak for batch, peak in peaks.items() if batch < FILES // 2)
    late = max(peak for batch, peak in peaks.items() if batch >= FILES // 2)
    print(f"\n{FILES * KEYS} keys in {took:.0f} s: {held} events held at most, {late >> 20} MB")
    assert held < 5 * KEYS
    assert late < 1.2 * early


def memory_of_workers() -> int:
    """Bytes that Spark's Python workers have."""
    total = 0
    for worker in python_workers(os.getpid()):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            pages = int(Path(f"/proc/{worker.pid}/statm").read_text().split()[1])
            total += pages * resource.getpagesize()
    return total
