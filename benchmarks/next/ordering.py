r"""The cheapest equivalent of a tree of operators (NEXT 4.3).

A union is commutative and associative, a next is associative, and an exception may stand on a
later or an earlier next: E1 ; (E2 \ E3) = (E1 ; E2) \ E3. So chains of unions are ordered by
Huffman's algorithm, and chains of nexts, with their exceptions, by a dynamic program over spans.

Figure 5's program keeps the cheapest expression of each span. By the paper's own cost model that
isn't enough: rate and detection time of a span don't depend on its parentheses, but burst size and
burst rate do, and a dearer part that sends smaller bursts can make the cheaper whole. With rates
64, 1, 1, 8 it takes 2.5 times what is needed. Here a span keeps, for each burst rate, every
expression that none beats in both cost and burst size: the burst rate follows from where a span is
split, and with equal burst rates, all that comes later costs no more if bursts are smaller.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import assert_never

from benchmarks.next.operators import (
    Delay,
    Filter,
    Iteration,
    Next,
    Operator,
    Source,
    Union,
    Unless,
    canonical,
    text,
)
from benchmarks.next.rates import Figures, Rates, cost, figures, next_cost, next_figures
from cepheid.rewrites.patterns.ordering import merges

ROUNDING = 1e-9
"""Costs that differ by less are equal: the same terms, added in another order."""


def rewrite(operator: Operator, rates: Rates) -> Operator:
    """The tree with all its chains in their best order, in canonical form; never a dearer one.

    Trees that these laws make equal become equal, which is what finds more to share. Chains are
    ordered from the inside out, each for its operands as they are. In a few of a thousand trees
    that is wrong, since a dearer operand may send smaller bursts to a chain around it, and in fewer
    the tree as it was is cheaper: then it stays.
    """
    given = canonical(operator)
    limit = cost(given, rates)
    found = _ordered(given, rates)
    return found if cost(found, rates) <= limit * (1 + ROUNDING) else given


def _ordered(operator: Operator, rates: Rates) -> Operator:
    match operator:
        case Source():
            return operator
        case Filter(item, condition):
            return Filter(_ordered(item, rates), condition)
        case Delay(item, seconds):
            return Delay(_ordered(item, rates), seconds)
        case Iteration(item):
            return Iteration(_ordered(item, rates))
        case Union():
            return optimal_union([_ordered(o, rates) for o in operands(operator)], rates)
        case Next() | Unless():
            inside = [
                Step(_ordered(s.operand, rates), tuple(_ordered(e, rates) for e in s.exceptions))
                for s in steps(operator)
            ]
            return optimal_next(inside, rates)
        case _:
            assert_never(operator)


# ── unions ──


def operands(operator: Operator) -> Iterator[Operator]:
    """Of a chain of unions, however it is parenthesized."""
    match operator:
        case Union(left, right):
            yield from operands(left)
            yield from operands(right)
        case _:
            yield operator


def optimal_union(parts: Iterable[Operator], rates: Rates) -> Operator:
    """Huffman's tree (figure 3): an event is processed by every union above it, so the frequent
    ones belong near the top. In O(n log n), from whatever order."""
    trees = sorted(map(canonical, parts), key=text)
    for left, right in merges([figures(tree, rates).rate for tree in trees]):
        trees.append(Union(trees[left], trees[right]))
    return canonical(trees[-1])


# ── nexts and exceptions ──


@dataclass(frozen=True, slots=True)
class Step:
    """An operand of a chain of nexts, and the exceptions that end with it, the innermost first."""

    operand: Operator
    exceptions: tuple[Operator, ...] = ()


def steps(operator: Operator) -> tuple[Step, ...]:
    """Of a chain of nexts, however it is parenthesized and wherever its exceptions stand."""
    match operator:
        case Next(first, second):
            return (*steps(first), *steps(second))
        case Unless(item, exception):
            *before, last = steps(item)
            return (*before, replace(last, exceptions=(*last.exceptions, exception)))
        case _:
            return (Step(operator),)


@dataclass(frozen=True, slots=True)
class _Way:
    """An expression of a span and what its own nexts and exceptions cost; `split` is where its
    topmost next has its second part."""

    cost: float
    figures: Figures
    tree: Operator
    split: int


def optimal_next(chain: Sequence[Step], rates: Rates) -> Operator:
    """The cheapest tree over the operands, in their order, with each exception over the operand
    that it ends with and any number of those before. Of equal ones, the most left-deep: it shares
    prefixes with others."""

    @cache
    def ways(start: int, end: int, excepted: int) -> tuple[_Way, ...]:
        """Of the operands from `start` to `end`, both included, with so many of the last one's
        exceptions; everything before has all of its own."""
        return _undominated([*split(start, end, excepted), *excepting(start, end, excepted)])

    def split(start: int, end: int, excepted: int) -> Iterator[_Way]:
        if start == end and not excepted:
            operand = canonical(chain[start].operand)
            yield _Way(0.0, figures(operand, rates), operand, start)
        for middle in range(end, start, -1):
            for first in ways(start, middle - 1, len(chain[middle - 1].exceptions)):
                for second in ways(middle, end, excepted):
                    yield _joined(first, second, middle)

    def excepting(start: int, end: int, excepted: int) -> Iterator[_Way]:
        if excepted:
            exception = canonical(chain[end].exceptions[excepted - 1])
            rate = figures(exception, rates).rate
            for way in ways(start, end, excepted - 1):
                tree = Unless(way.tree, exception)
                yield replace(way, cost=way.cost + way.figures.rate + rate, tree=tree)

    found = ways(0, len(chain) - 1, len(chain[-1].exceptions))
    return min(found, key=lambda way: way.cost).tree


def _joined(first: _Way, second: _Way, middle: int) -> _Way:
    return _Way(
        first.cost + second.cost + next_cost(first.figures, second.figures),
        next_figures(first.figures, second.figures),
        Next(first.tree, second.tree),
        middle,
    )


def _undominated(ways: Iterable[_Way]) -> tuple[_Way, ...]:
    """Without those for which another, split at the same place and so with the same burst rate, is
    no dearer and sends no larger bursts."""
    kept: defaultdict[int, list[_Way]] = defaultdict(list)
    for way in sorted(ways, key=lambda w: (w.cost, w.figures.burst_size)):
        same = kept[way.split]
        if not same or way.figures.burst_size < same[-1].figures.burst_size:
            same.append(way)
    return tuple(sorted((w for same in kept.values() for w in same), key=lambda w: -w.split))
