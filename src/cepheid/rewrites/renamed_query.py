"""A query in other names: nothing of what it means depends on what its variables are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cepheid.algebra.patterns import Closure, Leaf, Pattern, leaves
from cepheid.algebra.query import BoundQuery, Conjunct, KeyPart, Output, Renamed
from cepheid.rewrites.surgery import renamed, with_items

Names = Mapping[str, str]


def query_in(query: BoundQuery, names: Names, returned: Names) -> BoundQuery:
    """`names` has every variable of the query, and calls no two of them alike. Where RETURN's names
    and the pattern's differ, `returned` has RETURN's own."""
    pattern = pattern_in(query.pattern, names)
    order = {v: n for n, v in enumerate(leaves(pattern))}
    return_names = {r.name: returned[r.name] for r in query.renamed}
    variables = {
        names[v]: replace(variable, name=names[v]) for v, variable in query.variables.items()
    }
    for old, new in return_names.items():
        variables[new] = replace(query.variables[old], name=new)
    return replace(
        query,
        pattern=pattern,
        variables=variables,
        where=tuple(_conjunct(c, names, order) for c in query.where),
        having=tuple(renamed(h, names) for h in query.having),
        key=tuple(KeyPart({names[v]: c for v, c in p.columns.items()}) for p in query.key),
        outputs=tuple(
            Output(o.name, renamed(o.expression, {**names, **return_names})) for o in query.outputs
        ),
        renamed=tuple(
            Renamed(return_names[r.name], names[r.variable], frozenset(names[v] for v in r.within))
            for r in query.renamed
        ),
    )


def pattern_in(pattern: Pattern, names: Names) -> Pattern:
    match pattern:
        case Leaf(variable):
            return Leaf(names[variable])
        case Closure(item, until=until) if until is not None:
            return replace(pattern, item=pattern_in(item, names), until=renamed(until, names))
        case _:
            return with_items(pattern, lambda item: pattern_in(item, names))


def _conjunct(conjunct: Conjunct, names: Names, order: Mapping[str, int]) -> Conjunct:
    read = sorted((names[v] for v in conjunct.variables), key=order.__getitem__)
    target = None if conjunct.target is None else names[conjunct.target]
    expression = renamed(conjunct.expression, names)
    return replace(conjunct, expression=expression, variables=tuple(read), target=target)
