"""Every case of the corpus under many configurations: trees, automata and what the planner makes
of it, batch cuts, rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import pytest

from tests.corpus.reader import Case, bound, cases
from tests.engine.harness import Setup, in_order_of_ends, multiset, returned, run
from tests.examples import in_turn

AUTOMATA = {
    "contract.txt",
    "distinct_automata.txt",
    "durations_next.txt",
    "exception.txt",
    "foreign_automata.txt",
    "groups.txt",
    "keys_of_parts.txt",
    "modes.txt",
    "negation_for.txt",
    "next.txt",
    "papers_automata.txt",
    "previous_automata.txt",
    "reduce_automata.txt",
    "strict.txt",
}
"""Files of what trees of joins can't run."""

AUTOMATA_CASES = {
    "after match/a longer group before its own prefix",
    "after match/for a time, from the end that a delay has moved",
    "cayuga/table 1",
    "limit/a delay moves the end",
    "limit/a longer group before its own prefix",
    "limit/next event",
    "limit/strict steps of a key",
    "numbers/NaN runs above every number",
    "numbers/a sum that is carried along",
    "numbers/minus zero is a key like zero",
}
TREE_CASES = {"modes/exactly two, alone"}

TREES = [
    Setup(),
    Setup("right-deep"),
    Setup(push=False),
    Setup(cuts=(1,)),
    Setup("right-deep", cuts=(2, 3), round_size=1),
    Setup(round_size=2, push=False, cuts=(5,)),
]
AUTOMATON = [
    Setup(engine="automaton"),
    Setup(engine="automaton", cuts=(1,)),
    Setup(engine="automaton", cuts=(2, 3), round_size=1),
]
CHOSEN = [
    Setup(engine="nfa", cuts=(3,)),
    Setup(engine="mixed", cuts=(3,), round_size=2),
    Setup(engine="auto", cuts=(2, 3), round_size=1),
]


def by_tree(case: Case) -> bool:
    listed = case.file in AUTOMATA or case.name in AUTOMATA_CASES
    return case.name in TREE_CASES or not listed


def check(case: Case, setups: Sequence[Setup]) -> None:
    query = bound(case)
    expected = multiset(query, case.answer)
    for setup in setups:
        found = run(query, case.events, setup)
        assert multiset(query, found) == expected, str(setup)
        assert in_order_of_ends(query, found), str(setup)


@pytest.mark.parametrize("case", [c for c in cases() if by_tree(c)], ids=str)
def test_trees(case: Case) -> None:
    check(case, in_turn(TREES, case.name, count=2))


@pytest.mark.parametrize("case", cases(), ids=str)
def test_automata_and_chosen_plans(case: Case) -> None:
    check(case, [*in_turn(AUTOMATON, case.name), *CHOSEN])


@pytest.mark.parametrize("engine", ["automaton", "auto"])
@pytest.mark.parametrize("case", [c for c in cases() if c.returns is not None], ids=str)
def test_returns(case: Case, engine: Literal["automaton", "auto"]) -> None:
    rows = returned(bound(case), case.events, Setup(engine=engine, cuts=(2, 3)))
    assert Counter(map(str, rows)) == Counter(map(str, case.returns or ()))
