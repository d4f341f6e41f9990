"""Counts the matches of a sequence from its events; see `countable` for which sequences."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Expr
from cepheid.algebra.patterns import Leaf, Sequence
from cepheid.algebra.query import BoundQuery
from cepheid.answers.aggregate_states import MatchCounts
from cepheid.answers.countable import of_last
from cepheid.answers.group_ids import GroupIds
from cepheid.engine.arrays.vector import evaluate
from cepheid.engine.match_values import typed
from cepheid.engine.operators.base import FOREVER
from cepheid.engine.rows.classes import classify
from cepheid.engine.rows.clock import times
from cepheid.engine.run import Engine
from cepheid.kernels.compile import load
from cepheid.kernels.templates.sequence_counts import SEQUENCE_COUNTS

Ints: TypeAlias = NDArray[np.int64]


class SequenceCounter:
    """Reads all events, in order, and then says how many matches end at each. The engine of the
    query knows its classes, and counts what is read; it doesn't run."""

    def __init__(self, query: BoundQuery, engine: Engine, jit: bool) -> None:
        pattern = query.pattern
        assert isinstance(pattern, Sequence) and query.window is not None
        self.engine = engine
        self._query = query
        self._steps = [item.variable for item in pattern.items if isinstance(item, Leaf)]
        self._window = query.window.size
        self._kernel: Any = load(SEQUENCE_COUNTS, jit)
        self._rows: list[pa.RecordBatch] = []
        self._bits: list[Ints] = []

    def read(self, batch: pa.RecordBatch) -> int:
        """The time of the last event."""
        engine, plan = self.engine, self.engine.plan
        batch = engine.with_times(batch)
        leaves = tuple(engine.leaves)
        types = plan.schema.type
        classified = classify(batch, leaves, plan.variables, types, plan.key, engine.unseen)
        engine.unseen -= classified.types
        bits = np.zeros(len(classified.rows), np.int64)
        for leaf, mask in zip(leaves, classified.masks, strict=True):
            bits |= mask.astype(np.int64) << self._steps.index(leaf.variable)
        self._rows.append(classified.batch)
        self._bits.append(bits)
        time = batch.column(plan.schema.time)
        return int(times(time.slice(len(time) - 1))[0]) if len(time) else -FOREVER

    def ends(self) -> tuple[pa.RecordBatch, MatchCounts]:
        """The values of the matches that end at each event, and how many they are."""
        schema = self.engine.schema
        if not self._rows:
            return pa.RecordBatch.from_pylist([], schema), MatchCounts.single(0)
        table = pa.Table.from_batches(self._rows).combine_chunks()
        bits, moments = np.concatenate(self._bits), self._times(table)
        order, bounds = self._by_key(table)
        exact, about = np.zeros(len(bits), np.int64), np.zeros(len(bits))
        steps = len(self._steps)
        sorted_bits, sorted_times = bits[order], moments[order]
        self._kernel(sorted_bits, sorted_times, bounds, self._window, steps, exact, about)
        ending = np.flatnonzero(about > 0)
        ending = ending[np.argsort(sorted_times[ending], kind="stable")]
        rows = table.take(pa.array(order[ending]))
        return self._values(rows, schema), MatchCounts(exact[ending], about[ending])

    def _times(self, table: pa.Table) -> Ints:
        column = table[self._query.schema.time]
        return times(column.chunk(0)) if column.num_chunks else np.zeros(0, np.int64)

    def _by_key(self, table: pa.Table) -> tuple[Ints, Ints]:
        """The rows key by key, in the order of time, and where each key begins."""
        rows = table.num_rows
        names = [part.uniform for part in self._query.key if part.uniform is not None]
        if not names or not rows:
            return np.arange(rows), np.array([0, rows])
        columns = [table[name].combine_chunks() for name in names]
        codes = GroupIds([column.type for column in columns]).of(columns, rows)
        order = np.argsort(codes, kind="stable")
        new = np.flatnonzero(np.diff(codes[order])) + 1
        return order, np.concatenate(([0], new, [rows]))

    def _values(self, rows: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
        def read(attribute: Attribute) -> pa.Array:
            return rows[attribute.name].combine_chunks()

        def value(expr: Expr, type_: pa.DataType) -> pa.Array:
            if isinstance(expr, Attribute):
                column = read(expr)
                return column if column.type == type_ else column.cast(type_)
            return typed(evaluate(expr, read, rows.num_rows), type_)

        columns = [
            value(of_last(output.expression, self._query), schema.field(output.name).type)
            for output in self._query.outputs
        ]
        time = rows[self._query.schema.time].combine_chunks()
        time = time if time.type == schema.field(-1).type else time.cast(schema.field(-1).type)
        return pa.RecordBatch.from_arrays([*columns, time, time], schema=schema)
