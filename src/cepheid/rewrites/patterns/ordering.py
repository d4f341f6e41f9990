"""The branches of a disjunction in the order of a Huffman tree over their rates (NEXT 4.3).

P | Q | R = Q | R | P

A disjunction is commutative. Only with AFTER MATCH SKIP the order of the pattern decides between
simultaneous matches, so nothing is done then. Branches that match often come first: they are
highest in the tree that merges the two rarest streams again and again, which is the cheapest way
to merge them all in pairs. The rate of a sequence follows from the time that its parts take to
come (NEXT 4.2, Table 1). It needs the rates of all events of the branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from heapq import heapify, heappop, heappush
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
    walk,
)
from cepheid.algebra.query import BoundQuery, Role
from cepheid.algebra.text import expression_text
from cepheid.rewrites.law import Facts, Rewrite
from cepheid.rewrites.surgery import replaced
from cepheid.statistics import Statistics


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    if query.selection is not None:
        return None
    for part in walk(query.pattern):
        if not isinstance(part, Disjunction):
            continue
        rates = [rate(item, query, facts.statistics) for item in part.items]
        known = [r for r in rates if r is not None]
        if len(known) < len(rates):
            continue
        items = tuple(part.items[n] for n in huffman(known))
        if items != part.items:
            pattern = replaced(query.pattern, part, Disjunction(items))
            return replace(query, pattern=pattern)
    return None


def huffman(rates: list[float]) -> list[int]:
    """The leaves of the tree, highest first; of equal ones, as they were.

    >>> huffman([1.0, 8.0, 2.0])
    [1, 2, 0]
    """
    depth = [0] * (2 * len(rates) - 1)
    for made, pair in reversed(list(enumerate(merges(rates), len(rates)))):
        for part in pair:
            depth[part] = depth[made] + 1
    return sorted(range(len(rates)), key=lambda n: (depth[n], -rates[n], n))


def merges(rates: list[float]) -> Iterator[tuple[int, int]]:
    """The pairs that make Huffman's tree: always the two rarest. What the first pair makes has the
    number after the last leaf's, and so on. Of equal ones, the later leaf is merged first.

    >>> list(merges([1.0, 8.0, 2.0]))
    [(0, 2), (3, 1)]
    """
    heap = [(rate, -n, n) for n, rate in enumerate(rates)]
    heapify(heap)
    for made in range(len(rates), 2 * len(rates) - 1):
        (rarest, last, left), (next_rarest, last_too, right) = heappop(heap), heappop(heap)
        heappush(heap, (rarest + next_rarest, min(last, last_too), made))
        yield left, right


def rate(pattern: Pattern, query: BoundQuery, statistics: Statistics) -> float | None:
    """How often the pattern matches, roughly; None if a rate is missing."""
    match pattern:
        case Leaf(variable):
            return _class_rate(variable, query, statistics)
        case Sequence() | Conjunction():
            present = [i for i in pattern.items if not isinstance(i, Negation)]
            rates = [rate(i, query, statistics) for i in present]
            known = [r for r in rates if r is not None]
            if len(known) < len(rates):
                return None
            return 0.0 if 0 in known else 1 / sum(1 / r for r in known)
        case Disjunction():
            sums = [rate(i, query, statistics) for i in pattern.items]
            return None if None in sums else sum(r for r in sums if r is not None)
        case Closure() | Unless() | Delay() | Negation() | Absence():
            return rate(pattern.item, query, statistics)
        case _:
            assert_never(pattern)


def _class_rate(variable: str, query: BoundQuery, statistics: Statistics) -> float | None:
    events = statistics.rates.get(variable)
    if events is None:
        return None
    for conjunct in query.where:
        if conjunct.role is Role.CLASS and conjunct.variables == (variable,):
            events *= statistics.selectivities.get(expression_text(conjunct.expression), 1.0)
    return events


REWRITE = Rewrite("ordering", "P | Q = Q | P, the most frequent first", apply)
