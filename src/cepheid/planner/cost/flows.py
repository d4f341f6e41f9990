"""How many records a part of a pattern makes in the time of a window.

Events of each class come independently and uniformly. So k events in a given order fit into a
window ΠCARD / (k - 1)! times: the last one ends it, and the k - 1 others lie before it, in one
order of (k - 1)!. A partial order has as many more chances as it has linear extensions. ZStream's
Pt = 1/2 is the case of two classes in the middle of a longer window; here every length is exact,
and, what matters for the search, a part makes the same records whatever tree makes them.

Between k such events there are k gaps, the one at the window's begin among them, each with the
share g of the window, distributed as Beta(1, k - 1): what negations and closures find there
depends on k alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import assert_never

from cepheid.language.ast import Between, Exactly, Optional, Quantifier
from cepheid.planner.cost.figures import LEAST

Place = tuple[str, str]
"""A variable and one of its columns."""

_MOST = 230.0  # e^230 = 10^100: products of two such numbers are still finite


def power(exponent: float) -> float:
    """e to the exponent, kept positive and finite."""
    return math.exp(min(max(exponent, -_MOST), _MOST))


@lru_cache(maxsize=4096)
def clear(load: float, events: int) -> float:
    """The chance that a gap between k events has none of the `load` others of a window.

    E[exp(-load g)], g ~ Beta(1, k - 1), which is Kummer's M(1, k, -load); for k = 2 it is
    (1 - exp(-load)) / load. By recurrence from k = 1 where that is stable, else by the series of
    exp(-load) M(k - 1, k, load), whose terms are positive.

    >>> clear(0.0, 3), round(clear(2.0, 2), 4)
    (1.0, 0.4323)
    """
    if load > events + 30:
        chance = math.exp(-load)
        for k in range(2, events + 1):
            chance = (k - 1) / load * (1 - chance)
        return max(chance, LEAST)
    if events == 1:
        return math.exp(-load)
    term, total, j = 1.0, 1.0, 0
    while term > 1e-17 * total:
        j += 1
        term *= load / j
        total += term * (events - 1) / (events - 1 + j)
    return math.exp(-load) * total


@dataclass(frozen=True)
class Met:
    """Events that the search of a gap meets: per window `candidates` (log) of them, those with
    the right hash if there is one, a share `chance` (log) of which satisfies the `tests`."""

    candidates: float
    chance: float
    tests: int
    hashed: bool

    @cached_property
    def load(self) -> float:
        """The number of events per window that count."""
        return power(self.candidates + self.chance)


@dataclass(frozen=True)
class Forbidden(Met):
    """The search for a negation's events."""

    def factor(self, events: int) -> float:
        """log of the share of records that survive."""
        return math.log(clear(self.load, events))


@dataclass(frozen=True)
class Grouped(Met):
    """The search for a closure's events."""

    quantifier: Quantifier

    def factor(self, events: int) -> float:
        """log of the groups per record: the chance that the size is in range, or the runs."""
        return _groups(self.load / events, self.quantifier)

    def size(self, events: int) -> float:
        """The expected size of a group that is kept."""
        mean = self.load / events
        match self.quantifier:
            case Between(low, high):
                return min(max(mean, low), math.inf if high is None else high)
            case Exactly(count):
                return count
            case Optional():
                return min(mean, 1.0)
            case _:
                assert_never(self.quantifier)


@lru_cache(maxsize=4096)
def _groups(mean: float, quantifier: Quantifier) -> float:
    match quantifier:
        case Between(low, high):
            over = 0.0 if high is None else _at_least(mean, high + 1)
            groups = _at_least(mean, low) - over
        case Exactly(count):
            groups = mean * _at_least(mean, count - 1) - (count - 1) * _at_least(mean, count)
        case Optional():
            groups = 1.0
        case _:
            assert_never(quantifier)
    return math.log(max(groups, LEAST))


def _at_least(mean: float, count: int) -> float:
    """P(X >= count) of a Poisson variable."""
    if count <= 0:
        return 1.0
    spread = 10 * math.sqrt(mean) + 30
    if abs(count - mean) > spread or mean > 500:
        return 1.0 if mean >= count else 0.0
    term = below = math.exp(-mean)
    for n in range(1, count):
        term *= mean / n
        below += term
    return max(1 - below, 0.0)


@dataclass(frozen=True)
class Edge:
    """An equality between attributes of two variables, and the log of its selectivity."""

    chance: float
    left: Place
    right: Place


@dataclass(frozen=True)
class Flow:
    """The records of a node, or of a part of the pattern whatever its tree.

    `weight` is the log of ΠCARD, times the linear extensions, times the selectivity of all
    predicates that aren't hashed; `key` has, for each part of the partition key, the sum and the
    least of the logs of its distinct values; `edges` are the other hashed equalities. `within`
    are the negations and closures inside. `scarcest` is the log of the smallest CARD.
    """

    events: int
    weight: float
    scarcest: float
    key: tuple[tuple[float, float], ...] = ()
    edges: frozenset[Edge] = frozenset()
    within: tuple[Forbidden | Grouped, ...] = ()

    @cached_property
    def hashing(self) -> float:
        """log of the selectivity of all hashed equalities. A key over k variables counts k - 1
        times, for all but the variable with the fewest values."""
        return sum(least - total for total, least in self.key) + forest(self.edges)

    @cached_property
    def log_rows(self) -> float:
        return (
            self.weight
            + self.hashing
            - math.lgamma(self.events)
            + sum(w.factor(self.events) for w in self.within)
        )

    @cached_property
    def rows(self) -> float:
        """CARD of Table 1."""
        return power(self.log_rows)

    def attach(
        self, *within: Forbidden | Grouped, chance: float = 0.0, edges: Iterable[Edge] = ()
    ) -> Flow:
        """The flow with further negations, closures, predicates and equalities."""
        return replace(
            self,
            weight=self.weight + chance,
            edges=self.edges | frozenset(edges),
            within=(*self.within, *within),
        )


def sequence(left: Flow, right: Flow) -> Flow:
    """The sequence of two flows: all of the left before all of the right."""
    return Flow(
        left.events + right.events,
        left.weight + right.weight,
        min(left.scarcest, right.scarcest),
        tuple((a + b, min(m, n)) for (a, m), (b, n) in zip(left.key, right.key, strict=True)),
        left.edges | right.edges,
        left.within + right.within,
    )


def conjunction(left: Flow, right: Flow) -> Flow:
    """The conjunction of two flows: their linear extensions interleave in binomially many ways."""
    both = sequence(left, right)
    ways = math.comb(both.events, left.events)
    return replace(both, weight=both.weight + math.log(ways))


def forest(edges: Collection[Edge]) -> float:
    """log of the selectivity of equalities of which some follow from others: `a = b`, `b = c` and
    `a = c` are two conditions, not three. The most selective ones count (Kruskal)."""
    if len(edges) < 2:
        return sum(e.chance for e in edges)
    parent: dict[Place, Place] = {}

    def root(place: Place) -> Place:
        while (above := parent.get(place, place)) != place:
            parent[place] = parent.get(above, above)  # long ways are halved
            place = above
        return place

    total = 0.0
    for edge in sorted(edges, key=lambda e: (e.chance, e.left, e.right)):
        left, right = root(edge.left), root(edge.right)
        if left != right:
            parent[left] = right
            total += edge.chance
    return total
