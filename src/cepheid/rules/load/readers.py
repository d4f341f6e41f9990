"""Rules that read what other rules of the set find: who reads whom, and in which order they run.

A pattern that names the label of a query (its INTO), the name of a query or that of a rule reads
its matches, as several queries in one run do (`query.several`; Cayuga's resubscription, 3.5). By
its own name a rule reads events: it is the same rule in a set as alone. So do names that events
have: only a label that is also a type of events is an error, since it was written to be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from cepheid.algebra.binding.findings import Findings
from cepheid.algebra.binding.scope import leaves, place_of
from cepheid.errors import QueryError
from cepheid.language import ast
from cepheid.language.diagnostics import Diagnostic, Source
from cepheid.rules.findings import Finding, of_diagnostic
from cepheid.rules.template import Template


@dataclass(frozen=True)
class Provider:
    """What a name stands for: all rules of the template at this place, or the one of a row."""

    place: int
    row: int | None = None


Reads = Mapping[str, Provider]
"""The names that a query reads, each with what it stands for."""


def reading(
    templates: Sequence[Template], types: Collection[str] | None, typed: bool
) -> dict[int, Reads]:
    """The templates, by place, that read others. `types` are those of the events: without them,
    labels alone are read. A bare name in a pattern is a type only if events are `typed`."""
    known = _Names(templates, types)
    readers: dict[int, Reads] = {}
    frames: dict[object, frozenset[str]] = {}
    for place, template in enumerate(templates):
        frame = id(template) if template.outline is None else template.outline.frame
        if frame not in frames:
            query = template.query
            frames[frame] = frozenset(n for n, _ in named_in(query.syntax, query.source, typed))
        reads = {name: known.provider(name) for name in frames[frame]}
        others = {n: p for n, p in reads.items() if p is not None and p.place != place}
        if others:
            readers[place] = others
    return readers


class _Names:
    """What names stand for, looked up once for each."""

    def __init__(self, templates: Sequence[Template], types: Collection[str] | None) -> None:
        self._templates, self._types = templates, types
        self._labels = {t.label: n for n, t in enumerate(templates) if t.label is not None}
        self._queries = {t.name: n for n, t in enumerate(templates)}
        self._providers: dict[str, Provider | None] = {}

    def provider(self, name: str) -> Provider | None:
        if name not in self._providers:
            self._providers[name] = self._provider(name)
        return self._providers[name]

    def _provider(self, name: str) -> Provider | None:
        if name in self._labels:
            return Provider(self._labels[name])
        if self._types is None or name in self._types:
            return None
        if name in self._queries:
            return Provider(self._queries[name])
        for place, template in enumerate(self._templates):
            if template.rows is not None:
                row = pc.index(template.names, name).as_py()
                if row >= 0:
                    return Provider(place, row)
        return None


def named_in(query: ast.Query, source: Source, bare: bool) -> Iterator[tuple[str, ast.Span]]:
    """The event types and streams that a query names, and where. With `bare`, a name without an
    alias is a type, too."""
    for leaf in leaves(query.pattern):
        match leaf:
            case ast.Atom(name=name, alias=alias) if alias is not None or bare:
                yield name, leaf.span
            case ast.AnyOf(types=types):
                yield from ((name, leaf.span) for name in types)
    for name in query.streams:
        yield name, place_of(name, query, Findings(source))


def in_order(templates: Sequence[Template], reads: Mapping[int, Reads]) -> list[int]:
    """The places of the templates that read others, each after those that it reads. `QueryError`
    if they read each other in a circle."""
    ordered: list[int] = []

    def visit(place: int, path: tuple[int, ...]) -> None:
        if place in path:
            raise QueryError([_circle(templates, path[path.index(place) :], reads)])
        for provider in reads[place].values():
            if provider.place in reads:
                visit(provider.place, (*path, place))
        if place not in ordered:
            ordered.append(place)

    for place in reads:
        if place not in ordered:
            visit(place, ())
    return ordered


def _circle(
    templates: Sequence[Template], places: tuple[int, ...], reads: Mapping[int, Reads]
) -> Diagnostic:
    after = (*places[1:], places[0])
    names = [templates[place].name for place in after]
    first = templates[places[0]]
    read = next(name for name, p in reads[places[0]].items() if p.place == after[0])
    chain = ", which reads ".join(f"`{name}`" for name in names)
    message = f"rules read each other in a circle: `{first.name}` reads {chain}"
    return Diagnostic(
        "CEP217",
        message,
        place_read(first, read),
        first.query.source,
        "one of them must read events alone",
    )


def place_read(template: Template, name: str) -> ast.Span:
    """Where the query names what it reads."""
    query = template.query
    return next(span for n, span in named_in(query.syntax, query.source, True) if n == name)


def circles(templates: Sequence[Template]) -> Iterator[Finding]:
    """Findings for rules that read each other's labels in a circle, and for labels that several
    queries have and another one reads."""
    reads = reading(templates, None, False)
    labels = [template.label for template in templates]
    for place, names in reads.items():
        for name, provider in names.items():
            if labels.count(name) > 1:
                template, other = templates[place], templates[provider.place].query
                message = f"several queries are called `{name}`, such as {other.name}:{other.line}"
                diagnostic = Diagnostic(
                    "CEP216",
                    message,
                    place_read(template, name),
                    template.query.source,
                    "give each a label of its own",
                )
                yield of_diagnostic(diagnostic, template.name)
    try:
        in_order(templates, reads)
    except QueryError as error:
        yield from (of_diagnostic(diagnostic) for diagnostic in error.diagnostics)


def first_and_following(
    templates: tuple[Template, ...],
) -> tuple[tuple[Template, ...], tuple[tuple[str, int], ...]]:
    """The templates that read no label; the names of the others, and how many rules each has."""
    reads = reading(templates, None, False)
    first = tuple(t for n, t in enumerate(templates) if n not in reads)
    return first, tuple((templates[n].name, len(templates[n])) for n in reads)
