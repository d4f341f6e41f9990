"""Samples of a run: taken at round boundaries, from whatever the leaf buffers hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.algebra.expressions import Attribute, Call, Constant
from cepheid.algebra.types import Type
from cepheid.engine.arrays.vector import evaluate
from cepheid.engine.run import Engine
from cepheid.engine.sampling import Sample, Sampler, Windowed, targets
from cepheid.engine.sampling.numbers import compiled
from cepheid.planner.plan import make_plan
from cepheid.workloads import stocks


class Watcher:
    """Takes a sample after every round."""

    replans = ()
    seconds = 0.0

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler
        self.samples: list[Sample] = []

    def advise(self, engine: Engine) -> None:
        context = engine.context
        leaves = {leaf.variable: operator.out for leaf, operator in engine.leaves.items()}
        sample = self.sampler.sample(leaves, context.store, context.window, context.frontier)
        self.samples.append(sample)


def watched(
    table: pa.Table, query: str, round_size: int = 500, seed: int = 0
) -> tuple[list[Sample], int | None]:
    bound = cep.Query(query).bind(table.schema, time="ts", type="name")
    wanted = targets(bound)
    watcher = Watcher(Sampler(wanted, seed))
    plan = make_plan(bound)
    schema = pa.schema([f for f in table.schema if f.name in plan.required])
    engine = Engine(plan, schema, jit=False, round_size=round_size, advisor=watcher)
    for batch in table.select(schema.names).to_batches(max_chunksize=4 * round_size):
        for _ in engine.push(batch):
            pass
    return watcher.samples, wanted.ticks


def statistics(table: pa.Table, query: str, **named: int) -> cep.Statistics:
    samples, ticks = watched(table, query, **named)
    return merged(samples).statistics(ticks)


def merged(samples: list[Sample]) -> Sample:
    return reduce(Sample.merge, samples)


def ticks(rows: int = 12_000, **named: Any) -> pa.Table:
    rates = {"IBM": 1, "Sun": 2, "Oracle": 1}
    selectivity = {("IBM", "Sun"): 1 / 8, ("Oracle", "Sun"): 3 / 4}
    return stocks.generate(rows, seed=5, rates=rates, selectivity=selectivity, **named)


NONE_MATCH = "a.volume > c.volume + 10000"
"""Keeps the runs short; it never holds."""

QUERY = f"""
    PATTERN IBM a ; Sun b ; Oracle c
    WHERE a.price > b.price AND c.price > b.price AND {NONE_MATCH} WITHIN 100 RETURN a.id"""


class TestKnownData:
    def test_rates_and_selectivities(self) -> None:
        found = statistics(ticks(), QUERY)
        assert found.rates == pytest.approx({"a": 0.25, "b": 0.5, "c": 0.25}, rel=0.08)
        assert found.selectivities == pytest.approx(
            {
                "a.price > b.price": 1 / 8,
                "c.price > b.price": 3 / 4,
                "a.volume > (c.volume + 10000)": 0,
            },
            rel=0.2,
            abs=0.001,
        )

    def test_every_event_is_counted_once(self) -> None:
        """Whatever the size of rounds and windows, and though buffers keep events for long."""
        table = ticks(600)
        names = table["name"].to_pylist()
        want = {v: names.count(n) for v, n in (("a", "IBM"), ("b", "Sun"), ("c", "Oracle"))}
        for round_size in (37, 200):
            samples, _ = watched(table, QUERY.replace("WITHIN 100", "WITHIN 250"), round_size)
            counts = {v: sum(s.events[v] for s in samples) for v in want}
            assert counts == want
            (observed,) = merged(samples).observed
            assert observed == (0, 600)

    def test_timestamps(self) -> None:
        found = statistics(
            ticks(4000, interval=10_000), QUERY.replace("WITHIN 100", "WITHIN 1 second")
        )
        assert found.rates == pytest.approx({"a": 25, "b": 50, "c": 25}, rel=0.1)

    def test_events(self) -> None:
        query = QUERY.replace("WITHIN 100", "WITHIN 100 EVENTS")
        found = statistics(ticks(4000, interval=10_000), query)
        assert found.rates == pytest.approx({"a": 0.25, "b": 0.5, "c": 0.25}, rel=0.1)

    def test_leaves_hold_what_satisfies_their_class(self) -> None:
        """The rate is of those; the conjunct holds for all of them."""
        query = (
            f"PATTERN IBM a ; Sun c WHERE a.volume <= 100 AND {NONE_MATCH} WITHIN 50 RETURN a.id"
        )
        found = statistics(ticks(), query)
        assert found.rates["a"] == pytest.approx(0.025, rel=0.2)
        assert found.selectivities["a.volume <= 100"] == 1.0

    def test_a_change_is_seen_and_the_past_forgotten(self) -> None:
        rates = {"IBM": 1, "Sun": 1}
        parts = [
            stocks.generate(6000, seed=1, rates=rates, selectivity={("IBM", "Sun"): 0.9}),
            stocks.generate(
                6000, seed=2, rates=rates, selectivity={("IBM", "Sun"): 0.1}, first=6000
            ),
        ]
        query = f"PATTERN IBM a ; Sun c WHERE a.price > c.price AND {NONE_MATCH} WITHIN 50"
        samples, _ = watched(pa.concat_tables(parts), query)
        windowed = Windowed(8)
        shares = []
        for sample in samples:
            windowed.add(sample)
            shares.append(windowed.statistics().selectivities["a.price > c.price"])
        assert shares[len(shares) // 2 - 2] == pytest.approx(0.9, abs=0.1)
        assert shares[-1] == pytest.approx(0.1, abs=0.1)

    def test_the_same_seed_draws_the_same(self) -> None:
        table = ticks(3000)
        assert watched(table, QUERY, seed=1) == watched(table, QUERY, seed=1)
        assert watched(table, QUERY, seed=1) != watched(table, QUERY, seed=2)


def keyed(keys: Any, rows: int = 8000) -> pa.Table:
    names = np.random.default_rng(2).choice(["A", "B"], rows)
    return pa.table({"ts": np.arange(rows), "name": names, "id": keys, "x": np.arange(rows) % 2})


class TestKeys:
    QUERY = "PATTERN A a ; B b WHERE [id] AND a.x > b.x + 5 WITHIN 400 RETURN a.ts AS t"

    @pytest.mark.parametrize("make", [int, lambda n: f"user {n}", lambda n: n / 7])
    def test_agreement(self, make: Callable[[int], Any]) -> None:
        numbers = np.random.default_rng(1).integers(0, 20, 8000).tolist()
        found = statistics(keyed([make(n) for n in numbers]), self.QUERY)
        assert found.distinct == pytest.approx({"a.id": 20, "b.id": 20}, rel=0.3)

    def test_skew(self) -> None:
        random = np.random.default_rng(1)
        keys = np.where(random.random(8000) < 0.5, 7, random.integers(10, 10_000, 8000))
        found = statistics(keyed(keys), self.QUERY)
        assert found.distinct == pytest.approx({"a.id": 4, "b.id": 4}, rel=0.2)

    def test_many(self) -> None:
        """No two agree: there are at least as many values as pairs have been seen."""
        found = statistics(keyed(np.arange(8000)), self.QUERY)
        assert min(found.distinct.values()) > 10_000

    def test_nulls(self) -> None:
        """They agree with nothing, and satisfy nothing."""
        random = np.random.default_rng(1)
        x = pa.array(np.ones(8000), mask=random.random(8000) < 0.5)
        y = pa.array(np.ones(8000), mask=random.random(8000) < 0.5)
        table = keyed(np.arange(8000)).append_column("u", x).append_column("v", y)
        query = """
            PATTERN A a ; B b ; A c WHERE a.u = b.v AND b.u >= c.v AND a.x > b.x + 5
            WITHIN 50 RETURN a.ts AS t"""
        found = statistics(table, query)
        want = {"a.u = b.v": 0.25, "b.u >= c.v": 0.25}
        assert {t: found.selectivities[t] for t in want} == pytest.approx(want, abs=0.07)
        assert found.distinct == {"a.u": 1.0, "b.v": 1.0}


class TestConditions:
    """What the store keeps is not what the query reads: codes, computed columns."""

    def share(self, condition: str, rows: int = 8000) -> float | None:
        random = np.random.default_rng(4)
        words = random.choice(["red", "Red", "blue", "green"], rows)
        table = keyed(np.arange(rows), rows).append_column("w", pa.array(words))
        query = f"""
            PATTERN A a ; B b ; A c WHERE {condition} AND a.x > b.x + 5 AND b.x < c.x
            WITHIN 50 RETURN a.ts AS t"""
        samples, ticks = watched(table, query, round_size=250)
        found = merged(samples).statistics(ticks).selectivities
        own = [s for t, s in found.items() if t not in ("a.x > (b.x + 5)", "b.x < c.x")]
        return own[0] if own else None

    @pytest.mark.parametrize(
        ("condition", "want"),
        [
            ("a.w = b.w", 1 / 4),
            ("a.w <> b.w", 3 / 4),
            ("lower(a.w) = lower(b.w)", 3 / 8),
            # Lengths are 3, 3, 4 and 5: of 16 pairs 5 are less, and 6 equal; x is 0 or 1.
            ("length(a.w) < length(b.w) + a.x", (5 + 6 / 2) / 16),
            ("(a.w = 'red' OR b.w = 'blue')", 7 / 16),
            ("(a.w = 'red' AND b.w <> 'blue' OR b.x = 7)", 3 / 16),
            # Unknown where the two are equal.
            ("(a.x + b.x) / (a.x - b.x) > 0", 1 / 4),
            # Distances from 1 to 49 are equally frequent.
            ("a.ts + 25 > b.ts", 24 / 49),
        ],
    )
    def test_shares(self, condition: str, want: float) -> None:
        assert self.share(condition) == pytest.approx(want, abs=0.07)

    def test_what_codes_can_not_say_is_left_out(self) -> None:
        assert self.share("a.w < b.w", 500) is None
        assert self.share("a.w LIKE b.w", 500) is None


def test_numbers_are_compared_as_in_spark() -> None:
    """The quick way against the careful one, with NaN on either side."""
    nan = float("nan")
    x, y = np.array([1.0, 2.0, nan, nan, 1.0]), np.array([1.0, 1.0, nan, 1.0, nan])
    columns = {"x": x, "y": y}
    one, other = Attribute("a", "x", Type.FLOAT), Attribute("b", "y", Type.FLOAT)
    total = Call("+", (one, Constant(0.0, Type.FLOAT)), Type.FLOAT)
    for operator in ("=", "<>", "<", "<=", ">", ">="):
        expr = Call(operator, (total, other), Type.BOOLEAN)
        compute = compiled(expr, lambda a, rows: columns[a.name], lambda v, rows: rows[v])
        assert compute is not None
        want = evaluate(expr, lambda a: pa.array(columns[a.name]), 5).to_pylist()
        assert compute({}).tolist() == want
    unknown = Call("/", (one, other), Type.FLOAT)
    expr = Call("<", (unknown, other), Type.BOOLEAN)
    assert compiled(expr, lambda a, rows: columns[a.name], lambda v, rows: rows[v]) is None
