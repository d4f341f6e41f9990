"""Drivers and workers that are killed, and state that is damaged: no match is lost, none comes
twice, and what can't be resumed fails loudly."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import cepheid as cep
from tests.corpus.reader import case_of
from tests.processes import descendants, processes
from tests.spark.faulty_driver import DELAY, QUERY, SCHEMA, STATEMENT, start
from tests.spark.harness import expected
from tests.spark.streaming_harness import EPOCH, write

pytestmark = pytest.mark.classic

KEYS = 6
FOLDERS = ("input", "output", "checkpoint")
DEADLINE = 600
"""Seconds after which a driver that isn't done is taken to hang."""


# ── the stream ──


def events(count: int, seed: int) -> list[tuple[int, str, int]]:
    """Time, type and key of each, in the order of time."""
    chance = random.Random(seed)
    times = sorted(chance.randrange(2 * count) for _ in range(count))
    return [(t, chance.choice("ABC"), chance.randrange(KEYS)) for t in times]


def files(stream: Sequence[tuple[int, str, int]], parts: int, seed: int) -> list[pa.Table]:
    """The stream, with events late by less than is allowed; at the end one that lets all be known.
    Events of one time stay in order."""
    chance = random.Random(seed)
    late = {t: chance.randrange(DELAY) for t, *_ in stream}
    order = sorted(range(len(stream)), key=lambda n: (stream[n][0] + late[stream[n][0]], n))
    rows = [(*stream[n], n) for n in order]
    cuts = np.array_split(np.arange(len(rows)), parts)
    end = (stream[-1][0] + 1000, "end", 0, -1)
    return [_table([rows[n] for n in part]) for part in cuts] + [_table([end])]


def _table(rows: Sequence[tuple[int, str, int, int]]) -> pa.Table:
    times = pa.array([(EPOCH + t) * 10**6 for t, *_ in rows], pa.int64())
    columns = [times.cast(SCHEMA.field("ts").type), *([r[n] for r in rows] for n in (1, 2, 3))]
    return pa.table(columns, SCHEMA)


def pairs(stream: Sequence[tuple[int, str, int]]) -> Counter[tuple[int, int]]:
    """The oracle's matches."""
    text = " ".join(f"{kind}@{t}(id={key})" for t, kind, key in stream)
    query = QUERY.partition(" RETURN")[0].replace(" seconds", "")
    case = case_of({"name": "faults", "query": query, "events": text, "oracle": "none"}, "faults")
    found: Counter[tuple[int, int]] = Counter()
    for (_, (a,)), (_, (b,)), *_ in expected(case, case.events).elements():
        found[a, b] += 1
    return found


def recognized(stream: Sequence[tuple[int, str, int]]) -> Counter[tuple[int, int]]:
    """What MATCH_RECOGNIZE returns in process."""
    rows = [(*event, n) for n, event in enumerate(stream)]
    found = cep.sql(STATEMENT, {"events": _table(rows)})
    return Counter((row["a"], row["b"]) for row in found.to_pylist())


def written(spark: SparkSession, output: Path) -> Counter[tuple[int, int]]:
    """What the sink has, as Spark reads it."""
    return Counter((row["a"], row["b"]) for row in spark.read.parquet(str(output)).collect())


# ── processes ──


