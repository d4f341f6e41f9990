"""Memory follows the window, not the stream."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from cepheid.engine.rows.buffers import Pool
from cepheid.engine.run import Engine
from cepheid.options import Options
from cepheid.planner import make_plan, prepare
from cepheid.query import Query

BATCH = 500
TYPES = np.array(["A", "B", "C", "X"])


def stream(batches: int) -> Iterator[pa.RecordBatch]:
    """One event per tick; every event has a string that never comes again."""
    random = np.random.default_rng(5)
    for n in range(batches):
        ticks = np.arange(n * BATCH, (n + 1) * BATCH)
        yield pa.record_batch(
            {
                "ts": ticks,
                "type": TYPES[random.integers(0, 4, BATCH)],
                "x": random.integers(0, 9, BATCH),
                "s": [f"text {t}" for t in ticks],
            }
        )


def held(engine: Engine) -> int:
    """Rows, records and group elements that the engine holds."""
    operators = engine.tree.operators
    pools = [p for o in operators for p in o.groups.values()]
    rows = engine.context.store.n
    return rows + sum(o.out.n for o in operators) + sum(p.n for p in pools)


@pytest.mark.parametrize(
    "pattern",
    [
        "A a ; B b ; C c WHERE a.x = c.x",
        "A a & B b & C c WHERE a.x < b.x",
        "A a ; !B b ; C c",
        "A a ; !B b ; C c WHERE b.x > a.x",
        "A a ; B+ b ; C c WHERE sum(b.x) > 5",
        "A a ; C c ; !B b",
        "A a ; B+ b",
        "!B b ; A a ; C c WHERE a.s <> c.s",
        "A{3} a",
    ],
)
@pytest.mark.parametrize("plan", ["left-deep", "right-deep"])
def test_bounded(pattern: str, plan: str) -> None:
    text = f"PATTERN {pattern.partition(' WHERE ')[0]}"
    condition = pattern.partition(" WHERE ")[2]
    query = Query(text + (f" WHERE {condition}" if condition else "") + " WITHIN 40")
    first = next(stream(1))
    bound = query.bind(first.schema, Options(time="ts", type="type"))
    engine = Engine(make_plan(bound, plan), first.schema, jit=False, round_size=128)
    sizes = []
    for batch in stream(12):
        for _ in engine.push(batch):
            pass
        sizes.append(held(engine))
    assert max(sizes[6:]) <= 1.5 * max(sizes[1:6])
    assert engine.counts.matches > 0


def test_strings_of_expired_events_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cepheid.engine.rows.store.FORGET_AT", 600)
    query = Query("PATTERN A a ; B b WHERE a.s = b.s OR a.x = b.x WITHIN 40")
    first = next(stream(1))
    plan = make_plan(query.bind(first.schema, Options(time="ts", type="type")))
    engine = Engine(plan, first.schema, jit=False)
    for batch in stream(10):
        for _ in engine.push(batch):
            pass
    assert len(engine.context.store.interner) < 1500


def test_idle_rounds_skip_the_work() -> None:
    """Until the final class has an event, nothing is assembled (ZStream 4.3)."""
    events = pa.record_batch({"ts": [1, 2, 3, 4], "type": ["A", "B", "A", "B"]})
    plan = make_plan(
        Query("PATTERN A ; B ; C WITHIN 9").bind(events.schema, Options(time="ts", type="type"))
    )
    engine = Engine(plan, events.schema, jit=False, round_size=1)
    assert list(engine.push(events)) == []
    assert engine.counts.idle == engine.counts.rounds == 4
    late = pa.record_batch({"ts": [5], "type": ["C"]})
    assert sum(b.num_rows for b in engine.push(late)) == 3


def test_pool_keeps_absolute_numbers() -> None:
    pool = Pool()
    for n in range(3):
        pool.reserve(2)
        pool.rows[pool.n : pool.n + 2] = [10 * n, 10 * n + 1]
        pool.n += 2
        pool.mark(clock=n)
    pool.expire(1)
    assert (pool.base, pool.n) == (4, 2)
    assert pool.rows[:2].tolist() == [20, 21]


def test_full_pools_of_an_automaton_below_a_join_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody takes its matches while it makes them: 54, 36 and 18 groups, with 20 events each."""
    monkeypatch.setattr("cepheid.engine.automaton.operator.POOLED", 100)
    kinds = (["A"] + ["B"] * 18 + ["C"]) * 3 + ["D"] * 20
    events = pa.table({"ts": range(80), "type": kinds, "x": [0] * 80})
    text = "PATTERN (A a ; B+ b PREFIXES -> C c) ; D d WHERE a.x = d.x WITHIN 100 RETURN a.ts"
    assert Query(text).match(events, time="ts", type="type", jit=False).num_rows == 2160


def test_what_waits_for_the_next_event_of_its_key_outlives_its_window() -> None:
    """And nothing else does: an A of key 1 waits for a long time, those of key 2 don't."""
    query = Query("PATTERN A a => !B b WHERE [id] WITHIN 10 RETURN a.id")
    ticks = np.arange(2000)
    table = pa.table(
        {
            "ts": ticks,
            "type": np.where(ticks % 2 == 0, "A", "Z"),
            "id": np.where((ticks == 0) | (ticks > 1997), 1, 2),
        }
    )
    options = Options("ts", type="type")
    prepared = prepare(query.bind(table.schema, options), options)
    engine = prepared.engine(table.schema, jit=False)
    found: list[int] = []
    for begin in range(0, 2000, 50):
        for batch in table.slice(begin, 50).to_batches():
            found += [row for m in engine.push(batch) for row in m["id"].to_pylist()]
        assert engine.context.store.n <= 200
    assert found.count(2) == 998
    assert found.count(1) == 1  # event 0, known with event 1998
