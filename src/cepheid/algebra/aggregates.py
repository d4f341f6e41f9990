"""The aggregates of the language: names, what they take and return, how values are folded.

What an aggregate knows of a group, or of a part of one, is a *total* and a *count* of values. Its
`step` says what a value does to the total. Two parts that stand one after the other are merged by
the same step: a value is a part with a count of 1. Counts add up, and a part without values changes
nothing. `result` says what the aggregate returns of total and count.

Binder, kernels, automata and RETURN all read this table. `tests/oracle` has definitions of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from cepheid.algebra.types import Type


class Operand(Enum):
    """What an aggregate can be over. NUMBER is given as a double."""

    ANY = "any value"
    ORDERED = "a value that has an order"
    AMOUNT = "a number or a duration"
    NUMBER = "a number"

    def accepts(self, type_: Type) -> bool:
        match self:
            case Operand.ANY:
                return True
            case Operand.ORDERED:
                return type_ is not Type.OTHER
            case Operand.AMOUNT:
                return type_.numeric or type_ is Type.DURATION
            case Operand.NUMBER:
                return type_.numeric
            case _:
                assert_never(self)


class FoldStep(Enum):
    """What the next value does to the total of those before it. FIRST, LAST and APPEND take NULLs,
    the others pass over them. Only SPREAD, whose total is the mean, needs more than a total and a
    count: it doesn't merge parts."""

    COUNT = "the values are counted, and nothing else"
    ADD = "added; an integer sum that doesn't fit is NULL from there on"
    LEAST = "taken if it is less"
    GREATEST = "taken if it is greater"
    FIRST = "taken if there was none"
    LAST = "taken"
    APPEND = "put at the end of a list"
    SPREAD = "the mean moves, and so does the sum of squared distances from it"


class FoldResult(Enum):
    """What an aggregate returns. Without values, TOTAL and MEAN are NULL, and with fewer than two,
    DEVIATION is."""

    COUNT = "count"
    TOTAL = "total"
    MEAN = "total / count"
    DEVIATION = "the sample standard deviation"


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """`type` None: that of the values. `events`: it can also be over the events themselves, as
    `count(b)`. `scalar` is the function that does the same with several values of one event."""

    name: str
    doc: str
    operand: Operand
    step: FoldStep
    result: FoldResult = FoldResult.TOTAL
    type: Type | None = None
    events: bool = False
    scalar: str | None = None

    @property
    def chooses(self) -> bool:
        """Whether it returns one of the values, as it is."""
        return self.step in (FoldStep.LEAST, FoldStep.GREATEST, FoldStep.FIRST, FoldStep.LAST)

    @property
    def extreme(self) -> bool:
        """Whether it is the same of different values as of all."""
        return self.step in (FoldStep.LEAST, FoldStep.GREATEST)

    @property
    def placed(self) -> bool:
        """Whether it returns the value at a place of the group."""
        return self.step in (FoldStep.FIRST, FoldStep.LAST)

    @property
    def lists(self) -> bool:
        """Whether it returns a list of values."""
        return self.step is FoldStep.APPEND

    @property
    def folds(self) -> bool:
        """Whether its total is a value of fixed size that is kept while a group grows."""
        return self.step in (FoldStep.COUNT, FoldStep.ADD, FoldStep.LEAST, FoldStep.GREATEST)


def _table(*functions: AggregateFunction) -> dict[str, AggregateFunction]:
    return {function.name: function for function in functions}


AGGREGATES = _table(
    AggregateFunction(
        "count",
        "how many values are not NULL; of a variable, how many events",
        Operand.ANY,
        FoldStep.COUNT,
        FoldResult.COUNT,
        Type.INTEGER,
        events=True,
    ),
    AggregateFunction("sum", "the sum; NULL if it overflows", Operand.AMOUNT, FoldStep.ADD),
    AggregateFunction(
        "avg",
        "the mean, as a double",
        Operand.NUMBER,
        FoldStep.ADD,
        FoldResult.MEAN,
        Type.FLOAT,
    ),
    AggregateFunction("min", "the smallest value", Operand.ORDERED, FoldStep.LEAST, scalar="least"),
    AggregateFunction(
        "max", "the largest value", Operand.ORDERED, FoldStep.GREATEST, scalar="greatest"
    ),
    AggregateFunction(
        "stddev",
        "the sample standard deviation, as a double; NULL of fewer than two values",
        Operand.NUMBER,
        FoldStep.SPREAD,
        FoldResult.DEVIATION,
        Type.FLOAT,
    ),
    AggregateFunction(
        "first", "the value of the first event", Operand.ANY, FoldStep.FIRST, events=True
    ),
    AggregateFunction(
        "last", "the value of the last event", Operand.ANY, FoldStep.LAST, events=True
    ),
    AggregateFunction(
        "collect",
        "all values, as an array",
        Operand.ANY,
        FoldStep.APPEND,
        type=Type.OTHER,
        events=True,
    ),
)
