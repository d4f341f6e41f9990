"""Patterns of branches, and of events in any order, as chains: each is counted by itself, and the
number of matches is the sum.

`A a & B b` is `A a ; B b` and `B b ; A a`, if the events of one time are put one after the other in
some order: two different events are in one order or the other, and never in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import TypeAlias

from cepheid.algebra.expressions import Constant, Expr, variables
from cepheid.algebra.patterns import (
    Conjunction,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    leaves,
)
from cepheid.algebra.query import BoundQuery, Conjunct
from cepheid.algebra.structure import Structure, structure
from cepheid.answers.counted.counting_automaton import NotCounted
from cepheid.language.ast import SequenceOperator

MOST_BRANCHES = 24

Items: TypeAlias = tuple[Pattern, ...]


@dataclass(frozen=True)
class Branch:
    """A part of a query's matches, as a query. `loose`: events of one time are one after the
    other."""

    query: BoundQuery
    loose: bool


def branches_of(query: BoundQuery) -> tuple[Branch, ...]:
    """Raises `NotCounted` if the matches can't be divided, or there is one branch."""
    chains = list(_chains(query.pattern))
    if len(chains) == 1:
        raise NotCounted("a condition is about several events")
    if len(chains) > MOST_BRANCHES:
        raise NotCounted(f"the pattern has more than {MOST_BRANCHES} branches")
    parts = structure(query.pattern)
    return tuple(Branch(_part(query, parts, chain), loose) for chain, loose in chains)


def _chains(pattern: Pattern) -> Iterator[tuple[Items, bool]]:
    match pattern:
        case Disjunction(items):
            for item in items:
                yield from _chains(item)
        case Conjunction(items) if all(isinstance(item, Leaf) for item in items):
            for order in permutations(items):
                yield order, True
        case Sequence(items, operators):
            if any(operator is not SequenceOperator.ANY for operator in operators):
                raise NotCounted("`->` and `=>` choose among events")
            for parts in product(*(list(_in_order(item)) for item in items)):
                yield tuple(leaf for part in parts for leaf in part), False
        case Leaf():
            yield (pattern,), False
        case _:
            raise NotCounted("the pattern has a part that only whole matches decide")


def _in_order(item: Pattern) -> Iterator[Items]:
    """The chains of an item of a sequence."""
    if isinstance(item, Negation) and isinstance(item.item, Leaf):
        yield (item,)
        return
    for chain, loose in _chains(item):
        if loose:
            raise NotCounted("`&` stands in a sequence, and a condition is about several events")
        yield chain


def _part(query: BoundQuery, parts: Structure, chain: Items) -> BoundQuery:
    """The query of the matches that are this chain."""
    bound = frozenset(variable for item in chain for variable in leaves(item))
    taken = {d: n for variable in bound for d, n in parts.branches[variable].items()}
    where = tuple(c for c in query.where if _applies(c, parts, taken))
    if any(not bound.issuperset(c.variables) for c in where):
        raise NotCounted("a condition reads what only another branch has")
    if any(not bound >= variables(condition) for condition in query.having):
        raise NotCounted("HAVING reads what only another branch has")
    outputs = (
        replace(output, expression=_value(output.expression, bound)) for output in query.outputs
    )
    pattern = chain[0]
    if len(chain) > 1:
        pattern = Sequence(chain, (SequenceOperator.ANY,) * (len(chain) - 1))
    return replace(query, pattern=pattern, where=where, outputs=tuple(outputs))


def _applies(conjunct: Conjunct, parts: Structure, taken: dict[int, int]) -> bool:
    """Of no disjunction that the match decides, it reads only branches that aren't taken."""
    for disjunction, branch in taken.items():
        read = {
            parts.branches[v][disjunction]
            for v in conjunct.variables
            if disjunction in parts.branches[v]
        }
        if read and branch not in read:
            return False
    return True


def _value(expr: Expr, bound: frozenset[str]) -> Expr:
    """A value of what is absent is NULL."""
    read = variables(expr)
    if read <= bound:
        return expr
    if read & bound:
        raise NotCounted("a value is of events of several branches")
    return Constant(None, expr.type)
