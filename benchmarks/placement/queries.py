"""The queries of NEXT's section 6: three workloads over eight sources."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from random import Random
from typing import assert_never

from benchmarks.next.deploy import Item
from benchmarks.next.items import item_of
from benchmarks.next.operators import Next, Operator, Source, Union
from benchmarks.next.ordering import rewrite
from benchmarks.placement.model import Workload

Kind = type[Next] | type[Union]

RATES = {f"s{2**n}": float(2**n) for n in range(8)}
"""Events per second: from 1, doubling, to 128."""

OPERATORS = 5
BLOCK = 2
"""Operators of one kind that a query of the mix nests into another."""


def drawn(workload: Workload, seed: int, operators: int = OPERATORS) -> Iterator[Operator]:
    """Queries without an end, the same for the same seed."""
    random = Random(f"{workload} {seed}")
    while True:
        match workload:
            case "next":
                yield tree(random, operators, Next)
            case "union":
                yield tree(random, operators, Union)
            case "mix":
                yield mixed(random, operators)
            case _:
                assert_never(workload)


def tree(random: Random, operators: int, kind: Kind) -> Operator:
    """One of all trees with so many operators, each as likely as the other; any source may stand
    at any leaf."""
    if operators == 0:
        return Source(random.choice(list(RATES)))
    rest = operators - 1
    weights = [shapes(left) * shapes(rest - left) for left in range(operators)]
    (left,) = random.choices(range(operators), weights)
    return kind(tree(random, left, kind), tree(random, rest - left, kind))


def shapes(operators: int) -> int:
    """Binary trees with so many inner nodes.

    >>> [shapes(n) for n in range(6)]
    [1, 1, 2, 5, 14, 42]
    """
    return comb(2 * operators, operators) // (operators + 1)


def mixed(random: Random, operators: int) -> Operator:
    """Subtrees of two unions or two nexts, each nested into a leaf of those before; the last has
    the operator that is left of an odd number."""
    kinds: list[Kind] = [Next, Union]
    kind = random.choice(kinds)
    here = min(BLOCK, operators)
    block = tree(random, here, kind)
    if operators == here:
        return block
    return nested(block, random.randrange(here + 1), mixed(random, operators - here))


def nested(block: Operator, leaf: int, inner: Operator) -> Operator:
    """The block with another tree in the place of one of its leaves, counted from the left."""
    match block:
        case Next(left, right) | Union(left, right):
            before = leaves(left)
            if leaf < before:
                return type(block)(nested(left, leaf, inner), right)
            return type(block)(left, nested(right, leaf - before, inner))
        case _:
            return inner


def leaves(block: Operator) -> int:
    match block:
        case Next(left, right) | Union(left, right):
            return leaves(left) + leaves(right)
        case _:
            return 1


class Queries:
    """The queries of a workload as work to be placed, each prepared once, on first use."""

    def __init__(self, workload: Workload, seed: int) -> None:
        self._drawn = drawn(workload, seed)
        self._trees: list[Operator] = []
        self._items: dict[bool, list[Item]] = {False: [], True: []}

    def items(self, rewritten: bool) -> Iterator[Item]:
        """As issued, or rewritten."""
        made = self._items[rewritten]
        number = 0
        while True:
            if number == len(self._trees):
                self._trees.append(next(self._drawn))
            if number == len(made):
                issued = self._trees[number]
                made.append(item_of(rewrite(issued, RATES) if rewritten else issued, RATES))
            yield made[number]
            number += 1
