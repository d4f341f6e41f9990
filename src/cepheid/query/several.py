"""Several queries in one run: what one finds, under its INTO label, others read as a stream.

This is resubscription (NEXT 3; Cayuga 3.5): an automaton may subscribe to the output of another
instead of the base stream. A match is an event with a start and an end, so its stream is one like
any other. Queries run in the order in which they depend on each other, whatever order they are
given in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cepheid.algebra import bind
from cepheid.algebra.binding.findings import Findings, did_you_mean
from cepheid.algebra.binding.scope import leaves, listed, place_of, types_of
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import Input, bind_inputs, bind_schema
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.errors import DataError
from cepheid.options import Options
from cepheid.query.parsed_query import Query
from cepheid.query.runtimes import runtime_of

EVENTS = "events"
"""The name of unnamed data beside streams of matches."""


@dataclass(frozen=True)
class QueryStep:
    """A query, and what it reads: `labels` are streams of matches, `base` the streams of the data,
    by the names that the query has for them. `name` is that of its matches in the result."""

    query: Query
    name: str
    labels: tuple[str, ...]
    base: tuple[str, ...]


def match_all(data: Any, queries: Iterable[str | Query], options: Options) -> dict[str, Any]:
    """The matches of each query, by its label or else by its name, in the order given."""
    named = isinstance(data, Mapping)
    parsed = numbered(queries)
    steps = arranged(parsed, data.keys() if named else None)
    runtime = runtime_of(data)
    streams = runtime.repeatable(
        dict(data) if named else {EVENTS: data}, "several queries read the same events"
    )
    matches: dict[str, Any] = {}
    for step in steps:
        if not step.labels:
            matches[step.name] = step.query.match(streams if named else streams[EVENTS], options)
            continue
        base = {name: streams[name if named else EVENTS] for name in step.base}
        read = {**base, **{label: matches[label] for label in step.labels}}
        matches[step.name] = _match(step, read, options)
    return {name_of(q): runtime.like(data, matches[name_of(q)]) for q in parsed}


def numbered(queries: Iterable[str | Query]) -> tuple[Query, ...]:
    """Name unnamed queries by their number, from 1."""
    parsed = tuple(
        Query(q, f"query {n}") if isinstance(q, str) else _named(q, n)
        for n, q in enumerate(queries, 1)
    )
    if not parsed:
        raise DataError("there are no queries: pass at least one")
    names = [q.name for q in parsed if q.syntax.into is None]
    for name in names:
        if names.count(name) > 1 or any(q.syntax.into == name for q in parsed):
            raise DataError(f"several queries are called `{name}`: label them with INTO")
    return parsed


def _named(query: Query, number: int) -> Query:
    return replace(query, name=f"query {number}") if query.name == Query.name else query


def name_of(query: Query) -> str:
    """What the matches of a query are called."""
    return query.syntax.into or query.name


# ── who reads what ───────────────────────────────────────────────────────────


def arranged(queries: Sequence[Query], base: Collection[str] | None) -> tuple[QueryStep, ...]:
    """What each query reads, in an order in which every label is there before it is read.

    `base` are the names of the input streams; None, if there is one without a name. `QueryError`,
    if a label is taken, a stream unknown, or if queries read each other's output in a circle.
    """
    labels: dict[str, Query] = {}
    for query in queries:
        _check_label(query, labels, base)
        if query.syntax.into is not None:
            labels[query.syntax.into] = query
    steps = {name_of(query): step_of(query, labels, base) for query in queries}
    ordered: dict[str, QueryStep] = {}

    def visit(step: QueryStep, path: tuple[QueryStep, ...]) -> None:
        if step in path:
            _circle(path[path.index(step) :])
        for label in step.labels:
            visit(steps[label], (*path, step))
        ordered[step.name] = step

    for step in steps.values():
        if step.name not in ordered:
            visit(step, ())
    return tuple(ordered.values())


def _findings(query: Query) -> Findings:
    return Findings(query.source)


def _check_label(query: Query, labels: Mapping[str, Query], base: Collection[str] | None) -> None:
    label = query.syntax.into
    findings = _findings(query)
    if label is None:
        return
    place = place_of(label, query.syntax, findings, "INTO")
    hint = "give the output another name"
    if label in labels:
        message = f"the label `{label}` is taken: the output of {labels[label].name} has it"
        findings.add("CEP216", message, place, hint)
    if label in (base or (EVENTS,)):
        whose = "an input stream has it" if base is not None else "data without a name has it"
        findings.add("CEP216", f"the label `{label}` is taken: {whose}", place, hint)
    findings.check()


def step_of(query: Query, labels: Mapping[str, Query], base: Collection[str] | None) -> QueryStep:
    """The streams that a query reads: those of FROM; without FROM, all input streams, and the
    labels that its pattern names. `FROM A a, B b` without PATTERN reads no more than it names."""
    named = query.syntax.streams
    if not named:
        types = types_of(query.syntax.pattern)
        read = tuple(t for t in types if t in labels)
        matches_alone = query.syntax.relational and {*types} == {*read}
        return QueryStep(
            query, name_of(query), read, () if matches_alone else tuple(base or (EVENTS,))
        )
    findings = _findings(query)
    read = tuple(dict.fromkeys(n for n in named if n in labels))
    rest = tuple(dict.fromkeys(n for n in named if n not in labels))
    # One that has no name is called whatever FROM calls it.
    unknown = [n for n in rest if n not in base] if base is not None else read and rest[1:]
    for name in unknown:
        known = [*(base or rest[:1]), *labels]
        hint = did_you_mean(name, known, f"streams are {listed(known)}")
        place = place_of(name, query.syntax, findings)
        findings.add("CEP201", f"there is no stream `{name}`", place, hint)
    for leaf in leaves(query.syntax.pattern):
        for name in types_of(leaf):
            if name not in named and (name in labels or (read and name in (base or ()))):
                message = f"FROM leaves out the stream `{name}`"
                findings.add("CEP201", message, leaf.span, "name it there, too")
    findings.check()
    return QueryStep(query, name_of(query), read, rest)


def _circle(steps: tuple[QueryStep, ...]) -> None:
    """A cycle: each query reads the output of the next, and the last that of the first."""
    first, after = steps[0], (*steps[1:], steps[0])[0]
    query, findings = first.query, _findings(first.query)
    places = [leaf.span for leaf in leaves(query.syntax.pattern) if after.name in types_of(leaf)]
    if after.name in query.syntax.streams or not places:
        places = [place_of(after.name, query.syntax, findings)]
    if len(steps) == 1:
        message = f"the query reads its own output, `{first.name}`"
    else:
        chain = ", which reads ".join(f"`{step.name}`" for step in (*steps[1:], first))
        message = f"queries read each other's output in a circle: `{first.name}` reads {chain}"
    hint = "one of them must read the data alone" if len(steps) > 1 else "read another stream"
    findings.add("CEP217", message, places[0], hint)
    findings.check()


# ── running ──────────────────────────────────────────────────────────────────


def _match(step: QueryStep, streams: Mapping[str, Any], options: Options) -> Any:
    """The matches of a query that reads streams of matches, too."""
    runtime = runtime_of(streams)
    inputs, merged, bound = bound_step(step, runtime.columns(streams), options)
    return runtime.match_inputs(bound, streams, inputs, merged, options)


def bound_step(
    step: QueryStep, schemas: Mapping[str, pa.Schema], options: Options
) -> tuple[dict[str, Input], pa.Schema, BoundQuery]:
    """What each stream is to a query that reads matches, the columns of all, and the query."""
    base = {name: schemas[name] for name in step.base}
    for columns in base.values():
        bind_schema(columns, options)  # says what is wrong with it
    inputs = {
        name: Input(columns, options.time, options.start, options.type)
        if name in base
        else Input(columns, MATCH_END, MATCH_START)
        for name, columns in schemas.items()
    }
    merged, schema = bind_inputs(inputs, options)
    query = step.query
    syntax = replace(query.syntax, streams=())  # they are chosen already
    return inputs, merged, bind(syntax, schema, options.params, query.source)
