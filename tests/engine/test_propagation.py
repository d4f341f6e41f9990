"""Push, pull and pass-down: the same matches, of fewer and fewer intermediate results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.algebra.types import Schema, Type
from cepheid.engine.operators.joins import SeqOperator
from cepheid.engine.run import Engine
from cepheid.options import Options
from cepheid.plan.nodes import LeafNode, Plan
from cepheid.planner import make_plan
from cepheid.planner.choice import Propagation
from cepheid.planner.trees.propagation import propagate
from cepheid.query import Query
from tests.corpus.reader import Case, bound, cases
from tests.engine import test_scale as scale
from tests.engine.harness import Setup, multiset, run
from tests.engine.test_corpus import by_tree
from tests.examples import examples, in_turn
from tests.oracle.events import Event
from tests.properties.strategies import cases as random_cases
from tests.properties.test_engine import setups, text, trees

MODES: tuple[Propagation, ...] = ("push", "lazy", "pull", "pass-down")
ASKING: tuple[Propagation, ...] = ("pull", "pass-down")
ROUNDS = (1, 3, 7, 4096)
SETTINGS = settings(
    max_examples=examples("propagation"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check(case: Case, setup: Setup, others: Sequence[Setup] = ()) -> None:
    """The matches are the oracle's, in the order of their ends."""
    query = bound(case)
    found = run(query, case.events, setup, others)
    assert multiset(query, found) == multiset(query, case.answer)
    ends = [m.end for m in found]
    assert ends == sorted(ends) or query.key  # a keyed window of n EVENTS goes key by key


# ── the same matches ──


@SETTINGS
@given(st.data())
def test_random_queries_agree_with_the_oracle(data: st.DataObject) -> None:
    case = data.draw(random_cases())
    setup = data.draw(setups(case))
    mode = data.draw(st.sampled_from(MODES))
    rounds = data.draw(st.sampled_from(ROUNDS))
    check(case, replace(setup, propagation=mode, round_size=rounds))


SEQUENCES = [
    "A a ; B b ; C c ; D d WHERE a.x < d.x",
    "A a ; B b ; C c ; D d WHERE b.x = d.x AND a.x < c.x",
    "A a ; B b ; C c ; D d WHERE [id] AND a.x <> d.x",
    "A a ; B b ; A c ; B d ; C e WHERE b.x < e.x",
    "A a ; B b ; C c ; D d WHERE a.x < c.x + d.x AND b.s <> d.s",
    "A a ; !D n ; B b ; C c ; D d WHERE n.x < b.x AND a.x < d.x",
    "A a ; B b ; !D n ; C c ; D d WHERE n.x < b.x AND b.x <= d.x",
    "A a ; !D n ; B b ; C c ; D d WHERE n.x < a.x AND a.x < d.x",
    "A a ; !D n ; B b ; C c ; D d WHERE n.x = a.x + b.x AND b.x < d.x",
    "A a ; !(C n ; D m) ; B b ; C c ; D d WHERE n.x = m.x AND b.x < d.x",
    "A a ; C+ k ; B b ; C c ; D d WHERE k.x <> a.x AND b.x < d.x",
    "A a ; C{2} k ; B b ; C c ; D d WHERE a.x < d.x",
    "A a ; B b ; C c ; B+ k ; D d WHERE a.x < d.x AND sum(k.x) > a.x",
    "A a ; B b ; C? k ; D d WHERE a.x = d.x",
]
NESTED = [
    "(A a & B b) ; C c ; D d WHERE a.x < d.x",
    "A a ; (B b & C c) ; D d WHERE b.x < d.x",
    "A a ; B b ; (C c & D d) WHERE a.x < d.x",
    "A a ; (B b | C c) ; C e ; D d WHERE a.x < d.x",
    "(A a | B b) ; C c ; B e ; D d WHERE c.x < d.x",
    "((A a ; B b) & (C c ; D d)) ; A e WHERE a.x < e.x",
    "A a ; B b ; (C c | D d) WHERE a.x < 3",
    "A a ; B b ; C c ; D d ; !A n WHERE n.x > a.x AND b.x < d.x",
    "A a ; B b ; C c ; B+ k WHERE a.x < c.x",
]


