"""Rules that read the matches of others while events come: what they read, and the query of each.

The matches of rules that read events are taken out of their alerts, in columns of their own. A rule
that reads them is a query over the events and over those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.nested_columns import roots
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import bind_streams
from cepheid.engine.attribution.json_rows import KEY_PARTS, RULE
from cepheid.engine.attribution.typed_rows import typed
from cepheid.engine.match_schema import output_schema
from cepheid.options import Options
from cepheid.planner import prepare
from cepheid.query.chains import one_prepared
from cepheid.query.several import EVENTS, bound_step, step_of
from cepheid.rules.compile.alert_values import with_key
from cepheid.rules.compile.template_rows import alike, shaping
from cepheid.rules.load.readers import Provider, Reads, in_order, reading
from cepheid.rules.run.chains.in_tables import chooses
from cepheid.rules.run.runtimes import Templates
from cepheid.rules.template import Template
from cepheid.runtime import Columns
from cepheid.sessions.session_events import EventColumns
from cepheid.streaming.chained_query import ChainedQuery, result_schema, results_known_after
from cepheid.streaming.throttle import Throttle


@dataclass(frozen=True)
class ReadTemplate:
    """A template whose matches are read: its query, their columns, and how long after their end
    they may be known."""

    template: Template
    query: BoundQuery
    schema: pa.Schema
    lag: int

    def matches(self, alerts: pa.Table) -> pa.Table:
        names = self.template.names.combine_chunks()
        own = alerts.filter(pc.is_in(alerts[RULE], value_set=names))
        whole = pa.Table.from_batches(
            [typed(b, self.schema) for b in own.to_batches()], self.schema
        )
        return whole if RULE in self.schema.names else whole.append_column(RULE, own[RULE])


@dataclass(frozen=True)
class Follower:
    """A rule that reads others: its template's place and its row there, its number among all rules,
    and its query. The identity is the same for the same rule over the same columns: a rule that has
    changed is a new one."""

    place: int
    row: int
    number: int
    name: str
    reads: Mapping[str, Provider]
    query: ChainedQuery
    identity: str

    def returned(self, matches: pa.Table) -> pa.Table:
        """As others read them."""
        parts = [name for name in matches.column_names if name.startswith(KEY_PARTS)]
        plain = matches.drop_columns(parts)
        if RULE in plain.column_names:
            return plain
        return plain.append_column(RULE, pa.repeat(pa.scalar(self.name), plain.num_rows))


@dataclass(frozen=True)
class Following:
    """The templates that read events and are read, by their places, and the rules that read others,
    each after what it reads."""

    templates: Templates
    events: pa.Schema
    sources: Mapping[int, ReadTemplate]
    followers: tuple[Follower, ...]

    @property
    def required(self) -> frozenset[str]:
        """The columns of the events, and paths into them, that rules which read others read."""
        names: set[str] = set()
        for query in (f.query for f in self.followers if f.query.base):
            read = query.prepared.plan.required
            names.update(n for n in read if set(roots(self.events, [n])) <= {*self.events.names})
            inputs = [query.inputs[name] for name in query.base]
            names.update(r for i in inputs for r in (i.time, i.start, i.type) if r is not None)
        return frozenset(names)

    def throttled(self, throttle: Throttle) -> Throttle:
        """For the alerts of these rules, too."""
        exempt = {f.name for f in self.followers if chooses(self.templates[f.place])}
        lags = {f.name: f.query.known_after or 0 for f in self.followers}
        return throttle.beside(Throttle(throttle.pause, frozenset(exempt), lags), ())

    def read(self, provider: Provider, tables: Mapping[int, pa.Table]) -> pa.Table:
        """The matches that a name stands for, of those of the templates."""
        matches = tables[provider.place]
        if provider.row is None:
            return matches
        name = self.templates[provider.place].names[provider.row]
        return matches.filter(pc.equal(matches[RULE], name))


def following(
    templates: Templates,
    reads: Mapping[int, Reads],
    given: Columns,
    columns: EventColumns,
    options: Options,
) -> Following:
    """What runs after the rules that read events. `given` are the columns of the events."""
    read = {provider.place for names in reads.values() for provider in names.values()}
    sources = {n: _source(templates[n], given, columns, options) for n in read if n not in reads}
    followers = tuple(_follow(templates, reads, sources, given, columns, options))
    return Following(templates, columns.plain, sources, followers)


def following_events(templates: Templates, given: Columns, options: Options) -> Following:
    """What runs after the rules that read events, where their types aren't known."""
    reads = reading(templates, None, False)
    return following(templates, reads, given, EventColumns.of(given, options), options)


def _follow(
    templates: Templates,
    reads: Mapping[int, Reads],
    sources: Mapping[int, ReadTemplate],
    given: Columns,
    columns: EventColumns,
    options: Options,
) -> Iterator[Follower]:
    begins = np.cumsum([0, *map(len, templates)])
    schemas = {n: _with_rule(source.schema) for n, source in sources.items()}
    lags = {n: source.lag for n, source in sources.items()}
    for place in in_order(templates, reads):
        template, names = templates[place], reads[place]
        labels = {name: schemas[p.place] for name, p in names.items()}
        lag = max(lags[p.place] for p in names.values())
        for row in range(len(template)):
            given_row = replace(options, params={**options.params, **template.values(row)})
            query = _chained(template, labels, lag, given, columns, given_row)
            number, name = int(begins[place]) + row, str(template.names[row])
            identity = _identity(template, row, query)
            yield Follower(place, row, number, name, names, query, identity)
            own = results_known_after(name, query.prepared, query.columns)
            lags[place] = max(lags.get(place, 0), lag + own)
            found = result_schema(query.prepared, query.columns)
            plain = [f for f in found if not f.name.startswith(KEY_PARTS)]
            schemas[place] = _with_rule(pa.schema(plain))


def _source(
    template: Template, given: Columns, columns: EventColumns, options: Options
) -> ReadTemplate:
    lags = []
    for _, values in alike(template, np.arange(len(template)), shaping(template)):
        params = {**options.params, **template.values(0), **values}
        prepared = one_prepared(template.query, given, replace(options, params=params))
        lags.append(results_known_after(template.name, prepared, columns.plain))
    params = {**options.params, **template.values(0)}
    bound = template.query.bind(given, replace(options, params=params))
    merged = given if isinstance(given, pa.Schema) else bind_streams(given, options)[0]
    return ReadTemplate(template, bound, output_schema(bound, merged), max(lags))


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
