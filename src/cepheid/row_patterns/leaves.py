"""What an expression of MATCH_RECOGNIZE reads of a match, and the expression that is left.

`LAST(B.price, 1) > avg(A.price)` reads two leaves. Bound, it is a plain comparison of two values,
`#0 > #1`, so everything that evaluates plain expressions evaluates it, given its leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.algebra.expressions import Attribute, Expr, walk
from cepheid.algebra.types import Type

Labels = frozenset[str] | None
"""Some labels, or None: all rows of the match."""

CLASSIFIER = Attribute("", "…classifier", Type.STRING)
"""In the argument of a leaf: the label of the row."""


@dataclass(frozen=True, slots=True)
class Navigation:
    """A value of one row. The row is found in three steps: the first or last row with one of the
    labels, then `offset` rows with these labels further in, then `shift` rows of the partition on.
    """

    argument: Expr
    labels: Labels
    last: bool = True
    offset: int = 0
    shift: int = 0
    final: bool = False

    @property
    def type(self) -> Type:
        return self.argument.type

    def at_row(self, label: str) -> bool:
        """Whether it reads the row at hand or one beside it, if this is the label of the row."""
        return (
            self.last
            and self.offset == 0
            and (self.labels is None or label in self.labels)
            and not reads_classifier(self.argument)
        )


@dataclass(frozen=True, slots=True)
class RowAggregate:
    """An aggregate over the rows with these labels; without an argument the rows are counted."""

    function: str
    argument: Expr | None
    labels: Labels
    type: Type
    distinct: bool = False
    final: bool = False


@dataclass(frozen=True, slots=True)
class MatchNumber:
    """Matches of a partition are numbered from 1."""

    type: Type = Type.INTEGER


Leaf = Navigation | RowAggregate | MatchNumber


@dataclass(frozen=True, slots=True)
class RowExpression:
    """A plain expression whose attributes are leaves, by their numbers."""

    expression: Expr
    leaves: tuple[Leaf, ...]


def leaf_attribute(number: int, leaf: Leaf) -> Attribute:
    return Attribute(f"#{number}", "value", leaf.type)


def leaf_number(attribute: Attribute) -> int:
    return int(attribute.variable[1:])


def reads_classifier(argument: Expr) -> bool:
    return CLASSIFIER in walk(argument)
