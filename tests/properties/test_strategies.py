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
from tests.properties.construct_strategies import (
    BranchingQueries,
    ChoosingQueries,
    FoldingQueries,
)
from tests.properties.full_strategies import (
    FullQueries,
    PartedQueries,
    TouchingQueries,
    full_cases,
)
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


CONSTRUCTS: dict[type[FullQueries], tuple[str, ...]] = {
    FullQueries: (
        "->", "=>", "PREFIXES", "SUBSETS", "RUNS", "STRICT", "UNTIL", "PREV", "LAST", "count",
        "SOME", "duration", "HAVING", "NEXT MATCH", "CONTIGUITY", "PAST LAST", "TO NEXT",
        "TO FIRST", "EVENTS", ")+", "{2}", ")?", "!(", "=> !", " | ", " & ", "\\", "@", "[id]",
        "OCCURS", " FOR ", "LIMIT",
    ),
    FoldingQueries: (
        "count(DISTINCT", "sum(DISTINCT", "avg(DISTINCT", ".x, 1)", "stddev", "reduce", ".x, a.x)",
        "PREV(b.s", "greatest",
    ),
    ChoosingQueries: ("PER KEY", "SKIP FOR", "TO LAST", "[id, s]"),
    BranchingQueries: (" FOR ", "NOT (", "coalesce"),
    TouchingQueries: ("+ =>", "? =>", "} =>"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONSTRUCTS)
def test_cases_match_often_and_with_every_construct(kind: type[FullQueries]) -> None:
    """What is drawn also depends on which modules are loaded: rare constructs get more rounds."""
    found: list[str] = []

    def search(case: Case) -> None:
        found.append(case.query_text if matches(bound(case), case.events) else "")

    rounds = settings(SEARCH, derandomize=False, database=None, max_examples=400)
    missing = CONSTRUCTS[kind]
    for number in range(9):
        seed(number)(rounds(given(full_cases(kind=kind))(search)))()
        missing = tuple(w for w in missing if not any(w in text for text in found))
        if number and not missing:
            break
    assert missing == ()
    assert sum(map(bool, found)) > (0.35 if kind is FullQueries else 0.1) * len(found)


@pytest.mark.slow
def test_parted_cases_can_be_parted() -> None:
    found: list[bool] = []

    @settings(SEARCH, max_examples=200)
    @given(full_cases(kind=PartedQueries))
    def search(case: Case) -> None:
        found.append(mixed(bound(case)) is not None)

    search()
    assert sum(found) > 0.4 * len(found)
