"""Answers on a stream, in memory: batches cut and shuffled at random, every bucket opened from what
was saved, and the same answers as of the whole data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.answers.partial_rows import PartialRows
from cepheid.engine.match_schema import MATCH_END, MATCH_START, output_schema
from cepheid.errors import PlanError, QueryError, StateError, UnsupportedError
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Source
from cepheid.options import Limit, Options
from cepheid.planner import Prepared, prepare
from cepheid.planner.bounds import known_after, require_bounds
from cepheid.spark.group_parts import GroupParts
from cepheid.streaming.buckets.answer_bucket import AnswersJob, open_answers
from cepheid.streaming.cells import table_of
from cepheid.streaming.signature import answers_signature
from tests.answers.test_corpus import CASES, same
from tests.corpus.reader import Case
from tests.streaming.simulation import Cluster, MemoryCells, Weather, run


class AnsweringCluster(Cluster):
    """With a second operator, which gets the matches of each batch."""

    def __init__(self, prepared: Prepared, schema: pa.Schema, weather: Weather) -> None:
        super().__init__(prepared, schema, weather)
        shape, matches = prepared.query.answers, output_schema(prepared.plan, schema)
        lag = known_after(prepared.query)
        assert shape is not None and lag is not None
        counted = prepared.counted(prompt=True) is not None
        self.parts_of = GroupParts.of(shape, matches, weather.buckets, counted=counted)
        self.found = PartialRows(shape, matches).schema if counted else matches
        signature = answers_signature(prepared, matches)
        self.answers_job = AnswersJob(shape, matches, signature, self.parts_of.count, lag)
        self.answer_cells: dict[int, MemoryCells] = {}
        self.wakes: dict[int, int | None] = {}
        self.answers: list[dict[str, Any]] = []
        self.held = 0

    def batch(self, table: pa.Table) -> None:
        super().batch(table)
        matches = pa.RecordBatch.from_pylist(self.rows, self.found)
        self.rows = []
        arrived: dict[int, list[pa.Table]] = {}
        tasks = np.arange(matches.num_rows) % 2  # two tasks have found them
        for task in (0, 1):
            of_task = matches.filter(pa.array(tasks == task))
            for packed in self.parts_of.packed(iter([of_task])):
                for row in packed.to_pylist():
                    arrived.setdefault(row["bucket"], []).append(table_of(row["data"]))
        due = [n for n, time in self.wakes.items() if time is not None and time <= self.watermark]
        for number in sorted({*arrived, *due}):
            self.merge(number, arrived.get(number, []))

    def merge(self, number: int, parts: list[pa.Table]) -> None:
        cells = self.answer_cells.setdefault(number, MemoryCells())
        bucket = open_answers(self.answers_job, cells)
        for answers in bucket.step(parts, self.watermark):
            self.answers += answers.to_pylist()
        bucket.save(cells)
        self.wakes[number] = bucket.wakes
        self.held = bucket.fold.held

    def finish(self, window: int) -> None:
        shape = self.answers_job.shape
        assert shape.window is not None
        super().finish(window + shape.window.size)


def answerable(case: Case) -> Prepared | None:
    try:
        require_bounds(case.bound, Limit(total=1000), Span(0, 0), Source("", ""))
        prepared = prepare(case.bound, Options(case.bound.schema.time, jit=False))
    except (PlanError, QueryError, UnsupportedError):
        return None
    runs = prepared.query.nothing is None and known_after(prepared.query) is not None
    return prepared if runs else None


def in_some_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=str)


ENDLESS = [case for case in CASES if answerable(case) is not None]


@pytest.mark.parametrize(
    "weather",
    [
        Weather(1, most=1, buckets=1),
        Weather(2, most=2, delay=3, buckets=3),
        Weather(3, most=4, failing=0.3),
    ],
    ids=str,
)
@pytest.mark.parametrize("case", ENDLESS, ids=str)
def test_answers_of_a_stream(case: Case, weather: Weather) -> None:
    prepared = answerable(case)
    assert prepared is not None
    cluster = run(case.bound, prepared, case.events, weather, AnsweringCluster)
    found = cluster.answers
    for row in found:
        assert row.pop(MATCH_START) == row.pop(MATCH_END)
    expected = [*(case.rows or ())]
    if weather.buckets > 1:
        found, expected = in_some_order(found), in_some_order(expected)
    assert same(found, expected), found
    assert cluster.late == 0 and cluster.held == 0


def test_most_cases_run_on_streams() -> None:
    assert len(ENDLESS) > 20
    shapes = [case.bound.answers for case in ENDLESS]
    assert len({s.window.kind for s in shapes if s is not None and s.window is not None}) == 4


SCHEMA = pa.schema({"ts": pa.int64(), "x": pa.int64(), "y": pa.float64()})


def job(text: str, buckets: int = 1, limit: Limit | None = None) -> AnswersJob:
    query = cep.Query(text).bind(SCHEMA, time="ts")
    prepared = prepare(query, Options("ts", jit=False))
    matches = output_schema(prepared.plan, SCHEMA)
    assert query.answers is not None
    signature = answers_signature(prepared, matches)
    return AnswersJob(query.answers, matches, signature, buckets, 0, limit)


BEFORE = "FROM a GROUP BY a.x, TUMBLE(10) RETURN a.x, sum(a.y) AS total"


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("FROM a GROUP BY a.x, TUMBLE(20) RETURN a.x, sum(a.y) AS total", "GROUP BY"),
        ("FROM a GROUP BY a.y, TUMBLE(10) RETURN sum(a.x) AS total", "GROUP BY"),
        ("FROM a GROUP BY a.x, TUMBLE(10) RETURN a.x, max(a.y) AS total", "aggregates"),
        ("FROM a WHERE a.y > 1 GROUP BY a.x, TUMBLE(10) RETURN a.x, sum(a.y) AS total", "class a"),
        ("FROM a GROUP BY a.x, TUMBLE(10) HAVING sum(a.y) > 5 RETURN sum(a.y) * 2 AS t", None),
    ],
)
def test_what_may_change_on_restart(after: str, message: str | None) -> None:
    cells = MemoryCells()
    open_answers(job(BEFORE), cells).save(cells)
    if message is None:
        open_answers(job(after), cells)
        return
    with pytest.raises(StateError, match=message):
        open_answers(job(after), cells)


def test_the_number_of_buckets_stays() -> None:
    cells = MemoryCells()
    open_answers(job(BEFORE), cells).save(cells)
    with pytest.raises(StateError, match="written with 1 buckets, and now there are 2"):
        open_answers(job(BEFORE, buckets=2), cells)
