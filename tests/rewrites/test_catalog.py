"""Every rule, on random queries and streams: the oracle returns the same matches before and
after it, and the engine returns them for what all rules make of the query."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from cepheid.algebra import bind
from cepheid.algebra.patterns import Unless, walk
from cepheid.algebra.types import Schema
from cepheid.language import parse
from cepheid.rewrites import REWRITES, Facts, Rewrite
from cepheid.rewrites.driver import rewrite_by
from cepheid.statistics import Statistics
from tests.corpus.reader import Case, bound, cases, read_events, schema_of
from tests.examples import LONG, examples
from tests.oracle.events import Event
from tests.properties.strategies import COLUMNS, streams
from tests.properties.strategies import cases as random_cases
from tests.rewrites.harness import by_engine, by_oracle
from tests.rewrites.strategies import cases_for

RANDOM = settings(
    max_examples=examples("rewrites"),
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
FACTS = Facts(Statistics(rates=dict(zip("abcdef", (1.0, 5.0, 2.0, 9.0, 3.0, 4.0), strict=True))))


@pytest.mark.parametrize("rule", REWRITES, ids=lambda rule: rule.name)
def test_a_rule_keeps_the_matches(rule: Rewrite) -> None:
    seen: Counter[str] = Counter()

    @RANDOM
    @given(cases_for(rule.name))
    def check(case: Case) -> None:
        query = bound(case)
        expected = by_oracle(query, case.events)
        seen["cases"] += 1
        alone = rewrite_by((rule,), query, FACTS)
        if alone.applied:
            seen["fired"] += 1
            seen["matched"] += bool(expected)
            assert by_oracle(alone.query, case.events, query) == expected, alone
        together = rewrite_by(REWRITES, query, FACTS)
        if together.applied:
            assert by_oracle(together.query, case.events, query) == expected, together
            assert by_engine(together.query, case.events, query) == expected, together

    check()
    assert seen["fired"] >= seen["cases"] // 5, seen
    # Few cases may all have no match: what Hypothesis draws also depends on the modules loaded.
    if LONG in os.environ and rule.name != "contradiction":
        assert seen["matched"] > 0, seen


@RANDOM
@given(random_cases(12))
def test_all_rules_keep_the_matches_of_any_query(case: Case) -> None:
    query = bound(case)
    rewritten = rewrite_by(REWRITES, query, FACTS).query
    expected = by_oracle(query, case.events)
    assert by_oracle(rewritten, case.events, query) == expected
    assert by_engine(rewritten, case.events, query, "right-deep") == expected


@pytest.mark.parametrize("case", cases(), ids=str)
def test_all_rules_keep_the_matches_of_the_corpus(case: Case) -> None:
    query = bound(case)
    rewritten = rewrite_by(REWRITES, query, FACTS)
    assert by_oracle(rewritten.query, case.events, query) == by_oracle(query, case.events)


@RANDOM
@given(random_cases(3))
def test_rewriting_twice_changes_nothing_more(case: Case) -> None:
    once = rewrite_by(REWRITES, bound(case), FACTS).query
    assert once.nothing is not None or rewrite_by(REWRITES, once, FACTS).applied == ()


@RANDOM
@given(streams(("A", "B", "C"), 12))
def test_an_exception_distributes_over_branches(events: tuple[Event, ...]) -> None:
    """A law that holds and is no rule: it needs more operators."""
    schema = Schema(COLUMNS, time="ts", type="type")
    texts = "PATTERN (A a | B b) \\ C c", "PATTERN (A a \\ C c) | (B b \\ C d)"
    one, other = (by_oracle(bind(parse(text), schema), events) for text in texts)
    assert one == other


NEXTS_LAWS = {
    "P ; (Q \\ R) = (P ; Q) \\ R": (
        "PATTERN A a ; (B b \\ C c) WITHIN 9",
        "PATTERN (A a ; B b) \\ C c WITHIN 9",
    ),
    "P -> (Q \\ R) = (P -> Q) \\ R": (
        "PATTERN A a -> (B b \\ C c)",
        "PATTERN (A a -> B b) \\ C c",
    ),
    "(P ; Q) \\ R = P ; !R ; Q": (
        "PATTERN (A a ; B b) \\ C c WITHIN 9",
        "PATTERN A a ; !C c ; B b WITHIN 9",
    ),
    "(P \\ R) ; Q = (P ; Q) \\ R": (
        "PATTERN (A a \\ C c) ; B b WITHIN 9",
        "PATTERN (A a ; B b) \\ C c WITHIN 9",
    ),
}
"""Equivalences of exceptions that look right, and which `docs/rewrites.md` says fail."""

COUNTEREXAMPLES = {
    "P ; (Q \\ R) = (P ; Q) \\ R": "A@1 C@2 B@3",
    "P -> (Q \\ R) = (P -> Q) \\ R": "A@1 C@2 B@3",
    "(P ; Q) \\ R = P ; !R ; Q": "A@1 C@1 B@3",
    "(P \\ R) ; Q = (P ; Q) \\ R": "A@1 C@2 B@3",
}


@pytest.mark.parametrize("law", NEXTS_LAWS)
def test_a_law_that_fails_is_no_rule(law: str) -> None:
    events = read_events(COUNTEREXAMPLES[law], "type")
    schema = schema_of(events, {}, "type")
    one, other = (
        bound(Case(law, "laws", text, schema, events, by_hand=True)) for text in NEXTS_LAWS[law]
    )
    assert any(isinstance(p, Unless) for p in walk(one.pattern))
    assert by_oracle(one, events) != by_oracle(other, events)
