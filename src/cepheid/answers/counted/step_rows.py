"""The events of a table that may be steps of a pattern, in order and key by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.query import BoundQuery, Role
from cepheid.answers.group_ids import normalized, numbered
from cepheid.engine.operators.base import FOREVER
from cepheid.engine.rows.classes import classify
from cepheid.engine.rows.clock import Ticker, Ticks, joined_ticks
from cepheid.engine.run import Engine
from cepheid.kernels.compile import load
from cepheid.kernels.templates.automaton import SORT
from cepheid.plan.nodes import LeafNode

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class KeyOrder:
    """`order` has the rows key by key, in the order of time; without one there is one key. Key n
    has those from `bounds[n]` to `bounds[n + 1]`."""

    order: Ints | None
    bounds: Ints


class StepRows:
    """Reads all events in order. The engine of the query counts what is read; it doesn't run."""

    def __init__(
        self,
        query: BoundQuery,
        engine: Engine,
        steps: Sequence[str],
        columns: Sequence[str],
        jit: bool,
    ) -> None:
        self.engine = engine
        self._query, self._columns, self._jit = query, columns, jit
        self._leaves = [self._leaf(variable) for variable in steps]
        self._ticker = Ticker(query.schema, query.window, engine.plan.key)
        self._rows: list[pa.RecordBatch] = []
        self._bits: list[Ints] = []
        self._ticks: list[Ticks] = []

    def _leaf(self, variable: str) -> LeafNode:
        conditions = (
            c for c in self._query.where if c.role is Role.CLASS and c.variables == (variable,)
        )
        return LeafNode(variable, tuple(conjunct.expression for conjunct in conditions))

    def __len__(self) -> int:
        return sum(map(len, self._bits))

    def read(self, batch: pa.RecordBatch) -> int:
        """The time of the last event."""
        engine, plan = self.engine, self.engine.plan
        batch = engine.with_times(batch)
        if not batch.num_rows:
            return -FOREVER
        classified = classify(
            batch, self._leaves, plan.variables, plan.schema.type, plan.key, engine.unseen
        )
        engine.unseen -= classified.types
        bits = np.zeros(len(classified.rows), np.uint16)
        for step, mask in enumerate(classified.masks):
            bits |= mask.view(np.uint8).astype(np.uint16) << np.uint16(step)
        ticks = self._ticker.read(batch, classified.rows)
        self._rows.append(classified.batch.select(self._columns))
        self._bits.append(bits.astype(np.int64))
        self._ticks.append(ticks)
        return ticks.reached

    @property
    def table(self) -> pa.Table:
        """The events that may be steps."""
        return pa.Table.from_batches(self._rows).combine_chunks()

    @property
    def bits(self) -> Ints:
        """The steps that each may be."""
        return np.concatenate(self._bits)

    @property
    def ticks(self) -> Ticks:
        return joined_ticks(self._ticks)

    def by_key(self, table: pa.Table) -> KeyOrder:
        rows = table.num_rows
        names = [part.uniform for part in self._query.key if part.uniform is not None]
        if not names:
            return KeyOrder(None, np.array([0, rows]))
        codes, keys = numbered([normalized(table[name].combine_chunks()) for name in names])
        all_rows, listed, places = (
            np.arange(rows),
            np.empty(rows, np.int64),
            np.empty(rows, np.int64),
        )
        begins, ends = np.empty(keys, np.int64), np.zeros(keys, np.int64)
        sort: Any = load(SORT, self._jit)
        sort(codes, all_rows, all_rows, begins, ends, listed, places)
        return KeyOrder(listed, np.append(begins, rows))