@st.composite
def streams(draw: st.DrawFn) -> tuple[Event, ...]:
    """Few triggers, D, between many other events; some are simultaneous."""
    random = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    often = draw(st.sampled_from((1, 4, 12)))
    kinds = random.choice(list("ABCD"), 28, p=np.array([often] * 3 + [1]) / (3 * often + 1))
    times = np.cumsum(random.choice([0, 1, 1, 2], 28)).tolist()
    return tuple(
        Event(
            row,
            time,
            {
                "ts": time,
                "type": str(kind),
                "x": None if random.random() < 0.05 else int(random.integers(0, 4)),
                "id": int(random.integers(0, 2)),
                "s": str(random.choice(["u", "v"])),
            },
        )
        for row, (time, kind) in enumerate(zip(times, kinds, strict=True))
    )


SCHEMA = Schema(
    {
        "ts": Type.INTEGER,
        "type": Type.STRING,
        "x": Type.INTEGER,
        "id": Type.INTEGER,
        "s": Type.STRING,
    },
    time="ts",
    type="type",
)


@st.composite
def asking(draw: st.DrawFn, query: str) -> tuple[Case, Setup]:
    """The query on a stream, in any tree, with pull or pass-down."""
    window = draw(st.sampled_from(("WITHIN 6", "WITHIN 10", "WITHIN 15", "WITHIN 12 EVENTS")))
    case = Case("asking", "here", f"PATTERN {query} {window}", SCHEMA, draw(streams()), False)
    names = tuple(v for v in "abcde" if f" {v}" in query.split(" WHERE ")[0])
    shapes = st.sampled_from(("left-deep", "right-deep"))
    return case, Setup(
        shape=draw(trees(names).map(text) if query in SEQUENCES else shapes),
        push=draw(st.booleans()),
        cuts=tuple(draw(st.lists(st.sampled_from((1, 5, 100)), min_size=1, max_size=3))),
        round_size=draw(st.sampled_from(ROUNDS)),
        propagation=draw(st.sampled_from(ASKING)),
    )


@SETTINGS
@given(st.data())
def test_rare_triggers_agree_with_the_oracle(data: st.DataObject) -> None:
    check(*data.draw(asking(data.draw(st.sampled_from(SEQUENCES + NESTED)))))


@settings(SETTINGS, max_examples=examples("propagation", part=3))
@given(st.data())
def test_plans_that_ask_can_be_exchanged(data: st.DataObject) -> None:
    """The next plan makes what had no demand before, if it has one then."""
    query = data.draw(st.sampled_from(SEQUENCES))
    case, setup = data.draw(asking(query))
    others = [
        replace(setup, shape=shape, propagation=data.draw(st.sampled_from(MODES)))
        for shape in (setup.shape, "left-deep", "right-deep")
    ]
    check(case, setup, others)


@pytest.mark.parametrize("case", [c for c in cases() if by_tree(c)], ids=str)
def test_corpus(case: Case) -> None:
    for mode in ASKING:
        check(case, Setup(round_size=2, propagation=mode))


