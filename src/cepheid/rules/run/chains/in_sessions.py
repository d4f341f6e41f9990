"""Rules of a session or an iterator of which some read the matches of others.

Those that read events run together, as ever. Each of the others is a query that gets the events,
and the matches that it reads as soon as they are known: like the queries of a session that read
each other's labels (`sessions.query_runs`), it waits until all of a moment are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.schemas import bind_streams
from cepheid.engine.attribution.json_rows import KEY_PARTS, RULE, alert_rows, alert_schema
from cepheid.engine.attribution.typed_rows import typed
from cepheid.engine.match_schema import MATCH_END, output_schema
from cepheid.engine.rows.clock import times
from cepheid.options import Options
from cepheid.planner import prepare
from cepheid.query.chains import one_prepared
from cepheid.query.several import EVENTS, bound_step, step_of
from cepheid.rules.compile.alert_values import rule_columns, with_key
from cepheid.rules.compile.template_rows import alike, shaping
from cepheid.rules.load.readers import Provider, Reads, in_order
from cepheid.rules.run.alert_columns import filled
from cepheid.rules.run.chains.in_tables import chooses
from cepheid.rules.run.rule_session import RuleRuns
from cepheid.rules.run.runtimes import Templates
from cepheid.rules.template import Template
from cepheid.runtime import Columns
from cepheid.sessions.held_cells import nested, within
from cepheid.sessions.query_run import QueryRun
from cepheid.sessions.session_events import EventColumns
from cepheid.streaming.chained_query import ChainedQuery, results_known_after
from cepheid.streaming.throttle import Throttle


@dataclass(frozen=True)
class _Source:
    """A template whose matches are read: their columns, and how long after their end they may be
    known."""

    template: Template
    schema: pa.Schema
    lag: int

    def matches(self, alerts: pa.Table) -> pa.Table:
        own = alerts.filter(pc.is_in(alerts[RULE], value_set=self.template.names.combine_chunks()))
        whole = pa.Table.from_batches(
            [typed(b, self.schema) for b in own.to_batches()], self.schema
        )
        return whole if RULE in self.schema.names else whole.append_column(RULE, own[RULE])


@dataclass(frozen=True)
class _Follower:
    """A rule that reads others: its number, and the query that runs for it."""

    place: int
    number: int
    name: str
    reads: Mapping[str, Provider]
    run: QueryRun
    identity: str

    def returned(self, matches: pa.Table) -> pa.Table:
        """As others read them."""
        parts = [name for name in matches.column_names if name.startswith(KEY_PARTS)]
        plain = matches.drop_columns(parts)
        if RULE in plain.column_names:
            return plain
        return plain.append_column(RULE, pa.repeat(pa.scalar(self.name), plain.num_rows))


class ChainedRuns:
    """The state of such rules in memory (see `sessions.session.SessionRuns`)."""

    def __init__(
        self,
        templates: Templates,
        reads: Mapping[int, Reads],
        given: Columns,
        columns: EventColumns,
        options: Options,
    ) -> None:
        first = tuple(t for n, t in enumerate(templates) if n not in reads)
        self._first = RuleRuns(first, given, columns, options)
        self._rules = rule_columns(templates)
        self._templates = templates
        self.schema = alert_schema(self._rules, self._first.schema.field(MATCH_END).type)
        read = {provider.place for names in reads.values() for provider in names.values()}
        self._sources = {
            n: _source(templates[n], given, columns, options) for n in read if n not in reads
        }
        self._followers = list(self._follow(reads, given, columns, options))
        self.stayed = frozenset[str]()

    def _follow(
        self,
        reads: Mapping[int, Reads],
        given: Columns,
        columns: EventColumns,
        options: Options,
    ) -> Iterator[_Follower]:
        """The rules that read others, each after what it reads."""
        begins = np.cumsum([0, *map(len, self._templates)])
        schemas = {n: _with_rule(source.schema) for n, source in self._sources.items()}
        lags = {n: source.lag for n, source in self._sources.items()}
        for place in in_order(self._templates, reads):
            template, names = self._templates[place], reads[place]
            labels = {name: schemas[p.place] for name, p in names.items()}
            lag = max(lags[p.place] for p in names.values())
            for row in range(len(template)):
                given_row = replace(options, params={**options.params, **template.values(row)})
                query = _chained(template, labels, lag, given, columns, given_row)
                run = QueryRun(query, options)
                identity = _identity(template, row, query)
                name = str(template.names[row])
                number = int(begins[place]) + row
                yield _Follower(place, number, name, names, run, identity)
                own = results_known_after(name, query.prepared, query.columns)
                lags[place] = max(lags.get(place, 0), lag + own)
                plain = [f for f in run.schema if not f.name.startswith(KEY_PARTS)]
                schemas[place] = _with_rule(pa.schema(plain))

    # ── rows ──

    def step(self, rows: pa.Table, reached: int) -> pa.Table:
        """What is known with these rows, when time has come so far."""
        alerts = self._first.step(rows, reached)
        return self._followed(alerts, lambda run, others: run.step(rows, others, reached))

    def finish(self, rows: pa.Table) -> pa.Table:
        """The end of the data, with the last rows."""
        alerts = self._first.finish(rows)
        return self._followed(alerts, lambda run, others: run.finish(rows, others))

    def _followed(
        self, alerts: pa.Table, step: Callable[[QueryRun, Mapping[str, pa.Table]], pa.Table]
    ) -> pa.Table:
        tables = {n: source.matches(alerts) for n, source in self._sources.items()}
        found = [filled(alerts, self.schema)]
        for follower in self._followers:
            others = {name: self._read(p, tables) for name, p in follower.reads.items()}
            matches = step(follower.run, others)
            for batch in matches.to_batches():
                numbers = np.full(batch.num_rows, follower.number)
                more = alert_rows(self._rules, numbers, batch, self.schema)
                found.append(pa.Table.from_batches([more]))
            own = follower.returned(matches)
            before = tables.get(follower.place)
            tables[follower.place] = own if before is None else pa.concat_tables([before, own])
        table = pa.concat_tables(found)
        if table.num_rows < 2:
            return table
        order = np.argsort(times(table[MATCH_END].combine_chunks()), kind="stable")
        return table.take(pa.array(order))

    def _read(self, provider: Provider, tables: Mapping[int, pa.Table]) -> pa.Table:
        matches = tables[provider.place]
        if provider.row is None:
            return matches
        name = self._templates[provider.place].names[provider.row]
        return matches.filter(pc.equal(matches[RULE], name))

    # ── figures ──

    def throttle(self, pause: int) -> Throttle:
        first = self._first.throttle(pause)
        exempt = {f.name for f in self._followers if chooses(self._templates[f.place])}
        lags = {f.name: f.run.part.known_after or 0 for f in self._followers}
        return replace(first, exempt=first.exempt | exempt, lags={**first.lags, **lags})

    @property
    def waits(self) -> bool:
        return self._first.waits or any(follower.run.waits for follower in self._followers)

    def total(self, figure: str) -> int:
        more: int = sum(getattr(follower.run, figure) for follower in self._followers)
        return self._first.total(figure) + more

    # ── saving ──

    def save(self) -> dict[str, bytes]:
        parts = nested("first", self._first.save())
        for follower in self._followers:
            parts |= nested(follower.identity, follower.run.save())
        return parts

    def resume(self, saved: Mapping[str, bytes]) -> None:
        """Rules that are the same continue, new ones see events from now on."""
        self._first.resume(within("first", saved) or saved)
        self.stayed = self._first.stayed
        for follower in self._followers:
            state = within(follower.identity, saved)
            if state:
                follower.run.resume(state)
                self.stayed |= {follower.name}


def _source(template: Template, given: Columns, columns: EventColumns, options: Options) -> _Source:
    lags = []
    for _, values in alike(template, np.arange(len(template)), shaping(template)):
        params = {**options.params, **template.values(0), **values}
        prepared = one_prepared(template.query, given, replace(options, params=params))
        lags.append(results_known_after(template.name, prepared, columns.plain))
    params = {**options.params, **template.values(0)}
    bound = template.query.bind(given, replace(options, params=params))
    merged = given if isinstance(given, pa.Schema) else bind_streams(given, options)[0]
    return _Source(template, output_schema(bound, merged), max(lags))


def _chained(
    template: Template,
    labels: Mapping[str, pa.Schema],
    lag: int,
    given: Columns,
    columns: EventColumns,
    options: Options,
) -> ChainedQuery:
    """The query of a rule that reads matches with these columns."""
    query, named = template.query, isinstance(given, Mapping)
    plain = {n: stream.plain for n, stream in (columns.streams or {EVENTS: columns}).items()}
    step = step_of(query, dict.fromkeys(labels, query), given.keys() if named else None)
    base = {name: plain[name if named else EVENTS] for name in step.base}
    read = {**base, **{label: labels[label] for label in step.labels}}
    inputs, merged, bound = bound_step(step, read, options)
    query.require_bounds(bound, options)
    prepared = prepare(with_key(bound), options)
    return ChainedQuery(template.name, prepared, merged, step.base, step.labels, inputs, lag)


def _with_rule(schema: pa.Schema) -> pa.Schema:
    return schema if RULE in schema.names else schema.append(pa.field(RULE, pa.string()))


def _identity(template: Template, row: int, query: ChainedQuery) -> str:
    """The same for the same rule over the same columns: a rule that has changed is a new one."""
    values = (str(template.names[row]), template.query.text, template.values(row), query.columns)
    return hashlib.blake2b(repr(values).encode(), digest_size=16).hexdigest()
