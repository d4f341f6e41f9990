"""A pattern with disjunctions as alternatives without disjunctions.

`(A | B) ; C` is `A ; C` or `B ; C`: a disjunction is never materialized (ZStream 4.4.4), and each
alternative has only variables that are bound in all its matches, so its equalities can be hash
joins. What two alternatives have in common is shared again as equal subtrees of their plans.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import assert_never

from cepheid.algebra.absence import applies, without_absent
from cepheid.algebra.expressions import Expr, variables
from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    leaves,
    walk,
)
from cepheid.algebra.query import BoundQuery, Conjunct
from cepheid.errors import PlanError
from cepheid.language.ast import SequenceOperator
from cepheid.plan.nodes import Automaton

MOST_ALTERNATIVES = 128
"""More take longer than a second to plan. An automaton runs the pattern then."""


@dataclass(frozen=True)
class Alternative:
    """One choice of branches: a pattern without disjunctions and the conditions that apply.
    `segments` are items of the pattern that automata evaluate, with all conditions inside them."""

    pattern: Pattern
    where: tuple[Conjunct, ...]
    having: tuple[Expr, ...]
    segments: tuple[tuple[Pattern, Automaton], ...] = ()


def alternatives(query: BoundQuery) -> tuple[Alternative, ...]:
    """Every choice of branches of the query's disjunctions, in the order of the pattern."""
    count = count_alternatives(query)
    if count > MOST_ALTERNATIVES:
        raise PlanError(
            f"the disjunctions of this pattern multiply to {count} alternatives, and trees are "
            f"made for at most {MOST_ALTERNATIVES}; an automaton runs it (engine='nfa')"
        )
    patterns = _expand(query.pattern)
    disjunctions = tuple(p for p in walk(query.pattern) if isinstance(p, Disjunction))
    return tuple(_restrict(query, pattern, disjunctions) for pattern in patterns)


def count_alternatives(query: BoundQuery) -> int:
    """The number of alternatives, without making them."""
    return _count(query.pattern)


def _count(pattern: Pattern) -> int:
    match pattern:
        case Leaf() | Negation() | Absence():
            return 1
        case Disjunction():
            return sum(_count(item) for item in pattern.items)
        case Sequence() | Conjunction():
            return math.prod(_count(item) for item in pattern.items)
        case Closure() | Delay() | Unless():
            return _count(pattern.item)
        case _:
            assert_never(pattern)


def _restrict(
    query: BoundQuery, pattern: Pattern, disjunctions: tuple[Disjunction, ...]
) -> Alternative:
    present = frozenset(leaves(pattern))
    return Alternative(
        pattern,
        tuple(
            replace(
                c,
                expression=without_absent(c.expression, present),
                variables=tuple(v for v in c.variables if v in present),
            )
            for c in query.where
            if applies(c.variables, present, disjunctions)
        ),
        tuple(
            without_absent(h, present)
            for h in query.having
            if applies(variables(h), present, disjunctions)
        ),
    )


def _expand(pattern: Pattern) -> list[Pattern]:
    """All choices of branches. A negated disjunction is no choice: each of its branches is
    forbidden."""
    match pattern:
        case Leaf() | Negation() | Absence():
            return [pattern]
        case Disjunction():
            return [choice for item in pattern.items for choice in _expand(item)]
        case Sequence():
            return [
                _sequence(items, pattern.operators)
                for items in product(*(_expand(item) for item in pattern.items))
            ]
        case Conjunction():
            return [
                Conjunction(tuple(i for item in items for i in _members(item)))
                for items in product(*(_expand(item) for item in pattern.items))
            ]
        case Closure() | Delay():
            return [replace(pattern, item=item) for item in _expand(pattern.item)]
        case Unless():
            return [replace(pattern, item=item) for item in _expand(pattern.item)]
        case _:
            assert_never(pattern)


def _sequence(items: tuple[Pattern, ...], operators: tuple[SequenceOperator, ...]) -> Pattern:
    """A choice may put a sequence into a sequence; plain `;` is associative, so it is flattened."""
    flat: list[Pattern] = []
    between: list[SequenceOperator] = []
    for i, item in enumerate(items):
        if i > 0:
            between.append(operators[i - 1])
        plain = isinstance(item, Sequence) and all(
            o is SequenceOperator.ANY for o in (*item.operators, *operators)
        )
        if isinstance(item, Sequence) and plain:
            flat.extend(item.items)
            between.extend(item.operators)
        else:
            flat.append(item)
    return Sequence(tuple(flat), tuple(between))


def _members(item: Pattern) -> Iterator[Pattern]:
    if isinstance(item, Conjunction):
        yield from item.items
    else:
        yield item


def negated_branches(negation: Negation) -> Iterator[Pattern]:
    """`!(A | B)` forbids each of A and B."""
    yield from _expand(negation.item)
