"""Runs a query that returns answers in process, over events cut into batches."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cepheid.algebra.query import BoundQuery
from cepheid.answers.counted.countable import Way, steps_of, ways
from cepheid.answers.counted.counting_automaton import NotCounted
from cepheid.answers.counted.step_rows import step_classes
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.inprocess.execution import run
from cepheid.inprocess.frames import Batches, EventTable, Source
from cepheid.options import Options
from cepheid.planner import Prepared, prepare
from cepheid.planner.aggregation import Aggregation
from tests.corpus.reader import table
from tests.engine.harness import cut
from tests.oracle.events import Event


def answered(
    query: BoundQuery,
    events: Sequence[Event],
    cuts: tuple[int, ...] | None = (1 << 20,),
    way: Way | int | None = None,
    **named: Any,
) -> list[dict[str, Any]]:
    """The answers, without their start and end as events. Without cuts the events are a table,
    whose matches are counted where that is possible: in this way, if there is one given."""
    options = Options(query.schema.time, jit=False, **named)
    prepared = prepare(query, options)
    if isinstance(way, int):
        prepared = counted_by(prepared, way)
    elif way is not None:
        chosen = Aggregation(way, 0.0, 0.0)
        prepared = replace(prepared, aggregation=chosen, prompt_aggregation=chosen)
    data = prepared.in_order(table(query.schema, events))
    source: Source = EventTable.of(data)
    if cuts is not None:
        nothing = pa.RecordBatch.from_pylist([], data.schema)
        source = Batches(list(cut(data, cuts)) or [nothing])
    schema, batches = run(prepared, source, options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no event is of type")
        rows = [row for batch in batches for row in batch.to_pylist()]
    assert schema.names[-2:] == [MATCH_START, MATCH_END]
    assert all(row.pop(MATCH_START) == row[MATCH_END] for row in rows)
    ends = [end for row in rows if (end := row.pop(MATCH_END)) is not None]
    assert ends == sorted(ends) or query.answers is None or query.answers.window is None
    return rows


def counted_by(prepared: Prepared, number: int) -> Prepared:
    """The same query, counted in one of the ways that there are, whatever it costs."""
    query = prepared.query
    try:
        choices = ways(query)
        way = choices[number % len(choices)]
        step_classes(query, prepared.plan, steps_of(way))
    except NotCounted:
        return prepared
    chosen = Aggregation(way, 0.0, 0.0)
    return replace(prepared, aggregation=chosen, prompt_aggregation=chosen)


def uncounted(query: BoundQuery) -> str | None:
    """Why matches have to be found; None if they can be counted."""
    try:
        ways(query)
    except NotCounted as reason:
        return str(reason)
    return None
