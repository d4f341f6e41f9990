"""Active instance stacks find the oracle's matches: every strategy, however the stream is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.algebra.expressions import Attribute
from cepheid.algebra.patterns import Leaf, positive
from cepheid.algebra.patterns import Sequence as SequencePattern
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.types import Schema, Type
from cepheid.engine.operators.stacks import StacksOperator
from cepheid.engine.run import Engine
from cepheid.language.ast import SequenceOperator
from cepheid.plan.nodes import Equivalence, Filter, Node, Plan, Seq, Stacks
from cepheid.planner import make_plan
from cepheid.planner.alternatives import alternatives
from cepheid.planner.trees.parts import Parts
from cepheid.query import Query
from tests.corpus.reader import START, Case, bound, case_of, cases
from tests.engine.harness import Setup, Switching, indexed, multiset, run_plan
from tests.examples import examples, in_turn
from tests.properties.full_strategies import durations
from tests.properties.strategies import COLUMNS, Queries, streams

SETUPS = [
    Setup(),
    Setup(cuts=(1,)),
    Setup(cuts=(2, 3), round_size=1),
    Setup(cuts=(5,), round_size=2),
]


def is_chain(query: BoundQuery) -> bool:
    pattern = query.pattern
    return (
        isinstance(pattern, SequencePattern)
        and all(isinstance(item, Leaf) for item in pattern.items)
        and all(operator is SequenceOperator.ANY for operator in pattern.operators)
        and query.window is not None
    )


def stacks(
    query: BoundQuery,
    strategy: Equivalence = Equivalence.PARTITION,
    scan_window: bool = True,
) -> Stacks:
    """The stacks of a chain, partitioned by its key."""
    parts = Parts(query, alternatives(query)[0], frozenset())
    names, columns = positive(query.pattern), query.schema.columns
    return Stacks(
        tuple(parts.leaf(name) for name in names),
        tuple(
            tuple(Attribute(v, part.columns[v], columns[part.columns[v]]) for v in names)
            for part in query.key
        ),
        (*parts.predicates, *parts.final),
        strategy,
        scan_window,
    )


def plan_of(query: BoundQuery, root: Node) -> Plan:
    return Plan(
        alternatives=(root,),
        variables=query.variables,
        outputs=query.outputs,
        window=query.window,
        key=tuple(part.columns for part in query.key),
        schema=query.schema,
        required=query.required,
        selection=query.selection,
    )


CHAINS = [case for case in cases() if is_chain(bound(case))]


def test_the_corpus_has_chains_of_every_kind() -> None:
    keys = {len(bound(case).key) for case in CHAINS}
    assert keys >= {0, 1, 2}
    assert any(case.schema.start for case in CHAINS)
    assert max(len(positive(bound(case).pattern)) for case in CHAINS) >= 3


@pytest.mark.parametrize("case", CHAINS, ids=str)
def test_corpus(case: Case) -> None:
    query = bound(case)
    expected = multiset(query, case.answer)
    for strategy, scan_window in product(Equivalence, (True, False)):
        plan = plan_of(indexed(query), stacks(indexed(query), strategy, scan_window))
        for setup in in_turn(SETUPS, f"{case.name} {strategy} {scan_window}"):
            found = run_plan(query, case.events, plan, setup)
            assert multiset(query, found) == expected, (strategy, scan_window, str(setup))
            ends = [match.end for match in found]
            assert ends == sorted(ends) or query.key  # n EVENTS of a key goes key by key


COMPILED = {
    "keys/composite": Equivalence.FILTERING,
    "keys/NaN is a key of its own": Equivalence.MULTIPLE,
    "keys/text": None,
    "predicates/duration of the match": None,
    "durations/by key": Equivalence.PARTITION,
    "durations/three in a row": None,
}
"""With the strategy of every run; all others are for the long one."""


@pytest.mark.parametrize(
    ("case", "strategy"),
    [
        pytest.param(case, strategy, marks=() if usual else pytest.mark.slow, id=f"{case}, {name}")
        for case in CHAINS
        if case.name in COMPILED
        for name, strategy in Equivalence.__members__.items()
        for usual in [strategy is COMPILED[case.name]]
    ],
)
def test_compiled(case: Case, strategy: Equivalence) -> None:
    query = bound(case)
    plan = plan_of(indexed(query), stacks(indexed(query), strategy))
    found = run_plan(query, case.events, plan, Setup(jit=True, cuts=(3,)))
    assert multiset(query, found) == multiset(query, case.answer)


def test_no_compiled_case_is_missing() -> None:
    assert {case.name for case in CHAINS} >= COMPILED.keys()
    assert set(Equivalence) <= set(COMPILED.values())


# ── random chains ──


class Chains(Queries):
    """Plain sequences of events, most of them keyed, by up to three attributes."""

    def pattern(self) -> str:
        return " ; ".join(self.atom() for _ in range(self.choose(3, 2, 4, 3, 5)))

    def condition(self) -> str:
        return self.choose(super().condition, lambda: self.choose("[id]", "[s]", "[y]"))()


@st.composite
def chains(draw: Any) -> Case:
    queries = Chains(draw)
    text = queries.query()
    events = draw(streams(queries.types, 18))
    if draw(st.booleans()):
        schema = Schema(COLUMNS, "ts", "type", tie=draw(st.sampled_from((None, "n"))))
    else:
        schema = Schema({**COLUMNS, START: Type.INTEGER}, "ts", "type", start=START)
        events = draw(durations(events))
    return Case("random", "chains", text, schema, events, by_hand=False)


COUNTS = st.integers(1, 6)


@settings(
    max_examples=examples("stacks"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_random_chains(data: st.DataObject) -> None:
    case = data.draw(chains())
    cuts = tuple(data.draw(st.lists(COUNTS | st.just(100), min_size=1, max_size=3)))
    setup = Setup(cuts=cuts, round_size=data.draw(COUNTS))
    query = bound(case)
    expected = multiset(query, case.answer)
    for strategy in Equivalence:
        node = stacks(indexed(query), strategy, data.draw(st.booleans()))
        found = run_plan(query, case.events, plan_of(indexed(query), node), setup)
        assert multiset(query, found) == expected, strategy


@settings(
    max_examples=examples("stacks", part=4),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(chains(), COUNTS, COUNTS)
def test_stacks_and_joins_take_turns(case: Case, cut: int, round_size: int) -> None:
    """Stacks that take over push what the leaves hold, and find nothing a second time."""
    query = bound(case)
    returning = indexed(query)
    joins = make_plan(returning)
    plans = [
        plan_of(returning, stacks(returning, Equivalence.MULTIPLE)),
        joins,
        plan_of(returning, stacks(returning)),
    ]
    setup = Setup(cuts=(cut,), round_size=round_size)
    found = run_plan(query, case.events, joins, setup, Switching(plans))
    assert multiset(query, found) == multiset(query, case.answer)


# ── events that last, and NULLs ──


@pytest.mark.parametrize("strategy", Equivalence)
@pytest.mark.parametrize("key", ["", "WHERE [p] ", "WHERE [p] AND [q] "])
@pytest.mark.parametrize(
    ("pattern", "events", "found"),
    [
        ("A a ; B b WITHIN 10", "A@5..6 A@1..7 B@11..12", "a6 b12"),
        ("A a ; B b ; C c WITHIN 12", "A@0..1 A@5..5 B@6..7 B@2..8 C@13..13", "a5 b7 c13"),
    ],
)
def test_one_that_ends_later_may_have_begun_too_early(
    pattern: str, events: str, found: str, key: str, strategy: Equivalence
) -> None:
    """The most recent instance is out of the window, and one before it is not."""
    ordered, within = pattern.split("WITHIN")
    given = " ".join(f"{event}(p=1, q=2)" for event in events.split())
    text = f"PATTERN {ordered}{key}WITHIN{within}"
    case = case_of({"name": "lasting", "query": text, "events": given, "matches": found}, "")
    query = bound(case)
    plan = plan_of(indexed(query), stacks(indexed(query), strategy))
    assert [m.bindings for m in run_plan(query, case.events, plan)] == list(case.expected)


@pytest.mark.parametrize("strategy", Equivalence)
@pytest.mark.parametrize("named", [("id",), ("g", "id")], ids=str)
def test_null_agrees_with_nothing(named: tuple[str, ...], strategy: Equivalence) -> None:
    """Also on an attribute that is not the query's key, whose NULLs the leaves let pass."""
    data = pa.table(
        {
            "ts": [1, 2, 3, 4, 5, 6],
            "t": ["A", "A", "B", "B", "C", "C"],
            "id": [None, 0, None, 0, None, 0],
            "g": [7] * 6,
            "x": [1, 1, 2, 2, 3, 3],
        }
    )
    query = Query(QUERY.format("", 9)).bind(data.schema, time="ts", type="t")
    agree = tuple(tuple(Attribute(v, name, Type.INTEGER) for v in "abc") for name in named)
    node = replace(stacks(query, strategy), equivalences=agree)
    assert rows_of(plan_of(query, node), data, 6, jit=False) == [(2, 4, 6, 2, 6)]


