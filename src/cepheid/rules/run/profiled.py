"""Rules over tables in this process, pass by pass, with the time and the matches of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.nested_columns import with_extracted
from cepheid.engine.attribution.json_rows import RULE, TEMPLATE, alert_schema
from cepheid.engine.attribution.owners import alerts_of_queries, gathered
from cepheid.engine.merged.group import GroupMachines, RuleGroup
from cepheid.engine.rows.order import sorted_by
from cepheid.inprocess import execution
from cepheid.inprocess.frames import EventTable, as_table
from cepheid.inprocess.merged_streams import merged, slices
from cepheid.inprocess.runtime import InProcess
from cepheid.options import Options
from cepheid.query.several import EVENTS
from cepheid.rules.compile.alert_values import rule_columns
from cepheid.rules.compile.compiled_rules import CompiledRules, EngineRun, compile_rules, naming
from cepheid.rules.run.chains.in_tables import chain_of, said_once
from cepheid.rules.run.process import SetInProcess, events_of
from cepheid.rules.run.set_profile import MATCHES, PassProfile, SetProfile
from cepheid.rules.template import Template


def profiled(templates: tuple[Template, ...], data: Any, options: Options) -> SetProfile:
    """Run the rules in one thread, and count. Rules that read others run after the passes: they
    have matches, and no pass."""
    runtime = InProcess()
    events = runtime.repeatable(data, "rules read the same events several times")
    tables = events if isinstance(data, Mapping) else {EVENTS: events}
    chain = chain_of(templates, tables, options)
    first = templates if chain is None else chain.first
    compiled = compile_rules(first, runtime.columns(events), options, deals=True, ends=True)
    table = as_table(merged(events if isinstance(data, Mapping) else {"": events}, options))
    rules = rule_columns(templates).select([RULE, TEMPLATE])
    places = {name: place for place, name in enumerate(rules[RULE].to_pylist())}
    numbers = np.array([places[name] for name in compiled.rules[RULE].to_pylist()], np.int64)
    counts = np.zeros(rules.num_rows, np.int64)
    with said_once():
        measured = _Measured(compiled, table, options)
        passes = [*map(measured.group, compiled.groups), *map(measured.run, compiled.runs)]
    counts[numbers] = measured.counts
    if chain is not None:
        alerts = SetInProcess().match(templates, data, options)
        for name, count in SetInProcess().counts(alerts).items():
            counts[places[name]] = count
    passes = [replace(each, rules=numbers[each.rules]) for each in passes]
    return SetProfile(table.num_rows, rules.append_column(MATCHES, [counts]), tuple(passes))


class _Measured:
    """The passes, one after another. `counts` has the matches of each rule."""

    def __init__(self, compiled: CompiledRules, table: pa.Table, options: Options) -> None:
        self._compiled, self._table, self._options = compiled, table, options
        plain = as_table(EventTable.of(table)).schema.field(options.time).type
        self._schema = alert_schema(compiled.rules, plain)
        self._names = compiled.rules[RULE].combine_chunks()
        self.counts = np.zeros(len(self._names), np.int64)

    def group(self, group: RuleGroup) -> PassProfile:
        """A merged automaton."""
        begin, held = perf_counter(), 0
        rows = sorted_by(with_extracted(self._table, group.required), group.query.schema.order)
        machines: GroupMachines | None = None
        for batch in slices(rows):
            if machines is None:
                machines = GroupMachines(
                    group, self._compiled.rules, self._schema, batch, self._options.jit
                )
            for alerts in machines.push(batch):
                self._count(alerts)
            held = max(held, machines.instances)
        return PassProfile(np.concatenate(group.numbers), perf_counter() - begin, held)

    def run(self, query: EngineRun) -> PassProfile:
        """A query of its own, or several as one."""
        begin, held, counted = perf_counter(), 0, False
        for events in events_of(query, self._table):
            source = EventTable.of(events)
            with naming(self._names[int(query.members[0].rules[0])].as_py()):
                if query.prepared.query.answers is None:
                    found: list[pa.RecordBatch] = []
                    profile, _ = execution.profile(
                        query.prepared, source, self._options, found.append
                    )
                    for batch in gathered(query.attributions, found):
                        self._attributed(query, batch)
                    peaks = (node.peak for node in profile.nodes.values())
                    held, counted = max(held, *peaks, 0), True
                else:
                    for batch in execution.run(query.prepared, source, self._options)[1]:
                        self._attributed(query, batch)
        rules = np.concatenate([member.rules for member in query.members])
        return PassProfile(rules, perf_counter() - begin, held if counted else None)

    def _attributed(self, query: EngineRun, matches: pa.RecordBatch) -> None:
        rules = self._compiled.rules
        self._count(alerts_of_queries(rules, query.attributions, matches, self._schema))

    def _count(self, alerts: pa.RecordBatch) -> None:
        counted = pc.value_counts(alerts.column(RULE))
        places = pc.index_in(counted.field("values"), self._names).to_numpy(zero_copy_only=False)
        np.add.at(self.counts, places, counted.field("counts").to_numpy())
