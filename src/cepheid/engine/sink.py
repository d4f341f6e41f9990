"""Where matches leave the engine: projected, in the order of their ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.engine.operators import Operator
from cepheid.engine.output import Projection
from cepheid.plan.nodes import Plan


class Sink:
    """Projects the roots' records; holds them back where ends would come out of order."""

    def __init__(self, roots: list[Operator], plan: Plan, schema: pa.Schema, hold: bool) -> None:
        self._roots = roots
        self._projections = [Projection(plan, root, schema) for root in roots]
        self._hold = hold
        self._held: list[tuple[NDArray[np.int64], pa.RecordBatch]] = []

    def inherit(self, other: Sink) -> None:
        """Take over what the sink of another plan holds back."""
        self._held = other._held

    def fuse(self, capacity: int) -> None:
        """Where nothing is held back, kernels may write the result themselves."""
        if not self._hold:
            for projection in self._projections:
                projection.fuse(capacity)

    def take(self, index: int) -> Iterator[pa.RecordBatch]:
        """Project what a root has collected."""
        out = self._roots[index].out
        if out.n == 0:
            return
        batch = self._projections[index].batch()
        if self._hold:
            self._held.append((out.records.last[: out.n].copy(), batch))
        else:
            yield batch
        out.drop(out.n)

    def release(self, undecided: int) -> Iterator[pa.RecordBatch]:
        """In the order of their ends, what no record that still waits can come before."""
        if not self._hold:
            return
        for index in range(len(self._roots)):
            yield from self.take(index)
        if not self._held:
            return
        last = np.concatenate([positions for positions, _ in self._held])
        table = pa.Table.from_batches([batch for _, batch in self._held]).combine_chunks()
        order = np.argsort(last, kind="stable")
        ready = int(np.searchsorted(last[order], undecided, "left"))
        released = table.take(pa.array(order[:ready]))
        rest = table.take(pa.array(order[ready:])).combine_chunks()
        self._held = (
            [(last[order[ready:]], b) for b in rest.to_batches()] if ready < len(last) else []
        )
        yield from released.combine_chunks().to_batches()
