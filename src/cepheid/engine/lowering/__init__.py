"""Expressions as source lines for kernels.

A condition is lowered to two Python expressions, *it is true* and *it is false*; unknown is
neither, which is all of SQL's three-valued logic that a predicate needs. A value is lowered to
an expression and one that says whether it is not NULL. Attributes of the outer record are read
once, before the inner loop.
"""

from cepheid.engine.lowering.expressions import KernelLowering
from cepheid.engine.lowering.folds import (
    FoldPart,
    Seen,
    accumulate,
    accumulate_distinct,
    finalized,
)
from cepheid.engine.lowering.terms import Event, GroupPlace, Inputs, NotLowered, Place, Term

__all__ = [
    "Event",
    "FoldPart",
    "GroupPlace",
    "Inputs",
    "KernelLowering",
    "NotLowered",
    "Place",
    "Seen",
    "Term",
    "accumulate",
    "accumulate_distinct",
    "finalized",
]
