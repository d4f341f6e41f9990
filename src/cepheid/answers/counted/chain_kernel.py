"""Makes the kernel of a walk through a chain, and runs it over all events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.expressions import Constant, Expr, variables
from cepheid.answers.aggregate_states import BEYOND, MatchCounts
from cepheid.answers.counted.chain_walks import ChainWalk, before
from cepheid.answers.counted.counting_automaton import NotCounted
from cepheid.answers.counted.sliding_products import EXACT, whole_numbers
from cepheid.answers.counted.step_rows import KeyOrder
from cepheid.engine.arrays.columns import Column, Hash, Stored, TextBytes, TextConstant, TextPlaces
from cepheid.engine.arrays.interner import Interner
from cepheid.engine.lowering import Event, Inputs, KernelLowering, NotLowered, Place
from cepheid.engine.operators.base import parameter
from cepheid.engine.rows.clock import Ticks
from cepheid.engine.rows.store import EventStore
from cepheid.kernels.compile import load
from cepheid.kernels.templates.chain_counts import (
    Kill,
    Loop,
    Test,
    WalkShape,
    WalkStep,
    chain_source,
)
from cepheid.language.ast import Mode

Ints: TypeAlias = NDArray[np.int64]

MOST_AT_ONCE = 1 << 20
"""Records that are found before they are folded."""


def check_conditions(walk: ChainWalk) -> None:
    """Raises `NotCounted` if a condition can't be compiled."""
    _Shaping(walk, Inputs(frozenset(), objects=False))


class ChainKernel:
    """The kernel of one walk."""

    def __init__(self, walk: ChainWalk, window: int, jit: bool) -> None:
        self._walk, self._window, self._jit = walk, window, jit
        self._columns = tuple(_Shaping(walk, Inputs(frozenset(), objects=False)).columns())
        self.names = self._store().names
        """The columns of events that conditions read."""

    def _store(self) -> EventStore:
        store = EventStore((), Interner())
        store.require(self._columns)
        return store

    def run(
        self, table: pa.Table, ticks: Ticks, bits: Ints, keys: KeyOrder, codes: Mapping[int, Ints]
    ) -> Iterator[tuple[dict[str, Ints], MatchCounts]]:
        """So many matches agree on these rows, by variables."""
        walk, store = self._walk, self._store()
        (batch,) = table.to_batches()
        store.append(batch, ticks, -(1 << 62))
        shaping = _Shaping(walk, Inputs(store.nullable, objects=False))
        inputs = shaping.inputs
        order = np.arange(len(bits)) if keys.order is None else keys.order
        bounds, sign = keys.bounds, 1
        if not walk.forwards:
            order, bounds, sign = order[::-1], len(bits) - bounds[::-1], -1
        coded = np.zeros((len(walk.steps), len(bits)), np.int64)
        for step, numbers in codes.items():
            coded[step] = numbers[order]
        sizes = coded.max(axis=1) + 1
        fixed = (
            *(bits[order], sign * ticks.position[order], sign * ticks.clock[order]),
            *(bounds, self._window, coded, sizes),
            tuple(_arrays(store, inputs, order)),
            tuple(parameter(p, store) for p in inputs.params if isinstance(p, Constant)),
        )

        def kernel(number: str) -> Any:
            return load(chain_source(shaping.shape(number)), self._jit)

        def called(number: str, out: NDArray[Any], state: Ints) -> Any:
            with np.errstate(over="ignore"):
                return kernel(number)(*fixed, out, state, MOST_AT_ONCE)

        state = np.array([0, 0], np.int64)
        while state[0] < len(bounds) - 1:
            before = state.copy()
            out = np.zeros(len(bits) if not walk.pairs else 0)
            anchors, ends, rows, about = called("np.float64", out, state)
            if not walk.pairs:
                ends = anchors = np.flatnonzero(out)
                about = out[ends]
            exact = whole_numbers(about)
            if len(about) and EXACT <= about.max() < BEYOND:
                whole = np.zeros(len(out), np.int64)
                *_, exact = called("np.int64", whole, before)
                if not walk.pairs:
                    exact = whole[ends]
            rows_of = {walk.end: order[ends]}
            if walk.pairs:
                rows_of[walk.steps[0]] = order[anchors]
                if walk.kept is not None:
                    rows_of[walk.kept] = order[rows]
            yield rows_of, MatchCounts(exact, about)


