"""The random cases themselves: queries that bind, over every role and on streams that match."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings

from cepheid.algebra.query import Role
from cepheid.planner.automata.segments import mixed
from tests.corpus import bound
from tests.corpus.reader import Case, table
from tests.examples import examples
from tests.oracle import matches
from tests.properties.full_strategies import PartedQueries, full_cases
from tests.properties.strategies import cases

SEARCH = settings(
    max_examples=3000,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
@settings(max_examples=examples("queries that bind"))
@given(cases())
def test_queries_bind(case: Case) -> None:
    query = bound(case)
    assert query.window is not None
    assert table(case.schema, case.events).num_rows == len(case.events)


@pytest.mark.slow
@pytest.mark.parametrize("role", Role, ids=lambda r: r.value)
def test_every_role_meets_a_match(role: Role) -> None:
    """With a match, so that a conjunct that is wrongly refused shows."""

    def matching(case: Case) -> bool:
        query = bound(case)
        wanted = any(c.role is role for c in query.where)
        return wanted and bool(matches(query, case.events))

    assert find(cases(), matching, settings=SEARCH).events


CONSTRUCTS = (
    "->", "=>", "PREFIXES", "SUBSETS", "RUNS", "STRICT", "UNTIL", "PREV", "LAST", "count", "SOME",
    ".x, ", "DISTINCT", "stddev", "reduce", "duration", "HAVING", "NEXT MATCH", "CONTIGUITY",
    "PAST LAST", "TO NEXT", "TO FIRST", "EVENTS", ")+", "{2}", ")?", "!(", "=> !", " | ", " & ",
    "\\", "@", "[id]", "OCCURS",
)  # fmt: skip


@pytest.mark.slow
def test_full_cases_match_often_and_with_every_construct() -> None:
    """What is drawn also depends on which modules are loaded: rare constructs get more rounds."""
    found: list[str] = []

    def search(case: Case) -> None:
        found.append(case.query_text if matches(bound(case), case.events) else "")

    rounds = settings(SEARCH, derandomize=False, database=None, max_examples=400)
    missing: list[str] = list(CONSTRUCTS)
    for number in range(9):
        seed(number)(rounds(given(full_cases())(search)))()
        missing = [word for word in CONSTRUCTS if not any(word in text for text in found)]
        if number and not missing:
            break
    assert missing == []
    assert sum(map(bool, found)) > 0.35 * len(found)


@pytest.mark.slow
def test_parted_cases_can_be_parted() -> None:
    found: list[bool] = []

    @settings(SEARCH, max_examples=200)
    @given(full_cases(kind=PartedQueries))
    def search(case: Case) -> None:
        found.append(mixed(bound(case)) is not None)

    search()
    assert sum(found) > 0.4 * len(found)
