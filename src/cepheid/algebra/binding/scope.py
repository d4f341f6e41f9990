"""Leaves become variables: what a name in the query stands for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import assert_never

import pyarrow as pa

from cepheid.algebra.binding.findings import Findings, did_you_mean
from cepheid.algebra.nested_columns import Missing, Reached, reach
from cepheid.algebra.query import Kind, Variable
from cepheid.algebra.types import Schema
from cepheid.language import ast
from cepheid.language.attribute_paths import read_path

AstLeaf = ast.Atom | ast.AnyOf


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables in the order of the pattern, and the names that stand for several of them."""

    schema: Schema
    variables: Mapping[str, Variable]
    ambiguous: frozenset[str]

    @property
    def positive(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables.values() if v.negation is None)

    def column(self, variable: Variable, name: str) -> str | None:
        """The variable's column that an attribute means: exactly, then without case if unique."""
        if name in variable.columns:
            return name
        folded = [c for c in variable.columns if c.lower() == name.lower()]
        if len(folded) == 1:
            return folded[0]
        reached = None if folded else self.reach(variable, name)
        return str(reached.path) if isinstance(reached, Reached) else None

    def reach(self, variable: Variable, name: str) -> Reached | Missing | None:
        """Where a path leads, of which the name may be the text; None if it is no path into one
        of the variable's columns."""
        path = read_path(name)
        nested = self.schema.nested
        if path is None:
            return None
        return reach(path, {c: nested.get(c, pa.null()) for c in variable.columns})

    def complete(self, variable: Variable, column: str) -> bool:
        """Does every event of the variable have the column (not only those of some streams)?"""
        return not self.owners(variable, column, having=False)

    def owners(self, variable: Variable, column: str, *, having: bool = True) -> tuple[str, ...]:
        """The variable's streams that have the column, or with `having` False those that don't."""
        streams = self.schema.streams
        if streams is None:
            return variable.types if having else ()
        columns_of = {t: self.schema.own_columns(t) or frozenset() for t in variable.types}
        return tuple(t for t, columns in columns_of.items() if (column in columns) is having)

    def lookup(self, name: str, span: ast.Span, findings: Findings) -> Variable | None:
        """The variable of that name, or a finding and None."""
        if name in self.ambiguous:
            hint = f"give each an alias, as in `{name} {name.lower()}1`"
            message = f"`{name}` is ambiguous: it stands in the pattern more than once"
            findings.add("CEP203", message, span, hint)
            return None
        variable = self.variables.get(name)
        if variable is None:
            aliases = [v.name for v in self.variables.values() if name in v.types]
            owners = [v.name for v in self.positive if name in v.columns]
            if aliases:
                hint = f"the pattern calls it `{aliases[0]}`"
            elif owners:
                hint = f"say whose it is: `{owners[0]}.{name}`"
            else:
                hint = did_you_mean(name, self.variables, f"variables are {listed(self.variables)}")
            findings.add("CEP203", f"the pattern has no variable `{name}`", span, hint)
        return variable


def listed(names: Collection[str], most: int = 8) -> str:
    shown = [f"`{n}`" for n in names][:most]
    return ", ".join(shown if len(names) <= most else [*shown, "…"])


def leaves(pattern: ast.Pattern) -> Iterator[AstLeaf]:
    """In the order of the pattern."""
    match pattern:
        case ast.Atom() | ast.AnyOf():
            yield pattern
        case ast.Sequence() | ast.Conjunction() | ast.Disjunction():
            for item in pattern.items:
                yield from leaves(item)
        case ast.Negation() | ast.Closure() | ast.Delay():
            yield from leaves(pattern.item)
        case ast.Unless():
            yield from leaves(pattern.item)
            yield from leaves(pattern.exception)
        case _:
            assert_never(pattern)


def types_of(pattern: ast.Pattern) -> tuple[str, ...]:
    """The types (or streams) that a pattern names, where events have types."""
    named = (
        leaf.types if isinstance(leaf, ast.AnyOf) else (leaf.name,) for leaf in leaves(pattern)
    )
    return tuple(dict.fromkeys(name for types in named for name in types))


def names(pattern: ast.Pattern, typed: bool, findings: Findings) -> tuple[str, ...]:
    """The variable of each leaf, in order.

    An alias, or the type's name; a second leaf of that name is `A_2`, of which conditions can
    speak, while plain `A` is then ambiguous.
    """
    given = Counter(_explicit(leaf, typed) for leaf in leaves(pattern))
    taken = {name for name in given if name is not None}
    seen: set[str] = set()
    result: list[str] = []
    for leaf in leaves(pattern):
        name = _explicit(leaf, typed)
        if name is None:
            wanted = leaf.name if isinstance(leaf, ast.Atom) else "any"
            name = _free(wanted, taken)
            taken.add(name)
        elif name in seen:
            message = f"the alias `{name}` is given twice"
            findings.add("CEP202", message, leaf.span, "give this event another name")
            name = _free(name, taken)
            taken.add(name)
        else:
            seen.add(name)
        result.append(name)
    return tuple(result)


