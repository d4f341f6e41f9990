"""Rules over events of this process: one pass for all that are merged, one for each other query."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid import local
from cepheid.engine.clock import times
from cepheid.engine.merged.found import found_rows, found_schema
from cepheid.engine.merged.machine import Machine
from cepheid.engine.order import sorted_by
from cepheid.engine.output import MATCH_END
from cepheid.errors import DataError
from cepheid.options import Options
from cepheid.rules.compiling import Compiled, Group, compile_rules
from cepheid.rules.template import Template
from cepheid.schemas import bind_streams


def match_local(templates: tuple[Template, ...], data: Any, options: Options) -> Any:
    """The matches of all rules, in the order of their ends, as the same kind of data."""
    named = isinstance(data, Mapping)
    sources = {n: local.to_arrow(d) for n, d in (data if named else {"": data}).items()}
    if local.may_be_endless(sources):
        raise DataError(
            "rules read the same events several times, which an iterator gives only once: pass a "
            "table, a frame, or a list of record batches"
        )
    tables = {name: local.as_table(source) for name, source in sources.items()}
    schemas = {name: table.schema for name, table in tables.items()}
    compiled = compile_rules(templates, schemas if named else schemas[""], options)
    table = tables[""] if not named else local.merge(tables, bind_streams(schemas, options)[0])
    schema = found_schema(compiled.rules, _plain(table.schema.field(options.time).type))
    _warn_of_rejected(table, options)
    found = pa.Table.from_batches(run(compiled, table, schema, options), schema)
    order = np.argsort(times(found[MATCH_END].combine_chunks()), kind="stable")
    return local.like(data, schema, iter(found.take(pa.array(order)).to_batches()))


def _warn_of_rejected(table: pa.Table, options: Options) -> None:
    rejected = local.rejected(table, options.time, options.start).num_rows
    if rejected:
        warnings.warn(
            f"{rejected} of {table.num_rows} events have no time and were left out; "
            "cepheid.rejected(data, time=...) shows them",
            stacklevel=4,
        )


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def run(
    compiled: Compiled, table: pa.Table, schema: pa.Schema, options: Options
) -> Iterator[pa.RecordBatch]:
    """The matches of the rules in a table of events."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*have no time")  # said once, for all rules
        for group in compiled.groups:
            yield from _together(compiled, group, table, schema, options)
        for one in compiled.alone:
            _, batches = local.run(one.prepared, table, options)
            for batch in batches:
                every = np.repeat(np.arange(batch.num_rows), len(one.rules))
                numbers = np.tile(one.rules, batch.num_rows)
                yield found_rows(compiled.rules, numbers, batch.take(pa.array(every)), schema)


def _together(
    compiled: Compiled, group: Group, table: pa.Table, schema: pa.Schema, options: Options
) -> Iterator[pa.RecordBatch]:
    order = group.merged.branches[0].path.query.schema.order
    rows = sorted_by(table.select(group.required), order)
    machine = Machine(group.merged, rows.schema, jit=options.jit)
    for batch in local.slices(rows):
        for found in machine.push(batch):
            numbers = group.numbers[found.branch][found.rules]
            yield found_rows(compiled.rules, numbers, found.matches, schema)
