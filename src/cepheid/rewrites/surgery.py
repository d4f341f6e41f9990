"""Cutting patterns: parts replaced, taken out, renumbered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Every,
    Expr,
    Previous,
    PreviousOr,
    Reduce,
    Some,
    TimeSpan,
    Whole,
    transform,
)
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
)
from cepheid.algebra.query import BoundQuery, Conjunct
from cepheid.language.ast import Between, Exactly, Optional, SequenceOperator


def replaced(pattern: Pattern, old: Pattern, new: Pattern) -> Pattern:
    """The pattern with another part in the place of the old one. Variables are unique, so a part
    stands in a pattern once."""
    if pattern == old:
        return new

    def inside(item: Pattern) -> Pattern:
        return replaced(item, old, new)

    return with_items(pattern, inside)


def union(left: Pattern, right: Pattern, reads: Iterable[frozenset[str]]) -> Disjunction:
    """Either, on one level; unless a condition reads two branches of one of them: it must not
    come to apply to the other."""
    known = list(reads)

    def branches(pattern: Pattern) -> tuple[Pattern, ...]:
        if not isinstance(pattern, Disjunction):
            return (pattern,)
        inside = [frozenset(leaves(item)) for item in pattern.items]
        mixed = any(sum(bool(read & branch) for branch in inside) > 1 for read in known)
        return (pattern,) if mixed else pattern.items

    return Disjunction((*branches(left), *branches(right)))


def with_items(pattern: Pattern, change: Callable[[Pattern], Pattern]) -> Pattern:
    """The same operator over changed items."""
    match pattern:
        case Leaf():
            return pattern
        case Sequence() | Conjunction() | Disjunction():
            return replace(pattern, items=tuple(map(change, pattern.items)))
        case Negation() | Absence() | Closure() | Delay():
            return replace(pattern, item=change(pattern.item))
        case Unless():
            item, exception = change(pattern.item), change(pattern.exception)
            return replace(pattern, item=item, exception=exception)
        case _:
            assert_never(pattern)


def renumbered(query: BoundQuery, old: int, new: int) -> BoundQuery:
    """What belonged to one negation belongs to another."""
    variables = {
        name: replace(v, negation=new) if v.negation == old else v
        for name, v in query.variables.items()
    }
    where = tuple(_renumbered(c, old, new) for c in query.where)
    return replace(query, variables=variables, where=where)


def _renumbered(conjunct: Conjunct, old: int, new: int) -> Conjunct:
    return replace(conjunct, negation=new) if conjunct.negation == old else conjunct


def surviving(pattern: Pattern, dead: Pattern) -> Pattern | None:
    """What is left of the pattern if a part of it can't be bound; None: nothing.

    A part that is left as it was, because what is left of it can't be written, still has the
    dead one inside.
    """
    if pattern == dead:
        return None
    match pattern:
        case Leaf():
            return pattern
        case Sequence():
            return _sequence(pattern, dead)
        case Conjunction():
            kept = _members(pattern.items, dead)
            return None if kept is None else _one_or(Conjunction, kept)
        case Disjunction():
            branches = [b for item in pattern.items if (b := surviving(item, dead)) is not None]
            return _one_or(Disjunction, tuple(branches)) if branches else None
        case Closure():
            item = surviving(pattern.item, dead)
            if item is not None:
                return replace(pattern, item=item)
            return None if _needs_one(pattern) else pattern
        case Unless():
            whole = surviving(pattern.item, dead)
            if whole is None:
                return None
            exception = surviving(pattern.exception, dead)
            return whole if exception is None else Unless(whole, exception, pattern.index)
        case Absence():
            # Its time passes although nothing can be forbidden in it.
            inside = surviving(pattern.item, dead)
            return pattern if inside is None else replace(pattern, item=inside)
        case Negation() | Delay():
            inner = surviving(pattern.item, dead)
            return None if inner is None else replace(pattern, item=inner)
        case _:
            assert_never(pattern)


def _members(items: tuple[Pattern, ...], dead: Pattern) -> tuple[Pattern, ...] | None:
    """Without negations of what can't be; None if one that must be can't."""
    kept: list[Pattern] = []
    for item in items:
        left = surviving(item, dead)
        if left is not None:
            kept.append(left)
        elif not isinstance(item, Negation):
            return None
    return tuple(kept)


def _sequence(pattern: Sequence, dead: Pattern) -> Pattern | None:
    """The operator right of a negation relates its neighbors, so the one on its left goes with
    it."""
    items: list[Pattern] = []
    operators: list[SequenceOperator] = []
    for n, item in enumerate(pattern.items):
        left = surviving(item, dead)
        if left is None and not isinstance(item, Negation):
            return None
        if left is None and n == 0 and _strict_negation(pattern, 1):
            return pattern
        if left is None:
            continue
        if items:
            operators.append(pattern.operators[n - 1])
        items.append(left)
    return items[0] if len(items) == 1 else Sequence(tuple(items), tuple(operators))


def _strict_negation(pattern: Sequence, n: int) -> bool:
    strict = pattern.operators[n - 1] is SequenceOperator.STRICT
    return strict and isinstance(pattern.items[n], Negation)


def _one_or(kind: type[Conjunction] | type[Disjunction], items: tuple[Pattern, ...]) -> Pattern:
    return items[0] if len(items) == 1 else kind(items)


def _needs_one(closure: Closure) -> bool:
    match closure.quantifier:
        case Between(low, _):
            return low > 0
        case Exactly(count):
            return count > 0
        case Optional():
            return False
        case _:
            assert_never(closure.quantifier)


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """The expression about other variables."""

    def change(node: Expr) -> Expr | None:
        match node:
            case (
                Attribute()
                | Previous()
                | PreviousOr()
                | Aggregate()
                | Reduce()
                | Every()
                | Some()
                | Whole()
            ):
                other = names.get(node.variable)
                return None if other is None else replace(node, variable=other)
            case TimeSpan():
                return replace(node, variables=tuple(names.get(v, v) for v in node.variables))
            case _:
                return None

    return transform(expr, change)
