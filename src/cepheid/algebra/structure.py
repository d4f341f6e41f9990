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
    `branches` says in which branch of which disjunctions a variable stands. `rounds` are the
    closures around it, the outermost first; of what is forbidden, those around the negation or
    exception. `excepted` is what exceptions forbid.
    """

    order: Mapping[str, int]
    closure: Mapping[str, int]
    reach: Mapping[int, int]
    branches: Mapping[str, Mapping[int, int]]
    rounds: Mapping[str, tuple[int, ...]]
    excepted: frozenset[str]

    def at_hand(self, variable: str, forbidden: str) -> bool:
        """Where a round is checked for what is forbidden, the variable is one event of it."""
        around = self.rounds[variable]
        return bool(around) and self.rounds[forbidden][: len(around)] == around

    def shares_rounds(self, variable: str, forbidden: str) -> bool:
        """What is forbidden is so in the rounds of a closure that binds the variable, too."""
        around, here = self.rounds[variable], self.rounds[forbidden]
        return bool(around) and around[:1] == here[:1]

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
    rounds: dict[str, tuple[int, ...]] = {}
    excepted: set[str] = set()
    numbers = count()
    end = len(order)

    def visit(item: Pattern, limit: int, around: tuple[int, ...]) -> None:
        match item:
            case Leaf(variable=variable):
                rounds[variable] = around
            case Closure():
                number = next(numbers)
                reach[number] = limit
                for variable in leaves(item):
                    closure[variable] = number
                visit(item.item, end, (*around, number))
            case Negation() | Absence() | Unless():
                # What is forbidden is so in each round anew: it binds no group of the closure.
                forbidden = item.exception if isinstance(item, Unless) else item.item
                for variable in leaves(forbidden):
                    closure.pop(variable, None)
                if isinstance(item, Unless):
                    excepted.update(leaves(forbidden))
                for part in items(item):
                    visit(part, limit, around)
                rounds.update(dict.fromkeys(leaves(forbidden), around))
            case Sequence():
                for index, part in enumerate(item.items):
                    visit(part, _right_neighbor(item, index, order, end), around)
            case Disjunction():
                number = next(numbers)
                for index, branch in enumerate(item.items):
                    for variable in leaves(branch):
                        branches[variable][number] = index
                    visit(branch, limit, around)
            case _:
                for part in items(item):
                    visit(part, limit, around)

    visit(pattern, end, ())
    return Structure(order, closure, reach, branches, rounds, frozenset(excepted))


def _right_neighbor(sequence: Sequence, index: int, order: Mapping[str, int], end: int) -> int:
    """Up to a negation with a time of its own: what follows comes after that time."""
    for item in sequence.items[index + 1 :]:
        if not isinstance(item, Negation):
            return max(order[v] for v in leaves(item))
    return end
