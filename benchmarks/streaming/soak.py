"""A stream without an end: memory and batch time must stay flat once the window is full.

Spark itself makes the events, from their numbers alone, so that nothing but the query can grow,
and so that the matches can be counted afterwards without our engine.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from benchmarks.measure import WrongAnswer
from benchmarks.report import Record, provenance, short
from benchmarks.streaming.running import Batch, running
from cepheid.cli.fraud_demo import QUERY
from cepheid.workloads.fraud import START

BATCH = 100_000
WINDOW = 500_000
"""Events that come in the 12 hours of the query."""

CARDS = 100_000
FLAT = 1.2
CONFIG = {"spark.driver.defaultJavaOptions": "-Xms1g -XX:+AlwaysPreTouch"}
"""Java takes its heap when it starts: what it takes later isn't heap that was only unused."""

_HOURS_12 = 12 * 3_600_000_000
_STEP = _HOURS_12 // WINDOW
_PRIME = (1 << 31) - 1
_PURCHASES, _SMALL, _LARGE = 7_800, 9_000, 9_870
"""Of 10,000 events, those that are purchases; of 10,000 purchases, those up to 100, and those that
are not above 250."""

Ints = NDArray[np.int64]


# ── the events ──


def mixed(number: Any, salt: int, right: Callable[[Any, int], Any]) -> Any:
    """Numbers that look random; the same from columns of Spark and from arrays."""
    found = (number * 2_654_435_761 + salt * 40_503) % _PRIME
    found = right(found, 15) * 48_271 % _PRIME
    return right(found, 13) * 69_621 % _PRIME


def _column_shift(value: Column, bits: int) -> Column:
    return value.bitwiseXOR(F.shiftright(value, bits))


def _array_shift(value: Ints, bits: int) -> Ints:
    return value ^ (value >> bits)


