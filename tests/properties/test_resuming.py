"""Engines that stop after any batch and go on elsewhere, from what was saved: no match is lost,
and none comes twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from cepheid.algebra.query import BoundQuery, Clock
from cepheid.engine.rows.order import in_order
from cepheid.engine.run import Engine
from cepheid.engine.state import LoadedRows, as_table, from_table
from cepheid.errors import UnsupportedError
from cepheid.plan.nodes import Plan
from tests.corpus.reader import Case, bound
from tests.engine.harness import (
    Setup,
    cut,
    indexed,
    match_of,
    multiset,
    plan_of,
    with_index,
)
from tests.examples import examples
from tests.oracle.events import Event, Match
from tests.oracle.match import matches
from tests.properties.full_strategies import full_cases
from tests.properties.strategies import cases
from tests.properties.test_engine import setups as tree_setups
from tests.properties.test_full import setups as full_setups

TURNS = st.lists(st.sampled_from(("stay", "anew", "stale")), min_size=1, max_size=4)
"""After a batch: go on with the same engine, with a new one, or with the one before the last."""

relaxed = settings(
    max_examples=examples("resumed"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Resuming:
    """Runs a plan with several engines in turn."""

    def __init__(self, plan: Plan, schema: pa.Schema, setup: Setup) -> None:
        self.plan, self.schema, self.setup = plan, schema, setup
        self.saved: list[pa.Table] = []
        self.engines = [self.engine()]
        self.rows: list[dict[str, Any]] = []

    def engine(self) -> tuple[Engine, list[LoadedRows]]:
        journal: list[LoadedRows] = []
        engine = Engine(
            self.plan,
            self.schema,
            jit=False,
            round_size=self.setup.round_size,
            compile_at=0,
            journal=journal,
        )
        return engine, journal

    def turn(self, batch: pa.RecordBatch, heartbeat: int | None, turn: str) -> None:
        engine, journal = self.engines[-1]
        for found in engine.push(batch):
            self.rows += found.to_pylist()
        if heartbeat is not None:
            for found in engine.advance(heartbeat):
                self.rows += found.to_pylist()
        names = engine.context.store.names
        self.saved += [as_table(loaded, names) for loaded in journal]
        journal.clear()
        if turn == "anew" or len(self.engines) == 1:
            self.engines.append(self.engine())
            self.resume(0)
        elif turn == "stale":
            self.engines.append(self.engines.pop(-2))
            self.resume(self.end)

    @property
    def end(self) -> int:
        store = self.engines[-1][0].context.store
        return store.base + store.n

    def resume(self, begin: int) -> None:
        state = self.engines[-2][0].save()
        first, loaded = 0, []
        for table in self.saved:
            part = table.slice(max(0, max(begin, state.base) - first))
            if part.num_rows:
                loaded.append(from_table(part, len(self.engines[-1][0].leaves)))
            first += table.num_rows
        self.engines[-1][0].resume(state, loaded)


def run(
    query: BoundQuery, events: Sequence[Event], setup: Setup, turns: Sequence[str], beat: bool
) -> list[Match]:
    plan = plan_of(indexed(query), setup)
    data = in_order(plan, with_index(query, events))
    times = data[query.schema.time].to_pylist()
    resuming, done = Resuming(plan, data.schema, setup), 0
    for number, batch in enumerate(cut(data, setup.cuts)):
        done += batch.num_rows
        following = times[done] if done < len(times) else None
        # What comes next isn't earlier than its time, and nothing of the time before is missing.
        moved = following is not None and following > times[done - 1]
        heartbeat = following - 1 if beat and moved and isinstance(following, int) else None
        resuming.turn(batch, heartbeat, turns[number % len(turns)])
    for found in resuming.engines[-1][0].finish():
        resuming.rows += found.to_pylist()
    return [match_of(query, row) for row in resuming.rows]


def check(case: Case, setup: Setup, turns: Sequence[str], beat: bool) -> None:
    query = bound(case)
    window = query.window
    if window is not None and window.clock is Clock.EVENTS and query.key:
        reject()  # comes key by key, each of which has an engine of its own
    try:
        found = run(query, case.events, setup, turns, beat)
    except UnsupportedError:
        reject()
    assert multiset(query, found) == multiset(query, matches(query, case.events))


@relaxed
@given(full_cases(), full_setups(), TURNS, st.booleans())
def test_any_query(case: Case, setup: Setup, turns: list[str], beat: bool) -> None:
    check(case, setup, turns, beat)


@settings(relaxed, max_examples=examples("resumed", part=2))
@given(full_cases(lasting=True), full_setups(), TURNS, st.booleans())
def test_events_with_a_duration(case: Case, setup: Setup, turns: list[str], beat: bool) -> None:
    check(case, setup, turns, beat)


@settings(relaxed, max_examples=examples("resumed", part=2))
@given(st.data(), TURNS, st.booleans())
def test_joins_and_stacks(data: st.DataObject, turns: list[str], beat: bool) -> None:
    case = data.draw(cases())
    check(case, data.draw(tree_setups(case)), turns, beat)
