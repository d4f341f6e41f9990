"""Bound patterns: leaves are variables, names are resolved, USING has been applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from cepheid.algebra.expressions import Expr
from cepheid.language.ast import Between, Exactly, Mode, Optional, Quantifier, SequenceOperator


@dataclass(frozen=True, slots=True)
class Leaf:
    """One event, bound to a variable of the query."""

    variable: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Items in order. `operators[i]` stands between items i and i+1; the one right of a negation
    relates its neighbors, and `=>` left of a negation makes it a strict one."""

    items: tuple[Pattern, ...]
    operators: tuple[SequenceOperator, ...]

    def __post_init__(self) -> None:
        if len(self.items) < 2 or len(self.operators) != len(self.items) - 1:
            raise ValueError("a sequence has at least two items and an operator between each two")


@dataclass(frozen=True, slots=True)
class Conjunction:
    items: tuple[Pattern, ...]

    def __post_init__(self) -> None:
        if len(self.items) < 2:
            raise ValueError("a conjunction has at least two items")


@dataclass(frozen=True, slots=True)
class Disjunction:
    items: tuple[Pattern, ...]

    def __post_init__(self) -> None:
        if len(self.items) < 2:
            raise ValueError("a disjunction has at least two items")


@dataclass(frozen=True, slots=True)
class Negation:
    """`index` numbers the negations of a query from 0; conjuncts refer to it."""

    item: Pattern
    index: int


@dataclass(frozen=True, slots=True)
class Absence:
    """A negation with a time of its own, `!P FOR d`; `index` is numbered with the negations.

    It binds no event, but it has an end: the duration after the end of the nearest bound part
    before it, just before the events of that instant. Where nothing is bound before it, it looks
    back from the start of the part after it, and is a check like any negation."""

    item: Pattern
    index: int
    duration: int


@dataclass(frozen=True, slots=True)
class Closure:
    item: Pattern
    quantifier: Quantifier
    mode: Mode = Mode.MAXIMAL
    strict: bool = False
    until: Expr | None = None


@dataclass(frozen=True, slots=True)
class Unless:
    """The exception's variables are negated ones; `index` is numbered with the negations."""

    item: Pattern
    exception: Pattern
    index: int


@dataclass(frozen=True, slots=True)
class Delay:
    item: Pattern
    duration: int


Pattern = (
    Leaf | Sequence | Conjunction | Disjunction | Negation | Absence | Closure | Unless | Delay
)


def items(pattern: Pattern) -> tuple[Pattern, ...]:
    match pattern:
        case Leaf():
            return ()
        case Sequence() | Conjunction() | Disjunction():
            return pattern.items
        case Negation() | Absence() | Closure() | Delay():
            return (pattern.item,)
        case Unless():
            return (pattern.item, pattern.exception)
        case _:
            assert_never(pattern)


def walk(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and all below it, outermost first, left to right."""
    yield pattern
    for item in items(pattern):
        yield from walk(item)


def moves_end(pattern: Pattern) -> bool:
    """Whether some part may end later than its last event: a delay, or a negation with a time of
    its own that no event is sure to follow in its sequence."""
    match pattern:
        case Delay() | Absence():
            return True
        case Negation():
            return False
        case Sequence():
            return any(
                moves_end(item)
                for n, item in enumerate(pattern.items)
                if not (
                    isinstance(item, Absence)
                    and any(isinstance(later, _CERTAIN) for later in pattern.items[n + 1 :])
                )
            )
        case _:
            return any(moves_end(item) for item in items(pattern))


_CERTAIN = (Leaf, Conjunction, Unless)
"""Parts that have an event in every match."""


def sizes(quantifier: Quantifier) -> tuple[int, int | None]:
    """How few and how many elements a group has; None if there is no limit."""
    match quantifier:
        case Between(low, high):
            return low, high
        case Exactly(count):
            return count, count
        case Optional():
            return 0, 1


def binds_always(pattern: Pattern) -> bool:
    """Whether every match of it has an event."""
    match pattern:
        case Leaf():
            return True
        case Negation() | Absence():
            return False
        case Sequence() | Conjunction():
            return any(map(binds_always, pattern.items))
        case Disjunction():
            return all(map(binds_always, pattern.items))
        case Closure():
            return sizes(pattern.quantifier)[0] > 0 and binds_always(pattern.item)
        case Unless() | Delay():
            return binds_always(pattern.item)


def leaves(pattern: Pattern) -> tuple[str, ...]:
    """Variables in the order of the pattern, negated ones too."""
    return tuple(p.variable for p in walk(pattern) if isinstance(p, Leaf))


def positive(pattern: Pattern) -> tuple[str, ...]:
    """Variables in the order of the pattern that a match binds: no negated ones."""
    match pattern:
        case Negation() | Absence():
            return ()
        case Unless():
            return positive(pattern.item)
        case Leaf():
            return (pattern.variable,)
        case _:
            return tuple(v for item in items(pattern) for v in positive(item))
