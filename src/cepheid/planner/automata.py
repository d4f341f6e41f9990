"""Plans in which one event automaton evaluates the whole pattern.

It is the strategy for all that trees of joins can't run: where what is bound decides what is taken
next (`->`, `=>`, closure modes), the order of binding is part of the meaning. It runs everything
else, too, disjunctions included.
"""

from __future__ import annotations

from collections.abc import Mapping

from cepheid.algebra.expressions import Attribute
from cepheid.algebra.patterns import Closure, Pattern, Sequence, leaves, walk
from cepheid.algebra.query import BoundQuery, Conjunct, Kind, Role, Variable
from cepheid.language.ast import SequenceOperator
from cepheid.plan.nodes import STREAM, Automaton, Leaf, Plan


def automaton_plan(query: BoundQuery) -> Plan:
    """One automaton for the whole pattern."""
    strict = is_strict(query.pattern)
    names = leaves(query.pattern)
    filters = leaf_filters(query.pattern, query.where)
    nodes = [
        Leaf(name, tuple(c.expression for c in filters if c.variables == (name,))) for name in names
    ]
    if strict:
        nodes.append(Leaf(STREAM))
    root = Automaton(
        pattern=query.pattern,
        leaves=tuple(nodes),
        where=tuple(c for c in query.where if c not in filters),
        checks=query.having,
        key=_key(query, tuple(node.variable for node in nodes)),
    )
    return Plan(
        alternatives=(root,),
        variables={**query.variables, STREAM: _stream(query)} if strict else query.variables,
        outputs=query.outputs,
        window=query.window,
        key=tuple(_columns(query, part.columns, strict) for part in query.key),
        schema=query.schema,
        required=query.required,
        renamed=query.renamed,
        after_match=query.after_match,
    )


def is_strict(pattern: Pattern) -> bool:
    """Whether some of it looks at events of the stream that the pattern doesn't name."""
    return any(
        (isinstance(p, Sequence) and SequenceOperator.STRICT in p.operators)
        or (isinstance(p, Closure) and p.strict)
        for p in walk(pattern)
    )


def leaf_filters(pattern: Pattern, where: tuple[Conjunct, ...]) -> tuple[Conjunct, ...]:
    """The conjuncts that leaves apply: they read one event, so they always belong to its class.

    UNTIL also looks at events that a filter refuses, so those of its closure stay above.
    """
    present = frozenset(leaves(pattern))
    until = frozenset(
        name
        for p in walk(pattern)
        if isinstance(p, Closure) and p.until is not None
        for name in leaves(p)
    )
    return tuple(
        c
        for c in where
        if c.role is Role.CLASS and len(c.variables) == 1 and c.variables[0] in present - until
    )


def _uniform(query: BoundQuery) -> bool:
    """Whether every event of the stream has its place among the keys: otherwise `=>` looks at the
    whole stream (semantics: partition key)."""
    return all(part.uniform is not None for part in query.key)


def _key(query: BoundQuery, names: tuple[str, ...]) -> tuple[tuple[Attribute | None, ...], ...]:
    def attribute(variable: str, columns: dict[str, str]) -> Attribute | None:
        column = columns.get(variable)
        if column is None:
            return None
        return Attribute(variable, column, query.schema.columns[column])

    parts = (_columns(query, part.columns, STREAM in names) for part in query.key)
    return tuple(tuple(attribute(name, columns) for name in names) for columns in parts)


def _columns(query: BoundQuery, columns: Mapping[str, str], strict: bool) -> dict[str, str]:
    """The columns of a part of the key, for the stream's events too where they have one."""
    if strict and _uniform(query):
        return {**columns, STREAM: next(iter(columns.values()))}
    return dict(columns)


def _stream(query: BoundQuery) -> Variable:
    return Variable(STREAM, (), Kind.SINGLE, None, tuple(query.schema.columns))
