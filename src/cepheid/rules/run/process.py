"""Rules over data in this process: one pass for all that are merged in a group, one for each other
query, or for a few that are joined."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.nested_columns import with_extracted
from cepheid.algebra.query import BoundQuery
from cepheid.engine.attribution.json_rows import RULE, alert_schema
from cepheid.engine.attribution.owners import alerts_of_queries, gathered
from cepheid.engine.attribution.throttled import throttled
from cepheid.engine.attribution.typed_rows import typed
from cepheid.engine.match_schema import MATCH_END
from cepheid.engine.merged.group import GONE, matches
from cepheid.engine.rows.clock import times
from cepheid.engine.rows.event_types import types_in
from cepheid.engine.rows.order import sorted_by
from cepheid.engine.rows.ties import count_ties, dependent, tied_by
from cepheid.inprocess import execution
from cepheid.inprocess.frames import EventTable, as_table, like, to_arrow
from cepheid.inprocess.merged_streams import merged, slices
from cepheid.inprocess.notices import finer, is_finer, made_simultaneous, tied
from cepheid.inprocess.runtime import InProcess
from cepheid.options import Options, refuse_dead_letters
from cepheid.query.several import EVENTS
from cepheid.query.several_endless import is_endless
from cepheid.rules.compile.alert_values import rule_columns
from cepheid.rules.compile.compilations import Compile
from cepheid.rules.compile.compiled_rules import CompiledRules, EngineRun, compile_rules, naming
from cepheid.rules.load.readers import first_and_following
from cepheid.rules.load.validation import columns_of
from cepheid.rules.run.alert_columns import ALERT_COLUMNS, filled, require_alert_columns
from cepheid.rules.run.chains.in_tables import chain_of, followed, read_as_events, said_once
from cepheid.rules.run.contradictions import warn_of_contradictions
from cepheid.rules.run.endless import alerts_of_endless
from cepheid.rules.run.runtimes import Templates, Throttle
from cepheid.rules.run.throttle import check_carried, throttle_ticks
from cepheid.rules.run.unknown_types import warn_of_types


@dataclass(frozen=True)
class SetInProcess:
    """The events as one table, through which every pass goes once."""

    def match(
        self,
        templates: Templates,
        data: Any,
        options: Options,
        throttle: Throttle = None,
        compile_: Compile = compile_rules,
    ) -> Any:
        refuse_dead_letters(options)
        if is_endless(data):
            return alerts_of_endless(templates, data, options, throttle)
        runtime = InProcess()
        events = runtime.repeatable(data, "rules read the same events several times")
        tables = events if isinstance(data, Mapping) else {EVENTS: events}
        chain = chain_of(templates, tables, options)
        first = templates if chain is None else chain.first
        compiled = compile_(first, runtime.columns(events), options, deals=True, ends=True)
        table = as_table(merged(events if isinstance(data, Mapping) else {"": events}, options))
        every = compiled.rules if chain is None else rule_columns(templates)
        schema = alert_schema(every, _plain(table.schema.field(options.time).type))
        _warn(first, table, options)
        warn_of_contradictions(compiled, 4)
        _warn_of_ties(compiled, table, options)
        first_schema = (
            schema if chain is None else alert_schema(compiled.rules, schema.field(MATCH_END).type)
        )
        result = pa.Table.from_batches(run(compiled, table, first_schema, options), first_schema)
        if chain is not None:
            more = followed(chain, result, schema, tables, options)
            result = pa.concat_tables([filled(result, schema), pa.Table.from_batches(more, schema)])
        order = np.argsort(times(result[MATCH_END].combine_chunks()), kind="stable")
        result = result.take(pa.array(order))
        if throttle is not None:
            pause = throttle_ticks(throttle, result.schema.field(MATCH_END).type, options)
            check_carried(result.schema)
            exempt = compiled.choosing if chain is None else chain.choosing(compiled.choosing)
            result = throttled(result, pause, exempt)
        return like(data, result.schema, iter(result.to_batches()))

    def compiled(
        self, templates: Templates, data: Any, options: Options, compile_: Compile = compile_rules
    ) -> CompiledRules:
        first, following = first_and_following(templates)
        ends = not is_endless(data)
        compiled = compile_(first, columns_of(data), options, deals=True, ends=ends)
        return replace(compiled, following=following)

    def explain(
        self, templates: Templates, data: Any, options: Options, compile_: Compile = compile_rules
    ) -> tuple[CompiledRules, None]:
        return self.compiled(templates, data, options, compile_), None

    def counts(self, matches: Any) -> dict[str, int]:
        counts = pc.value_counts(as_table(to_arrow(matches))[RULE].combine_chunks())
        return {str(n["values"]): n["counts"].as_py() for n in counts}

    def read_as_events(
        self, templates: Templates, data: Any, options: Options, alerts: Any
    ) -> dict[str, tuple[Any, Options]]:
        events = InProcess().repeatable(data, "rules read the same events several times")
        tables = events if isinstance(data, Mapping) else {EVENTS: events}
        chain = chain_of(templates, tables, options)
        if chain is None:
            return {}
        return read_as_events(chain, as_table(to_arrow(alerts)), tables, options)

    def typed(self, set_matches: Any, rule: str, schema: pa.Schema) -> Any:
        table = as_table(to_arrow(set_matches))
        require_alert_columns(table.column_names)
        of_rule = table.select(ALERT_COLUMNS).filter(pc.equal(table[RULE], rule))
        return like(set_matches, schema, (typed(batch, schema) for batch in of_rule.to_batches()))


def _warn(templates: Templates, table: pa.Table, options: Options) -> None:
    """Warn about the events once, for all rules."""
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
        warn_of_types(templates, types_in(table[options.type]), options.type, 4)


def _warn_of_ties(compiled: CompiledRules, table: pa.Table, options: Options) -> None:
    """Warn of ties once for all rules with the same key."""
    rules: dict[tuple[str, ...], list[str]] = {}
    for query, rule in _queries(compiled):
        key = tied_by([query])
        if key is not None:
            rules.setdefault(key, []).append(f"{rule} ({dependent(query)})")
    for key, depending in rules.items():
        rows = with_extracted(table, (options.time, *key))
        ties = count_ties(rows, options.time, key)
        if ties[0]:
            more = f" and {len(depending) - 1} more" if len(depending) > 1 else ""
            what = f"rules such as {depending[0]}{more} depend"
            message = tied(ties, table.num_rows, (options.time, *key), what)
            warnings.warn(message, stacklevel=4)


def _queries(compiled: CompiledRules) -> Iterator[tuple[BoundQuery, str]]:
    """Each query, and the name of one of its rules."""
    names = compiled.rules[RULE]
    for group in compiled.groups:
        for branch, numbers in zip(group.merged.branches, group.numbers, strict=True):
            for number in numbers[numbers != GONE][:1].tolist():
                yield branch.path.query, names[number].as_py()
    for query in compiled.alone:
        yield query.bound, names[int(query.rules[0])].as_py()


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def run(
    compiled: CompiledRules, table: pa.Table, schema: pa.Schema, options: Options
) -> Iterator[pa.RecordBatch]:
    """The matches of the rules in a table of events."""
    with said_once():
        for group in compiled.groups:
            rows = sorted_by(with_extracted(table, group.required), group.query.schema.order)
            yield from matches(group, compiled.rules, schema, slices(rows), options.jit)
        for query in compiled.runs:
            for events in events_of(query, table):
                with naming(compiled.rules[RULE][query.members[0].rules[0]]):
                    _, batches = execution.run(query.prepared, EventTable.of(events), options)
                for batch in gathered(query.attributions, batches):
                    yield alerts_of_queries(compiled.rules, query.attributions, batch, schema)


def events_of(query: EngineRun, table: pa.Table) -> Iterator[pa.Table]:
    """The events that the query runs over: all of them, or those that are dealt to its variants."""
    variants = query.members[0].variants
    if variants is None:
        yield table
        return
    rows = with_extracted(table, variants.required)
    yield from variants.dealt(sorted_by(rows, variants.schema.order))
