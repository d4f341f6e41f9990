"""Rules that read the matches of others, over tables in this process.

The rules that read events run together, as ever. Then those that read matches run one by one, each
after what it reads: to them, matches are events with a start and an end, beside the events of the
data (`query.several`). The matches of a template are those of all its rules; `rule` says whose.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.query import Selection
from cepheid.algebra.schemas import bind_streams
from cepheid.algebra.types import START_COLUMN, STREAM_COLUMN, TIME_COLUMN
from cepheid.engine.attribution.json_rows import KEY_PARTS, RULE, alert_rows
from cepheid.engine.attribution.typed_rows import typed
from cepheid.engine.match_schema import output_schema
from cepheid.engine.rows.event_types import types_in
from cepheid.errors import QueryError
from cepheid.inprocess.runtime import InProcess
from cepheid.language.diagnostics import Diagnostic
from cepheid.options import Options
from cepheid.query.several import EVENTS, QueryStep, bound_step, step_of
from cepheid.rules.compile.alert_values import rule_columns, with_key
from cepheid.rules.compile.compiled_rules import naming
from cepheid.rules.load.readers import Provider, Reads, in_order, place_read, reading
from cepheid.rules.template import Template
from cepheid.streaming.chained_query import merge_inputs

Tables = Mapping[str, pa.Table]

_ROLES = {TIME_COLUMN: "time read", START_COLUMN: "start read", STREAM_COLUMN: "type read"}
"""The names of these columns where all that a rule reads is one stream of events."""


@dataclass(frozen=True)
class RuleChain:
    """Rules some of which read others: who reads whom."""

    templates: tuple[Template, ...]
    reads: Mapping[int, Reads]

    @property
    def first(self) -> tuple[Template, ...]:
        """The templates that read events alone."""
        return tuple(t for n, t in enumerate(self.templates) if n not in self.reads)

    def choosing(self, first: pa.Array) -> pa.Array:
        """The names of the rules that choose among their matches, or return answers: these of the
        first, and those that read others."""
        following = [self.templates[n] for n in self.reads if chooses(self.templates[n])]
        names = [name for template in following for name in template.names.to_pylist()]
        return pa.concat_arrays([first, pa.array(names, first.type)])


def chooses(template: Template) -> bool:
    """Whether there is GROUP BY, AFTER MATCH or LIMIT, except for what keeps all matches."""
    query = template.query.syntax
    after, limit = query.after_match, query.limit
    return (
        query.group_by is not None
        or limit is not None
        or (after is not None and after.skip is not Selection().skip)
    )


def chain_of(templates: tuple[Template, ...], tables: Tables, options: Options) -> RuleChain | None:
    """None if every rule reads events alone."""
    streams = set(tables) - {EVENTS}
    types = streams | {
        type_
        for table in tables.values()
        if options.type is not None and options.type in table.column_names
        for type_ in types_in(table[options.type])
    }
    return chain_beside(templates, types, options.type is not None or bool(streams))


def chain_beside(
    templates: tuple[Template, ...], types: Collection[str], typed_events: bool
) -> RuleChain | None:
    """The chain beside events of these types. Raises `QueryError` for a label that events have as
    their type, and for a circle."""
    if not any(len(template) for template in templates):
        return None
    reads = reading(templates, types if typed_events else None, typed_events)
    if not reads:
        return None
    for place, names in reads.items():
        for name in sorted(names.keys() & types):
            raise QueryError([_clash(templates[place], name)])
    in_order(templates, reads)
    return RuleChain(templates, reads)


def _clash(template: Template, name: str) -> Diagnostic:
    return Diagnostic(
        "CEP216",
        f"`{name}` is both a rule of the set and a type of events",
        place_read(template, name),
        template.query.source,
        "give the rule another name",
    )


def followed(
    chain: RuleChain, alerts: pa.Table, schema: pa.Schema, tables: Tables, options: Options
) -> Iterator[pa.RecordBatch]:
    """The alerts of the rules that read others. `alerts` are those of the others, `schema` has the
    columns of all."""
    rules = rule_columns(chain.templates)
    begins = np.cumsum([0, *map(len, chain.templates)])
    rule_matches = _RuleMatches(chain, alerts, tables, options)
    for place in in_order(chain.templates, chain.reads):
        template = chain.templates[place]
        parts = []
        for row in range(len(template)):
            with said_once(), naming(template.names[row]):
                matches = _matches(chain, place, row, rule_matches, tables, options)
            number = int(begins[place]) + row
            for batch in matches.to_batches():
                yield alert_rows(rules, np.full(batch.num_rows, number), batch, schema)
            parts.append(_named(_returned(matches), str(template.names[row])))
        rule_matches.add(place, pa.concat_tables(parts))


def _matches(
    chain: RuleChain,
    place: int,
    row: int,
    rule_matches: _RuleMatches,
    tables: Tables,
    options: Options,
) -> pa.Table:
    """The matches of one rule that reads others."""
    step, streams = _read(chain, place, rule_matches, tables)
    given = replace(options, params={**options.params, **chain.templates[place].values(row)})
    columns = {name: table.schema for name, table in streams.items()}
    inputs, merged, bound = bound_step(step, columns, given)
    return InProcess().match_inputs(with_key(bound), streams, inputs, merged, given)


def _read(
    chain: RuleChain, place: int, rule_matches: _RuleMatches, tables: Tables
) -> tuple[QueryStep, Tables]:
    """What the rules of a template read: events, and matches."""
    template, names = chain.templates[place], chain.reads[place]
    providers = {name: chain.templates[p.place].query for name, p in names.items()}
    step = step_of(template.query, providers, None if EVENTS in tables else tables.keys())
    base = {name: tables[EVENTS if EVENTS in tables else name] for name in step.base}
    return step, {**base, **{name: rule_matches.matches(names[name]) for name in step.labels}}


def read_as_events(
    chain: RuleChain, alerts: pa.Table, tables: Tables, options: Options
) -> dict[str, tuple[pa.Table, Options]]:
    """For each rule that reads others, all that it reads as one stream of events, and how that is
    read. `alerts` are those of all rules."""
    rule_matches = _RuleMatches(chain, alerts, tables, options)
    as_events: dict[str, tuple[pa.Table, Options]] = {}
    for place in in_order(chain.templates, chain.reads):
        template = chain.templates[place]
        if template.query.syntax.streams:
            continue  # it says what its streams are
        step, streams = _read(chain, place, rule_matches, tables)
        parts = []
        for row, name in enumerate(template.names.to_pylist()):
            given = replace(options, params={**options.params, **template.values(row)})
            columns = {label: table.schema for label, table in streams.items()}
            inputs, merged, _ = bound_step(step, columns, given)
            whole = merge_inputs(streams, inputs, merged)
            whole = whole.rename_columns([_ROLES.get(n, n) for n in whole.column_names])
            time, start, type_ = _ROLES.values()
            as_events[name] = whole, replace(given, time=time, start=start, type=type_)
            parts.append(_matches(chain, place, row, rule_matches, tables, options))
        named = zip(parts, template.names.to_pylist(), strict=True)
        rule_matches.add(place, pa.concat_tables([_named(_returned(p), n) for p, n in named]))
    return as_events


@contextmanager
def said_once() -> Iterator[None]:
    """What is said of the events is said once, for all rules."""
    with warnings.catch_warnings():
        said = (".*have no time", ".*than a microsecond", "no event is of type", ".*on their order")
        for message in said:
            warnings.filterwarnings("ignore", message=message)
        yield


class _RuleMatches:
    """The matches of rules in their own columns, by the place of the template."""

    def __init__(
        self, chain: RuleChain, alerts: pa.Table, tables: Tables, options: Options
    ) -> None:
        self._chain, self._alerts, self._options = chain, alerts, options
        self._columns: Any = {name: table.schema for name, table in tables.items()}
        if EVENTS in tables:
            self._columns = tables[EVENTS].schema
        self._tables: dict[int, pa.Table] = {}

    def add(self, place: int, matches: pa.Table) -> None:
        self._tables[place] = matches

    def matches(self, provider: Provider) -> pa.Table:
        if provider.place not in self._tables:
            self._tables[provider.place] = self._of(self._chain.templates[provider.place])
        matches = self._tables[provider.place]
        if provider.row is None:
            return matches
        name = self._chain.templates[provider.place].names[provider.row]
        return matches.filter(pc.equal(matches[RULE], name))

    def _of(self, template: Template) -> pa.Table:
        params = {**self._options.params, **(template.values(0) if len(template) else {})}
        options = replace(self._options, params=params)
        bound = template.query.bind(self._columns, options)
        merged = self._columns
        if not isinstance(merged, pa.Schema):
            merged = bind_streams(merged, options)[0]
        schema = output_schema(bound, merged)
        alerts = self._alerts.filter(pc.is_in(self._alerts[RULE], value_set=template.names))
        batches = [typed(batch, schema) for batch in alerts.to_batches()]
        table = pa.Table.from_batches(batches, schema)
        if RULE in table.column_names:
            return table
        return table.append_column(RULE, alerts[RULE])


def _returned(matches: pa.Table) -> pa.Table:
    return matches.drop_columns([n for n in matches.column_names if n.startswith(KEY_PARTS)])


def _named(matches: pa.Table, rule: str) -> pa.Table:
    if RULE in matches.column_names:
        return matches
    return matches.append_column(RULE, pa.repeat(pa.scalar(rule, pa.string()), matches.num_rows))
