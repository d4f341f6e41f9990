"""Random queries in several threads: however a table is divided, the oracle's matches come out."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from cepheid.inprocess import execution, threads
from cepheid.inprocess.frames import EventTable
from cepheid.options import Options
from cepheid.planner import prepare
from tests.corpus.reader import Case, bound, cases
from tests.engine.harness import in_order_of_ends, indexed, match_of, multiset, with_index
from tests.examples import examples
from tests.properties.full_strategies import TimedQueries, full_cases

# Of types that no event has, and of ties: what a run says is tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

several = settings(
    max_examples=examples("threads"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check(case: Case, count: int) -> str:
    """How the work was divided."""
    query = bound(case)
    returning = indexed(query)
    schema = query.schema
    options = Options(schema.time, start=schema.start, threads=count, jit=False)
    prepared = prepare(returning, options)
    source = EventTable.of(with_index(query, case.events))
    # Two rows are enough for a thread, and windows may overlap as they like.
    with patch.object(threads, "LEAST_ROWS", 2), patch.object(threads, "_MOST_COPIED", 100):
        columns, batches = execution.run(prepared, source, options)
        rows = pa.Table.from_batches(batches, columns).to_pylist()
        table = source.read(source.schema.names).sort_by(schema.time)
        divided = threads.shares(prepared.plan, prepared.query, table, options)
    found = [match_of(query, row) for row in rows]
    assert multiset(query, found) == multiset(query, case.answer)
    assert in_order_of_ends(query, found)
    return type(divided[0]).__name__ if divided else "one thread"


@several
@given(full_cases(), st.integers(2, 4))
def test_threads_agree_with_the_oracle(case: Case, count: int) -> None:
    event(check(case, count))


@settings(several, max_examples=examples("threads", part=4))
@given(full_cases(kind=TimedQueries), st.integers(2, 4))
def test_negations_with_a_time_of_their_own(case: Case, count: int) -> None:
    event(check(case, count))


def test_cases_of_the_corpus() -> None:
    """Among them are keyed ones with AFTER MATCH, `->` without a window, and ties."""
    kinds = Counter[str]()
    for number, case in enumerate(cases()):
        if case.rows is None and ("[" in case.query_text or number % 5 == 0):
            kinds[check(case, 3)] += 1
    assert kinds["TimeSlice"] >= 50
    assert kinds["KeyShare"] >= 20
