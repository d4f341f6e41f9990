"""The parameters of rules, as columns: an expression over them has a value for each rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Expr, Varying, transform
from cepheid.engine.arrays.vector import evaluate

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class RuleParameters:
    """The rules of a template: how many, and their parameters."""

    length: int
    parameters: Mapping[str, pa.Array]

    def evaluate(self, expr: Expr) -> pa.Array:
        """Evaluate an expression over parameters alone, for every rule."""
        return evaluate(as_read(expr), lambda a: self.parameters[a.name], self.length)

    def of(self, rules: Ints) -> RuleParameters:
        """The parameters of the rules at these places."""
        chosen = pa.array(rules)
        values = {name: column.take(chosen) for name, column in self.parameters.items()}
        return RuleParameters(len(rules), values)


def as_read(expr: Expr) -> Expr:
    """The expression with parameters as attributes without a variable."""
    return transform(
        expr, lambda e: Attribute("", e.name, e.type) if isinstance(e, Varying) else None
    )
