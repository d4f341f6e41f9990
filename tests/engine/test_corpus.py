"""Every case of the corpus under many configurations: trees, automata and what the planner makes
of it, batch cuts, rounds."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any, Literal

import pytest

from tests.corpus.reader import Case, bound, cases
from tests.engine.harness import Setup, in_order_of_ends, multiset, returned, run
from tests.oracle.match import matches

AUTOMATA = {
    "durations_next.txt",
    "exception.txt",
    "groups.txt",
    "keys_of_parts.txt",
    "modes.txt",
    "next.txt",
    "papers_automata.txt",
    "previous_automata.txt",
    "strict.txt",
}
"""Files of what trees of joins can't run."""

AUTOMATA_CASES = {
    "after match/a longer group before its own prefix",
    "cayuga/table 1",
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
OTHERS = [
    Setup(engine="automaton"),
    Setup(engine="automaton", cuts=(1,)),
    Setup(engine="automaton", cuts=(2, 3), round_size=1),
    Setup(engine="nfa", cuts=(3,)),
    Setup(engine="mixed", cuts=(3,), round_size=2),
    Setup(engine="auto", cuts=(2, 3), round_size=1),
]


def by_tree(case: Case) -> bool:
    listed = case.file in AUTOMATA or case.name in AUTOMATA_CASES
    return case.name in TREE_CASES or not listed


@cache
def expected(name: str) -> Counter[tuple[Any, ...]]:
    """The oracle's matches, once for all setups."""
    (case,) = (c for c in cases() if c.name == name)
    query = bound(case)
    return multiset(query, matches(query, case.events))


def check(case: Case, setup: Setup) -> None:
    query = bound(case)
    found = run(query, case.events, setup)
    assert multiset(query, found) == expected(case.name)
    assert in_order_of_ends(query, found)


@pytest.mark.parametrize("setup", TREES, ids=str)
@pytest.mark.parametrize("case", [c for c in cases() if by_tree(c)], ids=str)
def test_trees(case: Case, setup: Setup) -> None:
    check(case, setup)


@pytest.mark.parametrize("setup", OTHERS, ids=str)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_automata_and_chosen_plans(case: Case, setup: Setup) -> None:
    check(case, setup)


@pytest.mark.parametrize("engine", ["automaton", "auto"])
@pytest.mark.parametrize("case", [c for c in cases() if c.returns is not None], ids=str)
def test_returns(case: Case, engine: Literal["automaton", "auto"]) -> None:
    rows = returned(bound(case), case.events, Setup(engine=engine, cuts=(2, 3)))
    assert Counter(map(str, rows)) == Counter(map(str, case.returns or ()))
