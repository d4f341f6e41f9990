"""What a batch costs: beside storing, by its size, after many others, by window and buckets.

All ways of an experiment take turns in one session, and each has to find all matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from benchmarks.measure import Timing, WrongAnswer
from benchmarks.report import Record, provenance, short
from benchmarks.streaming.cases import PAIRS, Stream
from benchmarks.streaming.floor import Forwarding, Storing, stored
from benchmarks.streaming.running import WARM_UP, Batch, read, run, typical
from cepheid.cli.fraud_demo import QUERY
from cepheid.spark.streaming.pipeline import PROVIDER, ROCKSDB

STORES = {
    "in memory": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "RocksDB": ROCKSDB,
}
"""Spark's state stores; the first is its default."""

CONFIG = {"spark.driver.memory": "6g"}
"""Spark's joins hold a million events in memory."""

RATIO = 1.5
FLAT = 1.25
SIZES = (10_000, 100_000, 1_000_000)
BUCKETS = (2, 4, 8, 16, 32)
TURNS = 2
COLUMNS = {"time": "ts", "tie": "id"}

Way = Callable[[DataFrame], DataFrame]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Setup:
    """A session, how often ways take turns, whether a tenth of the events is enough, and whom to
    tell of progress."""

    spark: SparkSession
    tell: Tell = lambda _: None
    turns: int = TURNS
    quick: bool = False

    def stream(self, batch: int, batches: int, **sizes: int) -> Stream:
        if self.quick:
            batch, batches = batch // 10, min(batches, WARM_UP + 2)
            sizes = {name: size // 10 for name, size in sizes.items()}
        return Stream(batch, batches, **sizes)

    def batches(self, name: str, stream: Stream, way: Way, answer: int | None) -> list[Batch]:
        """A whole run; `answer` is how many rows have to come out."""
        self.tell(f"{name}, {stream.batches} batches of {short(stream.batch)} events")
        found = run(way(read(self.spark, stream)))
        output = sum(batch.output for batch in found)
        if answer is not None and output != answer:
            raise WrongAnswer(f"{name}: {output:,} rows came out where there are {answer:,}")
        if len(found) != stream.batches:
            raise WrongAnswer(f"{name}: {len(found)} batches of {stream.batches} were seen")
        return found

    def take_turns(
        self, stream: Stream, ways: Mapping[str, tuple[Way, int | None]]
    ) -> dict[str, Timing]:
        """What a batch takes in each of these ways, of which all have the same stream."""
        found: dict[str, list[Batch]] = {name: [] for name in ways}
        for turn in range(self.turns):
            # Java gets faster all the time, so each way is as often before the others as behind.
            for name in list(ways)[:: -1 if turn % 2 else 1]:
                way, answer = ways[name]
                found[name] += self.batches(name, stream, way, answer)[WARM_UP:]
        return {name: typical(batches) for name, batches in found.items()}


def cepheid(query: str = QUERY, **options: Any) -> Way:
    return partial(cep.match, query=query, **COLUMNS, **options)


def matching(setup: Setup) -> Record:
    """Against the same pipeline that only stores, by size of the batch."""
    rows, claims, rates = [], [], []
    for size in SIZES:
        stream = setup.stream(size, WARM_UP + (6 if size < 1_000_000 else 3))
        ways: dict[str, tuple[Way, int | None]] = {
            "store": (partial(stored, Storing, query=QUERY, **COLUMNS), 0),
            "store and forward": (partial(stored, Forwarding, query=QUERY, **COLUMNS), None),
            "cepheid": (cepheid(), stream.matches()),
        }
        costs = setup.take_turns(stream, ways)
        ours, floor = costs["cepheid"], costs["store and forward"]
        cpu, wall = ours.cpu / floor.cpu, ours.wall / floor.wall
        rates.append(stream.batch / ours.cpu)
        rows.append(
            [
                short(stream.batch),
                *(_seconds(costs[name]) for name in ways),
                f"{cpu:.2f} ({wall:.2f})",
                f"{ours.cpu / costs['store'].cpu:.2f} ({ours.wall / costs['store'].wall:.2f})",
                short(rates[-1]),
            ]
        )
        if size >= 100_000:
            text = f"{short(stream.batch)} events a batch cost at most {RATIO} × store and forward"
            claims.append(_claim(text, cpu <= RATIO, f"CPU {cpu:.2f} ×, wall {wall:.2f} ×"))
    grows = all(a < b for a, b in pairwise(rates))
    claims.append(_claim("the rate grows with the batch", grows, ", ".join(map(short, rates))))
    head = [
        "events a batch",
        "store",
        "store and forward",
        "cepheid",
        "cepheid × store and forward",
        "cepheid × store",
        "events/s of CPU",
    ]
    return _part("matching", "The fraud query and its floor", head, rows, claims)


def flat(setup: Setup) -> Record:
    """The 10th batch and the 100th."""
    stream = setup.stream(20_000, 100)
    found = setup.batches("100 batches", stream, cepheid(), stream.matches())
    length = min(10, len(found) // 2)
    early, late = found[length : 2 * length + 1], found[-length - 1 :]
    first, last = typical(early), typical(late)
    rows = [_spell(early), _spell(late)]
    times = last.cpu / first.cpu, last.wall / first.wall
    detail = f"CPU {times[0]:.2f} ×, wall {times[1]:.2f} ×"
    claims = [_claim("later batches take as long", times[0] <= FLAT, detail)]
    head = ["batches", "CPU (wall) s", "rows held", "bytes in the state store"]
    return _part("flat", "One batch after another", head, rows, claims)


def joined(events: DataFrame, query: str, provider: str) -> DataFrame:
    """What Spark's own joins of streams make of a query, with this kind of state store."""
    events.sparkSession.conf.set(PROVIDER, provider)
    purchases = events.filter("kind = 'purchase'").withWatermark("ts", "1 millisecond")
    small = purchases.filter("amount < 100").select("id", "ts", "card", "amount")
    big = purchases.filter("amount > 250").drop("kind").alias("b")
    if query == PAIRS:
        found = small.alias("s").join(big, F.expr(_follows("s", "b")))
        return found.selectExpr(
            "b.card", "s.ts AS tested", "s.amount AS small", "b.ts AS spent", "b.amount AS large"
        )
    tests = small.alias("s1").join(small.alias("s2"), F.expr(_follows("s1", "s2")))
    # A stream has one event time: that of the first purchase becomes a value like any other.
    tests = tests.selectExpr(
        "s2.*", "timestamp_micros(unix_micros(s1.ts)) AS first", "s1.amount AS small"
    )
    both = f"{_follows('t', 'b')} AND t.first > b.ts - INTERVAL 12 HOURS"
    return (
        tests.alias("t")
        .join(big, F.expr(both))
        .selectExpr(
            "b.card",
            "t.first AS tested",
            "t.small",
            "t.amount AS small_too",
            "b.ts AS spent",
            "b.amount AS large",
            "b.country",
            "b.id",
        )
    )


def _follows(one: str, other: str) -> str:
    """That an event follows another of its card, in a window with it."""
    return (
        f"{one}.card = {other}.card AND {one}.ts <= {other}.ts "
        f"AND ({one}.ts < {other}.ts OR {one}.id < {other}.id) "
        f"AND {one}.ts > {other}.ts - INTERVAL 12 HOURS"
    )


def join(setup: Setup) -> Record:
    """The fraud query, and pairs of a small and a large purchase, by Spark's joins of streams."""
    rows, claims = [], []
    for size in SIZES[1:]:
        # The store that is by far slower for joins would take an hour with the larger batches.
        stores = dict(list(STORES.items())[: 2 if size < 1_000_000 else 1])
        own_turns = setup if size < 1_000_000 else replace(setup, turns=1)
        for title, query in {"fraud": QUERY, "pairs": PAIRS}.items():
            stream = setup.stream(size, WARM_UP + (6 if size < 1_000_000 else 2))
            answer = stream.matches(query)
            ways: dict[str, tuple[Way, int | None]] = {
                store: (partial(joined, query=query, provider=name), answer)
                for store, name in stores.items()
            }
            costs = own_turns.take_turns(stream, {**ways, "cepheid": (cepheid(query), answer)})
            ours = costs.pop("cepheid")
            best = min(costs.values(), key=lambda cost: cost.cpu)
            cpu, wall = best.cpu / ours.cpu, best.wall / ours.wall
            seconds = [_seconds(costs[store]) if store in costs else "–" for store in STORES]
            rows.append(
                [title, short(stream.batch), *seconds, _seconds(ours), f"{cpu:.2f} ({wall:.2f})"]
            )
            text = f"{title}, {short(stream.batch)} events a batch: Spark's joins are beaten"
            claim = _claim(text, cpu > 1, f"CPU {cpu:.2f} ×, wall {wall:.2f} ×")
            claims.append({**claim, "must": query == QUERY})
    titles = [f"Spark's joins, {store}" for store in STORES]
    head = ["query", "events a batch", *titles, "cepheid", "factor to the better one"]
    return _part("join", "Spark's ours joins of streams", head, rows, claims)


def window(setup: Setup) -> Record:
    """A window of one batch and of a hundred, with as many events of each card in a window, so
    that a batch has as many matches."""
    size = 20_000
    rows, costs = [], []
    for length in (1, 100):
        events = size * length
        stream = setup.stream(size, length + 20, window=events, cards=events)
        found = setup.batches(f"window of {length}", stream, cepheid(), stream.matches())
        last = found[-min(15, len(found) - WARM_UP) :]
        costs.append(typical(last))
        rows.append([f"{length} × batch", *_spell(last)[1:]])
    times = costs[1].cpu / costs[0].cpu, costs[1].wall / costs[0].wall
    detail = f"CPU {times[0]:.2f} ×, wall {times[1]:.2f} ×"
    claims = [_claim("a batch costs at most twice as much", times[0] <= 2, detail)]
    head = ["window", "CPU (wall) s", "rows held", "bytes in the state store"]
    return _part("window", "A window 100 times the batch", head, rows, claims)


def buckets(setup: Setup) -> Record:
    """How many buckets are best where two tasks run at once."""
    stream = setup.stream(100_000, WARM_UP + 6)
    answer = stream.matches()
    ways = {str(count): (cepheid(buckets=count), answer) for count in BUCKETS}
    costs = setup.take_turns(stream, ways)
    rows = [[name, _seconds(cost)] for name, cost in costs.items()]
    return _part("buckets", "Buckets, on two cores", ["buckets", "CPU (wall) s"], rows, [])


def warm_up(setup: Setup) -> None:
    """Java compiles what runs often; the first to run would pay for all others."""
    stream = setup.stream(50_000, WARM_UP + 6)
    way = partial(stored, Forwarding, query=QUERY, **COLUMNS)
    setup.batches("warming up", stream, way, None)
    setup.batches("warming up", stream, cepheid(), stream.matches())


PARTS = {part.__name__: part for part in (matching, flat, join, window, buckets)}


def measure(names: Sequence[str], setup: Setup) -> Iterator[Record]:
    warm_up(setup)
    for name in names or PARTS:
        yield {**provenance(setup.quick), "turns": setup.turns, **PARTS[name](setup)}


def _part(
    name: str, title: str, head: list[str], rows: list[list[str]], claims: list[Record]
) -> Record:
    table = {"title": "seconds of a batch, processor time (wall)", "head": head, "rows": rows}
    return {"name": name, "title": title, "tables": [table], "claims": claims}


def _claim(text: str, holds: bool, detail: str) -> Record:
    return {"text": text, "must": True, "holds": holds, "detail": detail}


def _seconds(cost: Timing) -> str:
    return f"{cost.cpu:.2f} ({cost.wall:.2f})"


def _spell(batches: list[Batch]) -> list[str]:
    """Some batches in a row: which, what one takes, and what is held in the end."""
    first, last = batches[0], batches[-1]
    numbers = f"{first.number + 1} to {last.number + 1}"
    return [numbers, _seconds(typical(batches)), short(last.rows), short(last.size)]