@pytest.mark.some(19)
@pytest.mark.parametrize("case", scale.CASES, ids=str)
def test_long_streams_agree_with_sql(case: scale.Case) -> None:
    for mode in in_turn(ASKING, case.name):
        scale.agree(case, Setup(cuts=(300, 1, 40), round_size=70, propagation=mode))


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        SEQUENCES[7],
        pytest.param(SEQUENCES[1], marks=pytest.mark.slow),
        pytest.param(SEQUENCES[8], marks=pytest.mark.slow),
        pytest.param(SEQUENCES[12], marks=pytest.mark.slow),
    ],
)
def test_compiled(query: str) -> None:
    events = tuple(
        Event(n, n // 2, {"ts": n // 2, "type": "ABCACBCBD"[n % 9], "x": n % 5, "id": 0, "s": "u"})
        for n in range(40)
    )
    case = Case("compiled", "here", f"PATTERN {query} WITHIN 14", SCHEMA, events, False)
    for shape in in_turn(("left-deep", "right-deep"), query):
        check(case, Setup(shape, jit=True, round_size=8, propagation="pass-down"))


# ── of fewer intermediate results ──


def stored(
    query: str, *parts: pa.RecordBatch, mode: Propagation, shape: str = "left-deep"
) -> Engine:
    """An engine that has read these batches, each in one round."""
    engine = Engine(planned(query, parts[0].schema, mode, shape), parts[0].schema, jit=False)
    for part in parts:
        list(engine.push(part))
    return engine


def planned(query: str, schema: pa.Schema, mode: Propagation, shape: str = "left-deep") -> Plan:
    bound_query = Query(query).bind(schema, Options(time="ts", type="type"))
    return propagate(make_plan(bound_query, shape), mode)


def made(engine: Engine) -> list[int]:
    """How many records every SEQ has made, from the bottom; the root's are the matches."""
    return [o.made for o in engine.tree.operators if isinstance(o, SeqOperator)]


def batch(events: str) -> pa.RecordBatch:
    """`A1:5` is an event of type A at time 1 with x = 5."""
    parts = [
        event.replace(":", " ").replace(event[0], f"{event[0]} ", 1).split()
        for event in events.split()
    ]
    return pa.record_batch(
        {
            "ts": [int(p[1]) for p in parts],
            "type": [p[0] for p in parts],
            "x": [int(p[2]) if len(p) > 2 else 0 for p in parts],
        }
    )


ABC = "PATTERN A a ; B b ; C c WITHIN 10"


def test_pull_makes_nothing_outside_the_windows_of_triggers() -> None:
    # c40 reaches back to 31, where there is nothing; c46 to 37: (a41 b42), but not (a41 b47).
    parts = batch("A1 B2 B3 A20 B21 C40"), batch("A41 B42 C46 B47")
    assert made(stored(ABC, *parts, mode="lazy")) == [5, 1]
    assert made(stored(ABC, *parts, mode="pull")) == [1, 1]


def test_what_nobody_asked_for_yet_is_made_later() -> None:
    parts = batch("A1 B2 C3 B4"), batch("A5 C6")
    assert made(stored(ABC, parts[0], mode="pull")) == [1, 1]
    assert made(stored(ABC, *parts, mode="pull")) == [2, 3]


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("A a ; B b ; C c", 2),
        ("A a ; !D n ; B b ; C c WHERE n.x < b.x", 2),
        ("A a ; (A e & B b) ; C c", 1),  # (e4 b5), made before any c asks for it
        ("A a ; !D n ; C c WHERE n.x < a.x", 2),
        ("A a ; !(D n ; D m) ; B b ; C c", 2),
        ("A a ; D* k ; B b ; C c", 2),
    ],
)
@pytest.mark.parametrize("mode", ASKING)
def test_what_waited_for_a_trigger_is_not_lost(query: str, matches: int, mode: Propagation) -> None:
    """The first round has a trigger, which asks for nothing that comes after it."""
    parts = batch("C1 A2 A4 B5"), batch("C6")
    query = f"PATTERN {query} WITHIN 10"
    assert stored(query, *parts, mode=mode).counts.matches == matches


@pytest.mark.parametrize("triggers", [("C3", "D4"), ("D3", "C4")])
@pytest.mark.parametrize("mode", ASKING)
def test_what_two_alternatives_read_is_made_for_both(
    mode: Propagation, triggers: tuple[str, str]
) -> None:
    query = "PATTERN A a ; B b ; (C c | D d) WITHIN 10"
    engine = stored(query, batch(f"A1 B2 {triggers[0]}"), batch(triggers[1]), mode=mode)
    assert engine.counts.matches == 2
    assert sorted(made(engine)) == [1, 1, 1]


def test_nothing_is_pulled_twice() -> None:
    parts = batch("A1 B2 C3"), batch("C4"), batch("C5 C6")
    assert made(stored(ABC, *parts, mode="pull")) == [1, 4]


