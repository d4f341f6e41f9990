"""Every case of the corpus under many configurations: plan shapes, batch cuts, rounds."""

from __future__ import annotations

import pytest

from cepheid.errors import UnsupportedError
from cepheid.planner import make_plan
from tests.corpus.reader import Case, bound, cases
from tests.engine.harness import Setup, multiset, run
from tests.oracle.match import matches

LATER = {"after_match.txt", "exception.txt", "groups.txt", "modes.txt", "next.txt", "strict.txt"}
"""Files of what the language has and no engine here runs yet."""

LATER_CASES = {"cayuga/table 1"}
NOW_CASES = {"after match/no skip", "modes/exactly two, alone"}

SETUPS = [
    Setup(),
    Setup("right-deep"),
    Setup(push=False),
    Setup(cuts=(1,)),
    Setup("right-deep", cuts=(2, 3), round_size=1),
    Setup(round_size=2, push=False, cuts=(5,)),
]


def later(case: Case) -> bool:
    return case.name not in NOW_CASES and (case.file in LATER or case.name in LATER_CASES)


@pytest.mark.parametrize("setup", SETUPS, ids=str)
@pytest.mark.parametrize("case", [c for c in cases() if not later(c)], ids=str)
def test_engine(case: Case, setup: Setup) -> None:
    query = bound(case)
    found = run(query, case.events, setup)
    assert multiset(query, found) == multiset(query, matches(query, case.events))
    ends = [m.end for m in found]
    assert ends == sorted(ends) or query.key  # a keyed window of n EVENTS goes key by key


@pytest.mark.parametrize("case", [c for c in cases() if later(c)], ids=str)
def test_says_what_it_does_not_run_yet(case: Case) -> None:
    with pytest.raises(UnsupportedError, match="isn't supported yet"):
        make_plan(bound(case))
