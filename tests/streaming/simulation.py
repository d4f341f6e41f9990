"""A cluster in memory: stores that commit or roll back, workers that keep stale buckets, and a
watermark that moves as Spark's does."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from cepheid.algebra.patterns import Absence, walk
from cepheid.algebra.query import BoundQuery, Clock
from cepheid.engine.rows.order import key_by_key
from cepheid.planner import Prepared
from cepheid.streaming.buckets.bucket import Bucket, Job, open_bucket
from cepheid.streaming.counted_keys import CountedKeys, keys_share
from cepheid.streaming.signature import found_signature
from tests.engine.harness import match_of, with_index
from tests.oracle.events import Event, Match


@dataclass
class MemoryCells:
    """The state of one bucket."""

    value: bytes | None = None
    segments: dict[int, bytes] = field(default_factory=dict)
    written: int = 0  # bytes

    def header(self) -> bytes | None:
        return self.value

    def set_header(self, data: bytes) -> None:
        self.value = data
        self.written += len(data)

    def remove_header(self) -> None:
        self.value = None

    def segment(self, number: int) -> bytes | None:
        return self.segments.get(number)

    def set_segment(self, number: int, data: bytes) -> None:
        assert number not in self.segments
        self.segments[number] = data
        self.written += len(data)

    def remove_segment(self, number: int) -> None:
        del self.segments[number]

    def copy(self) -> MemoryCells:
        return MemoryCells(self.value, dict(self.segments), self.written)


@dataclass(frozen=True)
class Weather:
    """What may happen on the way. `delay`: by how much events may be late, in ticks; None: events
    come in order and are matched in their batch."""

    seed: int
    most: int = 5  # events of a batch
    delay: int | None = None
    buckets: int = 2
    workers: int = 2
    failing: float = 0.0


class Cluster:
    """Runs a query over batches. Every bucket of every batch goes to some worker."""

    def __init__(self, prepared: Prepared, schema: pa.Schema, weather: Weather) -> None:
        self.random = random.Random(weather.seed)
        self.weather = weather
        self.plan = prepared.plan
        delayed = weather.delay is not None
        self.shared = keys_share(prepared)
        counted = prepared.counted(prompt=True)
        self.job = Job(
            CountedKeys(prepared.plan) if self.shared else counted or prepared,
            schema,
            found_signature(prepared),
            weather.buckets,
            delayed=delayed,
            jit=False,
        )
        self.cells: dict[Any, MemoryCells] = {}
        self.waiting: set[Any] = set()
        self.workers: list[dict[Any, Bucket]] = [{} for _ in range(weather.workers)]
        self.rows: list[dict[str, Any]] = []
        self.late = 0
        self.highest: int | None = None
        self.watermark = -(1 << 61)

    def batch(self, table: pa.Table) -> None:
        """One micro-batch: what came before decides its watermark."""
        if self.highest is not None:
            delay = 1 if self.weather.delay is None else self.weather.delay
            self.watermark = max(self.watermark, self.highest - delay)
        parts = self.parts(table)
        for key in sorted({*parts, *self.waiting}, key=str):
            self.run(key, parts.get(key, table.slice(0, 0)))
        if table.num_rows:
            times = table[self.plan.schema.time].to_pylist()
            self.highest = max([*times, *([] if self.highest is None else [self.highest])])

    def parts(self, table: pa.Table) -> dict[Any, pa.Table]:
        """The rows of each bucket: by key, if there is one of one name; each key by itself where
        its events are counted, and keys can't share a bucket. Where LIMIT counts all matches
        there is one."""
        names = [set(part.values()) for part in self.plan.key]
        whole = self.plan.selection is not None and self.plan.selection.counts_all
        if whole or not names or any(len(n) > 1 for n in names):
            return {0: table} if table.num_rows else {}
        found: dict[Any, list[int]] = {}
        for index, row in enumerate(table.to_pylist()):
            key = tuple(same(row[name]) for (name,) in map(tuple, names))
            if None not in key:
                single = key_by_key(self.plan) and not self.shared
                own = key if single else hash(str(key)) % self.weather.buckets
                found.setdefault(own, []).append(index)
        return {key: table.take(pa.array(rows)) for key, rows in found.items()}

    def run(self, key: Any, table: pa.Table) -> None:
        while True:
            worker = self.random.choice(self.workers)
            cells = self.cells.get(key, MemoryCells()).copy()
            bucket = open_bucket(self.job, cells, worker.get(key))
            worker[key] = bucket
            found: list[dict[str, Any]] = []
            for matches in bucket.step(table.to_batches(), self.watermark):
                found += matches.to_pylist()
                if self.random.random() < self.weather.failing:
                    break
            else:
                if self.random.random() >= self.weather.failing:
                    bucket.save(cells)
                    if self.random.random() >= self.weather.failing:
                        break  # committed
            # Anything else is forgotten, and done again.
        self.cells[key] = cells
        self.rows += found
        self.late += bucket.report().late
        self.waiting.discard(key)
        if bucket.waits:
            self.waiting.add(key)

    def finish(self, window: int) -> None:
        """Time goes on by more than anything waits for."""
        self.highest = (self.highest or 0) + 10 * window + 10 * (self.weather.delay or 0)
        empty = self.job.schema.empty_table()
        self.batch(empty)


def same(value: Any) -> Any:
    """Values that are equal as keys are written alike: 0.0 and -0.0, and NaN, as Spark groups."""
    if isinstance(value, float) and value != value:
        return "NaN"
    return 0.0 if isinstance(value, float) and value == 0 else value


Simulated = TypeVar("Simulated", bound=Cluster)


def run(
    query: BoundQuery,
    prepared: Prepared,
    events: Sequence[Event],
    weather: Weather,
    kind: type[Simulated],
) -> Simulated:
    """The query over the events, in batches of random sizes, some of them empty. Without a delay
    they come in order; with one, each is late by up to as much. Those of one time stay in the order
    of the input, which may count."""
    data = with_index(query, events)
    chance = np.random.default_rng(weather.seed)
    times = np.array(data[query.schema.time].to_pylist(), np.int64)
    delay = 0 if weather.delay is None else weather.delay
    distinct, which = np.unique(times, return_inverse=True)
    arrival = times + (chance.integers(0, delay, len(distinct))[which] if delay else 0)
    columns = [data[n].to_pylist() for n in query.schema.order]
    places = [[(value is not None, value) for value in row] for row in zip(*columns, strict=True)]
    order = sorted(range(len(times)), key=lambda n: (arrival[n], places[n], n))
    data = data.take(pa.array(order, pa.int64()))
    cluster = kind(prepared, data.schema, weather)
    begin = 0
    while begin < data.num_rows:
        size = int(chance.integers(0, weather.most + 1))
        cluster.batch(data.slice(begin, size))
        begin += size
    window = 1 if query.window is None else query.window.size
    if query.window is not None and query.window.clock is Clock.EVENTS and data.num_rows:
        cluster.batch(_fillers(query, data, window))
    lapses = sum(p.duration for p in walk(query.pattern) if isinstance(p, Absence))
    cluster.finish(window + lapses)
    return cluster


def _fillers(query: BoundQuery, data: pa.Table, count: int) -> pa.Table:
    """Where a window counts events, time alone ends nothing: events that no class takes, enough for
    every key."""
    names = data.column_names
    time, kind = names.index(query.schema.time), names.index(str(query.schema.type))
    later = max(data.column(time).to_pylist(), default=0) + 1000
    every = pa.concat_tables([data] * (count + 1))
    every = every.set_column(time, data.schema.field(time), pa.array([later] * every.num_rows))
    return every.set_column(kind, data.schema.field(kind), pa.array(["filler"] * every.num_rows))


def matches_of(query: BoundQuery, cluster: Cluster) -> list[Match]:
    return [match_of(query, row) for row in cluster.rows]
