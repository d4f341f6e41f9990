"""The events that may be steps of a pattern, in order and key by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.query import BoundQuery, Role
from cepheid.answers.counted.counting_automaton import NotCounted
from cepheid.answers.group_ids import normalized, numbered
from cepheid.engine.rows.classes import Mask
from cepheid.engine.rows.clock import Ticks, joined_ticks
from cepheid.kernels.compile import load
from cepheid.kernels.templates.automaton import SORT
from cepheid.plan.nodes import Plan
from cepheid.plan.reads import leaves

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class KeyOrder:
    """`order` has the rows key by key, in the order of time; without one there is one key. Key n
    has those from `bounds[n]` to `bounds[n + 1]`."""

    order: Ints | None
    bounds: Ints


@dataclass(frozen=True)
class StepRows:
    """Events in order: what is read of them, a bit for each step that one may be, and their
    ticks."""

    table: pa.Table
    bits: Ints
    ticks: Ticks

    def __len__(self) -> int:
        return len(self.bits)

    def until(self, end: int) -> StepRows:
        """The first of them."""
        if end == len(self):
            return self
        return StepRows(self.table.slice(0, end), self.bits[:end], self.ticks.of(np.arange(end)))

    def after(self, begin: int) -> StepRows:
        """A copy of the others."""
        rows = np.arange(begin, len(self))
        return StepRows(self.table.take(pa.array(rows)), self.bits[rows], self.ticks.of(rows))

    def by_key(self, query: BoundQuery, jit: bool) -> KeyOrder:
        rows = len(self)
        names = key_columns(query)
        if not names:
            return KeyOrder(None, np.array([0, rows]))
        keys = [normalized(self.table[name].combine_chunks()) for name in names]
        codes, count = numbered(keys)
        all_rows, listed, places = (
            np.arange(rows),
            np.empty(rows, np.int64),
            np.empty(rows, np.int64),
        )
        begins, ends = np.empty(count, np.int64), np.zeros(count, np.int64)
        sort: Any = load(SORT, jit)
        sort(codes, all_rows, all_rows, begins, ends, listed, places)
        return KeyOrder(listed, np.append(begins, rows))


class WindowRows:
    """Events that come one after the other."""

    def __init__(self) -> None:
        self._parts: list[StepRows] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def append(self, rows: StepRows) -> None:
        self._parts.append(rows)

    def joined(self) -> StepRows:
        """All of them; there is one."""
        if len(self._parts) > 1:
            table = pa.concat_tables([part.table for part in self._parts]).combine_chunks()
            bits = np.concatenate([part.bits for part in self._parts])
            ticks = joined_ticks([part.ticks for part in self._parts])
            self._parts = [StepRows(table, bits, ticks)]
        return self._parts[0]

    def drop(self, count: int) -> None:
        """Forget the first ones."""
        if count >= len(self):
            self._parts = []
        elif count:
            self._parts = [self.joined().after(count)]


def key_columns(query: BoundQuery) -> list[str]:
    return [part.uniform for part in query.key if part.uniform is not None]


def step_classes(query: BoundQuery, plan: Plan, steps: Sequence[str]) -> list[int]:
    """The number of the class of each step, among those of the plan. Raises `NotCounted` if a class
    isn't that of the step's conditions alone."""
    numbers = []
    classes = leaves(plan)
    for step in steps:
        of_step = [n for n, leaf in enumerate(classes) if leaf.variable == step]
        conditions = {
            c.expression for c in query.where if c.role is Role.CLASS and c.variables == (step,)
        }
        if len(of_step) != 1 or {*classes[of_step[0]].filters} != conditions:
            raise NotCounted("a condition isn't the same in all branches")
        numbers += of_step
    return numbers


def step_bits(masks: Sequence[Mask], classes: Sequence[int]) -> Ints:
    """A bit for each step, given the rows of each class."""
    bits = np.zeros(len(masks[0]), np.int64)
    for step, number in enumerate(classes):
        bits |= masks[number].astype(np.int64) << step
    return bits
