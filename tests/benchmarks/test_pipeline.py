"""The Spark benchmark without Spark: its answer, its clock and its verdict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import cepheid as cep
from benchmarks import pipeline
from benchmarks.measure import Timing, WrongAnswer
from cepheid.cli.fraud_demo import QUERY
from cepheid.workloads import fraud


def test_plain_sql_and_the_engine_find_as_many(tmp_path: Path) -> None:
    path = pipeline.event_file(50_000, tmp_path)
    events = fraud.generate(50_000, pipeline.SEED)
    found = cep.match(events, QUERY, time="ts", tie="id").num_rows
    assert found > 0
    assert pipeline.count_by_sql(path) == found


def test_the_work_of_started_processes_counts() -> None:
    """Of a process that has nothing to do with Spark, whose own come and go."""
    program = """
import subprocess, sys
burn = "import time\\nwhile time.process_time() < 0.5: pass"
subprocess.run([sys.executable, "-c", burn], check=True)
print("done", flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        assert parent.stdout.readline() == b"done\n"
        counted = pipeline.processor_seconds(parent.pid)
        parent.stdin.write(b"\n")
        parent.stdin.flush()
    assert counted > 0.45  # by the ticks of the clock; the parent alone takes a tenth of it


@pytest.mark.parametrize(
    ("cpu", "wall", "met"), [(1.5, 1.5, True), (1.7, 1.0, False), (1.0, 1.7, False)]
)
def test_both_times_have_to_meet_the_target(cpu: float, wall: float, met: bool) -> None:
    record = pipeline.record(10, 1, Timing(cpu, wall), Timing(1.0, 1.0))
    assert record["target"]["met"] is met


def test_an_engine_that_finds_too_few_is_wrong() -> None:
    pipeline.check("idle", 0, 5)
    with pytest.raises(WrongAnswer, match="engine: 4 matches where there are 5"):
        pipeline.check("engine", 4, 5)
