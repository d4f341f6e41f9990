"""Where a query may be cut in time: the oracle finds the matches of a stretch from the rows less
than a window around it alone."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cepheid.planner.bounds import uncut
from tests.corpus.reader import Case, bound, case_of
from tests.engine.harness import multiset
from tests.examples import examples
from tests.oracle.match import matches, placed
from tests.properties.full_strategies import full_cases


@settings(
    max_examples=examples("bounds"),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.booleans().flatmap(lambda lasting: full_cases(lasting=lasting)), st.data())
def test_a_stretch_needs_a_window_on_both_sides(case: Case, data: st.DataObject) -> None:
    query = bound(case)
    assume(uncut(query) is None)
    assert query.window is not None
    events = [e for e in case.events if placed(query, e)]
    whole = matches(query, events)
    assume(whole)
    begin = data.draw(st.sampled_from(sorted({m.end for m in whole})))
    end = begin + data.draw(st.integers(1, 4))
    around = range(begin - query.window.size + 1, end + query.window.size - 1)
    found = matches(query, [e for e in events if e.time in around])
    assert multiset(query, [m for m in found if begin <= m.end < end]) == multiset(
        query, [m for m in whole if begin <= m.end < end]
    )


def test_a_strict_negation_looks_further_than_the_window() -> None:
    """What follows a comes long after its window, and alone says whether there is a match."""
    fields = {
        "name": "late",
        "query": "PATTERN A a => !B b WITHIN 2",
        "events": "A@1 B@9",
        "matches": "none",
    }
    late = case_of(fields, "")
    query = bound(late)
    assert matches(query, late.events) == []
    assert len(matches(query, late.events[:1])) == 1
    assert uncut(query) == "a strict negation depends on the next event, however late it is"


def test_what_follows_a_strict_negation_bounds_it() -> None:
    followed = {"A a => !B b ; C c": True, "A a => !B b ; C* c": False, "A a => !B b ; C+ c": True}
    followed |= {"A a => !B b ; (C c | D d)": True, "A a => !B b ; !C c": False}
    followed |= {"A a => !B b ; C{2} c": True, "A a => !B b ; C? c": False}
    for pattern, cut in followed.items():
        fields = {"query": f"PATTERN {pattern} WITHIN 9", "events": "A@1", "matches": "none"}
        assert (uncut(bound(case_of({"name": pattern, **fields}, ""))) is None) == cut, pattern
