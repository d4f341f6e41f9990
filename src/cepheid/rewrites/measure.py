"""Which of two equivalent patterns is simpler (ZStream 5.2.1).

A transition is taken only if the target has fewer operators, or as many but cheaper ones, by
Table 2's order DIS < SEQ < CON. Of two that have the same operators, the one with fewer
parentheses is simpler.
"""

from __future__ import annotations

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

Measure = tuple[int, int, int]
"""Operators, their weight, and nodes; compared in that order."""


def measure(pattern: Pattern) -> Measure:
    """An operator over n operands counts as n - 1 binary ones."""
    counted = [_operators(part) for part in walk(pattern)]
    nodes = sum(not isinstance(part, Leaf) for part in walk(pattern))
    return sum(n for n, _ in counted), sum(n * weight for n, weight in counted), nodes


def simpler(new: Pattern, old: Pattern) -> bool:
    return measure(new) < measure(old)


def _operators(pattern: Pattern) -> tuple[int, int]:
    """How many, and the weight of each."""
    match pattern:
        case Leaf():
            return 0, 0
        case Disjunction():
            return len(pattern.items) - 1, 1
        case Sequence():
            return len(pattern.items) - 1, 2
        case Conjunction():
            return len(pattern.items) - 1, 3
        case Negation() | Absence() | Closure() | Unless() | Delay():
            return 1, 2
        case _:
            assert_never(pattern)
