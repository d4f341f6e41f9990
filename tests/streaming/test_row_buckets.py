"""MATCH_RECOGNIZE over streams that are cut at random: what is returned, and what is kept."""

from __future__ import annotations

import zlib
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from cepheid.errors import DataError, QueryError, StateError
from cepheid.language.diagnostics import Source
from cepheid.row_patterns.bound import bind
from cepheid.row_patterns.clause import parse_recognition
from cepheid.row_patterns.endless import check_endless, rows_before
from cepheid.row_patterns.syntax import (
    Alternation,
    Anchor,
    EmptyPattern,
    Exclusion,
    Label,
    Quantified,
    Recognition,
    RowPattern,
)
from cepheid.streaming.buckets.row_bucket import RowBucket, RowsJob, open_rows
from cepheid.streaming.buckets.row_pages import PLACE
from tests.examples import examples
from tests.row_patterns import oracle
from tests.row_patterns.clauses import draw_endless_clause, draw_rows
from tests.streaming.simulation import MemoryCells

SCHEMA = pa.schema(
    [("k", pa.string()), ("s", pa.string()), *((name, pa.int64()) for name in "txyn")]
)
Rows = list[dict[str, Any]]
DELAY = 3
END = 10_000


def job_of(text: str, schema: pa.Schema = SCHEMA) -> tuple[Recognition, RowsJob]:
    source = Source(text)
    recognition = parse_recognition(source)
    bound = bind(recognition, schema, source)
    check_endless(recognition, bound, source)
    return recognition, RowsJob(bound, schema, text, 1, jit=False)