class Driver:
    """The driver program. It and its JVM are killed together."""

    def __init__(self, folder: Path, query: str = QUERY) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "tests.spark.faulty_driver"]
        paths = [str(folder / name) for name in FOLDERS]
        self.log = (folder / "log").open("ab")
        self.process = subprocess.Popen(
            [*command, *paths, query],
            cwd=Path(__file__).parents[2],
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()

    def finish(self) -> None:
        try:
            code = self.process.wait(DEADLINE)
        finally:
            if self.process.poll() is None:
                self.kill()
        self.log.close()
        assert code == 0, (self.folder / "log").read_text()[-5000:]

    def batches(self) -> int:
        """How many batches have been begun, by all drivers so far."""
        return len([p for p in self.folder.glob("checkpoint/offsets/*") if p.name.isdigit()])

    def wait_for(self, batches: int) -> bool:
        """Until so many are begun; false if the program has ended."""
        end = time.monotonic() + DEADLINE
        while self.process.poll() is None and time.monotonic() < end:
            if self.batches() >= batches:
                return True
            time.sleep(0.02)
        return False

    def workers(self) -> Iterator[int]:
        """The Python workers of its JVM."""
        daemons = {p.pid for p in descendants(self.process.pid) if "spark.daemon" in p.command}
        return (p.pid for p in processes() if p.pid in daemons and p.parent in daemons)


# ── killed ──


def survive(spark: SparkSession, folder: Path, kills: int, seed: int, query: str = QUERY) -> None:
    """Kill as often, each time somewhere in the next three batches or before the first of them. At
    the end the session of the tests resumes what the drivers have left: a start less."""
    stream = events(60 * (kills + 3), seed)
    write(files(stream, 3 * kills + 3, seed), folder / "input")
    want = recognized(stream) if query == STATEMENT else pairs(stream)
    chance, killed = random.Random(seed), 0
    assert len(want) > 10 * kills
    while killed < kills:
        driver = Driver(folder, query)
        running = driver.wait_for(driver.batches() + chance.randrange(4))
        time.sleep(chance.random() * 2)
        if not running or driver.process.poll() is not None:
            driver.finish()
            break
        driver.kill()
        killed += 1
    assert killed == kills, "the input was done too soon"
    start(spark, *(folder / name for name in FOLDERS), query).awaitTermination()
    assert written(spark, folder / "output") == want


def test_a_driver_that_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    survive(spark, tmp_path, kills=1, seed=5)


@pytest.mark.slow
def test_a_driver_of_match_recognize_that_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    survive(spark, tmp_path, kills=1, seed=5, query=STATEMENT)


@pytest.mark.slow
def test_a_driver_that_is_killed_again_and_again(spark: SparkSession, tmp_path: Path) -> None:
    survive(spark, tmp_path, kills=20, seed=2)


@pytest.mark.slow
def test_workers_that_are_killed(spark: SparkSession, tmp_path: Path) -> None:
    """In the middle of batches; their tasks are tried again, from the state before the batch."""
    stream = events(300, 3)
    write(files(stream, 5, 3), tmp_path / "input")
    driver, killed = Driver(tmp_path), 0
    try:
        for batch in (2, 3, 5):
            assert driver.wait_for(batch)
            end = time.monotonic() + 10
            workers: list[int] = []
            while not workers and time.monotonic() < end:
                workers = list(driver.workers())
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
                killed += 1
    finally:
        driver.finish()
    assert killed >= 3
    assert written(spark, tmp_path / "output") == pairs(stream)


# ── damaged ──


HALF = events(200, 4)


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream whose first half is done."""
    folder = tmp_path_factory.mktemp("stopped")
    parts = files(HALF, 4, 4)
    write(parts[:2], folder / "input")
    start(spark, *(folder / n for n in FOLDERS)).awaitTermination()
    write(parts[2:], folder / "input", first=2)
    return folder


def state_files(folder: Path) -> list[Path]:
    """The data of the state store."""
    found = [p for p in (folder / "checkpoint" / "state").rglob("*") if p.is_file()]
    return [p for p in found if p.suffix in (".zip", ".sst", ".changelog") and p.name[0] != "."]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 16] = bytes(byte ^ 0xFF for byte in data[middle : middle + 16])
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGE = {"flipped": flip, "truncated": truncate, "deleted": Path.unlink}


@pytest.mark.parametrize(
    "how", ["flipped", *(pytest.param(n, marks=pytest.mark.slow) for n in ("truncated", "deleted"))]
)
def test_damaged_state_fails_loudly(
    spark: SparkSession, stopped: Path, tmp_path: Path, how: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(stopped, folder)
    damaged = state_files(folder)
    assert damaged
    for path in damaged:
        DAMAGE[how](path)
    query = start(spark, *(folder / n for n in FOLDERS))
    with pytest.raises(StreamingQueryException, match="CANNOT_LOAD_STATE_STORE"):
        query.awaitTermination()


def test_another_query_is_refused(spark: SparkSession, stopped: Path, tmp_path: Path) -> None:
    """With a sentence that reaches whoever waits for the query."""
    folder = tmp_path / "copy"
    shutil.copytree(stopped, folder)
    longer = QUERY.replace("WITHIN 30", "WITHIN 31")
    query = start(spark, *(folder / n for n in FOLDERS), longer)
    with pytest.raises(
        StreamingQueryException, match="WITHIN was `30 seconds` and is `31 seconds`"
    ):
        query.awaitTermination()


def test_a_query_may_return_something_else(spark: SparkSession, stopped: Path) -> None:
    swapped = QUERY.replace("a.row AS a, b.row AS b", "b.row AS b, a.row AS a, a.id AS id")
    start(spark, *(stopped / n for n in FOLDERS), swapped).awaitTermination()
    assert written(spark, stopped / "output") == pairs(HALF)
