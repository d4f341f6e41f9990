"""Many keys whose events are counted share a bucket: its matches are those of each key by itself,
however the stream is cut, and keys that are over leave nothing behind."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.engine.rows.classes import CLASS_COLUMN
from cepheid.engine.run import Engine
from cepheid.options import Limit, Options
from cepheid.planner import Prepared, prepare
from cepheid.spark.streaming.clock.time import MOVED, Watermark
from cepheid.spark.streaming.stateful.bucket_work import BucketWork
from cepheid.spark.streaming.stateful.packed_rows import DATA
from cepheid.streaming.buckets.bucket import Bucket, Job, open_bucket
from cepheid.streaming.cells import arrow_bytes, table_of
from cepheid.streaming.counted_keys import CountedKeys, keys_share
from cepheid.streaming.signature import signature
from tests.streaming.simulation import MemoryCells
from tests.streaming.test_idle import resident

SCHEMA = pa.schema(
    [("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64()), ("n", pa.int64())]
)
BEGINNING = -(1 << 61)
IDLE = 10

PAIR = "PATTERN A a ; B b WHERE [id] WITHIN 3 EVENTS"

Found = list[tuple[int, int, int]]


def prepared(text: str, schema: pa.Schema = SCHEMA, **more: Any) -> Prepared:
    options = Options("ts", type="type", jit=False, **more)
    return prepare(cep.Query(text).bind(schema, options), options)


@pytest.mark.parametrize(
    ("pattern", "shared"),
    [
        ("A a ; B b WHERE [id]", True),
        ("A a ; !C c ; B b WHERE [id]", True),
        ("!C c ; A a ; B b WHERE [id]", True),
        ("A a ; C+ c ; B b WHERE [id]", True),
        ("(A a & C c) ; B b WHERE [id]", True),
        ("A a ; (B b | C c) WHERE [id]", True),
        # The last event may be of either class, or of one whose earlier events count, too.
        ("A a & B b WHERE [id]", False),
        ("A a ; B? b WHERE [id]", False),
        ("A{2} a WHERE [id]", False),
        # A match waits for events to come, or depends on those that came before it.
        ("A a ; !B b WHERE [id]", False),
        ("A a ; B+ b WHERE [id]", False),
        ("A a -> B b WHERE [id]", False),
        ("A a ; B b", False),
    ],
)
def test_who_can_share(pattern: str, shared: bool) -> None:
    assert keys_share(prepared(f"PATTERN {pattern} WITHIN 3 EVENTS")) is shared


def test_who_can_not() -> None:
    assert not keys_share(prepared(f"{PAIR} AFTER MATCH SKIP PAST LAST EVENT"))
    assert not keys_share(prepared(PAIR, limit=Limit(per_key=5)))
    assert not keys_share(prepared(PAIR, SCHEMA.append(pa.field("s", pa.int64())), start="s"))


class Stream:
    """A bucket that is saved after every batch; with `anew` it is opened again, too. Before that,
    a worker that has come less far takes the batch, and fails."""

    def __init__(self, text: str, idle: int | None, anew: bool, delayed: bool = False) -> None:
        ready = prepared(text)
        self.job = Job(
            CountedKeys(ready.plan, idle),
            SCHEMA,
            signature(ready),
            1,
            delayed=delayed,
            jit=False,
        )
        self.anew, self.cells = anew, MemoryCells()
        self.bucket: Bucket | None = None

    def step(self, rows: pa.Table, watermark: int) -> Found:
        failed = open_bucket(self.job, self.cells.copy(), None)
        list(failed.step(rows.to_batches(), watermark))
        self.bucket = open_bucket(self.job, self.cells, None if self.anew else self.bucket)
        found = [r for m in self.bucket.step(rows.to_batches(), watermark) for r in m.to_pylist()]
        self.bucket.save(self.cells)
        return [(row["match_start"], row["match_end"], row["a_id"]) for row in found]


def events(text: str, *keys: int) -> pa.Table:
    """`A@1 B@2`, of each of the keys: in order of time, and then of keys."""
    parts = [part.partition("@") for part in text.split()]
    rows = [(int(time), kind, key, 0) for kind, _, time in parts for key in keys or (1,)]
    columns = list(zip(*rows, strict=True)) if rows else [[]] * 4
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


# Gaps of 14, 9, 10 and 9: those of 10 or more end a key. C is of no class, and counts.
VISITS = "A@1 B@5 A@6 B@20 A@21 B@30 A@40 C@44 C@45 B@49"


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("size", [1, 3, 4, 7, 30])
@pytest.mark.parametrize("delayed", [False, True])
@pytest.mark.parametrize(
    ("idle", "want"),
    [
        (None, [(1, 5), (6, 20), (21, 30)]),
        (IDLE, [(1, 5), (21, 30)]),
    ],
)
def test_matches_are_those_of_each_key(
    idle: int | None, want: list[tuple[int, int]], delayed: bool, size: int, anew: bool
) -> None:
    """A@40 and B@49 are four events of the key apart, and the window takes three."""
    query = f"{PAIR} RETURN a.id AS a_id"
    stream, rows = Stream(query, idle, anew, delayed), events(VISITS, 1, 2, 3)
    found: Found = []
    for begin in range(0, rows.num_rows, size):
        part = rows.slice(begin, size)
        found += stream.step(part, part["ts"][0].as_py() - 1 if begin else BEGINNING)
    found += stream.step(rows.slice(0, 0), 50)
    assert sorted(found) == sorted((*span, key) for span in want for key in (1, 2, 3))


def test_only_keys_with_a_new_end_are_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of their events not those that ended matches before."""
    pushed: list[list[tuple[int, str]]] = []
    push = Engine.push

    def noted(engine: Engine, batch: pa.RecordBatch) -> Any:
        types = {1: "A", 2: "B"}
        bits = batch.column("__classes").to_pylist()
        pushed.append(
            [(n, types[b]) for n, b in zip(batch.column("id").to_pylist(), bits, strict=True)]
        )
        return push(engine, batch)

    monkeypatch.setattr(Engine, "push", noted)
    stream = Stream(f"{PAIR} RETURN a.id AS a_id", None, anew=False)
    stream.bucket = Bucket(stream.job)
    for rows in (
        events("A@1 C@2", 1, 2, 3),
        events("B@3", 1, 2),
        events("C@4 A@5", 1),
        events("B@6", 1),
    ):
        list(stream.bucket.step(rows.to_batches(), BEGINNING))
    # B@3 of key 1 isn't given again; A@1 is out of the window of 3, but not dropped yet.
    assert pushed == [
        [(1, "A"), (1, "B"), (2, "A"), (2, "B")],
        [(1, "A"), (1, "A"), (1, "B")],
    ]


