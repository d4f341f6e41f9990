"""Counts the matches of a pattern from its events; see `countable` for which patterns."""

from __future__ import annotations

from itertools import chain
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.answer_shape import MatchAggregate
from cepheid.algebra.expressions import Attribute, Expr, walk
from cepheid.algebra.query import BoundQuery
from cepheid.answers.aggregate_states import MatchCounts, State
from cepheid.answers.countable import counting, of_last
from cepheid.answers.group_ids import GroupIds
from cepheid.answers.sliding_products import EXACT, SlidingProducts, whole_numbers
from cepheid.engine.arrays.vector import evaluate
from cepheid.engine.match_values import typed
from cepheid.engine.operators.base import FOREVER
from cepheid.engine.rows.classes import classify
from cepheid.engine.rows.clock import Ticker, Ticks, joined_ticks
from cepheid.engine.run import Engine
from cepheid.kernels.templates.sequence_counts import Semiring
from cepheid.plan.nodes import LeafNode

Ints: TypeAlias = NDArray[np.int64]


class SequenceCounter:
    """Reads all events, in order, and then says what the matches come to that end at each. The
    engine of the query counts what is read; it doesn't run."""

    def __init__(self, query: BoundQuery, engine: Engine, jit: bool) -> None:
        assert query.answers is not None
        self.engine = engine
        self._query, self._jit = query, jit
        self._aggregates = query.answers.aggregates
        self._counting = counting(query)
        self._known = {
            output.name: of_last(output.expression, query)
            for output in query.outputs
            if output.name not in self._counting.carried
        }
        self._columns = self._read_columns()
        self._leaves = [self._leaf(variable) for variable in self._counting.automaton.steps]
        window = query.window
        self._window = FOREVER >> 1 if window is None else window.size
        self._ticker = Ticker(query.schema, window, engine.plan.key)
        self._rows: list[pa.RecordBatch] = []
        self._bits: list[Ints] = []
        self._ticks: list[Ticks] = []

    def _leaf(self, variable: str) -> LeafNode:
        conditions = (c.expression for c in self._query.where if c.variables == (variable,))
        return LeafNode(variable, tuple(conditions))

    def _last_columns(self) -> list[str]:
        """What is read of the last events, but for their time."""
        nodes = chain.from_iterable(map(walk, self._known.values()))
        names = dict.fromkeys(node.name for node in nodes if isinstance(node, Attribute))
        return [name for name in names if name != self._query.schema.time]

    def _read_columns(self) -> list[str]:
        """What is read of events once their steps are known."""
        carried = (c.value for c in self._counting.carried.values() if c.value is not None)
        nodes = chain.from_iterable(map(walk, carried))
        names = [node.name for node in nodes if isinstance(node, Attribute)]
        key = [part.uniform for part in self._query.key if part.uniform is not None]
        return [*dict.fromkeys((self._query.schema.time, *key, *names, *self._last_columns()))]

    def read(self, batch: pa.RecordBatch) -> int:
        """The time of the last event."""
        engine, plan = self.engine, self.engine.plan
        batch = engine.with_times(batch)
        if not batch.num_rows:
            return -FOREVER
        found = classify(
            batch, self._leaves, plan.variables, plan.schema.type, plan.key, engine.unseen
        )
        engine.unseen -= found.types
        bits = np.zeros(len(found.rows), np.uint16)
        for step, mask in enumerate(found.masks):
            bits |= mask.view(np.uint8).astype(np.uint16) << np.uint16(step)
        ticks = self._ticker.read(batch, found.rows)
        self._rows.append(found.batch.select(self._columns))
        self._bits.append(bits.astype(np.int64))
        self._ticks.append(ticks)
        return ticks.reached

    def ends(self) -> tuple[pa.RecordBatch, MatchCounts, dict[str, State]]:
        """The values of the matches that end at each event, how many they are, and what they come
        to."""
        schema = self.engine.schema
        if not sum(map(len, self._bits)):
            return pa.RecordBatch.from_pylist([], schema), MatchCounts.single(0), {}
        table = pa.Table.from_batches(self._rows).combine_chunks()
        ticks = joined_ticks(self._ticks)
        order, bounds = self._by_key(table)
        bits = np.concatenate(self._bits)
        products = SlidingProducts(
            self._counting.automaton, bits, ticks, order, bounds, self._window, self._jit
        )
        counts = products.counts()
        ending = np.flatnonzero(counts > 0)
        time = ticks.time[ending]
        if (time[1:] < time[:-1]).any():
            ending = ending[np.argsort(time, kind="stable")]
        about = counts[ending]
        exact = whole_numbers(about)
        if len(about) and about.max() >= EXACT:
            exact = products.counts(Semiring.INTEGERS)[ending]
        weights = MatchCounts(exact, about)
        states = {
            aggregate.name: self._totals(table, products, aggregate, ending, weights)
            for aggregate in self._aggregates
            if aggregate.column in self._counting.carried
        }
        return self._values(table, ending, schema), weights, states

    def _by_key(self, table: pa.Table) -> tuple[Ints | None, Ints]:
        """The rows key by key, in the order of time, and where each key begins."""
        rows = table.num_rows
        names = [part.uniform for part in self._query.key if part.uniform is not None]
        if not names:
            return None, np.array([0, rows])
        columns = [table[name].combine_chunks() for name in names]
        codes = GroupIds([column.type for column in columns]).of(columns, rows)
        order = np.argsort(codes, kind="stable")
        new = np.flatnonzero(np.diff(codes[order])) + 1
        return order, np.concatenate(([0], new, [rows]))

    def _totals(
        self,
        table: pa.Table,
        products: SlidingProducts,
        aggregate: MatchAggregate,
        ending: Ints,
        weights: MatchCounts,
    ) -> State:
        assert aggregate.column is not None
        carried = self._counting.carried[aggregate.column]
        variable, function = carried.variable, aggregate.function
        if carried.value is None:
            elements = np.ones(table.num_rows, np.int64)
            return products.sums(variable, elements, None, ending, weights).state(aggregate)
        type_ = self.engine.schema.field(aggregate.column).type
        values = self._value(carried.value, table, type_)
        if function in ("min", "max"):
            return [products.extremes(variable, values, ending, greatest=function == "max")]
        known = None
        if values.null_count or not carried.always:
            known = pc.is_valid(values).to_numpy(zero_copy_only=False).astype(np.int64)
        if function == "count":
            numbers = np.ones(len(values), np.int64)
        else:
            plain = pa.float64() if pa.types.is_floating(type_) else pa.int64()
            numbers = pc.fill_null(values.cast(plain), 0).to_numpy(zero_copy_only=False)
        return products.sums(variable, numbers, known, ending, weights).state(aggregate)

    def _value(self, expr: Expr, rows: pa.Table, type_: pa.DataType) -> pa.Array:
        def read(attribute: Attribute) -> pa.Array:
            return rows[attribute.name].combine_chunks()

        if isinstance(expr, Attribute):
            found = read(expr)
            return found if found.type == type_ else found.cast(type_)
        return typed(evaluate(expr, read, rows.num_rows), type_)

    def _values(self, table: pa.Table, ending: Ints, schema: pa.Schema) -> pa.RecordBatch:
        """What is known from the last events."""
        rows = table.select([self._query.schema.time, *self._last_columns()])
        rows = rows.take(pa.array(ending))
        columns = [
            self._value(self._known[name], rows, schema.field(name).type)
            if name in self._known
            else pa.nulls(rows.num_rows, schema.field(name).type)
            for name in schema.names[: len(self._query.outputs)]
        ]
        time = rows[self._query.schema.time].combine_chunks()
        time = time if time.type == schema.field(-1).type else time.cast(schema.field(-1).type)
        return pa.RecordBatch.from_arrays([*columns, time, time], schema=schema)