def test_a_result_that_starts_too_early_is_not_made() -> None:
    # c13 reaches back to 4: b5 is in its window, but a1 is not.
    assert made(stored(ABC, batch("A1 A4 B5 C13"), mode="pull")) == [1, 1]


def test_pull_goes_down_the_tree() -> None:
    # Of 12 pairs of a and b, d9 asks for those before the one c that d9 has in its window.
    query = "PATTERN A a ; B b ; C c ; D d WITHIN 4"
    part = batch("A1 A1 B2 B2 C3 A6 B7 C8 D9 A11 A11 A11 B12 B12 B13")
    assert made(stored(query, part, mode="pull")) == [1, 1, 1]


def test_pull_asks_as_far_as_composite_records_begin() -> None:
    # Right-deep: (c5 d6) asks for what ends before 5, so (a1 b6) is not made; (c7 d9) asks for it.
    query = "PATTERN A a ; B b ; C c ; D d WITHIN 20"
    tree = "((a b) (c d))"
    parts = batch("A1 B2 C5 B6 D6"), batch("C7 D9")
    assert sorted(made(stored(query, parts[0], mode="pull", shape=tree))) == [1, 1, 1]
    assert sorted(made(stored(query, *parts, mode="pull", shape=tree))) == [2, 3, 4]


def test_pass_down_makes_nothing_of_events_that_no_trigger_accepts() -> None:
    query = "PATTERN A a ; B b ; C c WHERE a.x < c.x WITHIN 10"
    part = batch("A1:5 A2:1 B3 C4:3")
    assert made(stored(query, part, mode="pull")) == [2, 1]
    assert made(stored(query, part, mode="pass-down")) == [1, 1]


def test_pass_down_begins_anew_for_every_round_of_triggers() -> None:
    query = "PATTERN A a ; B b ; C c WHERE a.x < c.x WITHIN 10"
    parts = batch("A1:5 A2:1 B3 C4:3"), batch("B5"), batch("C6:9")
    # c4 accepts a2; c6 both, each with b3 and b5.
    assert made(stored(query, *parts, mode="pass-down")) == [1 + 4, 1 + 4]


def test_pass_down_through_a_right_deep_tree() -> None:
    query = "PATTERN A a ; B b ; C c ; D d WHERE b.x = d.x WITHIN 10"
    part = batch("A1 B2:1 B3:2 C4 D5:2")
    assert sorted(made(stored(query, part, mode="pull", shape="((a b) (c d))"))) == [1, 1, 2]
    assert sorted(made(stored(query, part, mode="pass-down", shape="((a b) (c d))"))) == [1, 1, 1]


def test_events_that_are_passed_over_are_counted_once() -> None:
    query = "PATTERN A a ; B b ; C c WHERE a.x < c.x WITHIN 10"
    engine = stored(query, batch("A1:5 A2:1 B3 C4:3"), batch("C5:9"), mode="pass-down")
    counted = {
        n.variable: p.rows for n, p in engine.profile().nodes.items() if isinstance(n, LeafNode)
    }
    assert counted == {"a": 2, "b": 1, "c": 2}


def test_rare_triggers_need_few_intermediate_results() -> None:
    """Query 14 of the thesis, one trigger in 500 events: with a window of 50, nine of ten
    events are outside of every trigger's window."""
    random = np.random.default_rng(14)
    types = random.choice(list("ABCDE"), 3000)
    types[499::500] = "F"
    events = pa.record_batch(
        {
            "ts": np.arange(3000),
            "type": types,
            "volume": random.integers(0, 1000, 3000),
            "price": random.random(3000),
            "kind": random.integers(0, 100, 3000),
        }
    )
    query = (
        "PATTERN A a ; B b ; C c ; D d ; E e ; F f "
        "WHERE a.volume < d.volume AND c.price < e.price AND b.kind < f.kind WITHIN 50"
    )

    def intermediate(mode: Propagation) -> int:
        return sum(made(stored(query, events, mode=mode))[:-1])

    lazy, pull, passed = (intermediate(mode) for mode in ("lazy", "pull", "pass-down"))
    assert 0 < pull < lazy / 10
    assert 0 < passed < pull
