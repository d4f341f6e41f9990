"""What a condition says about matches in which some variables are absent (`|`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Constant,
    Every,
    Expr,
    Previous,
    PreviousOr,
    Reduce,
    Some,
    TimeSpan,
    Whole,
    transform,
)
from cepheid.algebra.patterns import Disjunction, leaves


def applies(
    read: Iterable[str], present: frozenset[str], disjunctions: Iterable[Disjunction]
) -> bool:
    """Whether a conjunct counts for this choice: of every disjunction that is decided, and of which
    it reads branches, it reads the one that was taken."""
    names = frozenset(read)
    for disjunction in disjunctions:
        branches = [frozenset(leaves(branch)) for branch in disjunction.items]
        taken = [branch for branch in branches if branch & present]
        if taken and any(b & names for b in branches) and not any(b & names for b in taken):
            return False
    return True


def without_absent(expr: Expr, present: frozenset[str]) -> Expr:
    """Variables of branches not taken read as NULL."""

    def change(node: Expr) -> Expr | None:
        match node:
            case Attribute() | Previous() | Aggregate() | Reduce() | Whole() if (
                node.variable not in present
            ):
                return Constant(None, node.type)
            case PreviousOr() if node.variable not in present:
                return node.default
            case Every() | Some() if node.variable not in present:
                return node.condition
            case TimeSpan():
                return replace(node, variables=tuple(v for v in node.variables if v in present))
            case _:
                return None

    return transform(expr, change)
