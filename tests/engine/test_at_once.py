"""All events matched at once, numbered key by key: where every class takes every event."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from cepheid.engine.needs import matches_at_once
from cepheid.engine.rows.order import in_order
from cepheid.engine.run import Engine
from tests.corpus.reader import bound, case_of
from tests.engine.harness import (
    Setup,
    in_order_of_ends,
    indexed,
    match_of,
    multiset,
    plan_of,
    with_index,
)
from tests.examples import examples
from tests.oracle.match import matches

PAST_LAST = " AFTER MATCH SKIP PAST LAST EVENT"

QUERIES = (
    "PATTERN a => b+ => c WHERE [id] AND b.x > PREV(b.x, a.x) AND c.x < LAST(b.x)",
    # The later start may have the earlier end.
    "PATTERN a => b+ => c WHERE [id] AND b.x > a.x AND c.x < a.x",
    "PATTERN a -> b WHERE [id] AND b.x = a.x + 1",
    "PATTERN a ; b WHERE [id] AND b.x > a.x WITHIN 5",
    "PATTERN a ; b+ ; c WHERE [id] AND b.x = a.x AND c.x > sum(b.x) WITHIN 9",
    "PATTERN a ; b+ SUBSETS ; c WHERE [id] AND b.x > a.x AND c.x < a.x WITHIN 6",
    "PATTERN a => b* => c WHERE [id] AND b.x = a.x AND c.x <> a.x AND duration() > 2",
    "PATTERN a => (b => c)+ => d WHERE [id] AND b.x < c.x AND d.x = a.x",
    "PATTERN a => (b | c => d) WHERE [id] AND b.x > a.x AND c.x < a.x",
    "PATTERN a => !b => c WHERE [id] AND b.x = a.x",
    "PATTERN a => b{2} => c WHERE [id] AND b.x <> a.x",
    "PATTERN a => b WHERE a.x < b.x",
    "PATTERN a ; b+ WHERE [id] AND b.x = a.x WITHIN 4",
    "PATTERN a => b+ => c WHERE [id] AND b.x >= PREV(b.x, a.x) WITHIN 6",
    "PATTERN a ; !b ; c WHERE [id] AND b.x = a.x AND c.x = a.x WITHIN 5",
)

at_once = settings(
    max_examples=examples("at once"), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["1", "2"]), st.integers(0, 4)),
    min_size=1,
    max_size=11,
)
"""How much later than the one before, whose, and its value."""


def check(query_text: str, rows: list[tuple[int, str, int]], jit: bool = False) -> bool:
    """Whether all were matched at once: not if those of a key came together."""
    time, events = 0, []
    for later, key, value in rows:
        time += later
        events.append(f"E@{time}(id={key}, x={value})")
    fields = {"name": "at once", "query": query_text, "events": " ".join(events)}
    case = case_of({**fields, "oracle": "none"}, "at once")
    case = replace(case, schema=replace(case.schema, type=None))
    query = bound(case)
    plan = plan_of(indexed(query), Setup(engine="automaton"))
    assert matches_at_once(plan)
    data = in_order(plan, with_index(query, case.events)).combine_chunks()
    engine = Engine(plan, data.schema, jit=jit)
    found = [
        match_of(query, row)
        for batch in engine.push(data.to_batches()[0], last=True)
        for row in batch.to_pylist()
    ]
    expected = matches(query, case.events)
    assert multiset(query, found) == multiset(query, expected)
    assert in_order_of_ends(query, found)
    return engine.tree.roots[0].whole


@pytest.mark.parametrize("after", ["", PAST_LAST])
@pytest.mark.parametrize("text", QUERIES)
@at_once
@given(rows=ROWS)
def test_the_oracle_agrees(text: str, after: str, rows: list[tuple[int, str, int]]) -> None:
    event(str(check(text + after, rows)))


def rising(rows: int) -> list[tuple[int, str, int]]:
    return [(1, str(n % 3), (n * n) % 5) for n in range(rows)]


@pytest.mark.some(4)
@pytest.mark.parametrize("text", [query + PAST_LAST for query in QUERIES])
def test_compiled_kernels_agree(text: str) -> None:
    assert check(text, rising(40), jit=True)


def test_events_of_a_key_that_come_together_are_matched_as_ever() -> None:
    together = [(1, "1", 1), (0, "1", 2), (1, "1", 3), (1, "1", 2)]
    assert not check(QUERIES[0], together)
    assert not check(QUERIES[0] + PAST_LAST, together)
    assert check(QUERIES[0], [(1, "1", 1), (0, "2", 2), (1, "1", 3), (1, "1", 2)])
    assert check(QUERIES[0], [(1, "1", 1), (0, "null", 2), (1, "1", 3), (1, "1", 2)])
