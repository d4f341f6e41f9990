r"""Exceptions of exceptions become one of alternatives (after NEXT 4.3).

(P \ Q) \ R = P \ (Q | R)

Both are looked for during P, and P's own events count as neither. Holds if the conditions on Q
and R read P alone: an exception is looked for as soon as what it reads is there, and with `->`
that decides which composite is the first.

NEXT's own equivalence, P ; (Q \ R) = (P ; Q) \ R, doesn't hold here: our exception is looked for
during its left side alone, which on the right begins with P.
"""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.patterns import Unless, leaves, positive, walk
from cepheid.algebra.query import BoundQuery
from cepheid.rewrites.condition_roles import reads
from cepheid.rewrites.law import Facts, Rewrite
from cepheid.rewrites.measure import simpler
from cepheid.rewrites.surgery import renumbered, replaced, union


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    for part in walk(query.pattern):
        match part:
            case Unless(Unless() as inner) if _local(part, query) and _local(inner, query):
                exception = union(inner.exception, part.exception, reads(query))
                merged = Unless(inner.item, exception, inner.index)
                pattern = replaced(query.pattern, part, merged)
                if simpler(pattern, query.pattern):
                    return renumbered(replace(query, pattern=pattern), part.index, inner.index)
            case _:
                pass
    return None


def _local(unless: Unless, query: BoundQuery) -> bool:
    bound = {*leaves(unless.exception), *positive(unless.item)}
    return all(
        set(c.variables) <= bound for c in query.where if _belongs(c.variables, unless, query)
    )


def _belongs(read: tuple[str, ...], unless: Unless, query: BoundQuery) -> bool:
    return any(query.variables[v].negation == unless.index for v in read)


REWRITE = Rewrite("exceptions", r"(P \ Q) \ R = P \ (Q | R)", apply)