def test_keys_that_are_over_leave_nothing() -> None:
    """Three keys in every tick, none of which comes again: at most as many are held as twice those
    of the last ticks, since rows are dropped when more than half are past."""
    stream = Stream(f"{PAIR} RETURN a.id AS a_id", IDLE, anew=True)
    for tick in range(50):
        stream.step(events(f"A@{tick}", *range(3 * tick, 3 * tick + 3)), tick - 2)
        assert stream.bucket is not None
        assert stream.bucket.report().rows <= 2 * 3 * (IDLE + 2)
    assert stream.bucket.waits  # for time to end the last keys
    stream.step(events(""), 1000)
    assert stream.bucket.report().rows == 0
    assert not stream.bucket.waits
    assert stream.cells.segments == {}


def test_without_an_idle_time_the_last_events_of_a_key_stay() -> None:
    """One event of 50 keys, and many of another: of those, the window's three are needed."""
    stream = Stream(f"{PAIR} RETURN a.id AS a_id", None, anew=True)
    stream.step(events("A@1", *range(50)), BEGINNING)
    for tick in range(2, 120):
        stream.step(events(f"A@{tick}", 99), tick - 2)
    assert stream.bucket is not None
    assert 53 <= stream.bucket.report().rows <= 2 * 53
    assert sorted(stream.step(events("B@120", *range(50)), 118)) == [
        (1, 120, key) for key in range(50)
    ]