# ── long streams, and as a part of a tree ──


def trades(rows: int, keys: int, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.arange(rows),
            "t": random.choice(["A", "B", "C"], rows),
            "id": random.integers(0, keys, rows),
            "g": random.integers(0, 3, rows),
            "x": random.integers(0, 100, rows),
        }
    )


def rows_of(
    plan: Plan, data: pa.Table, batch: int, round_size: int = 4096, jit: bool = True
) -> list[tuple[Any, ...]]:
    engine = Engine(plan, data.schema, jit=jit, round_size=round_size)
    found = [
        row
        for piece in data.combine_chunks().to_batches(max_chunksize=batch)
        for matches_ in engine.push(piece)
        for row in zip(*matches_.to_pydict().values(), strict=True)
    ]
    assert not list(engine.finish())
    return found


def by_hand(data: pa.Table, window: int, same: Sequence[str]) -> list[tuple[Any, ...]]:
    """A ; B ; C that agree on some columns, in plain loops; x rises from a to c."""
    events = data.to_pylist()
    found = []
    for n, c in enumerate(events):
        if c["t"] != "C":
            continue
        before = [
            e
            for e in events[max(0, n - window + 1) : n]
            if all(e[name] == c[name] for name in same)
        ]
        for m, b in enumerate(before):
            if b["t"] == "B":
                found += [
                    (a["ts"], b["ts"], c["ts"], a["ts"], c["ts"])
                    for a in before[:m]
                    if a["t"] == "A" and a["x"] < c["x"]
                ]
    return found


