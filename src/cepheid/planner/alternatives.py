"""A pattern with disjunctions as alternatives without.

`(A | B) ; C` is `A ; C` or `B ; C`: a disjunction is never materialized (ZStream 4.4.4), and each
alternative has only variables that are bound in all its matches, so its equalities can be hash
joins. What two alternatives have in common is shared again as equal subtrees of their plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import assert_never

from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Constant,
    Every,
    Expr,
    Previous,
    Some,
    TimeSpan,
    Whole,
    transform,
    variables,
)
from cepheid.algebra.patterns import (
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
from cepheid.errors import UnsupportedError
from cepheid.language.ast import SequenceOperator

MOST_ALTERNATIVES = 256


@dataclass(frozen=True)
class Alternative:
    """One choice of branches: a pattern without disjunctions and the conditions that apply."""

    pattern: Pattern
    where: tuple[Conjunct, ...]
    having: tuple[Expr, ...]


def alternatives(query: BoundQuery) -> tuple[Alternative, ...]:
    """Every choice of branches of the query's disjunctions, in the order of the pattern."""
    patterns = _expand(query.pattern)
    if len(patterns) > MOST_ALTERNATIVES:
        raise UnsupportedError(
            f"the disjunctions of this pattern multiply to {len(patterns)} alternatives, and at "
            f"most {MOST_ALTERNATIVES} can run; write ANY(..) where branches are single events"
        )
    disjunctions = tuple(p for p in walk(query.pattern) if isinstance(p, Disjunction))
    return tuple(_restrict(query, pattern, disjunctions) for pattern in patterns)


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


def applies(
    read: Iterable[str], present: frozenset[str], disjunctions: Iterable[Disjunction]
) -> bool:
    """Whether a conjunct counts for this choice: of every disjunction of which it reads exactly
    one branch, that branch was taken."""
    names = frozenset(read)
    for disjunction in disjunctions:
        branches = [b for branch in disjunction.items if (b := frozenset(leaves(branch))) & names]
        if len(branches) == 1 and not branches[0] & present:
            return False
    return True


def without_absent(expr: Expr, present: frozenset[str]) -> Expr:
    """Variables of branches not taken read as NULL."""

    def change(node: Expr) -> Expr | None:
        match node:
            case Attribute() | Previous() | Aggregate() | Whole() if node.variable not in present:
                return Constant(None, node.type)
            case Every() | Some() if node.variable not in present:
                return node.condition
            case TimeSpan():
                return replace(node, variables=tuple(v for v in node.variables if v in present))
            case _:
                return None

    return transform(expr, change)


def _expand(pattern: Pattern) -> list[Pattern]:
    """All choices. A negated disjunction is not a choice: each of its branches is forbidden."""
    match pattern:
        case Leaf() | Negation():
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
