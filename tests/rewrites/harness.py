"""Matches of a rewritten query, in the names of the query as it was written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.algebra.expressions import Whole
from cepheid.algebra.patterns import positive
from cepheid.algebra.query import BoundQuery, Kind, Output
from cepheid.algebra.types import Type
from cepheid.engine.rows.order import in_order
from cepheid.engine.run import Engine
from cepheid.planner import automaton_plan, make_plan
from cepheid.planner.automata.automaton_needs import needs_automaton
from tests.corpus.reader import table
from tests.engine.harness import INDEX, multiset
from tests.oracle.events import Binding, Event, Match
from tests.oracle.match import matches


def by_oracle(
    query: BoundQuery, events: Sequence[Event], written: BoundQuery | None = None
) -> Counter[tuple[Any, ...]]:
    """The oracle's matches; a query known to match nothing has none, by definition."""
    written = written or query
    found = [] if query.nothing is not None else matches(query, events)
    return multiset(written, (_as_written(m, query, written) for m in found))


def _as_written(match: Match, query: BoundQuery, written: BoundQuery) -> Match:
    bindings: dict[str, Binding] = {}
    for name in positive(written.pattern):
        called = [r for r in query.renamed if r.name == name]
        taken = [r for r in called if any(match.bindings.get(w) is not None for w in r.within)]
        assert len(taken) <= 1, "a name is one event"
        if called:
            bindings[name] = match.bindings[taken[0].variable] if taken else None
        else:
            bindings[name] = match.bindings.get(name)
    return Match(bindings, match.start, match.end)


def by_engine(
    query: BoundQuery, events: Sequence[Event], written: BoundQuery, shape: str = "left-deep"
) -> Counter[tuple[Any, ...]]:
    """The engine's matches of the rewritten query, as RETURN shows them."""
    if query.nothing is not None:
        return Counter()
    automaton = needs_automaton(query.pattern) is not None
    plan = automaton_plan(query) if automaton else make_plan(query, shape)
    schema = replace(plan.schema, columns={**plan.schema.columns, INDEX: Type.INTEGER})
    outputs = tuple(Output(v, Whole(v, (INDEX,))) for v in positive(written.pattern))
    plan = replace(plan, outputs=outputs, schema=schema, required=(*plan.required, INDEX))
    data = table(query.schema, events)
    data = data.append_column(INDEX, pa.array(np.arange(len(events))))
    engine = Engine(plan, data.schema, jit=False)
    rows: list[dict[str, Any]] = []
    for batch in in_order(plan, data).combine_chunks().to_batches():
        rows += _rows(engine.push(batch))
    rows += _rows(engine.finish())
    return multiset(written, (_from_row(row, written) for row in rows))


def _rows(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def _from_row(row: dict[str, Any], written: BoundQuery) -> Match:
    bindings: dict[str, Binding] = {}
    for name in positive(written.pattern):
        match value := row[name]:
            case list():
                bindings[name] = tuple(element[INDEX] for element in value)
            case dict():
                single = written.variables[name].kind is Kind.SINGLE
                bindings[name] = value[INDEX] if single else (value[INDEX],)
            case _:
                bindings[name] = None
    return Match(bindings, row["match_start"], row["match_end"])