QUERY = (
    "PATTERN A a ; B b ; C c WHERE {} a.x < c.x WITHIN {} RETURN a.ts AS a, b.ts AS b, c.ts AS c"
)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", Equivalence)
@pytest.mark.parametrize("same", [(), ("id",), ("id", "g")], ids=str)
def test_long_streams_pop_what_has_expired(strategy: Equivalence, same: tuple[str, ...]) -> None:
    """Stacks and partitions are forgotten and moved many times over."""
    data = trades(6000, keys=20)
    window = 60 if same else 30
    text = QUERY.format("".join(f"[{name}] AND " for name in same), window)
    query = Query(text).bind(data.schema, time="ts", type="t")
    plan = plan_of(query, stacks(query, strategy))
    assert sorted(rows_of(plan, data, 500, 100)) == sorted(by_hand(data, window, same))


def test_memory_follows_the_window_not_the_stream() -> None:
    """Each key comes once in a while and never again: neither its instances nor its partition
    stay."""
    rows = 40_000
    data = trades(rows, 1).set_column(2, "id", pa.array(np.arange(rows) // 4))
    query = Query(QUERY.format("[id] AND [g] AND", 50)).bind(data.schema, time="ts", type="t")
    engine = Engine(plan_of(query, stacks(query, Equivalence.FILTERING)), data.schema)
    for batch in data.combine_chunks().to_batches(max_chunksize=1000):
        list(engine.push(batch))
    (operator,) = engine.tree.roots
    assert isinstance(operator, StacksOperator)
    assert sum(len(stack) for stack in operator.instances()) < 3000
    assert all(table.used < 3000 for table in operator.tables)


def test_a_full_output_is_resumed_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    data = trades(3000, keys=5)
    query = Query(QUERY.format("[id] AND", 100)).bind(data.schema, time="ts", type="t")
    plan = plan_of(query, stacks(query))
    whole = rows_of(plan, data, 500)
    monkeypatch.setattr("cepheid.engine.tree.CAPACITY", 7)
    assert rows_of(plan, data, 500) == whole
    assert sorted(whole) == sorted(by_hand(data, 100, ("id",)))


@pytest.mark.parametrize("propagation", ["push", "pull", "pass-down"])
def test_stacks_are_a_source_of_composite_events(propagation: str) -> None:
    """Below a join, their records are kept; also if the join asks for some of them only, and if it
    has them made anew for every round."""
    data = trades(2000, keys=10)
    text = QUERY.format("[id] AND", 60)
    query = Query(text).bind(data.schema, time="ts", type="t")
    whole = stacks(query)
    below = Stacks(whole.classes[:2], tuple(part[:2] for part in whole.equivalences))
    passed = whole.predicates if propagation == "pass-down" else ()
    join = Seq(below, whole.classes[2], pull=propagation != "push", passed=passed)
    ((_, second, last),) = whole.equivalences
    equal = replace(whole.predicates[0], operator="=", arguments=(second, last))
    plan = plan_of(query, Filter(join, (equal, *whole.predicates)))
    assert sorted(rows_of(plan, data, 300, 50)) == sorted(by_hand(data, 60, ("id",)))


def test_predicates_that_kernels_can_not_express() -> None:
    data = pa.table({"ts": [1, 2, 3, 4], "t": ["A", "A", "B", "C"], "s": ["x", "y", "axb", "x"]})
    text = "PATTERN A a ; B b ; C c WHERE b.s CONTAINS a.s AND a.s >= c.s WITHIN 9 RETURN a.ts AS a"
    query = Query(text).bind(data.schema, time="ts", type="t")
    assert rows_of(plan_of(query, stacks(query)), data, 4) == [(1, 1, 4)]
