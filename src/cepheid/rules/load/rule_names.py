"""Names of rules are unique in a set, whichever templates they are in, and never those of what
another rule reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.binding.findings import Findings, did_you_mean
from cepheid.algebra.binding.scope import leaves, place_of
from cepheid.algebra.types import Schema
from cepheid.language import ast
from cepheid.language.diagnostics import Diagnostic, Source
from cepheid.rules.findings import Finding, of_diagnostic
from cepheid.rules.template import Template

Place = tuple[Template, int]
"""A template, and a row of it, from 0."""

_FEW = 1000
"""How many names a misspelled name is compared with letter by letter."""

_INSTEAD = "run the two as queries (a file each, or a list in `cep.match`), or rename one"


def all_names(templates: Sequence[Template]) -> pa.ChunkedArray:
    """The names of all rules, template by template."""
    chunks = [chunk for template in templates for chunk in template.names.chunks]
    return pa.chunked_array(chunks, pa.string())


def unknown(name: str, names: pa.ChunkedArray) -> str:
    """The message for a name that no rule has."""
    hint = did_you_mean(name, _candidates(name, names))
    return f"there is no rule `{name}`" + (f"; {hint}" if hint else "")


def _candidates(name: str, names: pa.ChunkedArray) -> list[str]:
    """Of very many names, those that share the longest prefix or suffix with this one, since a typo
    leaves one of them intact. A prefix that most names share says little, and comes last."""
    if len(names) <= _FEW:
        return [str(known) for known in names]
    begins = _longest(lambda n: pc.starts_with(names, name[:n], ignore_case=True), name)
    ends = _longest(lambda n: pc.ends_with(names, name[-n:], ignore_case=True), name)
    similar = sorted((names.filter(mask) for mask in (begins, ends) if mask is not None), key=len)
    return [str(known) for alike in similar for known in alike[:_FEW]][:_FEW]


def _longest(shared: Callable[[int], pa.ChunkedArray], name: str) -> pa.ChunkedArray | None:
    """The names with the longest shared beginning (or end); None if no name shares a letter."""
    masks = (shared(length) for length in range(len(name), 0, -1))
    return next((mask for mask in masks if pc.any(mask).as_py()), None)


def first_of_each_name(
    templates: Sequence[Template], findings: list[Finding]
) -> dict[str, Template]:
    """The queries of files by name. A query whose name is taken is reported and left out."""
    by_name: dict[str, Template] = {}
    for template in templates:
        first = by_name.setdefault(template.name, template)
        if first is not template:
            place = first.rule(0).origin
            findings.append(
                _of_query(template, f"the name `{template.name}` is taken: {place} has it")
            )
    return by_name


def duplicates(templates: Sequence[Template]) -> Iterator[Finding]:
    """Findings for names that several rules have. A NULL name is reported elsewhere."""
    names = all_names(templates)
    counted = pc.value_counts(names.drop_null().combine_chunks())
    twice = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
    if not len(twice):
        return
    starts = np.cumsum([0, *map(len, templates)])
    places: dict[str, list[Place]] = {}
    for at in pc.indices_nonzero(pc.is_in(names, twice)).to_pylist():
        which = int(np.searchsorted(starts, at, side="right")) - 1
        places.setdefault(str(names[at]), []).append((templates[which], at - int(starts[which])))
    for name, (first, *others) in places.items():
        if name.strip():
            yield from _taken(name, first, others)


def _taken(name: str, first: Place, others: Sequence[Place]) -> Iterator[Finding]:
    by_template: dict[int, list[Place]] = {}
    for place in others:
        by_template.setdefault(id(place[0]), []).append(place)
    for places in by_template.values():
        template = places[0][0]
        same = template is first[0] and template.rows is not None
        whose = f"row {template.number(first[1])}" if same else first[0].rule(first[1]).origin
        message = f"the name `{name}` is taken: {whose} has it"
        if template.rows is None:
            yield _of_query(template, message)
        else:
            rows = tuple(template.number(row) for _, row in places)
            hint = "give every rule a different name"
            yield Finding(template.origin, message, hint, rows, template.name)


# ── rules that read rules ────────────────────────────────────────────────────


def resubscriptions(
    templates: Sequence[Template], schema: Schema | None = None
) -> Iterator[Finding]:
    """Queries that name what another one finds, by its INTO. Run together as queries they would
    read its matches (see `query.several`); in a set they would look for events of that type, and
    find nothing without a word. If there are such events, streams of matches would have to be told
    apart from them, too. Its own label is no such name: a rule reads in a set what it reads alone.

    A bare name in a pattern is the type of an event if events have types, and else an alias: those
    are reported if the schema is given, and all others if not.
    """
    labels = {t.label: t for t in templates if t.label is not None}
    if schema is not None:
        typed = schema.type is not None or schema.streams is not None
        labels = {n: t for n, t in labels.items() if typed and n not in (schema.streams or ())}
    for template in _readers(templates, labels.keys(), schema is not None) if labels else ():
        source = template.query.source
        for name, place in _read(template.query.syntax, source, bare=schema is not None):
            if name in labels and name != template.label:
                other = labels[name].query
                message = (
                    f"rules of a set read events only, and `{name}` is the output of the "
                    f"query at {other.name}:{other.line}"
                )
                diagnostic = Diagnostic("CEP201", message, place, source, _INSTEAD)
                yield of_diagnostic(diagnostic, template.name)


def _readers(
    templates: Sequence[Template], labels: Collection[str], bare: bool
) -> Iterator[Template]:
    """The queries that name one of the labels. Queries with the same frame name the same ones."""
    known: dict[object, bool] = {}
    for template in templates:
        frame = id(template) if template.outline is None else template.outline.frame
        if frame not in known:
            query = template.query
            names = (name for name, _ in _read(query.syntax, query.source, bare))
            known[frame] = any(name in labels for name in names)
        if known[frame]:
            yield template


def _read(query: ast.Query, source: Source, bare: bool) -> Iterator[tuple[str, ast.Span]]:
    """The event types that a query's pattern names, bare or with an alias, and the streams."""
    for leaf in leaves(query.pattern):
        match leaf:
            case ast.Atom(name=name, alias=alias) if (alias is None) is bare:
                yield name, leaf.span
            case ast.AnyOf(types=types) if not bare:
                yield from ((name, leaf.span) for name in types)
    for name in query.streams if not bare else ():
        yield name, place_of(name, query, Findings(source))


def _of_query(template: Template, message: str) -> Finding:
    query, hint = template.query, "give it another name"
    if template.label != template.name:
        hint = "begin it with INTO and another name"
        return Finding(query.name, message, hint, (), template.name)
    place = place_of(template.name, query.syntax, Findings(query.source), "INTO")
    diagnostic = Diagnostic("CEP216", message, place, query.source, hint)
    return of_diagnostic(diagnostic, template.name)
