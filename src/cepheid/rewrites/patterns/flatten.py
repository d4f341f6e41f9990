"""Sequences inside sequences, and so on: one level less.

P ; (Q … R) = P ; Q … R, and P => (Q … R) = P => Q … R
P & (Q & R) = P & Q & R
P | (Q | R) = P | Q | R

Of sequences it holds because events are bound from left to right either way. After `->` it
doesn't: there the inner pattern's matches are what the arrow chooses from. An inner sequence
must not begin with a negation, unless all operators around it are `;`: the operator right of a
negation relates its neighbors. Conditions that choose a closure's elements must still find what
they read beside it. And no condition may read two branches of a flat disjunction: it would see
NULL in more matches than before.

A plan search works on one level: it can't join across parentheses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

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
from cepheid.algebra.query import BoundQuery
from cepheid.language.ast import SequenceOperator
from cepheid.rewrites.condition_roles import reads, roles_hold
from cepheid.rewrites.law import Facts, Rewrite
from cepheid.rewrites.measure import simpler


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    pattern = flat(query.pattern)
    if not simpler(pattern, query.pattern):
        return None
    changed = replace(query, pattern=pattern)
    return changed if roles_hold(changed) and not _mixed(changed, query) else None


def _mixed(new: BoundQuery, old: BoundQuery) -> bool:
    """Whether a condition reads two branches of a disjunction that wasn't there before."""
    before = {p for p in walk(old.pattern) if isinstance(p, Disjunction)}
    made = [p for p in walk(new.pattern) if isinstance(p, Disjunction) and p not in before]
    branches = [[frozenset(leaves(item)) for item in p.items] for p in made]
    return any(sum(bool(read & b) for b in bs) > 1 for read in reads(new) for bs in branches)


def flat(pattern: Pattern) -> Pattern:
    match pattern:
        case Leaf():
            return pattern
        case Sequence():
            return _sequence(replace(pattern, items=tuple(map(flat, pattern.items))))
        case Conjunction() | Disjunction():
            items: list[Pattern] = []
            for item in map(flat, pattern.items):
                same = type(item) is type(pattern)
                nested = item.items if same and isinstance(item, Conjunction | Disjunction) else ()
                items.extend(nested or (item,))
            return replace(pattern, items=tuple(items))
        case Negation() | Absence() | Closure() | Delay():
            return replace(pattern, item=flat(pattern.item))
        case Unless():
            return replace(pattern, item=flat(pattern.item), exception=flat(pattern.exception))
        case _:
            assert_never(pattern)


def _sequence(pattern: Sequence) -> Sequence:
    items: list[Pattern] = []
    operators: list[SequenceOperator] = []
    for index, item in enumerate(pattern.items):
        before = pattern.operators[index - 1] if index else None
        if before is not None:
            operators.append(before)
        if isinstance(item, Sequence) and _joins(item, before):
            items.extend(item.items)
            operators.extend(item.operators)
        else:
            items.append(item)
    return Sequence(tuple(items), tuple(operators))


def _joins(inner: Sequence, before: SequenceOperator | None) -> bool:
    if before is None:
        return True
    if isinstance(inner.items[0], Negation | Absence):
        return {before, *inner.operators} == {SequenceOperator.ANY}
    return before is not SequenceOperator.NEXT


REWRITE = Rewrite("flatten", "P ; (Q ; R) = P ; Q ; R, and the same of & and |", apply)
