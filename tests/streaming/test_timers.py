"""What waits for the watermark comes in the batch that decides it: with Spark's timers as with a
look at every key in every batch, whatever the operator does."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.engine.match_schema import output_schema
from cepheid.errors import QueryError
from cepheid.options import Options
from cepheid.planner import Prepared, prepare
from cepheid.planner.bounds import known_after
from cepheid.spark.group_parts import GroupParts
from cepheid.spark.streaming.answer_pipeline import AnswerWork
from cepheid.spark.streaming.clock.time import MOVED, Watermark
from cepheid.spark.streaming.row_pipeline import RowBucketWork
from cepheid.spark.streaming.stateful.bucket_work import BucketWork
from cepheid.spark.streaming.stateful.packed_rows import BUCKET, DATA
from cepheid.streaming.buckets.answer_bucket import AnswersJob
from cepheid.streaming.buckets.bucket import Job
from cepheid.streaming.buckets.row_bucket import RowsJob
from cepheid.streaming.buckets.row_pages import PLACE
from cepheid.streaming.cells import table_of
from cepheid.streaming.signature import answers_signature, signature
from tests.row_patterns.clauses import draw_endless_clause, draw_rows
from tests.streaming.stateful_operator import Operator
from tests.streaming.test_row_buckets import job_of, rows_of

SCHEMA = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("k", pa.int64())])
INTEGERS = Watermark(integers=True, delayed=True)
RUN = iter(range(1 << 30))
Rows = list[dict[str, Any]]
Batch = tuple[Mapping[int, pa.Table], int]


def released(work: Any, batches: list[Batch], always: bool = False) -> list[Rows]:
    """What comes out in each batch; a watermark is given in ticks."""
    operator = Operator(work, always)
    return [operator.batch(rows, time + MOVED) for rows, time in batches]


# ── MATCH_RECOGNIZE ──


def of_rows(job: RowsJob) -> RowBucketWork:
    return RowBucketWork(job, INTEGERS, None)


def arriving(job: RowsJob, rows: Rows) -> dict[int, pa.Table]:
    """All in one bucket, as packed."""
    places = [{**row, PLACE: zlib.crc32(repr(row["k"]).encode()) >> 1} for row in rows]
    return {0: pa.Table.from_pylist(places, job.arriving)} if rows else {}


FALLING = """PARTITION BY k ORDER BY t MEASURES A.t AS a, LAST(B.t) AS b
    PATTERN (A B+) WITHIN 10 units DEFINE B AS x < PREV(x)"""


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_a_match_comes_with_the_watermark_that_decides_it(step: int) -> None:
    """The window of A@1 is over when 10 has passed; the row at 30 waits for 30."""
    _, job = job_of(FALLING)
    rows = [*rows_of("a", (1, 5), (3, 4)), *rows_of("b", (30, 1))]
    batches: list[Batch] = [(arriving(job, rows), 0), *(({}, now) for now in range(step, 40, step))]
    found = released(of_rows(job), batches)
    first = next(n for n, (_, now) in enumerate(batches) if now >= 10)
    assert found[first] == [{"k": "a", "a": 1, "b": 3}]
    assert sum(map(len, found)) == 1


@pytest.mark.parametrize("block", range(3))
def test_drawn_clauses(block: int) -> None:
    for seed in range(8):
        random = Random(1_000 * block + seed)
        try:
            _, job = job_of(draw_endless_clause(random))
        except QueryError:  # which is tested elsewhere
            continue
        rows = sorted(draw_rows(random), key=lambda row: str(row["t"]))
        batches: list[Batch] = []
        now = 0
        while rows or now < 40:
            now += random.randint(0, 3)
            size = random.choice([0, 0, 0, 1, 2])
            part, rows = rows[:size], rows[size:]
            batches.append((arriving(job, part), now - 3))
        try:
            expected = released(of_rows(job), batches, always=True)
        except cep.CepheidError:  # AFTER MATCH SKIP TO a label that isn't there
            continue
        assert released(of_rows(job), batches) == expected, job.signature


# ── patterns ──


def of_pattern(text: str, delayed: bool, idle: int | None = None) -> BucketWork:
    job = job_of_pattern(prepared_of(text), delayed, idle)
    watermark = Watermark(integers=True, delayed=delayed)
    return BucketWork(job, SCHEMA, watermark, f"timers {next(RUN)}")


def prepared_of(text: str) -> Prepared:
    options = Options("ts", type="type", jit=False)
    return prepare(cep.Query(text).bind(SCHEMA, options), options)


def job_of_pattern(prepared: Prepared, delayed: bool, idle: int | None) -> Job:
    own = signature(prepared)
    job = Job(prepared, SCHEMA, own, 0, delayed=delayed, jit=False)
    return replace(job, idle=idle, settled=idle is not None and prepared.settled)


def events(random: Random, now: int, keys: int) -> dict[int, pa.Table]:
    parts: dict[int, pa.Table] = {}
    for key in range(keys):
        if random.random() < 0.25:
            row = {"ts": now, "type": random.choice("ABC"), "k": key}
            parts[key] = pa.Table.from_pylist([row], SCHEMA)
    return parts


PATTERNS = [
    "PATTERN A a ; B b WHERE [k] WITHIN 15",
    "PATTERN A a ; !B b WHERE [k] WITHIN 5",
    "PATTERN A a ; !B b FOR 4 WHERE [k] WITHIN 9",
    "PATTERN A a ; B+ b WHERE [k] WITHIN 5",
    "PATTERN A a -> B b ; !C c WHERE [k] WITHIN 5",
    "PATTERN !A a FOR 3 ; B b WHERE [k] WITHIN 5",
]


@pytest.mark.parametrize("delayed", [False, True])
@pytest.mark.parametrize("text", PATTERNS)
def test_patterns(text: str, delayed: bool) -> None:
    random = Random(text)
    batches: list[Batch] = [(events(random, now, 3), now - 2) for now in range(1, 70)]
    work, steady = of_pattern(text, delayed), of_pattern(text, delayed)
    found = released(work, batches)
    assert found == released(steady, batches, always=True)
    assert any(found)


@pytest.mark.parametrize("delayed", [False, True])
def test_keys_that_end(delayed: bool) -> None:
    """Whether one has ended is looked at a little later than it can, so not in every batch."""
    text = "PATTERN A a ; !B b WHERE [k] WITHIN 3 EVENTS"
    random = Random(7)
    batches: list[Batch] = [(events(random, now, 3), now - 2) for now in range(1, 90)]
    found = released(of_pattern(text, delayed, idle=16), batches)
    steady = released(of_pattern(text, delayed, idle=16), batches, always=True)
    assert any(found) and in_some_order(found) == in_some_order(steady)


def in_some_order(found: list[Rows]) -> list[str]:
    return sorted(str(row) for rows in found for row in rows)


# ── answers ──


def test_answers() -> None:
    """A window is answered when time has passed its end, also if no match comes any more."""
    text = "FROM A a GROUP BY TUMBLE(10) RETURN window_end, count(*) AS n"
    prepared = prepared_of(text)
    shape, matches = prepared.query.answers, output_schema(prepared.plan, SCHEMA)
    lag = known_after(prepared.query)
    assert shape is not None and lag is not None
    parts = GroupParts.of(shape, matches, 1, counted=False)
    job = AnswersJob(shape, matches, answers_signature(prepared, matches), 1, lag)
    random = Random(3)
    batches: list[Batch] = []
    for now in range(1, 100):
        packed: dict[int, pa.Table] = {}
        if random.random() < 0.2:
            row = pa.RecordBatch.from_pylist([{"match_start": now, "match_end": now}], matches)
            for batch in parts.packed(iter([row])):
                packed |= {r[BUCKET]: table_of(r[DATA]) for r in batch.to_pylist()}
        batches.append((packed, now - 2))
    found = released(AnswerWork(job, INTEGERS), batches)
    assert found == released(AnswerWork(job, INTEGERS), batches, always=True)
    counts = [
        (row["window_end"], now)
        for (_, now), rows in zip(batches, found, strict=True)
        for row in rows
        if row["n"]  # windows without matches are known with the next match
    ]
    assert len(counts) >= 5 and all(now == end - 1 for end, now in counts)
