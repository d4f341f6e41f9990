"""Runs a counting automaton over all events, and totals values over the matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.answers.aggregate_states import CarriedTotals, MatchCounts
from cepheid.answers.counted.counting_automaton import CountingAutomaton
from cepheid.answers.counted.step_rows import KeyOrder
from cepheid.engine.rows.clock import Ticks
from cepheid.kernels.compile import load
from cepheid.kernels.templates.sequence_counts import CountingShape, Semiring, counting_source

Ints: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[Any]

EXACT = 2.0**53
"""Doubles are exact up to here."""


SHARE = 20
"""One of so many events is of a kind with a matrix of its own."""
COMPILE_AT = 100_000
"""Rows from which on that is worth a kernel of its own."""


def whole_numbers(numbers: Numbers) -> Ints:
    """Those that are exact, as integers; others are any."""
    return np.clip(numbers, -EXACT, EXACT).astype(np.int64)


@dataclass(frozen=True)
class SlidingProducts:
    """Events in order, and the steps that each may be."""

    automaton: CountingAutomaton
    bits: Ints
    ticks: Ticks
    keys: KeyOrder
    window: int
    jit: bool

    def counts(self, ring: Semiring = Semiring.DOUBLES) -> Numbers:
        """How many matches end at each event."""
        counts: Numbers = self._run(self.automaton.shape, ring, 1, [])[0]
        return counts

    def sums(
        self, variable: str, values: Numbers, known: Numbers | None, ending: Ints, all_: MatchCounts
    ) -> CarriedTotals:
        """Of the matches that end at each of the ending events. `known` says which values there
        are, if not all; the others are 0. `all_` counts the matches."""
        automaton = self.automaton.carrying(variable, 1, 0)
        rows, outputs = [values], 2
        if known is not None:
            automaton, outputs = automaton.carrying(variable, 2, 1), 3
            rows.append(known)
        totals = self._run(automaton.shape, Semiring.DOUBLES, outputs, rows)
        about = totals[1][ending]
        most = float(np.abs(values).max(initial=0)) * float(all_.about.max(initial=0))
        counted = all_
        whole = None if values.dtype != np.int64 else whole_numbers(about)
        if known is not None:
            counted = MatchCounts(whole_numbers(totals[2][ending]), totals[2][ending])
        if max(most, float(all_.about.max(initial=0))) >= EXACT:
            exact = self._run(automaton.shape, Semiring.INTEGERS, outputs, rows)
            whole = None if whole is None else exact[1][ending]
            if known is not None:
                counted = MatchCounts(exact[2][ending], counted.about)
        return CarriedTotals(counted, about, whole)

    def extremes(
        self, variable: str, values: pa.Array, ending: Ints, *, greatest: bool
    ) -> pa.Array:
        """The least or greatest value over the matches that end at each of the ending events."""
        ranks = pc.rank(values, "ascending", tiebreaker="dense")
        codes = ranks.to_numpy(zero_copy_only=False).astype(np.int64)
        some_row = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
        some_row[codes] = np.arange(len(codes))
        weights = (-codes if greatest else codes).astype(np.float64)
        weights[pc.is_null(values).to_numpy(zero_copy_only=False)] = np.inf
        shape = self.automaton.carrying(variable, 1, 0).shape
        best = self._run(shape, Semiring.LEAST, 2, [weights])[1][ending]
        none = np.isinf(best)
        rows = some_row[np.abs(np.where(none, 0, best)).astype(np.int64)]
        return values.take(pa.array(rows, mask=none))

    def _run(
        self, shape: CountingShape, ring: Semiring, outputs: int, values: list[Numbers]
    ) -> Numbers:
        number: Any = np.int64 if ring is Semiring.INTEGERS else np.float64
        zero = np.inf if ring is Semiring.LEAST else 0
        n = len(self.bits)
        weights = np.empty((len(values), n), number)
        for row, column in enumerate(values):
            weights[row] = self._in_order(column)
        out = np.full((outputs, n), zero, number)
        kernel: Any = load(counting_source(shape, ring, self._kinds(shape)), self.jit)
        tables = (
            np.array([(e.step, e.source, e.target, e.value) for e in shape.edges], np.int64),
            np.array(shape.clears, np.int64).reshape(-1, 2),
            np.array([(o.step, o.source, o.output, o.value) for o in shape.outs], np.int64),
            np.array(shape.blocks, np.int64),
        )
        ticks = self.ticks
        rows = (self._in_order(a) for a in (self.bits, ticks.position, ticks.clock))
        with np.errstate(over="ignore", invalid="ignore"):
            kernel(*rows, self.keys.bounds, self.window, *tables, weights, out)
        if self.keys.order is not None:
            in_rows = np.empty_like(out)
            in_rows[:, self.keys.order] = out
            return in_rows
        return out

    def _kinds(self, shape: CountingShape) -> tuple[tuple[int, ...], ...]:
        """The steps that many events may be at once: their matrices are worth compiling."""
        if self.jit and len(self.bits) < COMPILE_AT:
            return ()
        values, rows = np.unique(self.bits, return_counts=True)
        steps = range(len(shape.blocks))
        kinds = (
            tuple(s for s in steps if bits >> s & 1)
            for bits in values[rows * SHARE >= rows.sum()].tolist()
        )
        return tuple(kind for kind in kinds if len(kind) > 1 and shape.is_sum(kind))

    def _in_order(self, column: Numbers) -> Numbers:
        return column if self.keys.order is None else column[self.keys.order]
