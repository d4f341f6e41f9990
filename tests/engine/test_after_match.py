"""AFTER MATCH: what is kept, in which order, and what is remembered for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.algebra.patterns import positive
from cepheid.algebra.query import BoundQuery, Clock, Selection
from cepheid.engine.run import Engine
from cepheid.engine.sink import Choosing
from cepheid.language.ast import Skip
from cepheid.options import Options
from cepheid.plan.nodes import waits
from cepheid.planner import make_plan
from cepheid.query import Query
from tests.corpus.reader import Case, bound, case_of, cases
from tests.engine.harness import Setup, Switching, indexed, multiset, plan_of, run, run_plan
from tests.examples import examples, in_turn
from tests.oracle.events import Event, Match
from tests.oracle.match import matches
from tests.properties.strategies import cases as random_cases
from tests.properties.test_durations import lasting
from tests.properties.test_engine import setups

FEW = 10**6
"""No case has so many rows: what chooses among matches is compiled, and what finds them isn't."""

TREES = [
    Setup(),
    Setup("right-deep"),
    Setup(cuts=(1,)),
    Setup("right-deep", cuts=(2, 3), round_size=1),
    Setup(round_size=2, push=False, cuts=(5,)),
    Setup(jit=True, compile_at=FEW),
]
AUTOMATA = [
    Setup(engine="automaton"),
    Setup(engine="automaton", cuts=(1,), round_size=1),
]
CHOSEN = Setup(engine="nfa", cuts=(2, 3), round_size=2)


BY_AUTOMATA = ("PREFIXES", "@", "->", "=>")
"""What no tree runs."""


def listed(query: BoundQuery, found: Iterable[Match]) -> list[Any]:
    """Matches in their order, comparable."""
    return [multiset(query, [match]) for match in found]


def by_key(query: BoundQuery) -> bool:
    """Whether the engine is given one key after the other: then the ends aren't in order."""
    return bool(query.window and query.window.clock is Clock.EVENTS and query.key)


def case(pattern: str, events: str) -> Case:
    """A case of the corpus that is written here."""
    fields = {"name": "here", "query": f"PATTERN {pattern}", "events": events, "oracle": "none"}
    return case_of(fields, "here")


# ── the corpus, and random queries ──


@pytest.mark.parametrize(
    "known",
    [c for c in cases("after_match.txt") + cases("limit.txt") if "NO SKIP" not in c.query_text],
    ids=str,
)
def test_corpus(known: Case) -> None:
    query = bound(known)
    trees, automata = in_turn(TREES, known.name, count=2), in_turn(AUTOMATA, known.name)
    for setup in (*trees, *automata, CHOSEN):
        if setup.engine == "tree" and any(part in known.query_text for part in BY_AUTOMATA):
            setup = replace(setup, engine="automaton")  # no tree runs it
        found = run(query, known.events, setup)
        agrees(query, known.events, found)
        if not by_key(query):
            assert [dict(m.bindings) for m in found] == [dict(m) for m in known.expected], setup


@st.composite
def skipping(draw: st.DrawFn, query: BoundQuery) -> BoundQuery:
    """The query with an AFTER MATCH clause, with LIMIT, or with both."""
    per_key = bool(query.key) and (by_key(query) or draw(st.booleans()))
    most = draw(st.none() | st.integers(1, 4))
    skip = draw(st.sampled_from([s for s in Skip if s is not Skip.NONE or most is not None]))
    targeted = skip in (Skip.TO_FIRST, Skip.TO_LAST)
    variable = draw(st.sampled_from(positive(query.pattern))) if targeted else None
    pause = draw(st.integers(1, 12)) if skip is Skip.FOR else 0
    per_key = per_key and most is not None
    return replace(query, selection=Selection(skip, variable, pause, most, per_key))


def in_stream_order(case: Case) -> Case:
    """The case with its input sorted by end, then by start."""
    ordered = sorted(case.events, key=lambda e: (e.time, e.start))
    events = tuple(
        replace(e, index=n, values={**e.values, "row": n}) for n, e in enumerate(ordered)
    )
    return replace(case, events=events)


