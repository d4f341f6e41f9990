"""Names of rules are unique in a set, whichever templates they are in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.binding.findings import Findings, did_you_mean
from cepheid.algebra.binding.scope import place_of
from cepheid.language.diagnostics import Diagnostic
from cepheid.rules.findings import Finding, of_diagnostic
from cepheid.rules.template import Template

Place = tuple[Template, int]
"""A template, and a row of it, from 0."""

_FEW = 1000
"""How many names a misspelled name is compared with letter by letter."""


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


def _of_query(template: Template, message: str) -> Finding:
    query, hint = template.query, "give it another name"
    if template.label != template.name:
        hint = "begin it with INTO and another name"
        return Finding(query.name, message, hint, (), template.name)
    place = place_of(template.name, query.syntax, Findings(query.source), "INTO")
    diagnostic = Diagnostic("CEP216", message, place, query.source, hint)
    return of_diagnostic(diagnostic, template.name)
