"""Counts the matches of a chain with a comparison of two neighbors, in n log n steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute
from cepheid.algebra.query import BoundQuery
from cepheid.answers.aggregate_states import BEYOND, MatchCounts
from cepheid.answers.counted.chain_counter import ChainCounter
from cepheid.answers.counted.counted_matches import CountedMatches
from cepheid.answers.counted.neighbor_pair import NeighborPair
from cepheid.answers.group_ids import normalized
from cepheid.engine.arrays.vector import evaluate
from cepheid.engine.rows.clock import Ticks
from cepheid.engine.run import Engine
from cepheid.kernels.compile import load
from cepheid.kernels.templates.neighbor_counts import NEIGHBOR_COUNTS

Ints: TypeAlias = NDArray[np.int64]

# Of all, of those with a lesser value, and of those with a lesser or equal one. What is asked of
# the first events by the second, and the other way round.
_OF_FIRST = {
    "<": (0, 1, 0),
    "<=": (0, 0, 1),
    ">": (1, 0, -1),
    ">=": (1, -1, 0),
    "=": (0, -1, 1),
    "<>": (1, 1, -1),
}
_OF_SECOND = {
    "<": (1, 0, -1),
    "<=": (1, -1, 0),
    ">": (0, 1, 0),
    ">=": (0, 0, 1),
    "=": (0, -1, 1),
    "<>": (1, 1, -1),
}


class NeighborCounter:
    """Says how many matches end at each event. Counts are right modulo 2**64: where they may be
    beyond that, a walk counts them."""

    def __init__(self, query: BoundQuery, engine: Engine, jit: bool, pair: NeighborPair) -> None:
        assert query.window is not None
        self._pair, self._jit, self._window = pair, jit, query.window.size
        self._chain = ChainCounter(query, engine, jit, pair.walk)
        self.rows = self._chain.rows

    def matches(self) -> Iterator[CountedMatches]:
        if not len(self.rows):
            return
        table, ticks = self.rows.table, self.rows.ticks
        if self._most(ticks) >= BEYOND:
            yield from self._chain.matches()
            return
        counts = self._counts(table, ticks)
        ending = np.flatnonzero(counts)
        ending = ending[np.argsort(ticks.time[ending], kind="stable")]
        exact = counts[ending]
        rows = self._chain.values(table, {self._pair.walk.end: ending})
        yield CountedMatches(rows, MatchCounts(exact, exact.astype(np.float64)))

    def _most(self, ticks: Ticks) -> float:
        """There can't be more matches with one end."""
        clock = np.sort(ticks.clock)
        begins = np.searchsorted(clock, clock - self._window, "right")
        held = float((np.arange(len(clock)) + 1 - begins).max())
        return held ** (len(self._pair.walk.steps) - 1)

    def _counts(self, table: pa.Table, ticks: Ticks) -> Ints:
        keys = self.rows.by_key(table)
        bits, ranks = self._ranked(table)
        operator, steps = self._pair.operator, len(self._pair.walk.steps)
        out = np.zeros(len(bits), np.int64)
        kernel: Any = load(NEIGHBOR_COUNTS, self._jit)
        columns: tuple[Ints, ...] = (bits, ticks.position, ticks.clock, *ranks)
        if keys.order is not None:
            columns = tuple(column[keys.order] for column in columns)
        with np.errstate(over="ignore"):
            kernel(
                *columns,
                *(keys.bounds, self._window),
                np.array([steps, self._pair.step, int(max(map(np.max, ranks))) + 1], np.int64),
                self._pair.hashed,
                np.array(_OF_FIRST[operator], np.int64),
                np.array(_OF_SECOND[operator], np.int64),
                out,
            )
        if keys.order is None:
            return out
        found = np.empty_like(out)
        found[keys.order] = out
        return found

    def _ranked(self, table: pa.Table) -> tuple[Ints, tuple[Ints, Ints]]:
        """The steps that events may be, and the ranks of what is compared, where it is known."""

        def read(attribute: Attribute) -> pa.Array:
            return table[attribute.name].combine_chunks()

        n, pair, bits = table.num_rows, self._pair, self.rows.bits
        values, rows = [], []
        for step, side in enumerate((pair.first, pair.second), pair.step):
            column = normalized(evaluate(side, read, n))
            if column.null_count:
                known = pc.is_valid(column).to_numpy(zero_copy_only=False)
                bits = np.where(known, bits, bits & ~np.int64(1 << step))
                column = pc.fill_null(column, 0)
            rows.append(np.flatnonzero((bits >> step) & 1))
            values.append(column.to_numpy(zero_copy_only=False)[rows[-1]])
        found = _dense_ranks(np.concatenate(values))
        ranks = (np.zeros(n, np.int64), np.zeros(n, np.int64))
        for column, own, part in zip(ranks, rows, np.split(found, [len(rows[0])]), strict=True):
            column[own] = part
        return bits, ranks


def _dense_ranks(values: NDArray[Any]) -> Ints:
    """Equal values have the same rank. NaN is above all, and equals itself."""
    order = np.argsort(values)
    ordered = values[order]
    new = ordered[1:] != ordered[:-1]
    if values.dtype == np.float64:
        new &= ~(np.isnan(ordered[1:]) & np.isnan(ordered[:-1]))
    ranks = np.zeros(len(values), np.int64)
    ranks[order[1:]] = np.cumsum(new)
    return ranks
