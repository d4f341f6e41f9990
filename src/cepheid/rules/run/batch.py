"""Rules over events: one pass for all that are merged in a group, one for each other query, or for
a few that are joined."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.scope import types_of
from cepheid.engine.attribution.json_rows import RULE, found_schema
from cepheid.engine.attribution.owners import found_by_each
from cepheid.engine.clock import times
from cepheid.engine.event_types import misspelled, types_in
from cepheid.engine.match_schema import MATCH_END
from cepheid.engine.merged.group import matches
from cepheid.engine.order import sorted_by
from cepheid.errors import DataError
from cepheid.inprocess import execution
from cepheid.inprocess.frames import EventTable, as_table, like, may_be_endless, to_arrow
from cepheid.inprocess.merge import merged, slices, streams_of
from cepheid.inprocess.notices import finer, is_finer, made_simultaneous
from cepheid.options import Options, refuse_dead_letters
from cepheid.rules.compile.compiler import Compiled, compile_rules, naming
from cepheid.rules.load.check import columns_of
from cepheid.rules.placement.cost import Ground
from cepheid.rules.placement.split import Placed, passes_of
from cepheid.rules.run.stream import match_stream
from cepheid.rules.template import Template

if TYPE_CHECKING:
    from cepheid.spark.rules import Frame


def match_local(templates: tuple[Template, ...], data: Any, options: Options) -> Any:
    """The matches of all rules, in the order of their ends, as the same kind of data."""
    refuse_dead_letters(options)
    named = isinstance(data, Mapping)
    sources = streams_of(data) if named else {"": to_arrow(data)}
    if may_be_endless(sources):
        raise DataError(
            "rules read the same events several times, which an iterator gives only once: pass a "
            "table, a frame, or a list of record batches"
        )
    tables = {name: as_table(source) for name, source in sources.items()}
    schemas = {name: table.schema for name, table in tables.items()}
    compiled = compile_rules(templates, schemas if named else schemas[""], options)
    table = as_table(merged(tables, options))
    schema = found_schema(compiled.rules, _plain(table.schema.field(options.time).type))
    _warn(templates, table, options)
    found = pa.Table.from_batches(run(compiled, table, schema, options), schema)
    order = np.argsort(times(found[MATCH_END].combine_chunks()), kind="stable")
    return like(data, schema, iter(found.take(pa.array(order)).to_batches()))


def _warn(templates: tuple[Template, ...], table: pa.Table, options: Options) -> None:
    """Say what there is to say of the events, once for all rules."""
    rejected = execution.rejected(table, options.time, options.start).num_rows
    if rejected:
        warnings.warn(
            f"{rejected} of {table.num_rows} events have no time and were left out; "
            "cepheid.rejected(data, time=...) shows them",
            stacklevel=4,
        )
    time = table[options.time]
    if is_finer(time.type) and options.tie is None:
        moments = time.drop_null().combine_chunks()
        count = made_simultaneous(moments.take(pc.sort_indices(moments)))
        if count:
            warnings.warn(finer(count, table.num_rows, options.time), stacklevel=4)
    if options.type is not None and table.num_rows:
        # Some rules may well be about types that are missing for once.
        present = types_in(table[options.type])
        for template in templates:
            named = types_of(template.query.syntax.pattern)
            for message in misspelled(named, present, options.type):
                warnings.warn(f"{template.name}: {message}", stacklevel=4)


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def run(
    compiled: Compiled, table: pa.Table, schema: pa.Schema, options: Options
) -> Iterator[pa.RecordBatch]:
    """The matches of the rules in a table of events."""
    with warnings.catch_warnings():
        for told in (".*have no time", ".*than a microsecond", "no event is of type"):
            warnings.filterwarnings("ignore", message=told)  # said once, for all rules
        for group in compiled.groups:
            rows = sorted_by(table.select(group.required), group.query.schema.order)
            yield from matches(group, compiled.rules, schema, slices(rows), options.jit)
        for one in compiled.runs:
            with naming(compiled.rules[RULE][one.members[0].rules[0]]):
                _, batches = execution.run(one.prepared, EventTable.of(table), options)
            for batch in batches:
                yield found_by_each(compiled.rules, one.attributions, batch, schema)


def match_spark(templates: tuple[Template, ...], data: Any, options: Options) -> Any:
    """The matches of all rules as one DataFrame: a shuffle for all rules of a pass."""
    from cepheid.spark import rules as on_spark
    from cepheid.spark.batch import frames_of, match_prepared

    if any(frame.isStreaming for frame in frames_of(data)):
        return match_stream(templates, data, options)
    refuse_dead_letters(options)
    frame = on_spark.read(data, options)
    compiled = compile_rules(templates, columns_of(data), options, by_key=True)
    schema = found_schema(compiled.rules, frame.schema.field(options.time).type)
    times = _times(compiled, frame, options)
    found = [
        on_spark.match_group(frame, one.parts, compiled.rules, schema, options, times)
        for one in _placed(compiled, frame, times, options)
    ]
    for one in compiled.runs:
        own = match_prepared(one.prepared, data, options)
        found.append(on_spark.as_found(own, one.attributions, compiled.rules, schema))
    return on_spark.union(frame, found, schema)


def passes(compiled: Compiled, data: Any, options: Options) -> tuple[Placed, ...] | None:
    """How `match_spark` runs the rules that share passes. Those of a stream aren't placed: their
    state is in buckets."""
    from cepheid.spark import rules as on_spark
    from cepheid.spark.batch import frames_of

    if any(frame.isStreaming for frame in frames_of(data)):
        return None
    frame = on_spark.read(data, options)
    return _placed(compiled, frame, _times(compiled, frame, options), options)


def _times(compiled: Compiled, frame: Frame, options: Options) -> tuple[int, int] | None:
    """The first and the last, which a job has to find out, if slices may be made of them."""
    from cepheid.spark import rules as on_spark

    sliced = any(group.key is None and not group.single for group in compiled.groups)
    joined = options.placement == "one" and len(compiled.groups) > 1
    return on_spark.span(frame, options) if sliced or joined else None


def _placed(
    compiled: Compiled, frame: Frame, times: tuple[int, int] | None, options: Options
) -> tuple[Placed, ...]:
    from cepheid.spark import rules as on_spark

    cores, partitions = on_spark.tasks(frame, options)
    length = None if times is None else times[1] - times[0] + 1
    return passes_of(compiled.groups, Ground(cores, partitions, length), options.placement)
