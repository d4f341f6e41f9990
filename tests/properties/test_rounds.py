"""Negations in repeated groups, with conditions on the round: the engine agrees with the oracle."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cepheid.algebra.types import Schema
from tests.corpus.reader import Case
from tests.engine.harness import Setup
from tests.oracle.events import Event
from tests.properties.strategies import COLUMNS, streams
from tests.properties.test_full import check, full, setups

ROUNDS = {
    "A a ; !C n ; B b": "ab",
    "A a => !C n ; B b": "ab",
    "A a ; !(C n | D m) ; B b": "ab",
    "A a ; !(C n ; D m) ; B b": "ab",
    "A a ; B+ b ; !C n ; A d": "abd",
    "A a ; B? b ; !C n ; A d": "abd",
    "A a | (B b ; !C n ; A d)": "bd",
    "A a ; !C n ; (B b ; A d)+ ; B e": "abe",
    "A a ; (B b & A d){1,2} ; !C n ; B e": "ade",
    "A a ; (B b | D d)* ; !C n ; B e": "abe",
    "A a ; (B b ; (A d | D f)+ ; B g)+ PREFIXES ; !C n ; B e": "abe",
    "(A a ; B b) \\ C n": "ab",
}
"""Patterns of a round with the negated variable n, and variables that it can be compared with."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    one = draw(st.sampled_from(sorted(ROUNDS)))
    mode = draw(st.sampled_from(("", "", " PREFIXES", " SUBSETS", " RUNS")))
    quantifier = draw(st.sampled_from(("+", "+", "*", "{1,2}")))
    others = st.sampled_from((*ROUNDS[one], "s"))
    tests = st.builds("n.x {} {}.x".format, st.sampled_from((">", "<=", "<>")), others)
    conditions = draw(st.lists(tests, max_size=2, unique=True))
    if draw(st.integers(0, 3)) == 0:
        conditions.append("[id]")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    text = f"PATTERN E s ; ({one}){quantifier}{mode} ; E z{where} WITHIN 14"
    inside = draw(streams(("A", "B", "C", "A", "B", "D"), 10))
    return Case("random", "rounds", text, Schema(COLUMNS, time="ts", type="type"), ended(inside))


def ended(inside: tuple[Event, ...]) -> tuple[Event, ...]:
    """With an event of type E before all others and one behind them."""
    last = inside[-1].time if inside else 0
    values = {"type": "E", "x": 1, "id": 1, "y": 1.5, "s": "u", "n": 0}
    events = (Event(0, -1, values), *inside, Event(0, last + 1, values))
    return tuple(
        replace(e, index=n, values={**e.values, "ts": e.time, "row": n})
        for n, e in enumerate(events)
    )


@full
@given(cases(), setups())
def test_negations_in_repeated_groups(case: Case, setup: Setup) -> None:
    check(case, setup)
