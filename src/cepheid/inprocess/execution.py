"""The in-process runtime: one engine over all events, in one thread.

Tables are put in order here; an iterator of record batches is taken as it comes and must be in
order already, so that it may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.nested_columns import read_fields
from cepheid.algebra.types import STREAM_COLUMN
from cepheid.engine.end_of_data import end, last_moment
from cepheid.engine.match_schema import MATCH_END
from cepheid.engine.rows.clock import times, unplaced
from cepheid.engine.rows.event_types import types_in
from cepheid.engine.rows.order import in_order, key_by_key
from cepheid.engine.run import Engine
from cepheid.inprocess.frames import Batches, EventTable, Source
from cepheid.inprocess.merged_streams import slices
from cepheid.inprocess.notices import Notices
from cepheid.options import Options
from cepheid.plan.nodes import Plan
from cepheid.plan.profile import Profile
from cepheid.planner import Prepared
from cepheid.planner.adapt import Adapter
from cepheid.planner.planned import Planned


def run(
    prepared: Prepared,
    source: Source,
    options: Options,
    seen: Callable[[int], None] = lambda rows: None,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The matches' schema, and the matches as they are found.

    `seen` is called with the number of rows after every batch of events.
    """
    until = last_moment(options.until, prepared.plan)
    engine, batches, notices = _start(prepared, source, options)
    matches = _matches(engine, notices.watch(batches), seen, notices, until)
    return engine.schema, _by_end(engine, matches) if key_by_key(prepared.plan) else matches


def profile(prepared: Prepared, source: Source, options: Options) -> tuple[Profile, Planned]:
    """Run the query, drop its matches, and return what happened, and with which plan it ended."""
    until = last_moment(options.until, prepared.plan)
    engine, batches, notices = _start(prepared, source, options)
    for _ in _matches(engine, notices.watch(batches), lambda rows: None, notices, until):
        pass
    advisor = engine.advisor
    return engine.profile(), advisor.planned if isinstance(advisor, Adapter) else prepared.planned


def _start(
    prepared: Prepared, source: Source, options: Options
) -> tuple[Engine, Iterable[pa.RecordBatch], Notices]:
    """An engine, the events as it needs them, and who looks at them on their way. What can match
    nothing isn't read."""
    plan = prepared.plan
    schema = read_fields(source.schema, plan.required)
    needed = schema.names
    engine = prepared.engine(schema, options.jit)
    if prepared.query.nothing is not None:
        return engine, (), Notices(prepared.query, engine)
    if isinstance(source, Batches) and not key_by_key(plan):
        return engine, source.read(needed), Notices(prepared.query, engine)
    table = source.read(needed)
    if not isinstance(source, EventTable):
        table = pa.Table.from_batches(table, schema)
    table = in_order(plan, _named(plan, table))
    type_ = plan.schema.type
    present = None if type_ is None else lambda: types_in(table[type_])
    return engine, slices(table), Notices(prepared.query, engine, present)


def _by_end(engine: Engine, matches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Matches that were found key by key, in the order of their ends."""
    table = pa.Table.from_batches(matches, engine.schema)
    order = np.argsort(times(table[MATCH_END].combine_chunks()), kind="stable")
    yield from table.take(pa.array(order)).combine_chunks().to_batches()


def _named(plan: Plan, table: pa.Table) -> pa.Table:
    """Only the streams that FROM names, if it does: others don't count as events."""
    streams = plan.schema.streams
    if streams is None or plan.schema.others is not None:
        return table
    if set(pc.unique(table[STREAM_COLUMN]).to_pylist()) <= set(streams):
        return table
    return table.filter(pc.is_in(table[STREAM_COLUMN], value_set=pa.array(streams)))


def _matches(
    engine: Engine,
    batches: Iterable[pa.RecordBatch],
    seen: Callable[[int], None],
    notices: Notices,
    until: int | None,
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from engine.push(batch)
        seen(batch.num_rows)
        if engine.done:  # nothing more is read
            break
    yield from end(engine, until)
    notices.tell()


def rejected(table: pa.Table, time: str, start: str | None) -> pa.Table:
    """The rows that no query can place."""
    dead = unplaced(table, time, start)
    return table.slice(0, 0) if dead is None else table.filter(dead)
