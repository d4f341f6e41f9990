"""The in-process runtime: one engine over all events, or one for each share of a large table.

Tables are put in order here; an iterator of record batches is taken as it comes and must be in
order already, so that it may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.nested_columns import read_fields
from cepheid.algebra.types import STREAM_COLUMN
from cepheid.answers import AnswerFold
from cepheid.answers.counted.counting_engine import CountingEngine
from cepheid.answers.engine_answers import (
    fold_found,
    known_answers,
    last_answers,
    new_fold,
)
from cepheid.engine.end_of_data import end, last_moment
from cepheid.engine.rows.clock import unplaced
from cepheid.engine.rows.event_types import types_in
from cepheid.engine.rows.order import in_order, key_by_key
from cepheid.engine.run import Engine
from cepheid.inprocess.disorder import delay_ticks
from cepheid.inprocess.frames import EventTable, Source
from cepheid.inprocess.merged_streams import slices
from cepheid.inprocess.notices import Notices
from cepheid.inprocess.threads import Engines, Share, by_end, shares
from cepheid.options import Options
from cepheid.plan.nodes import Plan
from cepheid.plan.profile import Profile
from cepheid.planner import Prepared
from cepheid.planner.adapt import Adapter
from cepheid.planner.planned import Planned

AnyEngine = TypeVar("AnyEngine", bound=Engine | CountingEngine)


def run(
    prepared: Prepared,
    source: Source,
    options: Options,
    seen: Callable[[int], None] = lambda rows: None,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema of the matches, or answers, and those as they are found.

    `seen` is called with the number of rows after every batch of events.
    """
    until = last_moment(options.until, prepared.plan)
    plan, query = prepared.plan, prepared.query
    table = _whole(prepared, source)
    if table is not None:
        placed = _placed(plan, table)
        if divided := shares(plan, query, placed, options):
            new = partial(prepared.engine, table.schema, options.jit)
            rejected = table.num_rows - placed.num_rows
            engines = Engines(new, options.threads, table.num_rows, rejected)
            notices = Notices(query, engines, _present(plan, table))
            return engines.schema, _in_threads(engines, placed, divided, seen, notices)
    if query.answers is not None:
        counted = prepared.counted(prompt=table is None)
        answering, batches, notices = _start(
            prepared, (counted or prepared).engine, source, table, options
        )
        fold = new_fold(query.answers, answering, options.limit)
        return fold.schema, _answers(fold, answering, batches, seen, notices, until)
    engine, batches, notices = _start(prepared, prepared.engine, source, table, options)
    matches = _matches(engine, batches, seen, notices, until)
    return engine.schema, by_end(engine.schema, matches) if key_by_key(plan) else matches


def profile(
    prepared: Prepared,
    source: Source,
    options: Options,
    take: Callable[[pa.RecordBatch], None] = lambda matches: None,
) -> tuple[Profile, Planned]:
    """Run the query in one thread, and return its profile and its last plan. `take` is called with
    its matches."""
    until = last_moment(options.until, prepared.plan)
    table = _whole(prepared, source)
    engine, batches, notices = _start(prepared, prepared.engine, source, table, options)
    for matches in _matches(engine, batches, lambda rows: None, notices, until):
        take(matches)
    advisor = engine.advisor
    return engine.profile(), advisor.planned if isinstance(advisor, Adapter) else prepared.planned


def warm(prepared: Prepared, sample: EventTable, options: Options) -> int:
    """Have the kernels of the plan compiled and kept on disk; returns how many weren't."""
    table = _whole(prepared, sample)
    if table is None:
        return 0
    engine = prepared.engine(table.schema, options.jit)
    return engine.warm(next(iter(slices(_placed(prepared.plan, table))), _no_events(table)))


def _no_events(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], table.schema)


def _whole(prepared: Prepared, source: Source) -> pa.Table | None:
    """All events in order, if they are in memory, and the query can match something."""
    if not isinstance(source, EventTable) or prepared.query.nothing is not None:
        return None
    plan = prepared.plan
    table = source.read(read_fields(source.schema, plan.required).names)
    return in_order(plan, named_streams(plan, table))


