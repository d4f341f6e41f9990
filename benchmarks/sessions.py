"""`python -m benchmarks.sessions [--quick] [--dry-run]`: what a push into a session costs.

The card fraud query over 20,000 cards, whose window is full. Pushes of 1, 100 and 1,000 events, by
processor time, so that other processes count little. The goals: one event in 0.5 ms (half of the
pushes) and 2 ms (99 of 100), 100 events in 3 ms, and 100,000 events/s with 1,000 a push. A run that
misses one ends with exit code 1. Figures go to `results/sessions.json`. The line `calibration`
says how fast the machine was meanwhile: the time that a turn of a plain loop in Python took.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid as cep
from benchmarks.experiments.writing import RESULTS
from benchmarks.report import provenance, write_json
from benchmarks.tree import add_dry_run, may_record
from cepheid.workloads import fraud

QUERY = Path(__file__).parents[1].joinpath("examples", "card_fraud.cep").read_text()
CARDS = 20_000
FILLING = 100_000
"""Events before those that are measured: five days, of which the window holds 12 hours."""

WARMING = 500
"""Pushes before those that are measured."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Milliseconds of processor time per push, of so many events each."""

    events: int
    median: float
    high: float  # 99 of 100 take at most so long
    mean: float

    @property
    def rate(self) -> float:
        """Events per second of processor time."""
        return 1e3 * self.events / self.mean


def measured(events: int, pushes: int) -> Costs:
    """The costs of pushes into a session that holds a full window."""
    needed = FILLING + (WARMING + pushes) * events
    days = max(1, needed // CARDS)
    batch = fraud.generate(needed, cards=CARDS, days=days).combine_chunks().to_batches()[0]
    session = cep.open(QUERY, batch.schema, time="ts", tie="id")
    for begin in range(0, FILLING, 10_000):
        session.push(batch.slice(begin, 10_000))
    costs: list[float] = []
    for begin in range(FILLING, needed, events):
        part = batch.slice(begin, events)
        began = time.process_time()
        session.push(part)
        costs.append(1e3 * (time.process_time() - began))
    late = costs[WARMING:]
    median, high = (float(np.percentile(late, share)) for share in (50, 99))
    return Costs(events, median, high, float(np.mean(late)))


def turn() -> float:
    """Nanoseconds of a turn of a loop in Python."""
    began, total = time.process_time(), 0
    for n in range(1_000_000):
        total += n * n
    return 1e3 * (time.process_time() - began)


def goals(costs: Costs) -> list[tuple[str, bool]]:
    match costs.events:
        case 1:
            return [("0.5 ms", costs.median <= 0.5), ("99 of 100 in 2 ms", costs.high <= 2.0)]
        case 100:
            return [("3 ms", costs.median <= 3.0)]
        case _:
            return [("100,000 events/s", costs.rate >= 100_000)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the pushes")
    add_dry_run(parser)
    given = parser.parse_args()
    recording = not (given.quick or given.dry_run)
    if recording and not may_record():
        return 1
    pa.set_cpu_count(1)
    missed = False
    rows: list[dict[str, Any]] = []
    for events, pushes in ((1, 5_000), (100, 1_000), (1_000, 300)):
        costs = measured(events, pushes // 10 if given.quick else pushes)
        print(
            f"{events:>5,} events a push: median {costs.median:.2f} ms, 99 of 100 at most "
            f"{costs.high:.2f} ms, mean {costs.mean:.2f} ms, {costs.rate:,.0f} events/s"
        )
        for goal, holds in goals(costs):
            print(f"      {'✓' if holds else '✗'} {goal}")
            missed |= not holds
        rows.append(
            {
                "events_a_push": events,
                "median_ms": round(costs.median, 3),
                "99_of_100_ms": round(costs.high, 3),
                "mean_ms": round(costs.mean, 3),
                "events_per_second": round(costs.rate),
                "goals": dict(goals(costs)),
            }
        )
    calibration = turn()
    print(f"calibration: {calibration:.0f} ns a turn")
    if recording:
        figures = {"holds": not missed, "turn_ns": round(calibration), "figures": rows}
        write_json(RESULTS.parent / "sessions.json", {**provenance(False), **figures})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
