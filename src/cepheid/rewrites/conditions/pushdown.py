"""HAVING's conditions move into WHERE.

HAVING p = WHERE p

Holds if no `->` stands in the pattern: WHERE then makes no event be looked for in another's
place, whether or not the pattern has closures and negations, since a condition of HAVING reads
bound events and complete groups alone. Of a closure over a pattern nothing moves: its rounds are
known only at the end.

A condition of WHERE is checked as soon as its events are there, one of HAVING on complete matches.
"""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.expressions import Expr, variables
from cepheid.algebra.patterns import Closure, Leaf, leaves, walk
from cepheid.algebra.query import BoundQuery
from cepheid.rewrites.condition_roles import classify, has_next
from cepheid.rewrites.law import Facts, Rewrite


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    if has_next(query.pattern):
        return None
    for place, condition in enumerate(query.having):
        if _moves(condition, query):
            having = (*query.having[:place], *query.having[place + 1 :])
            return replace(query, where=(*query.where, classify(condition, query)), having=having)
    return None


def _moves(condition: Expr, query: BoundQuery) -> bool:
    present = set(leaves(query.pattern))
    rounds = {
        v
        for part in walk(query.pattern)
        if isinstance(part, Closure) and not isinstance(part.item, Leaf)
        for v in leaves(part)
    }
    return variables(condition) <= present - rounds


REWRITE = Rewrite("pushdown", "HAVING p = WHERE p, without ->", apply)
