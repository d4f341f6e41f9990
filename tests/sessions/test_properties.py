"""Random queries over random streams in sessions, cut, shuffled and resumed at random: the matches
are the oracle's."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from cepheid.algebra.query import BoundQuery
from cepheid.errors import PlanError, QueryError, UnsupportedError
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Source
from cepheid.options import Limit, Options
from cepheid.planner import Prepared, prepare
from cepheid.planner.bounds import require_bounds
from cepheid.sessions.query_runs import QueryRuns
from cepheid.sessions.session import Session, resumed
from cepheid.sessions.session_events import EventColumns
from cepheid.streaming.chained_query import ChainedQuery
from tests.corpus.reader import Case, bound
from tests.engine.harness import indexed, match_of, multiset, with_index
from tests.examples import examples
from tests.properties.construct_strategies import construct_cases
from tests.properties.full_strategies import full_cases
from tests.properties.strategies import cases

relaxed = settings(
    max_examples=examples("sessions"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@dataclass(frozen=True)
class Way:
    """How events come: `most` of a push, late by up to `delay`; how often there are heartbeats, and
    how often the session is saved and goes on elsewhere."""

    seed: int
    most: int
    delay: int | None
    beats: float
    moves: float


WAYS = st.builds(
    Way,
    seed=st.integers(0, 1 << 16),
    most=st.sampled_from((1, 2, 5, 100)),
    delay=st.none() | st.integers(0, 6),
    beats=st.sampled_from((0.0, 0.5)),
    moves=st.sampled_from((0.0, 0.3, 1.0)),
)
ENGINES = st.sampled_from(("auto", "tree", "nfa"))


class Driven:
    """A query in a session that is opened anew whenever it is saved."""

    def __init__(self, prepared: Prepared, schema: pa.Schema, way: Way) -> None:
        self.columns = EventColumns(schema, schema, prepared.query.schema)
        self.options = Options(prepared.schema.time, delay=way.delay, jit=False)
        self.prepared, self.way = prepared, way
        self.random = random.Random(way.seed)
        self.session = self.opened()
        self.rows: list[dict[str, Any]] = []

    def opened(self) -> Session:
        part = ChainedQuery("q", self.prepared, self.columns.plain)
        runs = QueryRuns([part], ["q"], self.options, alone=True)
        return Session(runs, self.columns, self.options)

    def take(self, found: pa.Table) -> None:
        ends = found["match_end"].to_pylist()
        assert ends == sorted(ends)
        self.rows += found.to_pylist()

    def run(self, data: pa.Table, arrivals: list[int]) -> None:
        begin = 0
        while begin < data.num_rows:
            size = self.random.randint(0, self.way.most)
            if self.random.random() < self.way.beats:
                self.take(self.session.advance(arrivals[begin]))
            self.take(self.session.push(data.slice(begin, size)))
            if self.random.random() < self.way.moves:
                self.session = resumed(self.opened(), self.session.save())
            begin += size
        self.take(self.session.close())


def prepared_for(case: Case, engine: str) -> Prepared:
    query = bound(case)
    if any(event.values[case.schema.time] is None for event in case.events):
        reject()
    try:
        require_bounds(query, Limit(total=1000), Span(0, 0), Source("", ""))
        return prepare(indexed(query), Options(query.schema.time, engine=engine))
    except (PlanError, QueryError, UnsupportedError):
        reject()


def arranged(query: BoundQuery, data: pa.Table, way: Way) -> tuple[pa.Table, list[int]]:
    """The events as they come, and when. Those of one time stay together, as they are ordered."""
    chance = random.Random(way.seed)
    times = data[query.schema.time].to_pylist()
    later = {t: t + (chance.randrange(way.delay) if way.delay else 0) for t in sorted(set(times))}
    columns = [data[name].to_pylist() for name in query.schema.order]
    places = [[(v is not None, v) for v in row] for row in zip(*columns, strict=True)]
    order = sorted(range(len(times)), key=lambda n: (later[times[n]], places[n], n))
    return data.take(pa.array(order, pa.int64())), [later[times[n]] for n in order]


def check(case: Case, way: Way, engine: str) -> None:
    query, prepared = bound(case), prepared_for(case, engine)
    data, arrivals = arranged(query, with_index(query, case.events), way)
    try:
        driven = Driven(prepared, data.schema, way)
    except UnsupportedError:
        reject()
    driven.run(data, arrivals)
    found = multiset(query, [match_of(query, row) for row in driven.rows])
    assert found == multiset(query, case.answer)
    status = driven.session.status
    assert (status.events, status.late, status.matches) == (data.num_rows, 0, len(driven.rows))


@relaxed
@given(full_cases(), WAYS, ENGINES)
def test_any_query(case: Case, way: Way, engine: str) -> None:
    check(case, way, engine)


@relaxed
@given(construct_cases(), WAYS, ENGINES)
def test_every_construct(case: Case, way: Way, engine: str) -> None:
    check(case, way, engine)


@settings(relaxed, max_examples=examples("sessions", part=3))
@given(full_cases(lasting=True), WAYS, ENGINES)
def test_events_with_a_duration(case: Case, way: Way, engine: str) -> None:
    check(case, way, engine)


@settings(relaxed, max_examples=examples("sessions", part=3))
@given(cases(), WAYS, ENGINES)
def test_joins_and_stacks(case: Case, way: Way, engine: str) -> None:
    check(case, way, engine)
