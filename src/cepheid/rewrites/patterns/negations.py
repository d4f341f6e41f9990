"""Negations side by side become one of alternatives (ZStream 5.2.1).

A ; (!B & !C) ; D = A ; !B ; !C ; D = A ; !(B | C) ; D
A & !B & !C = A & !(B | C)

Negations that have the same neighbors have the same gap, and that neither occurs in it is that
none of the two does. Both must be strict (`=>` left of them) or neither. The operator that
relates the neighbors is the one right of the last. The conditions of both negations are then
those of one; each reads one branch alone, since no condition may read two negations.
"""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.patterns import Conjunction, Negation, Pattern, Sequence, walk
from cepheid.algebra.query import BoundQuery
from cepheid.language.ast import SequenceOperator
from cepheid.rewrites.condition_roles import reads
from cepheid.rewrites.law import Facts, Rewrite
from cepheid.rewrites.measure import simpler
from cepheid.rewrites.surgery import renumbered, replaced, union


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    for part in walk(query.pattern):
        merge = _merged(part, query)
        if merge is None:
            continue
        merged, kept, gone = merge
        pattern = replaced(query.pattern, part, merged)
        if simpler(pattern, query.pattern):
            return renumbered(replace(query, pattern=pattern), gone, kept)
    return None


def _merged(pattern: Pattern, query: BoundQuery) -> tuple[Pattern, int, int] | None:
    """The pattern with two negations as one, the index that stays and the one that goes."""
    match pattern:
        case Sequence(items, operators):
            for n in range(len(items) - 1):
                first, second = items[n], items[n + 1]
                strict = n > 0 and operators[n - 1] is SequenceOperator.STRICT
                if not isinstance(first, Negation) or not isinstance(second, Negation):
                    continue
                if strict is (operators[n] is SequenceOperator.STRICT):
                    both = (*items[:n], _both(first, second, query), *items[n + 2 :])
                    between = (*operators[:n], *operators[n + 1 :])
                    whole = Sequence(both, between)
                    return whole, first.index, second.index
        case Conjunction(items):
            negations = [item for item in items if isinstance(item, Negation)]
            if len(negations) >= 2:
                first, second = negations[:2]
                rest = tuple(
                    _both(first, second, query) if item is first else item
                    for item in items
                    if item is not second
                )
                return Conjunction(rest), first.index, second.index
        case _:
            pass
    return None


def _both(first: Negation, second: Negation, query: BoundQuery) -> Negation:
    return Negation(union(first.item, second.item, reads(query)), first.index)


REWRITE = Rewrite("negations", "!A & !B = !(A | B), between the same neighbors", apply)
