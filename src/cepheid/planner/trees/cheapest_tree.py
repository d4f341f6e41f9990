"""The cheapest tree of an alternative: ZStream's algorithm 5 (the thesis' algorithm 4).

Over a sequence, dynamic programming over intervals; over a conjunction, over subsets. Patterns
inside others are planned first and are then units. Theorem 5.1 holds because a part makes the same
records whatever its tree, so the cheapest tree has the cheapest subtrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cepheid.algebra.patterns import Conjunction, Leaf, Pattern
from cepheid.algebra.patterns import Sequence as SequencePattern
from cepheid.plan.nodes import Conj
from cepheid.planner.cost.cube import Floats, PatternSpan, Spans
from cepheid.planner.trees.build import shape_of
from cepheid.planner.trees.gaps import core, is_segment
from cepheid.planner.trees.shapes import LEFT_DEEP, Shape, ShapePair

MOST_OPERANDS = 12
"""Of a conjunction whose every order is looked at; past that the cheapest pair is joined first."""

MOST_HANGING = 8
"""The same if closures or negations hang on its joins: each of those is looked at by itself."""

MOST_ROOTS = 6
"""How many trees with different roots are shown: the cheapest, and some that lost."""


@dataclass(frozen=True)
class CostedTree:
    """A tree over a part of the pattern, and the cost of its joins. `others` are the best trees
    with another root, cheapest first."""

    cost: float
    shape: Shape
    span: PatternSpan
    others: tuple[tuple[float, Shape], ...] = ()


def cheapest(spans: Spans, pattern: Pattern) -> CostedTree:
    """The cheapest tree over the variables that every match of the pattern binds."""
    match pattern:
        case Leaf():
            return CostedTree(0.0, pattern.variable, spans.leaf(pattern))
        case SequencePattern() if is_segment(pattern):
            return CostedTree(0.0, shape_of(pattern, LEFT_DEEP), spans.segment(pattern))
        case SequencePattern() | Conjunction():
            units = [cheapest(spans, item) for item in pattern.items if core(item)]
            if len(units) == 1:
                return units[0]
            if isinstance(pattern, SequencePattern):
                return _sequence(spans, units)
            most = MOST_HANGING if spans.hangs else MOST_OPERANDS
            return _subsets(spans, units) if len(units) <= most else _greedy(spans, units)
        case _:
            raise AssertionError(f"no tree plan for {type(pattern).__name__}")


def _sequence(spans: Spans, units: Sequence[CostedTree]) -> CostedTree:
    parts, joins = spans.intervals([u.span for u in units])
    least, roots = intervals([u.cost for u in units], joins)
    n = len(units)

    def shape(i: int, j: int, root: int) -> Shape:
        if i == j:
            return units[i].shape
        left = shape(i, root - 1, int(roots[i, root - 1]))
        return ShapePair(left, shape(root, j, int(roots[root, j])))

    last = n - 1
    totals = least[0, :last] + least[1:, last] + joins[0, last, 1:]
    ranked = [int(r) + 1 for r in np.argsort(totals, kind="stable")[:MOST_ROOTS]]
    shapes = [(float(totals[r - 1]), shape(0, last, r)) for r in ranked]
    return CostedTree(shapes[0][0], shapes[0][1], parts[0][last], tuple(shapes[1:]))


def intervals(units: Sequence[float], joins: Floats) -> tuple[Floats, np.ndarray]:
    """Min and ROOT of algorithm 5: the least cost of each interval and where it is split, from the
    costs of the single items and of the join [i, j, r]. O(n³)."""
    n = len(units)
    least = np.zeros((n, n))
    roots = np.zeros((n, n), dtype=np.int64)
    least[np.arange(n), np.arange(n)] = units
    for size in range(1, n):
        for i in range(n - size):
            j = i + size
            costs = least[i, i:j] + least[i + 1 : j + 1, j] + joins[i, j, i + 1 : j + 1]
            at = int(costs.argmin())
            least[i, j] = costs[at]
            roots[i, j] = i + 1 + at
    return least, roots


def _subsets(spans: Spans, units: Sequence[CostedTree]) -> CostedTree:
    parts, splits = spans.subsets([u.span for u in units])
    everything = (1 << len(units)) - 1
    least = np.zeros(everything + 1)
    halves = [0] * (everything + 1)
    for n, unit in enumerate(units):
        least[1 << n] = unit.cost

    def shape(subset: int, half: int) -> Shape:
        if not half:
            return units[subset.bit_length() - 1].shape
        rest = subset ^ half
        return ShapePair(shape(half, halves[half]), shape(rest, halves[rest]))

    for subset in range(3, everything + 1):
        if subset & (subset - 1):
            joins, left = splits(subset)
            totals = least[left] + least[subset ^ left] + joins
            at = int(totals.argmin())
            least[subset], halves[subset] = totals[at], int(left[at])
    order = np.argsort(totals, kind="stable")
    shapes = [(float(totals[k]), shape(everything, int(left[k]))) for k in order[:MOST_ROOTS]]
    return CostedTree(shapes[0][0], shapes[0][1], parts[everything], tuple(shapes[1:]))


def _greedy(spans: Spans, units: Sequence[CostedTree]) -> CostedTree:
    """Joins the two parts whose join costs least, again and again."""
    parts = list(units)
    joined: dict[tuple[int, int], CostedTree] = {}
    while len(parts) > 1:
        for n, left in enumerate(parts):
            for right in parts[n + 1 :]:
                pair = left.span.core, right.span.core
                if pair not in joined:
                    whole = spans.whole(Conj, left.span, right.span)
                    cost = spans.join(Conj, left.span, right.span, whole)
                    joined[pair] = CostedTree(cost, ShapePair(left.shape, right.shape), whole)
        here = {part.span.core for part in parts}
        pair, best = min(
            ((p, t) for p, t in joined.items() if here.issuperset(p)), key=lambda f: f[1].cost
        )
        below = [p for p in parts if p.span.core in pair]
        total = best.cost + sum(p.cost for p in below)
        parts = [p for p in parts if p.span.core not in pair]
        parts.append(CostedTree(total, best.shape, best.span))
    return parts[0]
