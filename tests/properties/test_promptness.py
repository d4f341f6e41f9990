"""What is decided comes out with the batch that decides it: after every batch, wherever it was cut,
also between simultaneous events, the matches are those of the events so far."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from cepheid.algebra.query import BoundQuery, Clock
from cepheid.engine.automaton.compiler import compile_pattern
from cepheid.engine.rows.order import in_order
from cepheid.errors import UnsupportedError
from cepheid.plan.nodes import Automaton, Plan, waits, walk
from tests.corpus.reader import Case, bound
from tests.engine.harness import INDEX, Setup, cut, indexed, match_of, multiset, plan_of, with_index
from tests.examples import examples
from tests.oracle.match import matches
from tests.properties.full_strategies import PartedQueries, full_cases
from tests.properties.test_resuming import TURNS, Resuming

CUTS = st.lists(st.integers(1, 3), min_size=1, max_size=3)

often = settings(
    max_examples=examples("promptness"),
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)


def is_prompt(query: BoundQuery, plan: Plan) -> bool:
    """Whether nothing in the plan waits for a later event."""
    nodes = [node for root in plan.alternatives for node in walk(root)]
    programs = (
        compile_pattern(node, windowed=True, in_time=True, lasting=False)
        for node in nodes
        if isinstance(node, Automaton)
    )
    waiting = any(waits(node) for node in nodes if not isinstance(node, Automaton))
    return query.selection is None and all(p.prompt for p in programs) and not waiting


def check(case: Case, setup: Setup, turns: list[str]) -> None:
    query = bound(case)
    assume(not (query.key and query.window and query.window.clock is Clock.EVENTS))
    try:
        plan = plan_of(indexed(query), setup)
    except UnsupportedError:
        reject()
    assume(is_prompt(query, plan))
    data = in_order(plan, with_index(query, case.events))
    events = [case.events[n] for n in data[INDEX].to_pylist()]
    resuming, count = Resuming(plan, data.schema, setup), 0
    for number, batch in enumerate(cut(data, setup.cuts)):
        resuming.turn(batch, None, turns[number % len(turns)])
        count += batch.num_rows
        found = [match_of(query, row) for row in resuming.rows]
        assert multiset(query, found) == multiset(query, matches(query, events[:count]))


@often
@given(full_cases(), CUTS, TURNS)
def test_automata(case: Case, cuts: list[int], turns: list[str]) -> None:
    check(case, Setup(engine="automaton", cuts=tuple(cuts)), turns)


@often
@given(full_cases(kind=PartedQueries), CUTS, TURNS)
def test_automata_below_joins(case: Case, cuts: list[int], turns: list[str]) -> None:
    check(case, Setup(engine="mixed", cuts=tuple(cuts)), turns)
