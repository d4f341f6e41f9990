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
from cepheid.answers.counted.step_rows import StepRows
from cepheid.answers.group_ids import normalized
from cepheid.engine.arrays.vector import evaluate
from cepheid.kernels.compile import load
from cepheid.kernels.templates.neighbor_counts import neighbor_source

Ints: TypeAlias = NDArray[np.int64]

STRIDE = 64
ROWS = 1 << 13
"""The fewest rows that are walked at a time."""

# Factors for the sums over all events, over those with a lesser value, and over those with a lesser
# or equal one. `_OF_FIRST`: a second event sums first ones; `_OF_SECOND`: the other way around.
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

    def __init__(self, query: BoundQuery, schema: pa.Schema, jit: bool, pair: NeighborPair) -> None:
        assert query.window is not None
        self._query, self._pair, self._jit = query, pair, jit
        self._window = query.window.size
        self._chain = ChainCounter(query, schema, jit, pair.walk)
        self.steps, self.columns = self._chain.steps, self._chain.columns

    def matches(self, rows: StepRows) -> Iterator[CountedMatches]:
        table, ticks = rows.table, rows.ticks
        held = self._held(ticks.clock)
        if float(held) ** (len(self._pair.walk.steps) - 1) >= BEYOND:  # there can't be more
            yield from self._chain.matches(rows)
            return
        counts = self._counts(rows, held)
        ending = np.flatnonzero(counts)
        ending = ending[np.argsort(ticks.time[ending], kind="stable")]
        exact = counts[ending]
        values = self._chain.values(table, {self._pair.walk.end: ending})
        yield CountedMatches(values, MatchCounts(exact, exact.astype(np.float64)))

    def _held(self, clock: Ints) -> int:
        """No window has more events, of all keys; looked at for some rows only."""
        rows = np.arange(0, len(clock), STRIDE)
        begins = np.searchsorted(clock, clock[rows] - self._window, "right")
        return int((rows + STRIDE - begins).max())

    def _counts(self, rows: StepRows, held: int) -> Ints:
        keys = rows.by_key(self._query, self._jit)
        bits, *values = self._compared(rows)
        columns = (bits, rows.ticks.position, rows.ticks.clock, *values)
        if keys.order is not None:
            counts = np.empty(len(bits), np.int64)
            counts[keys.order] = self._run(tuple(c[keys.order] for c in columns), keys.bounds)
            return counts
        # Trees of the values of near windows are small enough for a processor's cache.
        size = max(ROWS, 4 * held)
        parts = []
        for start in range(0, len(bits), size):
            part = slice(max(0, start - held), start + size)
            near = tuple(column[part] for column in columns)
            parts.append(self._run(near, np.array([0, len(near[0])]))[start - part.start :])
        return np.concatenate(parts)

    def _run(self, rows: tuple[NDArray[Any], ...], bounds: Ints) -> Ints:
        """So many matches end at each of these rows."""
        bits, position, clock, *values = rows
        step, operator = self._pair.step, self._pair.operator
        places = [np.flatnonzero((bits >> step + n) & 1) for n in range(2)]
        of_both = [column[at] for column, at in zip(values, places, strict=True)]
        both_ranks = _dense_ranks(np.concatenate(of_both))
        ranks = (np.zeros(len(bits), np.int64), np.zeros(len(bits), np.int64))
        parts = np.split(both_ranks, [len(places[0])])
        for column, at, part in zip(ranks, places, parts, strict=True):
            column[at] = part
        out = np.zeros(len(bits), np.int64)
        kernel: Any = load(neighbor_source(len(self._pair.walk.steps), step), self._jit)
        with np.errstate(over="ignore"):
            kernel(
                *(bits, position, clock, *ranks, bounds, self._window),
                *(int(both_ranks.max(initial=0)) + 1, self._pair.hashed),
                np.array(_OF_FIRST[operator], np.int64),
                np.array(_OF_SECOND[operator], np.int64),
                out,
            )
        return out

    def _compared(self, rows: StepRows) -> tuple[Ints, NDArray[Any], NDArray[Any]]:
        """The steps that events may be, and what is compared, where it is known."""
        table = rows.table

        def read(attribute: Attribute) -> pa.Array:
            return table[attribute.name].combine_chunks()

        pair, bits, values = self._pair, rows.bits, []
        for step, side in enumerate((pair.first, pair.second), pair.step):
            column = normalized(evaluate(side, read, table.num_rows))
            if column.null_count:
                known = pc.is_valid(column).to_numpy(zero_copy_only=False)
                bits = np.where(known, bits, bits & ~np.int64(1 << step))
                column = pc.fill_null(column, 0)
            values.append(column.to_numpy(zero_copy_only=False))
        return bits, values[0], values[1]


def _dense_ranks(values: NDArray[Any]) -> Ints:
    """Equal values have the same rank. NaN is above all, and equals itself."""
    if not len(values):
        return np.zeros(0, np.int64)
    order = np.argsort(values)
    ordered = values[order]
    new = ordered[1:] != ordered[:-1]
    if values.dtype == np.float64:
        new &= ~(np.isnan(ordered[1:]) & np.isnan(ordered[:-1]))
    ranks = np.zeros(len(values), np.int64)
    ranks[order[1:]] = np.cumsum(new)
    return ranks