def _arrays(store: EventStore, inputs: Inputs, order: Ints) -> Iterator[NDArray[Any]]:
    """The columns of events in the order of the walk."""
    arrays = iter(store.kernel_columns(inputs.columns, False))
    for column in inputs.columns:
        match column:
            case TextBytes() | TextConstant():
                yield next(arrays)
            case Column() | TextPlaces() | Hash() | Stored():
                yield next(arrays)[order]
                if inputs.may_be_null(column):
                    yield next(arrays)[order]


class _Shaping:
    """Lowers the conditions of a walk."""

    def __init__(self, walk: ChainWalk, inputs: Inputs) -> None:
        self.inputs = inputs
        self._walk = walk
        self._anchor: list[str] = []
        self._pieces = 0
        try:
            self._steps = [self._step(step) for step in range(len(walk.steps))]
            self._kills = [self._kill(n) for n in range(len(walk.negations))]
        except NotLowered:
            raise NotCounted("a condition can't be compiled") from None

    def columns(self) -> Iterator[Column]:
        """What of events is read."""
        for column in self.inputs.columns:
            match column:
                case TextPlaces():
                    yield column.column
                case Column():
                    yield column
                case Hash() | Stored() | TextConstant() | TextBytes():
                    pass

    def shape(self, number: str) -> WalkShape:
        walk = self._walk
        return WalkShape(
            tuple(self._steps),
            tuple(self._kills),
            not walk.forwards,
            walk.pairs,
            number,
            tuple(self.inputs.unpack(0)),
            tuple(self._anchor),
        )

    def _step(self, step: int) -> WalkStep:
        walk = self._walk
        before: list[Expr] = []
        each: list[Expr] = []
        live = walk.live_before(step)
        if step:
            before, each = self._divided(walk.conditions_at(step), live)
        events = (walk.steps[step], live)
        return WalkStep(
            step,
            self._test(before, *events),
            self._test(each, *events),
            walk.live[step],
            self._loop(step) if walk.steps[step] in walk.loops else None,
        )

    def _loop(self, step: int) -> Loop:
        """How a group takes another element."""
        variable = self._walk.steps[step]
        last, mode = before(variable), self._walk.loops[variable]
        conditions = self._walk.conditions_of_loop(step)
        each = [c for c in conditions if last in variables(c)]
        whole = [c for c in conditions if c not in each]
        return Loop(
            self._looped(whole, variable, None),
            self._looped(each, variable, last),
            greedy=mode is not Mode.SUBSETS,
            first=not mode.independent,
            every=mode is not Mode.MAXIMAL,
        )

    def _looped(self, conditions: Sequence[Expr], variable: str, last: str | None) -> Test:
        scope: dict[str, Place] = {self._walk.steps[0]: Event("p", outer=True)}
        scope[variable] = Event("e", outer=False)
        if last is not None:
            scope[last] = Event("r", outer=False)
        return self._lowered(conditions, scope)

    def _kill(self, n: int) -> Kill:
        walk = self._walk
        negated, state = walk.negations[n]
        before, each = self._divided(walk.conditions_on(negated), walk.live[state])
        events = (negated, walk.live[state])
        bit = len(walk.steps) + n
        return Kill(bit, state, self._test(before, *events), self._test(each, *events))

    def _divided(
        self, conditions: Sequence[Expr], live: int | None
    ) -> tuple[list[Expr], list[Expr]]:
        """Those that don't read a record, and those that do."""
        name = None if live is None else self._walk.steps[live]
        each = [condition for condition in conditions if name in variables(condition)]
        return [condition for condition in conditions if condition not in each], each

    def _test(self, conditions: Sequence[Expr], variable: str, live: int | None) -> Test:
        scope: dict[str, Place] = {self._walk.steps[0]: Event("p", outer=True)}
        if live is not None:
            scope[self._walk.steps[live]] = Event("r", outer=False)
        if variable != self._walk.steps[0]:
            scope[variable] = Event("e", outer=False)
        return self._lowered(conditions, scope)

    def _lowered(self, conditions: Sequence[Expr], scope: dict[str, Place]) -> Test:
        self._pieces += 1
        lower = KernelLowering(self.inputs, scope, prefix=f"x{self._pieces}_")
        lower.require(conditions)
        self._anchor += lower.outer
        return lower.code.cut()
