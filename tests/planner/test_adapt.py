"""When a running plan is given up for another, and when not."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.engine.run import Engine
from cepheid.options import Adaptation, EngineChoice, Options
from cepheid.planner.adapt import Adapter, moved
from cepheid.planner.prepare import Prepared, prepare
from cepheid.statistics import Statistics
from cepheid.workloads import stocks

QUERY = """
PATTERN IBM ; Sun ; Oracle ; Google
WHERE   Oracle.price > Sun.price AND Oracle.price > Google.price
WITHIN  40 units
RETURN  IBM.ts AS a, Sun.ts AS b, Oracle.ts AS c, Google.ts AS d
"""
EVEN = {"IBM": 1, "Sun": 1, "Oracle": 1, "Google": 1}
ROWS = 2000


def segment(number: int, rates: dict[str, float], first: float, second: float) -> pa.Table:
    shares = {("Oracle", "Sun"): first, ("Oracle", "Google"): second}
    return stocks.generate(ROWS, number, rates=rates, selectivity=shares, first=number * ROWS)


@pytest.fixture(scope="module")
def events() -> pa.Table:
    """The settings of ZStream's figure 12, one after the other: each is good for another tree."""
    rare = {**EVEN, "IBM": 0.02}
    parts = [segment(0, rare, 1, 1), segment(1, EVEN, 1 / 50, 1), segment(2, EVEN, 1, 1 / 50)]
    return pa.concat_tables(parts).combine_chunks()


def prepared(table: pa.Table, **named: object) -> Prepared:
    options = Options(time="ts", type="name", **named)
    return prepare(cep.Query(QUERY).bind(table.schema, options), options)


def run(ready: Prepared, table: pa.Table, adapter: Adapter | None) -> tuple[Engine, pa.Table]:
    engine = Engine(ready.plan, table.schema, jit=False, round_size=200, advisor=adapter)
    batches = [b for batch in table.to_batches() for b in engine.push(batch)]
    batches += engine.finish()
    return engine, pa.Table.from_batches(batches, engine.schema)


def eager(ready: Prepared) -> Adapter:
    """Looks after every round, whatever it costs."""
    assert ready.adaptive is not None
    return Adapter(ready.adaptive, sampling=float("inf"), searching=float("inf"), fewest=0)


def rows(table: pa.Table) -> list[tuple[int, ...]]:
    return sorted(zip(*(table[n].to_pylist() for n in "abcd"), strict=True))


def test_the_tree_follows_the_data(events: pa.Table) -> None:
    ready = prepared(events, engine="tree")
    adapter = eager(ready)
    engine, found = run(ready, events, adapter)
    installed = [r for r in adapter.replans if r.installed]
    assert installed[0].why == "first look at the data"
    ends = {
        number: [r.after for r in installed if r.at < (number + 1) * ROWS][-1]
        for number in range(3)
    }
    # The rare class first; then each time the selective predicate first.
    assert ends[0] in ("left-deep", "((IBM Sun) (Oracle Google))")
    assert "(Sun Oracle)" in ends[1]
    assert ends[2] == "right-deep"
    assert all(r.predicted > 1.1 for r in installed)
    assert any(r.observed is not None for r in installed)
    assert engine.profile().replans == adapter.replans
    assert engine.plan == adapter.planned.plan
    fixed = prepared(events, plan="left-deep", propagation="lazy")
    assert rows(found) == rows(run(fixed, events, None)[1])


def test_what_is_known_is_no_news(events: pa.Table) -> None:
    first = events.slice(0, ROWS)
    known = cep.analyze(first, QUERY, time="ts", type="name")
    ready = prepared(first, stats=known)
    adapter = eager(ready)
    run(ready, first, adapter)
    assert not [r for r in adapter.replans if r.installed]


def test_a_small_gain_is_noted_and_left(events: pa.Table) -> None:
    ready = prepared(events, adapt=Adaptation(gain=1e6))
    adapter = eager(ready)
    engine, _ = run(ready, events, adapter)
    assert adapter.replans
    assert not any(r.installed for r in adapter.replans)
    assert engine.plan == ready.plan


def test_no_plan_is_compiled_for_a_run_that_is_too_short(
    events: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "cold", lambda self, plan: 1000)
    ready = prepared(events)
    engine, _ = run(ready, events, eager(ready))
    assert engine.plan == ready.plan


def test_looking_has_a_budget(events: pa.Table) -> None:
    ready = prepared(events)
    assert ready.adaptive is not None
    share = 0.2  # on a busy machine one look may take as long as many
    adapter = Adapter(ready.adaptive, sampling=share, fewest=0)
    engine, _ = run(ready, events, adapter)
    looks = adapter.looks
    assert looks > 1
    # A look may take longer than the one before, from which its time was foreseen.
    assert adapter.seconds <= share * engine.seconds + adapter.seconds / looks


@pytest.mark.parametrize(
    "named",
    [{"plan": "left-deep"}, {"adapt": None}],
)
def test_who_has_chosen_is_not_overruled(events: pa.Table, named: dict[str, object]) -> None:
    assert prepared(events, **named).adaptive is None


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("PATTERN IBM ; Sun WITHIN 5", "tree"),
        ("PATTERN IBM ; Sun WITHIN 5", "nfa"),
        ("PATTERN IBM -> Sun WITHIN 5", "auto"),
        ("PATTERN IBM ; Sun -> Oracle ; Google WITHIN 5", "auto"),
    ],
)
def test_where_no_other_plan_can_take_over_nobody_looks(
    events: pa.Table, text: str, engine: EngineChoice
) -> None:
    options = Options(time="ts", type="name", engine=engine)
    assert prepare(cep.Query(text).bind(events.schema, options), options).adaptive is None


def test_stacks_and_trees_can_take_over_from_each_other(events: pa.Table) -> None:
    options = Options(time="ts", type="name")
    query = cep.Query("PATTERN IBM ; Sun WITHIN 5").bind(events.schema, options)
    adaptive = prepare(query, options).adaptive
    assert adaptive is not None
    planned = adaptive.planned
    names = {planned.winner.name, *(loser.name for loser in planned.losers)}
    assert names == {"left-deep", "stacks"}


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (Statistics({"a": 1.2}, {"p": 0.5}, {"a.x": 10}), None),
        (Statistics({"a": 1.8}, {"p": 0.5}, {"a.x": 10}), "rate of a 1 → 1.8"),
        (Statistics({"a": 1.0}, {"p": 0.1}, {"a.x": 10}), "selectivity of p 0.50 → 0.10"),
        (Statistics({"a": 1.8}, {"p": 0.5}, {"a.x": 90}), "distinct values of a.x 10 → 90"),
        (Statistics({"a": 0.0}, {"p": 0.5}, {"a.x": 10}), "rate of a 1 → 0"),
        (Statistics({"a": 1.0, "b": 1.0}), "first look at the data"),
    ],
)
def test_what_moved_most(now: Statistics, why: str | None) -> None:
    before = Statistics({"a": 1.0}, {"p": 0.5}, {"a.x": 10})
    assert moved(before, now, 0.5) == why


def test_from_nothing_anything_is_far() -> None:
    assert moved(Statistics({"a": 0.0}), Statistics({"a": 0.1}), 0.5) is not None
    assert moved(Statistics({"a": 0.0}), Statistics({"a": 0.0}), 0.5) is None


@pytest.mark.parametrize("wrong", [{"change": -1.0}, {"gain": float("nan")}])
def test_thresholds_are_numbers_from_zero(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be a number from 0 up"):
        replace(Adaptation(), **wrong)