def test_a_row_before_the_last_of_its_time_is_late() -> None:
    """In the order of the tie-break, also if the two come in different batches."""
    options = Options("ts", type="type", tie="n", jit=False)
    ready = prepare(cep.Query(PAIR).bind(SCHEMA, options), options)
    job = Job(CountedKeys(ready.plan), SCHEMA, signature(ready), 1, jit=False)
    cells = MemoryCells()

    def step(*rows: tuple[int, str, int, int]) -> tuple[int, int]:
        bucket = open_bucket(job, cells)
        table = pa.Table.from_pylist(
            [dict(zip(SCHEMA.names, r, strict=True)) for r in rows], SCHEMA
        )
        found = sum(m.num_rows for m in bucket.step(table.to_batches(), BEGINNING))
        bucket.save(cells)
        return found, bucket.report().late

    assert step((5, "A", 1, 3), (4, "A", 1, 9)) == (0, 0)
    assert step((5, "B", 1, 2), (5, "B", 1, 4)) == (2, 1)  # n = 2 is late; 4 follows both


def test_rows_with_classes_from_another_runtime() -> None:
    """As Spark sends them: the classes are numbers, and the work is pickled."""
    ready = prepared("PATTERN A a ; B b WHERE [id] AND b.n > a.n WITHIN 3 EVENTS RETURN a.id AS id")
    sent = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("n", pa.int64())])
    sent = sent.append(pa.field(CLASS_COLUMN, pa.int64(), False))
    job = Job(CountedKeys(ready.plan, IDLE), sent, signature(ready), 8, jit=False, kept=("id", "n"))
    work = BucketWork(job, sent, Watermark(integers=True, delayed=False), "run")
    work = pickle.loads(pickle.dumps(work))
    cells = MemoryCells()

    def step(watermark: int, *rows: tuple[int, int, int, int]) -> list[int]:
        table = pa.Table.from_pylist([dict(zip(sent.names, r, strict=True)) for r in rows], sent)
        frames = iter([pd.DataFrame({DATA: [arrow_bytes(table)]})] if rows else [])
        found = [f[DATA][0] for f in work.step(0, cells, frames, watermark + MOVED)]
        return [n for data in found if data is not None for n in table_of(data)["id"].to_pylist()]

    a, b = 1, 2
    assert step(0, (1, 7, 5, a), (2, 8, 5, a), (2, 9, 5, 0)) == []
    assert step(1, (3, 7, 4, b), (4, 7, 6, b), (4, 8, 6, b)) == [7, 8]
    assert step(20, (30, 7, 9, b)) == []  # over since 14
    assert step(99) == []
    assert cells.value is not None and cells.segments == {}


@pytest.mark.slow
def test_half_a_million_keys_that_come_once() -> None:
    """25,000 in each of 20 batches, in 8 buckets: what is held stays that of the last two, and so
    does memory."""
    ready = prepared(f"{PAIR} RETURN a.id AS a_id")
    job = Job(CountedKeys(ready.plan, 2), SCHEMA, signature(ready), 8, jit=False)
    cells, buckets = [MemoryCells() for _ in range(8)], [Bucket(job) for _ in range(8)]
    memory, held, found = [], [], 0
    for batch in range(20):
        ids = np.append(np.arange(25_000) + 25_000 * batch, np.arange(100) + 25_000 * (batch - 1))
        kinds = np.where(np.arange(len(ids)) < 25_000, "A", "B")
        same = np.full(len(ids), batch)
        rows = pa.table([same, kinds, ids, same], schema=SCHEMA)
        for number, own in enumerate(cells):
            buckets[number] = bucket = open_bucket(job, own, buckets[number])
            part = rows.filter(pa.array(ids % 8 == number)).to_batches()
            found += sum(matches.num_rows for matches in bucket.step(part, batch - 2))
            bucket.save(own)
        held.append(sum(bucket.report().rows for bucket in buckets))
        memory.append(resident())
    assert found == 19 * 100
    assert max(held) < 5 * 25_000
    assert memory[-1] - memory[4] < 100 << 20
