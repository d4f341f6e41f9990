"""Counts the matches of a pattern from its events; see `countable` for which patterns."""

from __future__ import annotations

from collections.abc import Iterator
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
from cepheid.answers.counted.countable import Counting, of_last
from cepheid.answers.counted.counted_matches import CountedMatches, value_of
from cepheid.answers.counted.sliding_products import EXACT, SlidingProducts, whole_numbers
from cepheid.answers.counted.step_rows import StepRows, key_columns
from cepheid.engine.operators.base import FOREVER
from cepheid.kernels.templates.sequence_counts import Semiring

Ints: TypeAlias = NDArray[np.int64]


class SequenceCounter:
    """Says what the matches come to that end at each event."""

    def __init__(self, query: BoundQuery, schema: pa.Schema, jit: bool, counting: Counting) -> None:
        assert query.answers is not None
        self._query, self._jit, self._schema = query, jit, schema
        self._aggregates = query.answers.aggregates
        self._counting = counting
        self._known = {
            output.name: of_last(output.expression, query)
            for output in query.outputs
            if output.name not in self._counting.carried
        }
        self.steps = counting.automaton.steps
        self.columns = self._read_columns()

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
        key, time = key_columns(self._query), self._query.schema.time
        return [*dict.fromkeys((time, *key, *names, *self._last_columns()))]

    def matches(self, rows: StepRows) -> Iterator[CountedMatches]:
        """The matches that end at each event."""
        table, ticks = rows.table, rows.ticks
        window = FOREVER >> 1 if self._query.window is None else self._query.window.size
        products = SlidingProducts(
            self._counting.automaton,
            rows.bits,
            ticks,
            rows.by_key(self._query, self._jit),
            window,
            self._jit,
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
        yield CountedMatches(self._values(table, ending), weights, states)

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
        type_ = self._schema.field(aggregate.column).type
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

        return value_of(expr, read, rows.num_rows, type_)

    def _values(self, table: pa.Table, ending: Ints) -> pa.RecordBatch:
        """What is known from the last events."""
        schema = self._schema
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