def agrees(query: BoundQuery, events: tuple[Event, ...], found: list[Match]) -> None:
    expected = matches(query, events)
    if by_key(query):
        assert multiset(query, found) == multiset(query, expected)
    else:
        assert listed(query, found) == listed(query, expected)


@settings(
    max_examples=examples("after match"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_keeps_what_the_oracle_keeps_in_its_order(data: st.DataObject) -> None:
    """Also if a root collects few matches, few are held back, and few keys are remembered."""
    drawn = data.draw(random_cases())
    setup = data.draw(setups(drawn))
    query = data.draw(skipping(bound(drawn)))
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            patch.setattr("cepheid.engine.tree.CAPACITY", data.draw(st.integers(1, 5)))
            patch.setattr("cepheid.engine.sink.SHRINK_AT", 0)
            patch.setattr("cepheid.engine.after_match.FORGET_AT", 0)
        found = run(query, drawn.events, setup)
    agrees(query, drawn.events, found)


@settings(
    max_examples=examples("after match", part=3),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_events_with_a_duration(data: st.DataObject) -> None:
    """What starts first may end last: an event of the future may lead before all of the past.

    Simultaneous events come in the order of their starts: engines sort them so, and then the
    order of the input is the same."""
    drawn = in_stream_order(data.draw(lasting()))
    setup = data.draw(setups(drawn))
    query = data.draw(skipping(bound(drawn)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cepheid.engine.after_match.FORGET_AT", 0)
        found = run(query, drawn.events, setup)
    agrees(query, drawn.events, found)


@settings(
    max_examples=examples("after match", part=3),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_another_plan_goes_on_with_what_was_kept(data: st.DataObject) -> None:
    drawn = data.draw(random_cases())
    query = data.draw(skipping(bound(drawn)))
    ways = data.draw(st.lists(setups(drawn), min_size=2, max_size=3))
    plans = [plan_of(indexed(query), way) for way in ways]
    if any(waits(root) for root in plans[0].alternatives):
        ways = [replace(way, push=ways[0].push) for way in ways]
        plans = [plan_of(indexed(query), way) for way in ways]
    found = run_plan(query, drawn.events, plans[0], ways[0], Switching([*plans[1:], plans[0]]))
    agrees(query, drawn.events, found)


# ── by hand ──


def kept(pattern: str, events: str, setup: Setup = Setup()) -> list[dict[str, Any]]:
    """What each match that is kept binds: places in the input."""
    written = case(pattern, events)
    return [dict(m.bindings) for m in run(bound(written), written.events, setup)]


@pytest.mark.parametrize("cuts", [1, 2, 100])
def test_a_simultaneous_event_of_the_next_batch_may_come_first(cuts: int) -> None:
    """The matches end together. That of the second C starts earlier, since its x is that of a1."""
    found = kept(
        "A a ; C c WHERE a.x + 0 = c.x WITHIN 10 AFTER MATCH SKIP PAST LAST EVENT",
        "A@1(x=1) A@2(x=2) C@3(x=2) C@3(x=1)",
        Setup(cuts=(cuts,), round_size=cuts),
    )
    assert found == [{"a": 0, "c": 3}]


@pytest.mark.parametrize("engine", ["tree", "automaton"])
@pytest.mark.parametrize("cuts", [1, 100])
def test_a_match_that_waited_is_considered_by_its_end(cuts: int, engine: Any) -> None:
    """A and B wait until 11, and are then considered before E and C, which were known at once."""
    found = kept(
        "(A a ; B b ; !D d) | (E e ; C c) WITHIN 10 AFTER MATCH SKIP PAST LAST EVENT",
        "A@1 E@2 B@3 C@4 A@20",
        Setup(cuts=(cuts,), round_size=cuts, engine=engine),
    )
    assert found == [{"a": 0, "b": 2, "e": None, "c": None}]


@pytest.mark.parametrize("cuts", [1, 100])
def test_a_delay_moves_the_end(cuts: int) -> None:
    """The first match ends at 1 + 5, so that the A at 4 and at 6 don't start after it."""
    found = kept(
        "A a @ 5 AFTER MATCH SKIP PAST LAST EVENT",
        "A@1 A@4 A@6 A@7 A@20",
        Setup(cuts=(cuts,), round_size=cuts, engine="automaton"),
    )
    assert found == [{"a": 0}, {"a": 3}, {"a": 4}]


@pytest.mark.parametrize("cuts", [1, 2, 100])
def test_delayed_ends_among_tie_breaks(cuts: int) -> None:
    """The first match ends at 6 with tie 1: the second starts there with tie 1 too, so it doesn't
    start after it; the third does, with tie 2."""
    written = case("A a @ 5 AFTER MATCH SKIP PAST LAST EVENT", "A@1(x=1) A@6(x=1) A@6(x=2)")
    query = bound(replace(written, schema=replace(written.schema, tie="x")))
    found = run(query, written.events, Setup(engine="automaton", cuts=(cuts,), round_size=cuts))
    assert [m.bindings for m in found] == [{"a": 0}, {"a": 2}]
    assert found == matches(query, written.events)


@pytest.mark.parametrize("engine", ["tree", "automaton"])
def test_a_key_of_text_is_remembered_longer_than_its_events(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """x has no event in the window when its string is looked for among those to forget."""
    monkeypatch.setattr("cepheid.engine.rows.store.FORGET_AT", 0)
    found = kept(
        "A a ; B b WHERE [s] WITHIN 4 AFTER MATCH SKIP FOR 30",
        "A@1(s='x') B@2(s='x') A@12(s='y') B@13(s='y') A@20(s='x') B@21(s='x') A@31(s='x')"
        " B@32(s='x')",
        Setup(engine=engine, cuts=(1,), round_size=1),
    )
    assert found == [{"a": 0, "b": 1}, {"a": 2, "b": 3}, {"a": 6, "b": 7}]


def test_an_event_may_be_first_in_two_keys() -> None:
    """Each event is a's with its id and b's with its x: one match per key and first event."""
    found = kept(
        "ANY(A) a & ANY(A) b WHERE a.id = b.x WITHIN 10 AFTER MATCH SKIP TO NEXT EVENT",
        "A@1(id=1, x=2) A@2(id=2, x=1) A@3(id=2, x=1)",
    )
    assert found == [{"a": 0, "b": 1}, {"a": 1, "b": 0}]


def test_keys_of_several_parts_are_told_apart() -> None:
    found = kept(
        "A a ; B b WHERE [id] AND [s] WITHIN 10 AFTER MATCH SKIP PAST LAST EVENT",
        "A@1(id=1, s='u') A@2(id=1, s='v') A@3(id=1, s='u') B@4(id=1, s='u') B@5(id=1, s='v')",
    )
    assert found == [{"a": 0, "b": 3}, {"a": 1, "b": 4}]


def test_not_a_number_is_a_key_and_zero_has_no_sign() -> None:
    found = kept(
        "A a ; B b WHERE [y] WITHIN 10 AFTER MATCH SKIP PAST LAST EVENT",
        "A@1(y=nan) A@2(y=nan) A@3(y=0.0) A@4(y=-0.0) B@5(y=nan) B@6(y=0.0)",
    )
    assert found == [{"a": 0, "b": 4}, {"a": 2, "b": 5}]


def test_a_single_event_without_window() -> None:
    """Of simultaneous events the first one is kept, also if the others come batches later."""
    events = "A@1 A@1 A@1 A@2"
    pattern = "A a AFTER MATCH SKIP PAST LAST EVENT"
    for cuts in (1, 2, 100):
        assert kept(pattern, events, Setup(cuts=(cuts,))) == [{"a": 0}, {"a": 3}]


def test_a_single_event_with_a_key() -> None:
    found = kept("A a WHERE [id] AFTER MATCH SKIP PAST LAST EVENT", "A@1(id=1) A@1(id=2) A@1(id=1)")
    assert found == [{"a": 0}, {"a": 1}]


def test_rows_of_no_class_do_not_end_what_is_simultaneous() -> None:
    """A window of events counts X, but X at 1 doesn't mean that no A at 1 can come."""
    for cuts in (1, 100):
        found = kept(
            "A a WITHIN 1 EVENTS AFTER MATCH SKIP PAST LAST EVENT",
            "A@1 X@1 X@1 A@1 A@2",
            Setup(cuts=(cuts,)),
        )
        assert found == [{"a": 0}, {"a": 4}]


# ── many matches, long streams ──


def engine_of(text: str, schema: pa.Schema, **options: Any) -> Engine:
    query = Query(text).bind(schema, Options(time="ts", type="type"))
    return Engine(make_plan(query), schema, **options)


BATCH = 400


def stream(batches: int) -> Iterator[pa.RecordBatch]:
    """Every key lives for a moment only."""
    random = np.random.default_rng(3)
    for n in range(batches):
        ticks = np.arange(n * BATCH, (n + 1) * BATCH)
        ids = ticks // 20 * 10 + random.integers(0, 5, BATCH)
        yield pa.record_batch(
            {
                "ts": ticks,
                "type": np.array(["A", "B", "C"])[random.integers(0, 3, BATCH)],
                "id": ids,
                "s": [f"key {i}" for i in ids],
            }
        )


@pytest.mark.parametrize(
    "skip", ["PAST LAST EVENT", "TO NEXT EVENT", "TO FIRST b", "TO LAST b", "FOR 5"]
)
@pytest.mark.parametrize(
    "pattern", ["A a ; B b", "A a ; B b ; !C c", "(A a ; B b) | (C c ; B+ b2 ; C c2)"]
)
@pytest.mark.parametrize("key", ["id", "s"])
def test_what_is_remembered_follows_the_window(
    pattern: str, skip: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cepheid.engine.after_match.FORGET_AT", 20)
    text = f"PATTERN {pattern} WHERE [{key}] WITHIN 30 AFTER MATCH SKIP {skip}"
    engine = engine_of(text, next(stream(1)).schema, jit=False, round_size=100)
    for batch in stream(12):
        for _ in engine.push(batch):
            pass
    sink = engine.tree.sink
    assert isinstance(sink, Choosing)
    assert engine.counts.matches > 100
    assert len(sink._memory) < 200
    assert sum(len(held.matches) for held in sink._held) < 200


@pytest.mark.parametrize("skip", ["PAST LAST EVENT", "TO NEXT EVENT", "TO FIRST b", "TO LAST b"])
@pytest.mark.parametrize("pattern", ["A a ; B b ; C c", "(A a ; B b ; C c) | (B d ; C e)"])
def test_more_matches_than_the_roots_collect(
    pattern: str, skip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The buffer of a root is emptied in the middle of a round, also between equal ends."""
    monkeypatch.setattr("cepheid.engine.tree.CAPACITY", 3)
    written = case(
        f"{pattern} WITHIN 20 AFTER MATCH SKIP {skip}",
        "A@1 A@2 A@3 B@4 B@5 A@6 B@7 C@8 C@8 A@9 B@10 C@11",
    )
    query = bound(written)
    found = run(query, written.events)
    assert listed(query, found) == listed(query, matches(query, written.events))
    assert len(found) >= 2


@pytest.mark.parametrize("skip", ["PAST LAST EVENT", "TO NEXT EVENT"])
def test_a_flood_that_ends_with_one_event_is_not_held(
    skip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 A, 40 B and a C are 1,600 matches, of which one, or one per A, can be kept."""
    monkeypatch.setattr("cepheid.engine.tree.CAPACITY", 100)
    monkeypatch.setattr("cepheid.engine.sink.SHRINK_AT", 50)
    events = pa.record_batch({"ts": np.arange(81), "type": ["A"] * 40 + ["B"] * 40 + ["C"]})
    text = f"PATTERN A a ; B b ; C c WITHIN 100 AFTER MATCH SKIP {skip} RETURN a.ts AS a, b.ts AS b"
    engine = engine_of(text, events.schema, jit=False)
    peak = 0
    decide = Choosing._decide

    def watched(sink: Choosing, until: int) -> Iterator[pa.RecordBatch]:
        nonlocal peak
        yield from decide(sink, until)
        peak = max(peak, sum(len(held.matches) for held in sink._held))

    monkeypatch.setattr(Choosing, "_decide", watched)
    found = [row for batch in engine.push(events) for row in batch.to_pylist()]
    found += [row for batch in engine.finish() for row in batch.to_pylist()]
    firsts = range(40) if skip == "TO NEXT EVENT" else [0]
    assert [(row["a"], row["b"]) for row in found] == [(a, 40) for a in firsts]
    assert 0 < peak <= 50
