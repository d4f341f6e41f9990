"""A chain of `->` after `->`: one level less (NEXT 4.3, associativity).

P -> (Q -> R) = P -> Q -> R

On the left the arrow takes the first of the inner matches, on the right the first Q, and then the
first R after it. They are the same where the inner match of an earlier Q never ends later: the
inner items are single events, and no condition on R reads another event. Then R's time grows with
Q's, and of those with equal ends the one with the earliest Q is first. Conditions between P and Q
may stand: they choose among the Qs either way. Equalities of the partition key may stand as well,
because within a key they are true.

A nested chain makes every inner match before the outer arrow takes one of them: its cost grows
with the cube of the events in four items, that of the flat chain linearly.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import replace

from cepheid.algebra.patterns import Leaf, Pattern, Sequence, walk
from cepheid.algebra.query import BoundQuery, Role
from cepheid.language.ast import SequenceOperator
from cepheid.rewrites.law import Facts, Rewrite
from cepheid.rewrites.surgery import replaced


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    for part in walk(query.pattern):
        if not isinstance(part, Sequence):
            continue
        for place, item in enumerate(part.items[1:], start=1):
            if part.operators[place - 1] is SequenceOperator.NEXT and _chain(item, query):
                return replace(query, pattern=replaced(query.pattern, part, _joined(part, place)))
    return None


def _chain(item: Pattern, query: BoundQuery) -> bool:
    """Whether the item is a chain of `->` in which an earlier first event never ends later."""
    if not isinstance(item, Sequence) or set(item.operators) != {SequenceOperator.NEXT}:
        return False
    names = [leaf.variable for leaf in item.items if isinstance(leaf, Leaf)]
    return len(names) == len(item.items) and _free(names, query)


def _free(names: Items[str], query: BoundQuery) -> bool:
    """Whether conditions choose each event of the chain but the first by its values alone."""
    first, later = names[0], set(names[1:])
    for conjunct in query.where:
        read = set(conjunct.variables)
        if conjunct.role is not Role.CLASS and read & later:
            return False
        if conjunct.role not in (Role.CLASS, Role.EQUALITY, Role.MULTI) and first in read:
            return False
    return True


def _joined(outer: Sequence, place: int) -> Sequence:
    inner = outer.items[place]
    assert isinstance(inner, Sequence)
    return Sequence(
        (*outer.items[:place], *inner.items, *outer.items[place + 1 :]),
        (*outer.operators[:place], *inner.operators, *outer.operators[place:]),
    )


REWRITE = Rewrite("association", "P -> (Q -> R) = P -> Q -> R", apply)
