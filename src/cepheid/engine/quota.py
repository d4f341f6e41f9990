"""LIMIT: counts kept matches, per key or in total, and knows which keys are done."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.engine.after_match import Memory, keyed_starts
from cepheid.engine.arrays.columns import as_integers, kernel_values
from cepheid.engine.arrays.interner import Interner
from cepheid.engine.operators.base import Operator
from cepheid.kernels.templates.after_match import COUNT
from cepheid.plan.nodes import Plan
from cepheid.plan.reads import uniform_key

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

FIRST_PART = 1 << 10
"""How many rows are matched before the first check of which keys are done; then twice as many, and
so on."""


class Quota:
    """Counts the matches that are kept, up to the most that there may be. A key that is done
    costs its count from then on: its events are dropped when they come."""

    def __init__(self, plan: Plan, most: int, jit: bool) -> None:
        assert plan.selection is not None
        self._plan = plan
        self._most = most
        self._parts = len(plan.key) if plan.selection.per_key else 0
        self._columns = uniform_key(plan) if self._parts else ()
        self.memory = Memory(jit, COUNT)

    @property
    def done(self) -> bool:
        """Whether no further match can be kept, of any key."""
        return not self._parts and bool((self.counted()[1] >= self._most).any())

    def counted(self) -> tuple[Ints, Ints]:
        """The keys with matches, and their counts."""
        return self.memory.above(0)

    def admit(self, keys: Ints) -> Mask:
        """Which matches, in the order in which they are considered, are among the first."""
        key_parts, n = keys[:, : self._parts], len(keys)
        return self.memory.admit(key_parts, np.zeros(n, np.int64), np.full(n, self._most))

    def copy(self) -> Quota:
        """A copy."""
        other = Quota(self._plan, self._most, jit=False)
        other.memory = self.memory.copy()
        return other

    def full(self, keys: Ints) -> Mask:
        """Which of these keys are done."""
        mask: Mask = self.memory.bounds(keys[:, : self._parts]) >= self._most
        return mask

    def open_rows(self, batch: pa.RecordBatch, interner: Interner) -> Mask | None:
        """Which rows are of keys that are not done; None if that isn't known, or all are."""
        if not self._columns or not len(self.memory):
            return None
        parts = []
        for name in self._columns:
            try:
                values, _ = kernel_values(
                    batch.column(name), self._plan.schema.columns[name], interner
                )
            except pa.ArrowInvalid:
                return None  # the store says what is wrong
            parts.append(as_integers(values))
        closed = self.full(np.column_stack(parts))
        return ~closed if closed.any() else None

    def free(self, root: Operator) -> None:
        """Free the starts of keys that are done, if the operator searches from starts."""
        if self._parts and len(self.memory):
            for entry, rows, keys in keyed_starts(self._plan, root):
                root.free(entry, rows[self.full(keys)])


def parts(plan: Plan, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch; with a LIMIT, in parts that grow, so that what is done early isn't looked at for
    long."""
    if plan.selection is None or plan.selection.most is None:
        yield batch
        return
    begin, size = 0, FIRST_PART
    while begin < batch.num_rows:
        yield batch.slice(begin, size)
        begin, size = begin + size, 2 * size
