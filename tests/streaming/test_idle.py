"""Keys whose events are counted end when they have been quiet for long enough: the state of keys
that come once stays bounded, and the matches don't depend on how the stream is cut."""

from __future__ import annotations

import gc
import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.errors import DataError
from cepheid.options import Options
from cepheid.planner import Prepared, prepare
from cepheid.spark.streaming.clock.time import MOVED, Watermark
from cepheid.spark.streaming.stateful.bucket_work import BucketWork
from cepheid.spark.streaming.stateful.packed_rows import DATA
from cepheid.streaming.buckets.bucket import Bucket, Job, open_bucket
from cepheid.streaming.cells import arrow_bytes
from cepheid.streaming.signature import signature
from tests.streaming.simulation import MemoryCells

SCHEMA = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64())])
BEGINNING = -(1 << 61)
IDLE = 10

PAIR = "PATTERN A a ; B b WHERE [id] WITHIN 3 EVENTS"
ABSENT = "PATTERN A a ; !B b WHERE [id] WITHIN 3 EVENTS"
STRICT = "PATTERN A a => !B b WHERE [id] WITHIN 3 EVENTS"


def job(text: str, idle: int | None = IDLE, delayed: bool = False) -> Job:
    options = Options("ts", type="type", jit=False)
    prepared = prepare(cep.Query(text).bind(SCHEMA, options), options)
    return Job(
        prepared,
        SCHEMA,
        signature(prepared),
        0,
        delayed=delayed,
        jit=False,
        idle=idle,
        settled=prepared.settled,
    )


def events(text: str, key: int = 1) -> pa.Table:
    """`A@1 B@2`, all of one key."""
    parts = [part.partition("@") for part in text.split()]
    columns = [[int(time) for _, _, time in parts], [kind for kind, _, _ in parts]]
    return pa.table([*columns, [key] * len(parts)], schema=SCHEMA)


