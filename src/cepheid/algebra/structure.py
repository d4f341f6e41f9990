"""Facts about a bound pattern that roles and keys depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    items,
    leaves,
)


@dataclass(frozen=True, slots=True)
class Structure:
    """`order` is the place of each variable in the pattern. `closure` is, for a variable in a
    closure, the number of that closure: variables of one group closure move together. `reach` is
    the last place that a filter of that closure may read: that of its right neighbor.
    `branches` says in which branch of which disjunctions a variable stands.
    """

    order: Mapping[str, int]
    closure: Mapping[str, int]
    reach: Mapping[int, int]
    branches: Mapping[str, Mapping[int, int]]

    def exclusive(self, left: str, right: str) -> bool:
        """Never both bound: they stand in different branches of the same disjunction."""
        left_branches, right_branches = self.branches[left], self.branches[right]
        return any(
            left_branches[d] != right_branches[d]
            for d in left_branches.keys() & right_branches.keys()
        )


def structure(pattern: Pattern) -> Structure:
    order = {v: i for i, v in enumerate(leaves(pattern))}
    closure: dict[str, int] = {}
    reach: dict[int, int] = {}
    branches: dict[str, dict[int, int]] = {v: {} for v in order}
    numbers = count()
    end = len(order)

    def visit(item: Pattern, limit: int) -> None:
        match item:
            case Leaf():
                return
            case Closure():
                number = next(numbers)
                reach[number] = limit
                for variable in leaves(item):
                    closure[variable] = number
                visit(item.item, end)
            case Negation() | Absence() | Unless():
                # What is forbidden is so in each round anew: it binds no group of the closure.
                forbidden = item.exception if isinstance(item, Unless) else item.item
                for variable in leaves(forbidden):
                    closure.pop(variable, None)
                for part in items(item):
                    visit(part, limit)
            case Sequence():
                for index, part in enumerate(item.items):
                    visit(part, _right_neighbor(item, index, order, end))
            case Disjunction():
                number = next(numbers)
                for index, branch in enumerate(item.items):
                    for variable in leaves(branch):
                        branches[variable][number] = index
                    visit(branch, limit)
            case _:
                for part in items(item):
                    visit(part, limit)

    visit(pattern, end)
    return Structure(order, closure, reach, branches)


def _right_neighbor(sequence: Sequence, index: int, order: Mapping[str, int], end: int) -> int:
    """Up to a negation with a time of its own: what follows comes after that time."""
    for item in sequence.items[index + 1 :]:
        if not isinstance(item, Negation):
            return max(order[v] for v in leaves(item))
    return end
