"""The rows of a table, arranged, and the values of expressions over them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Expr
from cepheid.engine.arrays.columns import decoded
from cepheid.engine.arrays.vector import evaluate


@dataclass(frozen=True)
class ArrangedRows:
    """`table` has its rows partition after partition, in order; `begins` is where each begins."""

    table: pa.Table
    begins: NDArray[np.int64]
    _values: dict[Expr, pa.Array] = field(default_factory=dict)
    _shifted: dict[tuple[Expr, int], pa.Array] = field(default_factory=dict)

    @property
    def length(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> pa.Array:
        column = self.table.column(name)
        whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        return decoded(whole)

    def values(self, expr: Expr) -> pa.Array:
        """An expression of every row: a column as it is, all else as predicates see it."""
        if isinstance(expr, Attribute):
            return self.column(expr.name)
        if expr not in self._values:
            self._values[expr] = evaluate(expr, lambda a: self.column(a.name), self.length)
        return self._values[expr]

    def shifted(self, expr: Expr, shift: int) -> pa.Array:
        """The expression of the row so many rows further on in the partition; else NULL."""
        if shift == 0:
            return self.values(expr)
        if (expr, shift) not in self._shifted:
            self._shifted[expr, shift] = self._moved(self.values(expr), shift)
        return self._shifted[expr, shift]

    def _moved(self, values: pa.Array, shift: int) -> pa.Array:
        steps = min(abs(shift), self.length)
        if values.null_count == 0 and (
            pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
        ):
            moved = np.roll(values.to_numpy(zero_copy_only=False), -shift)
            return pa.array(moved, values.type, mask=self._near_edge(steps, at_start=shift < 0))
        nothing = pa.nulls(steps, values.type)
        kept = values.slice(0, self.length - steps) if shift < 0 else values.slice(steps)
        moved = pa.concat_arrays([nothing, kept] if shift < 0 else [kept, nothing])
        outside = pa.array(self._near_edge(steps, at_start=shift < 0))
        return pc.if_else(outside, pa.scalar(None, values.type), moved)

    def _near_edge(self, steps: int, at_start: bool) -> NDArray[np.bool_]:
        """The rows that are less than so many steps from the start or the end of a partition."""
        near = np.zeros(self.length, np.bool_)
        begins, ends = self.begins[:-1], self.begins[1:]
        for step in range(min(steps, int(np.diff(self.begins).max(initial=0)))):
            at = begins + step if at_start else ends - 1 - step
            near[at[(at < ends) & (at >= begins)]] = True
        return near
