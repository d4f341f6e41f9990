"""NEXT's operators on the real engine: each is a query of two streams, and sends its matches on.

A next is `x a -> y b`: the first y that begins after x has ended, by its end. Matches of a next
come in bursts that end together, and `->` takes all of those; NEXT takes one, and so does SKIP TO
NEXT EVENT, which keeps one match for each x. A union is `ANY(x, y)`. Both are prepared once, since
all streams have the same columns: what is timed is the work on events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import cepheid as cep
from benchmarks.measure import WrongAnswer
from benchmarks.next.operators import Next, Operator, Source, Union
from benchmarks.placement.queries import RATES
from cepheid.algebra.schemas import bind_streams
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.inprocess import execution
from cepheid.inprocess.merged_streams import merge, streams_of
from cepheid.options import Options
from cepheid.planner import prepare

NEXT = "PATTERN x a -> y b AFTER MATCH SKIP TO NEXT EVENT RETURN a.id AS id"
UNION = "PATTERN ANY(x, y) e RETURN e.id AS id"

OPTIONS = Options(MATCH_END, start=MATCH_START)
COLUMNS = pa.schema({"id": pa.int64(), MATCH_START: pa.int64(), MATCH_END: pa.int64()})

Ints = NDArray[np.int64]
Streams = Mapping[str, pa.Table]
Run = Callable[[], pa.Table]


def streams(seconds: int, seed: int) -> Streams:
    """The eight sources: Poisson, independent, no two events at one time (in microseconds)."""
    random = np.random.default_rng(seed)
    names, rates = list(RATES), np.array(list(RATES.values()))
    count = int(rates.sum()) * seconds
    gaps = random.exponential(1e6 / rates.sum(), count).astype(np.int64)
    moments = np.cumsum(np.maximum(gaps, 1))
    which = random.choice(len(names), count, p=rates / rates.sum())
    return {
        name: _table(np.flatnonzero(which == n), moments[which == n], moments[which == n])
        for n, name in enumerate(names)
    }


def _table(ids: Ints, starts: Ints, ends: Ints) -> pa.Table:
    return pa.table([ids, starts, ends], schema=COLUMNS)


# ── running ──


def operator_by_operator(tree: Operator, sources: Streams) -> Run:
    """The tree as it is: each operator reads the streams of those below it."""
    return lambda: _found(tree, sources)


def _found(tree: Operator, sources: Streams) -> pa.Table:
    match tree:
        case Source(name):
            return sources[name]
        case Next(x, y):
            return _ready(NEXT, "x", "y")({"x": _found(x, sources), "y": _found(y, sources)})
        case Union(x, y):
            return _ready(UNION, "x", "y")({"x": _found(x, sources), "y": _found(y, sources)})
        case _:
            raise AssertionError(f"{tree} is in none of the workloads")


def one_query(tree: Operator, sources: Streams) -> Run:
    """A tree of nexts as this language has it: a sequence in a single query, and no tree."""
    names = leaves(tree)
    steps = " -> ".join(f"{name} v{n}" for n, name in enumerate(names))
    read = {name: sources[name] for name in dict.fromkeys(names)}
    ready = _ready(f"PATTERN {steps} RETURN v0.id AS id", *read)
    return lambda: ready(read)


def leaves(tree: Operator) -> tuple[str, ...]:
    match tree:
        case Source(name):
            return (name,)
        case Next(x, y) | Union(x, y):
            return (*leaves(x), *leaves(y))
        case _:
            raise AssertionError(f"{tree} is in none of the workloads")


@cache
def _ready(text: str, *names: str) -> Callable[[Streams], pa.Table]:
    """A query that is bound and planned, to be given its streams."""
    schemas = dict.fromkeys(names, COLUMNS)
    prepared = prepare(cep.Query(text).bind(schemas, OPTIONS), OPTIONS)
    merged, bound = bind_streams(schemas, OPTIONS)

    def run(read: Streams) -> pa.Table:
        schema, batches = execution.run(prepared, merge(streams_of(read), merged, bound), OPTIONS)
        return pa.Table.from_batches(batches, schema)

    return run


# ── what is right ──


def answer(tree: Operator, sources: Streams) -> tuple[Ints, Ints]:
    """Start and end of all that the tree finds, by arrays alone: a next finds one match for each
    first, up to the earliest end among the seconds that start after it."""
    match tree:
        case Source(name):
            table = sources[name]
            return table[MATCH_START].to_numpy(), table[MATCH_END].to_numpy()
        case Union(x, y):
            (starts, ends), (others, later) = answer(x, sources), answer(y, sources)
            return np.concatenate([starts, others]), np.concatenate([ends, later])
        case Next(x, y):
            (starts, ends), (seconds, later) = answer(x, sources), answer(y, sources)
            order = np.argsort(seconds)
            earliest = np.minimum.accumulate(later[order][::-1])[::-1]
            after = np.searchsorted(seconds[order], ends, side="right")
            some = after < len(order)
            return starts[some], earliest[after[some]]
        case _:
            raise AssertionError(f"{tree} is in none of the workloads")


def check(found: pa.Table, expected: tuple[Ints, Ints], who: str) -> None:
    """`WrongAnswer` unless the matches start and end as they should, each as often."""
    pairs = _sorted(found[MATCH_START].to_numpy(), found[MATCH_END].to_numpy())
    if not np.array_equal(pairs, _sorted(*expected)):
        count = len(expected[0])
        raise WrongAnswer(f"{who}: {found.num_rows:,} matches are not the {count:,} there are")


def _sorted(starts: Ints, ends: Ints) -> Any:
    order = np.lexsort((ends, starts))
    return np.stack([starts[order], ends[order]])


# ── timing ──


@dataclass(frozen=True)
class Timed:
    """What a query takes, in seconds of processor time, by way; and how much it finds."""

    seconds: Mapping[str, float]
    matches: int


def timed(ways: Mapping[str, Run], expected: tuple[Ints, Ints], repeats: int, who: str) -> Timed:
    """The best of several runs of each way, which take turns, also at being first; all must be
    right."""
    best = dict.fromkeys(ways, float("inf"))
    for turn in range(repeats):
        for name, run in sorted(ways.items(), reverse=bool(turn % 2)):
            begin = time.process_time()
            found = run()
            best[name] = min(best[name], time.process_time() - begin)
            check(found, expected, f"{who}, {name}")
    return Timed(best, len(expected[0]))
