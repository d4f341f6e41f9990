"""The Spark benchmark without Spark: its answer, its clock and its verdict."""

from __future__ import annotations

import subprocess
import sys
import time
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
    before, own = pipeline.processor_seconds(), time.process_time()
    subprocess.run([sys.executable, "-c", "sum(range(20_000_000))"], check=True)
    own = time.process_time() - own
    assert pipeline.processor_seconds() - before - own > 0.1


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
