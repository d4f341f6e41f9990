"""Measuring: the engine, the loop and the rivals on the same events in the same process.

Everything is timed warm: each program first runs on a prefix of the events, so that kernels are
compiled and libraries are loaded. Of several runs the one with the least processor time counts,
since whatever else the machine does can only add to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa

import cepheid as cep
from benchmarks.answers import ANSWERS
from benchmarks.cases import Case, Workload

BATCH = 131_072
PREFIX = 20_000


class WrongAnswer(Exception):
    """A program found another number of matches than there are."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one run."""

    cpu: float
    wall: float


def seconds(timing: Timing) -> dict[str, float]:
    """A timing as it is written to files."""
    return {"cpu_seconds": round(timing.cpu, 4), "wall_seconds": round(timing.wall, 4)}


@dataclass(frozen=True, slots=True)
class Result:
    """A case's figures; `others` are the loop and the rivals."""

    case: Case
    events: int
    matches: int
    engine: Timing
    others: dict[str, Timing] = field(default_factory=dict)

    @property
    def events_per_second(self) -> float:
        return self.events / self.engine.cpu

    @property
    def matches_per_second(self) -> float:
        return self.matches / self.engine.cpu


def engine_run(case: Case, table: pa.Table) -> Callable[[], int]:
    """Match, and look at nothing but the number of rows of each batch of matches."""
    query = cep.Query(case.workload.query)

    def run() -> int:
        batches = iter(table.to_batches(max_chunksize=BATCH))
        options: dict[str, Any] = {**case.workload.columns, **case.options}
        matches = query.match(batches, **options)
        return sum(batch.num_rows for batch in matches)

    return run


def best(run: Callable[[], int], matches: int, who: str, repeats: int) -> Timing:
    """The best of several runs, each of which has to find all matches."""
    timings = []
    for _ in range(repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        found = run()
        timings.append(Timing(time.process_time() - cpu, time.perf_counter() - wall))
        if found != matches:
            raise WrongAnswer(f"{who} finds {found:,} matches where there are {matches:,}")
    return min(timings, key=lambda timing: timing.cpu)


def known_matches(workload: Workload, table: pa.Table) -> int:
    """The loop's count, which at full size is also written down."""
    counted = workload.loop(table)
    written = ANSWERS.get(workload.name) if table.num_rows == workload.rows else counted
    if written != counted:
        raise WrongAnswer(f"{workload.name}: the loop counts {counted:,}, the answer is {written}")
    return counted


def measure(
    cases: Iterable[Case], quick: bool = False, progress: Callable[[str], None] = lambda _: None
) -> Iterator[Result]:
    """Each case in turn; cases of one workload share its events and the others' timings."""
    repeats = 1 if quick else 3
    for workload, group in groupby(cases, key=lambda case: case.workload):
        progress(f"{workload.name}: making events")
        table = workload.events(workload.rows // 10 if quick else workload.rows)
        prefix = table.slice(0, PREFIX)
        workload.loop(prefix)
        matches = known_matches(workload, table)
        progress(f"{workload.name}: loop")
        others = {"loop": best(partial(workload.loop, table), matches, "loop", repeats)}
        for name, rival in workload.rivals.items():
            progress(f"{workload.name}: {name}")
            rival(prefix)()
            others[name] = best(rival(table), matches, f"{name} on {workload.name}", repeats)
        for case in group:
            progress(case.name)
            engine_run(case, prefix)()
            timing = best(engine_run(case, table), matches, case.name, repeats)
            yield Result(case, table.num_rows, matches, timing, others)