def _explicit(leaf: AstLeaf, typed: bool) -> str | None:
    if leaf.alias is not None or typed or isinstance(leaf, ast.AnyOf):
        return leaf.alias
    return leaf.name


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def ambiguous(pattern: ast.Pattern, typed: bool) -> frozenset[str]:
    unaliased = Counter(
        leaf.name
        for leaf in leaves(pattern)
        if typed and isinstance(leaf, ast.Atom) and leaf.alias is None
    )
    return frozenset(name for name, count in unaliased.items() if count > 1)


def restrict(schema: Schema, query: ast.Query, findings: Findings) -> Schema:
    """FROM names the streams that the query reads; over one nameless stream it is a label."""
    if query.into is not None and query.into in query.streams:
        message = f"the query reads `{query.into}`, so its output can't have this name"
        place = place_of(query.into, query, findings, "INTO")
        findings.add("CEP216", message, place, "give the output another name")
    if schema.streams is None or not query.streams:
        return schema
    for name in query.streams:
        if name not in schema.streams:
            hint = did_you_mean(name, schema.streams, f"streams are {listed(schema.streams)}")
            findings.add(
                "CEP201", f"there is no stream `{name}`", place_of(name, query, findings), hint
            )
    if not set(query.streams) <= schema.streams.keys():
        return schema
    return replace(schema, streams={n: schema.streams[n] for n in query.streams})


def labelled(query: ast.Query, schema: Schema) -> ast.Query:
    """`FROM trades t` over one stream that has neither a name nor types: `trades` is a label, as in
    `PATTERN t FROM trades`."""
    pattern = query.pattern
    sources = pattern.items if isinstance(pattern, ast.Conjunction) else (pattern,)
    atoms = [item for item in sources if isinstance(item, ast.Atom)]
    typed = schema.type is not None or schema.streams is not None
    if not query.relational or typed or len({atom.name for atom in atoms}) > 1:
        return query
    bare = [replace(a, name=a.alias or a.name, alias=None) for a in atoms]
    if isinstance(pattern, ast.Conjunction):
        return replace(query, pattern=replace(pattern, items=tuple(bare)))
    return replace(query, pattern=bare[0])


def place_of(name: str, query: ast.Query, findings: Findings, clause: str = "FROM") -> ast.Span:
    """Where the clause names the stream; the AST keeps no spans of single names."""
    named = rf"(?is)\b{clause}\b.*?(?<!\w)({re.escape(name)})(?!\w)"
    mention = re.search(named, findings.source.text)
    return ast.Span(*mention.span(1)) if mention else query.span


def declare(
    pattern: ast.Pattern, schema: Schema, findings: Findings, left_out: Collection[str] = ()
) -> Scope:
    """Every leaf's variable, with its types, columns, kind and negation.

    `left_out` are streams that exist, but not for this query.
    """
    typed = schema.type is not None or schema.streams is not None
    given = iter(names(pattern, typed, findings))
    counter = count()
    variables: dict[str, Variable] = {}

    def visit(item: ast.Pattern, kind: Kind, negation: int | None) -> None:
        match item:
            case ast.Atom() | ast.AnyOf():
                name = next(given)
                types = _types(item, typed, findings)
                _check_streams(item, types, schema, findings, left_out)
                present = schema.columns_of(types)
                written = (c for c in schema.columns if c not in schema.paths)
                columns = tuple(c for c in written if c in present)
                variables[name] = Variable(name, types, kind, negation, columns)
            case ast.Sequence() | ast.Conjunction() | ast.Disjunction():
                for part in item.items:
                    visit(part, kind, negation)
            case ast.Negation():
                visit(item.item, Kind.SINGLE, next(counter))  # each round has its own
            case ast.Closure():
                optional = isinstance(item.quantifier, ast.Optional) and kind is Kind.SINGLE
                visit(item.item, Kind.OPTIONAL if optional else Kind.GROUP, negation)
            case ast.Unless():
                index = next(counter)
                visit(item.item, kind, negation)
                visit(item.exception, Kind.SINGLE, index)
            case ast.Delay():
                visit(item.item, kind, negation)
            case _:
                assert_never(item)

    visit(pattern, Kind.SINGLE, None)
    return Scope(schema, variables, ambiguous(pattern, typed))


def _types(leaf: AstLeaf, typed: bool, findings: Findings) -> tuple[str, ...]:
    if isinstance(leaf, ast.AnyOf):
        types: tuple[str, ...] = tuple(dict.fromkeys(leaf.types))
    elif typed or leaf.alias is not None:
        types = (leaf.name,)
    else:
        types = ()
    if types and not typed:
        message = f"`{types[0]}` is an event type, but the events have no type column"
        findings.add("CEP201", message, leaf.span, 'say which column it is, as in type="name"')
        return ()
    return types


def _check_streams(
    leaf: AstLeaf,
    types: tuple[str, ...],
    schema: Schema,
    findings: Findings,
    left_out: Collection[str],
) -> None:
    if schema.streams is None:
        return
    for name in types:
        if name in left_out:
            hint = "name it there, too"
            findings.add("CEP201", f"FROM leaves out the stream `{name}`", leaf.span, hint)
        elif schema.own_columns(name) is None:
            hint = did_you_mean(name, schema.streams, f"streams are {listed(schema.streams)}")
            findings.add("CEP201", f"there is no stream `{name}`", leaf.span, hint)