def events(spark: SparkSession, batch: int = BATCH) -> DataFrame:
    """Card transactions without an end, as many in each batch."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", batch)
    number = F.col("value")
    card, kind, level = (mixed(number, salt, _column_shift) for salt in (1, 2, 3))
    rank = level % 10_000
    return source.load().select(
        number.alias("id"),
        F.timestamp_micros(number * _STEP + F.lit(START)).alias("ts"),
        (card % CARDS).alias("card"),
        F.when(kind % 10_000 < _PURCHASES, "purchase").otherwise("login").alias("kind"),
        F.when(rank < _LARGE, rank / 90.0).otherwise(rank - 9_600.0).alias("amount"),
        F.lit("US").alias("country"),
    )


def count(total: int, part: int = 5_000_000) -> int:
    """How many matches there are among the first events: for every large purchase, the pairs of
    small ones of its card in the window before it. Times are the events' numbers."""
    found = 0
    for begin in range(0, total, part):
        number = np.arange(max(0, begin - WINDOW), min(total, begin + part))
        card, kind, level = (mixed(number, salt, _array_shift) for salt in (1, 2, 3))
        bought, rank = kind % 10_000 < _PURCHASES, level % 10_000
        place = (card % CARDS) * (total + WINDOW) + number  # by card, then by time
        small = np.sort(place[bought & (rank < _SMALL)])
        large = place[bought & (rank >= _LARGE) & (number >= begin)]
        earliest = large - np.minimum(WINDOW - 1, large % (total + WINDOW))
        before = np.searchsorted(small, large) - np.searchsorted(small, earliest)
        found += int((before * (before - 1) // 2).sum())
    return found


# ── the run ──


@dataclass(frozen=True)
class Sample:
    """After a batch: seconds since the start, events and matches so far, what the batch took, what
    is held, the megabytes of each kind of process, and how many workers there are."""

    seconds: float
    batch: int
    events: int
    matches: int
    wall: float
    cpu: float
    rows: int
    size: int
    java: int
    driver: int
    workers: int
    processes: int


def memory() -> dict[str, int]:
    """Megabytes of Spark's Java, of this process, and of the Python workers. Pages that several
    processes share are counted once; those of files, which the system may drop, not at all."""
    java = workers = processes = 0
    for process in descendants(os.getpid()):
        try:
            name = Path(f"/proc/{process}/comm").read_text().strip()
            size = _anonymous(process)
        except OSError:
            continue  # it has just ended
        if name == "java":
            java += size
        elif "python" in name:
            workers, processes = workers + size, processes + 1
    driver = _anonymous(os.getpid())
    return {"java": java, "driver": driver, "workers": workers, "processes": processes}


def _anonymous(process: int) -> int:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    sizes = dict(line.split(":", 1) for line in lines[1:])
    return int(sizes["Pss_Anon"].split()[0]) >> 10


def descendants(process: int) -> Iterator[int]:
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from descendants(child)


def soak(
    spark: SparkSession, minutes: float, total: int, tell: Callable[[str], None]
) -> list[Sample]:
    """Run for so long, or for so many events; stop with an error if matches are missing."""
    samples: list[Sample] = []
    begin = time.perf_counter()

    def note(batch: Batch) -> None:
        before = samples[-1] if samples else None
        sample = Sample(
            seconds=round(time.perf_counter() - begin, 2),
            batch=batch.number,
            events=batch.events + (before.events if before else 0),
            matches=batch.output + (before.matches if before else 0),
            wall=round(batch.time.wall, 3),
            cpu=round(batch.time.cpu, 2),
            rows=batch.rows,
            size=batch.size,
            **memory(),
        )
        samples.append(sample)
        tell(f"{sample.seconds / 60:.1f} minutes, {short(sample.events)} events")

    matches = cep.match(events(spark), QUERY, time="ts", tie="id")
    with running(matches, note) as (query, _):
        while query.isActive and time.perf_counter() - begin < 60 * minutes:
            if samples and samples[-1].events >= total:
                break
            query.awaitTermination(1)
        if query.exception() is not None:
            raise query.exception()
    known = count(samples[-1].events)
    if samples[-1].matches != known:
        raise WrongAnswer(f"{samples[-1].matches:,} matches where there are {known:,}")
    return samples


# ── the verdict ──


def settled(samples: Sequence[Sample]) -> Sequence[Sample]:
    """From where the window is full, and all that is loaded once has been."""
    return [s for s in samples if s.events >= 3 * WINDOW][5:]


def record(samples: Sequence[Sample]) -> Record:
    """The second tenth of the run against the last one."""
    steady = settled(samples)
    tenth = max(1, len(steady) // 10)
    early, late = steady[tenth : 2 * tenth], steady[-tenth:]
    claims = []
    for name, text in (
        ("wall", "batch time"),
        ("cpu", "processor time of a batch"),
        ("rows", "rows held"),
        ("size", "bytes in the state store"),
        ("java", "memory of Java"),
        ("driver", "memory of the driver's Python"),
        ("workers", "memory of the workers"),
    ):
        before, after = (median(getattr(s, name) for s in part) for part in (early, late))
        detail = f"{short(before)} then {short(after)}, {after / before:.2f} ×"
        holds = after <= FLAT * before
        claims.append(
            {"text": f"{text} stays flat", "must": True, "holds": holds, "detail": detail}
        )
    last = samples[-1]
    return {
        **provenance(),
        "name": "soak",
        "title": "A stream without an end",
        "minutes": round(last.seconds / 60, 1),
        "events": last.events,
        "matches": last.matches,
        "tables": [],
        "claims": claims,
    }


def write_csv(path: Path, samples: Sequence[Sample]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(field.name for field in fields(Sample))
        writer.writerows(map(astuple, samples))


def read_csv(path: Path) -> list[Sample]:
    with path.open(newline="") as file:
        names = next(reader := csv.reader(file))
        kinds: dict[str, Any] = {
            f.name: float if f.type == "float" else int for f in fields(Sample)
        }
        return [
            Sample(**{n: kinds[n](value) for n, value in zip(names, row, strict=True)})
            for row in reader
        ]