def _start(
    prepared: Prepared,
    new_engine: Callable[[pa.Schema, bool], AnyEngine],
    source: Source,
    table: pa.Table | None,
    options: Options,
) -> tuple[AnyEngine, Iterable[pa.RecordBatch | int], Notices]:
    """An engine, its input batches with the times that are reached between them, and the observer
    of the batches. A query that can match nothing reads no events."""
    plan = prepared.plan
    schema = read_fields(source.schema, plan.required)
    engine = new_engine(schema, options.jit)
    if prepared.query.nothing is not None:
        return engine, (), Notices(prepared.query, engine)
    if not isinstance(source, EventTable):
        delay = delay_ticks(options, plan.schema)
        items = source.timed(schema.names, plan.schema, delay, partial(_count_late, engine))
        if not key_by_key(plan):
            return engine, items, Notices(prepared.query, engine)
        batches = (item for item in items if not isinstance(item, int))
        table = in_order(plan, named_streams(plan, pa.Table.from_batches(batches, schema)))
    assert table is not None
    return engine, slices(table), Notices(prepared.query, engine, _present(plan, table))


def _present(plan: Plan, table: pa.Table) -> Callable[[], Iterable[str]] | None:
    """Returns the types of the events; None if events have no types."""
    type_ = plan.schema.type
    return None if type_ is None else lambda: types_in(table[type_])


def _placed(plan: Plan, table: pa.Table) -> pa.Table:
    """The rows with a valid time."""
    dead = unplaced(table, plan.schema.time, plan.schema.start)
    return table if dead is None else table.filter(pc.invert(dead))


def _in_threads(
    engines: Engines,
    table: pa.Table,
    divided: Sequence[Share],
    seen: Callable[[int], None],
    notices: Notices,
) -> Iterator[pa.RecordBatch]:
    yield from engines.matches(table, divided, seen)
    for batch in slices(table):
        notices.look(batch)
    notices.tell()


def _count_late(engine: Engine | CountingEngine, rows: int) -> None:
    engine.counts.late += rows


def _answers(
    fold: AnswerFold,
    engine: Engine | CountingEngine,
    items: Iterable[pa.RecordBatch | int],
    seen: Callable[[int], None],
    notices: Notices,
    until: int | None,
) -> Iterator[pa.RecordBatch]:
    """What the matches come to; each answer as soon as no match can change it."""
    if isinstance(engine, Engine) and key_by_key(engine.plan):
        for matches in by_end(engine.schema, _matches(engine, items, seen, notices, until)):
            fold.push(matches)
        yield from fold.finish()
        return
    for batch in items:
        if isinstance(batch, int):
            found = engine.advance(batch - 1)  # more events of this time may come
        else:
            notices.look(batch)
            found = engine.push(batch)
        for part in found:
            fold_found(fold, engine, part)
        if not isinstance(batch, int):
            seen(batch.num_rows)
        yield from known_answers(fold, engine)
        if engine.done or fold.done:  # nothing more is read
            break
    yield from last_answers(fold, engine, until)
    notices.tell()


def named_streams(plan: Plan, table: pa.Table) -> pa.Table:
    """Keep only the streams that FROM names, if it does: others don't count as events."""
    streams = plan.schema.streams
    if streams is None or plan.schema.others is not None:
        return table
    if set(pc.unique(table[STREAM_COLUMN]).to_pylist()) <= set(streams):
        return table
    return table.filter(pc.is_in(table[STREAM_COLUMN], value_set=pa.array(streams)))


def _matches(
    engine: Engine,
    items: Iterable[pa.RecordBatch | int],
    seen: Callable[[int], None],
    notices: Notices,
    until: int | None,
) -> Iterator[pa.RecordBatch]:
    for batch in items:
        if isinstance(batch, int):
            yield from engine.advance(batch - 1)  # more events of this time may come
            continue
        notices.look(batch)
        yield from engine.push(batch)
        seen(batch.num_rows)
        if engine.done:  # nothing more is read
            break
    yield from end(engine, until)
    notices.tell()


def rejected(table: pa.Table, time: str, start: str | None) -> pa.Table:
    """The rows without a valid time."""
    dead = unplaced(table, time, start)
    return table.slice(0, 0) if dead is None else table.filter(dead)
