"""Queries on endless data that read the results of others, and what they need to know of those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from cepheid.algebra.nested_columns import read_fields
from cepheid.algebra.schemas import Input
from cepheid.algebra.types import START_COLUMN, STREAM_COLUMN, TIME_COLUMN
from cepheid.answers.answer_rows import AnswerRows
from cepheid.engine.match_schema import output_schema
from cepheid.errors import UnsupportedError
from cepheid.planner import Prepared
from cepheid.planner.bounds import known_after


@dataclass(frozen=True)
class ChainedQuery:
    """A query of a chain, or one by itself. `columns` are those of the rows that it reads. If it
    reads matches of others, by their `labels`, `inputs` says what each stream is, and `lag` by how
    much of time matches may be known after their end."""

    name: str
    prepared: Prepared
    columns: pa.Schema
    base: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    inputs: Mapping[str, Input] = field(default_factory=dict)
    lag: int = 0

    @property
    def known_after(self) -> int | None:
        """How far time has to pass the end of a match until it is known here; None if no time
        bounds that."""
        after_events = known_after(self.prepared.query)
        return None if after_events is None else self.lag + after_events


def result_schema(prepared: Prepared, events: pa.Schema) -> pa.Schema:
    """The columns of the matches, or of the answers, given those of the events."""
    matches = _matches(prepared, events)
    shape = prepared.query.answers
    return matches if shape is None else AnswerRows(shape, matches).schema


def _matches(prepared: Prepared, events: pa.Schema) -> pa.Schema:
    return output_schema(prepared.plan, read_fields(events, prepared.plan.required))


def results_known_after(label: str, prepared: Prepared, events: pa.Schema) -> int:
    """How far time has to pass the end of a result until it is known; an error if no time bounds
    that."""
    shape = prepared.query.answers
    if shape is not None and AnswerRows(shape, _matches(prepared, events)).has_empty:
        raise UnsupportedError(
            f"answers of `{label}` about windows without matches are known only with the next "
            "match, so nothing can read them on data that may never end: leave them out with "
            "HAVING count(*) > 0 after GROUP BY, or group by an attribute, too"
        )
    known = known_after(prepared.query)
    if known is None:
        raise UnsupportedError(
            f"no time bounds when matches of `{label}` are known, so nothing can read them on data "
            "that may never end: give it a window of time, or end its pattern with an event"
        )
    return known


def merge_inputs(
    streams: Mapping[str, pa.Table], inputs: Mapping[str, Input], schema: pa.Schema
) -> pa.Table:
    """Streams of events and of matches as one table (see `algebra.schemas.bind_inputs`)."""
    tables = []
    for name, input_ in inputs.items():
        table = streams[name]
        given = dict(zip(table.column_names, table.columns, strict=True))
        given[TIME_COLUMN], given[START_COLUMN] = (
            table[input_.time],
            table[input_.start or input_.time],
        )
        if input_.type is None:
            given[STREAM_COLUMN] = pa.chunked_array([pa.repeat(pa.scalar(name), table.num_rows)])
        else:
            given[STREAM_COLUMN] = table[input_.type]
        columns = [
            given[f.name].cast(f.type) if f.name in given else pa.nulls(table.num_rows, f.type)
            for f in schema
        ]
        tables.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(tables)
