"""The benchmarks' answers: loops, rivals and the engine against plain SQL, on few events."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import duckdb
import pyarrow as pa
import pytest

from benchmarks import loops, measure, pipeline
from benchmarks.answers import ANSWERS
from benchmarks.cases import CASES, Case, Workload, chosen

pytestmark = pytest.mark.slow

WORKLOADS = {case.workload.name: case.workload for case in CASES}

# Straight from the meaning of the queries: every combination of events that satisfies all of it.
PLAIN_SQL = {
    "q4": """
        SELECT count(*) FROM events i, events s, events o
        WHERE i.name = 'IBM' AND s.name = 'Sun' AND o.name = 'Oracle' AND i.price > s.price
          AND i.ts < s.ts AND s.ts < o.ts AND o.ts - i.ts < 200
    """,
    "q5": """
        SELECT count(*) FROM events i, events s, events o
        WHERE i.name = 'IBM' AND s.name = 'Sun' AND o.name = 'Oracle'
          AND i.ts < s.ts AND s.ts < o.ts AND o.ts - i.ts < 200
    """,
    "q6": """
        SELECT count(*) FROM events i, events s, events o, events g
        WHERE i.name = 'IBM' AND s.name = 'Sun' AND o.name = 'Oracle' AND g.name = 'Google'
          AND o.price > s.price AND o.price > g.price
          AND i.ts < s.ts AND s.ts < o.ts AND o.ts < g.ts AND g.ts - i.ts < 100
    """,
    "q7": """
        SELECT count(*) FROM events i, events o
        WHERE i.name = 'IBM' AND o.name = 'Oracle' AND i.ts < o.ts AND o.ts - i.ts < 200
          AND NOT EXISTS (SELECT 1 FROM events s
                          WHERE s.name = 'Sun' AND i.ts < s.ts AND s.ts < o.ts)
    """,
    "q8": """
        SELECT count(*) FROM events a, events b, events c
        WHERE a.category = 'publication' AND b.category = 'project' AND c.category = 'courses'
          AND a.ip = b.ip AND b.ip = c.ip AND a.time < b.time AND b.time < c.time
          AND c.time - a.time < INTERVAL 10 HOUR
    """,
}
ROWS = {"q4": 900, "q5": 900, "q6": 500, "q7": 2_000, "q8": 150_000}


def events(workload: Workload) -> pa.Table:
    return workload.events(ROWS[workload.name.split()[0]])


def counted(workload: Workload, table: pa.Table) -> int:
    with duckdb.connect() as connection:
        connection.register("events", table)
        row = connection.execute(PLAIN_SQL[workload.name.split()[0]]).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_loop_counts_what_plain_sql_counts(name: str) -> None:
    table = events(WORKLOADS[name])
    matches = counted(WORKLOADS[name], table)
    assert matches > 0
    assert WORKLOADS[name].loop(table) == matches


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_engine_finds_as_many_under_every_plan(case: Case) -> None:
    table = events(case.workload)
    assert measure.engine_run(case, table)() == case.workload.loop(table)


def test_the_rivals_find_as_many() -> None:
    """In a process of their own, since Polars takes its number of threads from the environment."""
    program = (
        "from tests.benchmarks.test_answers import WORKLOADS, events\n"
        "for workload in WORKLOADS.values():\n"
        "    table = events(workload)\n"
        "    for name, rival in workload.rivals.items():\n"
        "        print(workload.name, name, rival(table)() == workload.loop(table))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "POLARS_MAX_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines() == [
        f"{name} {rival} True"
        for name in ("q4 1/32", "q5 1:1:1", "q8")
        for rival in ("DuckDB", "Polars")
    ]


def test_every_workload_has_its_answer() -> None:
    assert set(ANSWERS) == {*WORKLOADS, pipeline.NAME}


@pytest.mark.parametrize("size", [1, 3, loops.CAPACITY])
def test_a_loop_goes_on_where_its_output_was_full(size: int) -> None:
    """Outputs of any size add up to the same matches."""

    def count_down(out: object, state: list[int]) -> int:
        made = min(size, 10 - int(state[loops.OUTER]))
        state[loops.OUTER] += made
        return made

    assert loops.drain(count_down, 1) == 10


def test_a_wrong_count_is_an_error() -> None:
    with pytest.raises(measure.WrongAnswer, match="somebody finds 7 matches where there are 8"):
        measure.best(lambda: 7, 8, "somebody", repeats=1)


def test_a_changed_workload_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    case = chosen(["q7 1:50:1"])[0]
    table = case.workload.events(case.workload.rows)
    monkeypatch.setitem(ANSWERS, case.workload.name, -1)
    with pytest.raises(measure.WrongAnswer, match="the answer is -1"):
        measure.known_matches(case.workload, table)


def test_the_best_run_is_the_one_with_the_least_processor_time() -> None:
    work: list[Callable[[], object]] = [lambda: sum(range(3_000_000)), lambda: None]

    def run() -> int:
        work.pop(0)()
        return 1

    assert measure.best(run, 1, "somebody", repeats=2).cpu < 0.01


def test_cases_are_chosen_by_how_they_begin() -> None:
    assert [c.name for c in chosen(["q8"])] == ["q8 left-deep", "q8 right-deep"]
    assert len(chosen(["q6 sel1", "q8 left"])) == 5
    assert chosen([]) == CASES
