"""Patterns, or parts of them, as event automata.

They are the strategy for all that trees of joins can't run: where what is bound decides what is
taken next (`->`, `=>`, closure modes), the order of binding is part of the meaning. They run
everything else, too, disjunctions included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cepheid.algebra.binding.keys import implied
from cepheid.algebra.expressions import Attribute, Call
from cepheid.algebra.patterns import Closure, Pattern, leaves, walk
from cepheid.algebra.patterns import Sequence as SequencePattern
from cepheid.algebra.query import BoundQuery, Conjunct, KeyPart, Kind, Role, Variable
from cepheid.algebra.types import Type
from cepheid.language.ast import SequenceOperator
from cepheid.options import Limit
from cepheid.plan.nodes import STREAM, Automaton, LeafNode, Node, Plan
from cepheid.plan.nodes import walk as walk_plan

Place = tuple[str, str]
"""A variable and one of its columns."""


def automaton_plan(query: BoundQuery, limit: Limit | None = None) -> Plan:
    """One automaton for the whole pattern."""
    root = _automaton(query, query.pattern, query.where, query.key)
    return plan_of(query, (replace(root, checks=query.having),), limit)


def plan_of(query: BoundQuery, roots: tuple[Node, ...], limit: Limit | None = None) -> Plan:
    """What an engine must know of a query beside its roots. If some of them look at all events of
    the stream, these are a class of their own."""
    nodes = (node for root in roots for node in walk_plan(root))
    strict = any(isinstance(node, LeafNode) and node.variable == STREAM for node in nodes)
    return Plan(
        alternatives=roots,
        variables={**query.variables, STREAM: _stream(query)} if strict else query.variables,
        outputs=query.outputs,
        window=query.window,
        key=tuple(_columns(part, query.key, strict) for part in query.key),
        schema=query.schema,
        required=query.required,
        renamed=query.renamed,
        selection=query.selection,
        limit=limit,
    )


def segment(query: BoundQuery, pattern: Pattern, where: tuple[Conjunct, ...]) -> Automaton:
    """A self-contained part of the pattern. Equalities that connect all its classes are a key of
    its own, unless something in it looks at events that a condition refuses."""
    key = query.key
    names = leaves(pattern)
    single = all(query.variables[name].kind is Kind.SINGLE for name in names)
    if single and not is_strict(pattern):
        links = {c.expression: link for c in where if (link := _link(c))}
        own_key = _own_key(query, names, tuple(links.values()))
        where = tuple(
            c
            for c in where
            if c.expression not in links or not implied(links[c.expression], own_key)
        )
        key = (*key, *own_key)
    return _automaton(query, pattern, where, key)


def _own_key(
    query: BoundQuery, names: Sequence[str], links: Sequence[tuple[Place, Place]]
) -> tuple[KeyPart, ...]:
    """The attributes that are equal in all classes of a part of the pattern, whatever is chosen."""
    bound = [name for name in names if query.variables[name].negation is None]
    negated = [name for name in names if name not in bound]
    both_ways = (*links, *((right, left) for left, right in links))
    columns = dict.fromkeys(column for (name, column), _ in both_ways if name == bound[0])
    grown = (_grown((bound[0], column), (*bound[1:], *negated), both_ways) for column in columns)
    return tuple(KeyPart(part) for part in grown if part is not None)


def _grown(
    first: Place, others: Sequence[str], links: Sequence[tuple[Place, Place]]
) -> Mapping[str, str] | None:
    """A part of the key, class by class: an event must equal one that is bound before it, since
    what is bound later, or forbidden, doesn't choose it."""
    columns = dict((first,))
    for name in others:
        equal = [
            column
            for known, (linked, column) in links
            if linked == name and known in columns.items()
        ]
        if not equal:
            return None
        columns[name] = equal[0]
    return columns


def is_strict(pattern: Pattern) -> bool:
    """Whether a part reads events of the stream that the pattern doesn't name."""
    return any(
        (isinstance(p, SequencePattern) and SequenceOperator.STRICT in p.operators)
        or (isinstance(p, Closure) and p.strict)
        for p in walk(pattern)
    )


def _automaton(
    query: BoundQuery, pattern: Pattern, where: tuple[Conjunct, ...], key: Sequence[KeyPart]
) -> Automaton:
    filters = _leaf_filters(pattern, where)
    nodes = [
        LeafNode(name, tuple(c.expression for c in filters if c.variables == (name,)))
        for name in leaves(pattern)
    ]
    strict = is_strict(pattern)
    if strict:
        nodes.append(LeafNode(STREAM))
    types = query.schema.columns
    parts = [_columns(part, key, strict) for part in key]
    return Automaton(
        pattern=pattern,
        leaves=tuple(nodes),
        where=tuple(c for c in where if c not in filters),
        key=tuple(
            tuple(
                Attribute(node.variable, columns[node.variable], types[columns[node.variable]])
                if node.variable in columns
                else None
                for node in nodes
            )
            for columns in parts
        ),
    )


def _leaf_filters(pattern: Pattern, where: tuple[Conjunct, ...]) -> tuple[Conjunct, ...]:
    """The conjuncts that leaves apply: they read one event, so they always belong to its class.

    UNTIL also looks at events that a filter refuses, so those of its closure stay above.
    """
    until = frozenset(
        name
        for p in walk(pattern)
        if isinstance(p, Closure) and p.until is not None
        for name in leaves(p)
    )
    present = frozenset(leaves(pattern)) - until
    return tuple(
        c
        for c in where
        if c.role is Role.CLASS and len(c.variables) == 1 and c.variables[0] in present
    )


def _link(conjunct: Conjunct) -> tuple[Place, Place] | None:
    """The attributes of two classes that the conjunct makes equal."""
    match conjunct.expression:
        case Call("=", (Attribute() as left, Attribute() as right)) if left.type is right.type:
            if left.type in (Type.DECIMAL, Type.OTHER) or left.variable == right.variable:
                return None
            return (left.variable, left.name), (right.variable, right.name)
        case _:
            return None


def _columns(part: KeyPart, key: Sequence[KeyPart], strict: bool) -> Mapping[str, str]:
    """The columns of a part of the key, for the stream's events too where they have one: unless
    every part is uniform, `=>` looks at the whole stream (docs/language.md, Key)."""
    if strict and all(p.uniform is not None for p in key):
        return {**part.columns, STREAM: str(part.uniform)}
    return part.columns


def _stream(query: BoundQuery) -> Variable:
    return Variable(STREAM, (), Kind.SINGLE, None, tuple(query.schema.columns))
