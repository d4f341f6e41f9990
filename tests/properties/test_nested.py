"""A query over nested values finds what the same query finds over flat ones."""

from __future__ import annotations

from hypothesis import given, reject, settings

from cepheid.errors import UnsupportedError
from tests.corpus.reader import Case, bound
from tests.engine.harness import Setup, multiset, run
from tests.examples import examples
from tests.oracle.match import matches
from tests.properties.full_strategies import full_cases
from tests.properties.nested_cases import nested_case
from tests.properties.test_full import full, setups


@settings(full, max_examples=examples("nested"))
@given(full_cases(), setups())
def test_nested_values_match_as_flat_ones(case: Case, setup: Setup) -> None:
    flat, nested = bound(case), nested_case(case)
    query = bound(nested)
    wanted = multiset(flat, matches(flat, case.events))
    assert multiset(query, matches(query, nested.events)) == wanted
    try:
        found = run(query, nested.events, setup)
    except UnsupportedError:
        reject()
    assert multiset(query, found) == wanted