def spans(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((row["match_start"], row["match_end"]) for row in rows)


class Key:
    """A key's bucket, that is saved after every batch; with `anew` it is opened again, too."""

    def __init__(self, own: Job, anew: bool) -> None:
        self.job, self.anew, self.cells = own, anew, MemoryCells()
        self.warm: Bucket | None = None

    def step(self, rows: pa.Table, watermark: int) -> list[tuple[int, int]]:
        bucket = open_bucket(self.job, self.cells, None if self.anew else self.warm)
        found = [r for m in bucket.step(rows.to_batches(), watermark) for r in m.to_pylist()]
        if bucket.over:
            bucket.remove(self.cells)
            self.warm = None
        else:
            bucket.save(self.cells)
            self.warm = bucket
        return spans(found)


# Gaps of 14, 9, 10 and 9: those of 10 or more end the key.
VISITS = "A@1 B@5 A@6 B@20 A@21 B@30 A@40 B@49"


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("behind", [1, 1000])
@pytest.mark.parametrize(
    ("query", "want"),
    [
        (PAIR, [(1, 5), (21, 30), (40, 49)]),
        # A@6 is followed by nothing before its key ends; behind A@40 comes a B.
        (ABSENT, [(6, 6)]),
        (STRICT, [(6, 6)]),
    ],
)
def test_what_is_too_far_apart_never_meets(
    query: str, want: list[tuple[int, int]], size: int, behind: int, anew: bool
) -> None:
    """Also if the watermark is so far behind that no key is looked at meanwhile."""
    key, found, last = Key(job(query), anew), [], BEGINNING
    rows = events(VISITS)
    for begin in range(0, rows.num_rows, size):
        part = rows.slice(begin, size)
        found += key.step(part, last)
        last = max(last, part["ts"][-1].as_py() - behind)
    found += key.step(rows.slice(0, 0), 58)
    assert key.cells.value is not None  # not over before 59
    found += key.step(rows.slice(0, 0), 59)
    assert sorted(found) == want
    assert (key.cells.value, key.cells.segments) == (None, {})


def test_without_it_a_key_stays() -> None:
    key = Key(job(PAIR, idle=None), anew=True)
    assert key.step(events("A@1"), BEGINNING) == []
    assert key.step(events(""), 10**9) == []
    assert key.step(events("B@2000000000"), 10**9) == [(1, 2_000_000_000)]


def test_rows_that_wait_for_the_watermark_keep_a_key() -> None:
    """A@1 is matched; B@25 waits, and finds the key over when it is its turn."""
    key = Key(job(PAIR, delayed=True), anew=True)
    assert key.step(events("A@1"), BEGINNING) == []
    assert key.step(events("A@20 B@25"), 15) == []
    assert key.cells.value is not None
    assert key.step(events(""), 30) == [(20, 25)]
    assert key.step(events(""), 35) == []
    assert key.cells.value is None


def test_keys_that_come_once_stay_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three keys in every tick, none of which comes again, and a watermark one tick behind: what is
    kept are the keys of the last ticks, however many there have been. A key has one engine."""
    engines = 0
    make = Prepared.engine

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal engines
        engines += 1
        return make(*given, **named)

    monkeypatch.setattr(Prepared, "engine", counted)
    once = Once()
    for _ in range(40):
        once.tick()
        assert len(once.cells) <= 3 * (IDLE + 4)
    assert sum(map(len, once.timers.values())) <= 3 * (IDLE + 4)
    assert engines == 3 * 40


@pytest.mark.slow
def test_keys_that_come_once_leave_no_memory_behind() -> None:
    """Of 6,000 keys, the last 5,000 take less than 2 kB each: engines take 100."""
    once = Once()
    for tick in range(2000):
        once.tick()
        if tick == 333:
            before = resident()
    assert resident() - before < 2000 * 5000


def resident() -> int:
    """Bytes of memory that this process has."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Once:
    """A worker to which three keys come in every tick, none of them again."""

    def __init__(self) -> None:
        self.now = 0
        self.cells: dict[int, MemoryCells] = {}
        self.timers: dict[int, list[int]] = {}
        self._work = BucketWork(job(PAIR), SCHEMA, Watermark(integers=True, delayed=False), "once")

    def tick(self) -> None:
        now, self.now = self.now, self.now + 1
        for key in range(3 * now, 3 * now + 3):
            self._step(key, events(f"A@{now}", key), now - 2)
        for due in [time for time in self.timers if time < now - 1]:
            for key in self.timers.pop(due):
                self._step(key, SCHEMA.empty_table(), now - 1)

    def _step(self, key: int, rows: pa.Table, watermark: int) -> None:
        frames = iter([pd.DataFrame({DATA: [arrow_bytes(rows)]})] if rows.num_rows else [])
        own = self.cells.setdefault(key, MemoryCells())
        reports = self._work.step(key, own, frames, watermark + MOVED)
        try:
            while True:
                next(reports)
        except StopIteration as end:
            if end.value is not None:
                self.timers.setdefault(end.value - MOVED, []).append(key)
        if own.value is None:
            assert not own.segments
            del self.cells[key]


def test_ties_are_counted_batch_by_batch() -> None:
    """A and B at 1, and the two at 2, of one key; those of different keys aren't ties."""
    own = replace(job(PAIR, idle=None), tied_by=("id",))
    bucket = Bucket(own)
    rows = pa.concat_tables([events("A@1 B@1 A@2 B@2"), events("A@2 A@3", 2), events("B@4")])
    list(bucket.step(rows.to_batches(), BEGINNING))
    assert bucket.report().ties == 4
    list(bucket.step(events("A@4 B@5").to_batches(), BEGINNING))
    assert bucket.report().ties == 0


def test_how_long_that_is() -> None:
    stamps, integers = Watermark(False, False), Watermark(True, False)
    assert stamps.length("idle", "2 seconds", None) == 2_000_000
    assert integers.length("idle", "2 minutes", "s") == 120
    with pytest.raises(DataError, match=r"idle='2 minutes' is a duration, .* as in unit='ms'"):
        integers.length("idle", "2 minutes", None)
    assert stamps.milliseconds(1_000_001) == 1001
    assert integers.ticks(integers.milliseconds(7)) == 7
    with pytest.raises(ValueError, match="idle must be longer than 0 seconds"):
        Options("ts", idle="0 seconds")
    with pytest.raises(ValueError, match="a duration is like '10 seconds', not 'long'"):
        Options("ts", idle="long")
