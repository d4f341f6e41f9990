"""`python -m benchmarks.overhead [--quick]`: what gathering statistics during a run costs.

Queries 4 to 6 run adaptively, told nothing of the data. The share of the engine's time that goes
into samples must be at most 2 %; a run in which it is more ends with exit code 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import cepheid as cep
from benchmarks.cases import CASES, Workload
from benchmarks.experiments.writing import PAGE, RESULTS
from benchmarks.measure import BATCH
from benchmarks.report import origin, provenance, replace_section, write_json
from benchmarks.tree import run_arguments
from cepheid.plan.profile import Profile
from cepheid.planner.adapt import SAMPLING

REPEATS = 5
QUERIES = ("q4", "q5", "q6")
BEGIN, END = "<!-- overhead: begin -->", "<!-- overhead: end -->"


@dataclass(frozen=True)
class Share:
    """Of one run: seconds in the engine, and those of them that went into samples."""

    workload: str
    events: int
    seconds: float
    sampling: float

    @property
    def percent(self) -> float:
        return 100 * self.sampling / self.seconds


def shares(part: int = 1, repeats: int = REPEATS) -> Iterator[Share]:
    """Of each workload, the run with the median share: one that the machine held up between two
    looks at the clock says little."""
    workloads = {case.workload.name: case.workload for case in CASES}
    for workload in (w for name, w in workloads.items() if name.startswith(QUERIES)):
        table = workload.events(workload.rows // part)
        runs = [_profile(workload, table) for _ in range(repeats + 1)][1:]  # the first one compiles
        found = [Share(workload.name, table.num_rows, r.seconds, r.sampling) for r in runs]
        yield sorted(found, key=lambda share: share.percent)[len(found) // 2]


def _profile(workload: Workload, table: pa.Table) -> Profile:
    batches = iter(table.to_batches(max_chunksize=BATCH))
    explained = cep.Query(workload.query).explain(batches, analyze=True, **workload.columns)
    assert explained.profile is not None
    return explained.profile


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    given = run_arguments(parser, quick="a tenth of the events")
    if given is None:
        return 1
    quick = given.quick
    found = list(shares(10 if quick else 1))
    worst = max(share.percent for share in found)
    holds = worst <= 100 * SAMPLING
    table = Table(title="time that samples take", title_justify="left")
    for head in ("workload", "events", "engine s", "samples ms", "share"):
        table.add_column(head, justify="left" if head == "workload" else "right")
    for s in found:
        figures = (f"{s.seconds:.2f}", f"{1e3 * s.sampling:.1f}", f"{s.percent:.2f} %")
        table.add_row(s.workload, f"{s.events:,}", *figures)
    console = Console(emoji=False)
    console.print(table)
    verdict = f"{'✓' if holds else '✗'} at most {worst:.2f} % (2 % is allowed)"
    console.print(verdict)
    if given.recording:
        rows = [
            {"workload": s.workload, "events": s.events, "percent": round(s.percent, 3)}
            for s in found
        ]
        write_json(RESULTS / "overhead.json", {**provenance(quick), "holds": holds, "shares": rows})
        text = (
            f"{verdict}; the median of {REPEATS} runs of {len(found)} workloads of queries 4 to 6."
        )
        replace_section(PAGE, BEGIN, END, f"{origin(provenance(quick))}\n\n{text}\n")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