class Pages(MemoryCells):
    """The store of a bucket, which counts what is read and written."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[int] = set()
        self.changed: set[int] = set()

    def segment(self, number: int) -> bytes | None:
        self.read.add(number)
        return super().segment(number)

    def set_segment(self, number: int, data: bytes) -> None:
        self.segments.pop(number, None)
        self.changed.add(number)
        super().set_segment(number, data)

    def remove_segment(self, number: int) -> None:
        self.changed.add(number)
        super().remove_segment(number)


class Stream:
    """One bucket, which is saved and opened again after every batch, if rows come or an alarm is
    due. A batch that fails is done again from the state before it."""

    def __init__(self, job: RowsJob, random: Random, per_page: int | None = None) -> None:
        self.job = replace(job, per_page=per_page or random.choice([1, 2, 32]))
        self.random = random
        self.cells = Pages()
        self.watermark = -1000
        self.late = 0
        self.bucket: RowBucket | None = None
        self.alarms: set[int] = set()

    def batch(self, rows: Rows, watermark: int) -> Rows:
        due = {alarm for alarm in self.alarms if alarm <= watermark}
        self.alarms -= due
        if not rows and not due:
            return []
        places = [{**row, PLACE: zlib.crc32(repr(row["k"]).encode()) >> 1} for row in rows]
        table = pa.Table.from_pylist(places, self.job.arriving)
        if self.random.random() < 0.2:  # this worker fails before it saves
            open_rows(self.job, self.cells).step(self.cells, table.to_batches(), watermark)
        self.bucket = open_rows(self.job, self.cells)
        matches = self.bucket.step(self.cells, table.to_batches(), watermark)
        alarm = self.bucket.save(self.cells, watermark)
        if alarm is not None:
            self.alarms.add(alarm)
        self.late += self.bucket.report().late
        return list(matches.to_pylist())

    def run(self, rows: Rows) -> Rows:
        """Rows come up to DELAY ticks late, in batches of any size."""
        arriving = sorted(rows, key=lambda row: row["t"] + self.random.uniform(0, DELAY))
        matches: Rows = []
        highest = -1000
        while arriving:
            size = self.random.randint(0, 4)
            part, arriving = arriving[:size], arriving[size:]
            matches += self.batch(part, max(self.watermark, highest - DELAY - 1))
            highest = max([highest, *(row["t"] for row in part)])
        return matches + self.batch([], END)


def longest(pattern: RowPattern) -> int:
    """The most rows that a match takes; only for patterns without end-less loops."""
    match pattern:
        case Label():
            return 1
        case EmptyPattern() | Anchor():
            return 0
        case Alternation(items):
            return max(map(longest, items))
        case Exclusion(item):
            return longest(item)
        case Quantified(item, _, high):
            assert high is not None
            return high * longest(item)
        case _:
            return sum(map(longest, pattern.items))


def decided(recognition: Recognition, rows: int, starts: list[int]) -> int:
    """How many of the matches that begin at these rows no later row can change, after a long
    time."""
    if recognition.within is not None:
        return len(starts)
    last = rows - longest(recognition.pattern)
    return sum(start <= last for start in starts)


def by_key(rows: Rows) -> dict[Any, Rows]:
    parts: dict[Any, Rows] = {}
    for row in rows:
        parts.setdefault(row["k"], []).append(row)
    return parts


def _compare(seed: int) -> None:
    random = Random(seed)
    try:
        recognition, job = job_of(draw_endless_clause(random))
    except QueryError as error:  # SKIP TO the first row of every match
        assert [finding.code for finding in error.diagnostics] == ["CEP626"]
        return
    for _ in range(3):
        rows = draw_rows(random)
        stream = Stream(job, random)
        partitions = {k: sorted(p, key=lambda row: row["t"]) for k, p in by_key(rows).items()}
        try:
            wanted = {k: oracle.single_rows(recognition, p) for k, p in partitions.items()}
        except oracle.NoSkip:
            if recognition.within is not None:
                with pytest.raises(DataError, match="AFTER MATCH SKIP TO"):
                    stream.run(rows)
            continue
        matches = by_key(stream.run(rows))
        assert stream.late == 0
        for key, expected in wanted.items():
            returned = matches.get(key, [])
            assert returned == [row for _, row in expected][: len(returned)], job.signature
            least = decided(recognition, len(partitions[key]), [start for start, _ in expected])
            assert len(returned) >= least, job.signature


@pytest.mark.parametrize("block", range(5))
def test_streams_return_what_tables_do(block: int) -> None:
    for seed in range(examples("row patterns") // 100):
        _compare(block * 1_000_000 + seed)


V_SHAPE = """PARTITION BY k ORDER BY t, y MEASURES MATCH_NUMBER() AS n, A.t AS a, LAST(UP.t) AS u
    PATTERN (A DOWN+ UP+) WITHIN 10 units
    DEFINE DOWN AS x < PREV(x), UP AS x > PREV(x)"""


def rows_of(key: str, *values: tuple[int, int]) -> Rows:
    return [{"k": key, "t": t, "x": x, "y": 0, "n": 0, "s": "a"} for t, x in values]


def test_a_greedy_match_waits_for_a_row_that_ends_it_or_for_the_window() -> None:
    _, job = job_of(V_SHAPE)
    stream = Stream(job, Random(1))
    assert stream.batch(rows_of("a", (1, 5), (2, 4), (3, 6), (4, 7)), 0) == []
    assert stream.batch([], 5) == []  # the next row may be higher still
    assert stream.batch(rows_of("a", (6, 1)), 5) == []
    assert stream.batch([], 6) == [{"k": "a", "n": 1, "a": 1, "u": 4}]
    assert stream.batch(rows_of("a", (7, 0), (8, 3)), 6) == []
    assert stream.batch([], 14) == []
    assert stream.batch([], 15) == [{"k": "a", "n": 2, "a": 6, "u": 8}]


def test_rows_are_dropped_when_no_match_can_need_them() -> None:
    _, job = job_of(V_SHAPE)
    stream = Stream(job, Random(1))
    for start in range(0, 2000, 20):
        rows = [row for k in "abc" for row in rows_of(k, (start, 5), (start + 1, 4))]
        stream.batch(rows, start - 1)
        assert stream.bucket is not None
        assert stream.bucket.report().rows <= 3 * 5
    stream.batch([], END)
    assert stream.bucket.report().rows == 3  # for the numbers of matches


def test_nothing_is_kept_of_partitions_that_are_silent() -> None:
    """DOWN and UP come after A, so what they read with PREV is in the match."""
    _, job = job_of(V_SHAPE.replace("MATCH_NUMBER() AS n, ", ""))
    stream = Stream(job, Random(1))
    found: Rows = []
    for start in range(0, 1000, 20):
        shape = rows_of(f"k{start}", (start, 5), (start + 1, 4), (start + 2, 6))
        found += stream.batch(shape, start - 1)
        assert stream.bucket is not None
        assert stream.bucket.report().rows <= 6
    found += stream.batch([], END)
    assert len(found) == 50
    assert stream.bucket is not None and stream.bucket.report().rows == 0
    assert not stream.cells.segments


@pytest.mark.parametrize(
    ("measures", "pattern", "define", "rows"),
    [
        ("A.x AS m", "A B", "B AS x > PREV(x)", 0),
        ("A.x AS m", "A B", "A AS x > PREV(x)", 1),
        ("A.x AS m", "A B", "B AS x > PREV(x, 3)", 2),
        ("A.x AS m", "A? B", "B AS x > PREV(x)", 1),
        ("A.x AS m", "A B C", "C AS x > PREV(B.x, 2)", 1),
        ("A.x AS m", "A B C", "C AS x > PREV(LAST(x, 1), 2)", 1),
        ("A.x AS m", "A B C", "C AS x > PREV(FIRST(x, 1), 2)", 1),
        ("PREV(A.x) AS m", "A B", "B AS x > 1", 1),
        ("PREV(x) AS m", "A B", "B AS x > 1", 1),
        ("MATCH_NUMBER() AS m", "A B", "B AS x > 1", 1),
        ("A.x AS m", "^ A B", "B AS x > 1", 1),
    ],
)
def test_how_many_rows_are_kept_before_a_match(
    measures: str, pattern: str, define: str, rows: int
) -> None:
    clause = f"PARTITION BY k ORDER BY t MEASURES {measures} PATTERN ({pattern}) DEFINE {define}"
    assert rows_before(job_of(clause)[1].bound) == rows


@pytest.mark.parametrize("per_page", [1, 4, 32])
def test_a_batch_reads_and_writes_the_partitions_that_it_touches(per_page: int) -> None:
    """However many others have open matches, or keep a row for the number of the next."""
    _, job = job_of(V_SHAPE.replace("WITHIN 10 units", "WITHIN 5000 units"))
    stream = Stream(job, Random(1), per_page)
    for start in range(0, 600, 100):
        rows = [row for n in range(100) for row in rows_of(f"k{start + n}", (start + 1, 5))]
        stream.batch(rows, start)
    stream.batch([], 600)
    assert stream.bucket is not None and stream.bucket.report().rows == 600
    pages = stream.bucket.directory.pages
    assert pages[:, 1].sum() == 600 and pages[:, 1].max() <= 3 * per_page + 5
    for time in range(700, 720):
        stream.cells.read, stream.cells.changed = set(), set()
        written = stream.cells.written
        stream.batch(rows_of("k7", (time, 1)), time - 1)
        assert len(stream.cells.read) == 1
        assert len(stream.cells.changed) <= 3  # a page that is divided leaves its place
        directory = stream.bucket.directory.pages.nbytes
        assert stream.cells.written - written <= directory + 3 * (300 + per_page * 300)
    stream.cells.read = set()
    assert stream.batch([], 800) == [] and len(stream.cells.read) == 1
    stream.cells.read = set()
    assert stream.batch([], 4000) == [] and not stream.cells.read


def test_late_rows_are_counted() -> None:
    _, job = job_of(V_SHAPE)
    stream = Stream(job, Random(1))
    stream.batch(rows_of("a", (5, 1)), 4)
    stream.batch(rows_of("a", (3, 1), (4, 1), (6, 1)), 5)
    assert stream.late == 2


def test_ties_are_in_the_order_of_further_columns_whatever_the_batches() -> None:
    text = "PARTITION BY k ORDER BY t, x MEASURES array_agg(x) AS xs PATTERN (A B) "
    _, job = job_of(text)
    stream = Stream(job, Random(1))
    stream.batch(rows_of("a", (1, 9)), 0)
    assert stream.batch(rows_of("a", (1, 2)), 0) == []
    assert stream.batch([], 1) == [{"k": "a", "xs": [2, 9]}]


def test_state_of_another_clause_is_refused() -> None:
    _, job = job_of(V_SHAPE)
    stream = Stream(job, Random(1))
    stream.batch(rows_of("a", (1, 1)), 0)
    _, other = job_of(V_SHAPE.replace("UP+", "UP"))
    with pytest.raises(StateError) as failed:
        open_rows(other, stream.cells)
    assert str(failed.value).startswith("MATCH_RECOGNIZE is not the one that the checkpoint was")


REFUSED = {
    "ORDER BY t ALL ROWS PER MATCH PATTERN (A)": (
        "CEP621: a stream has no ALL ROWS PER MATCH SHOW EMPTY MATCHES",
        "use ONE ROW PER MATCH, with array_agg for the values of its rows",
    ),
    "PARTITION BY k PATTERN (A B)": (
        "CEP620: a stream needs ORDER BY: rows are matched in the order of their time",
        "write `ORDER BY ts`, with the time of the rows first",
    ),
    "ORDER BY t DESC MEASURES x AS m PATTERN (A B)": (
        "CEP620: a stream is in the order of its time, and `t` is descending",
        "write `ORDER BY ts`, with the time of the rows first",
    ),
    "ORDER BY s MEASURES x AS m PATTERN (A B)": (
        "CEP620: a stream is in the order of its time, and `s` is no time",
        "write `ORDER BY ts`, with the time of the rows first",
    ),
    "ORDER BY t MEASURES x AS m PATTERN (A B+ C)": (
        "CEP622: this pattern takes any number of rows, and a stream would have to keep them all",
        "add `WITHIN INTERVAL '1' HOUR` after PATTERN, or give quantifiers an upper bound",
    ),
    "ORDER BY t MEASURES x AS m PATTERN (A B $)": (
        "CEP623: `$` is the end of a partition, and a stream has none",
        "leave it out",
    ),
    "ORDER BY t MEASURES x AS m PATTERN (A B) DEFINE A AS x < NEXT(x)": (
        "CEP624: NEXT reads a row that has not come yet",
        "give the next row a label in PATTERN, and compare it with PREV",
    ),
}


@pytest.mark.parametrize("clause", REFUSED)
def test_what_a_stream_refuses(clause: str) -> None:
    message, hint = REFUSED[clause]
    with pytest.raises(QueryError) as failed:
        job_of(clause)
    (finding,) = failed.value.diagnostics
    assert (f"{finding.code}: {finding.message}", finding.hint) == (message, hint)
