"""From complete groups to rows: HAVING, the columns of RETURN, and their order."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.answer_shape import WINDOW_END, WINDOW_START, Answers
from cepheid.algebra.expressions import Attribute, Expr, walk
from cepheid.answers.aggregate_states import empty_result, result_type, results
from cepheid.answers.partial_groups import PartialGroups
from cepheid.engine.arrays.vector import evaluate
from cepheid.engine.match_schema import MATCH_END, MATCH_START, computed_type
from cepheid.engine.match_values import typed

Ints: TypeAlias = NDArray[np.int64]


class AnswerRows:
    """Makes rows of one query's answers; `matches` is the schema of its matches."""

    def __init__(self, shape: Answers, matches: pa.Schema) -> None:
        self._shape = shape
        self._time = _exact(matches.field(MATCH_END).type)
        self.types = {name: matches.field(name).type for name in shape.groups}
        for aggregate in shape.aggregates:
            column = None if aggregate.column is None else matches.field(aggregate.column).type
            self.types[aggregate.name] = result_type(aggregate, column)
        self.types |= {WINDOW_START: self._time, WINDOW_END: self._time}
        fields = [pa.field(o.name, self._type(o.expression)) for o in shape.outputs]
        ends = [pa.field(MATCH_START, self._time), pa.field(MATCH_END, self._time)]
        self.schema = pa.schema([*fields, *ends])

    def _type(self, expr: Expr) -> pa.DataType:
        if isinstance(expr, Attribute):
            return self.types[expr.name]
        return computed_type(expr.type, self._time)

    def of_groups(
        self, cells: PartialGroups, keys: list[pa.Array], start: Ints | None, end: Ints
    ) -> pa.RecordBatch:
        """Answers of complete groups, in the order of the ends of their windows, then of their
        group expressions. Without a window, `start` is None."""
        values: dict[str, pa.Array] = dict(zip(self._shape.groups, keys, strict=True))
        for aggregate, state in zip(self._shape.aggregates, cells.states, strict=True):
            values[aggregate.name] = results(aggregate, state)
        order = _order(keys, np.zeros_like(end) if start is None else end)
        values = {name: column.take(order) for name, column in values.items()}
        rows = order.to_numpy()
        return self._rows(values, None if start is None else start[rows], end[rows])

    def of_nothing(self, start: Ints | None, end: Ints | None, n: int) -> pa.RecordBatch:
        """Answers over no matches."""
        values = {
            aggregate.name: empty_result(aggregate, self.types[aggregate.name], n)
            for aggregate in self._shape.aggregates
        }
        return self._rows(values, start, end, n)

    @property
    def has_empty(self) -> bool:
        """Whether there may be answers about windows without matches, between others with some:
        HAVING often lets none out, as `count(*) > 5`."""
        return self._shape.has_empty_windows and all(
            map(self._holds_of_nothing, self._shape.having)
        )

    def _holds_of_nothing(self, condition: Expr) -> bool:
        nothing = {a.name: empty_result(a, self.types[a.name], 1) for a in self._shape.aggregates}
        read = [node.name for node in walk(condition) if isinstance(node, Attribute)]
        if not nothing.keys() >= set(read):
            return True  # it depends on the window
        holds = evaluate(condition, lambda attribute: nothing[attribute.name], 1)
        return bool(pc.any(holds.cast(pa.bool_())).as_py())

    def _rows(
        self, values: dict[str, pa.Array], start: Ints | None, end: Ints | None, n: int = 0
    ) -> pa.RecordBatch:
        n = n if end is None else len(end)
        times = pa.nulls(n, self._time) if end is None else self._moments(end)
        if start is not None:
            values = {**values, WINDOW_START: self._moments(start), WINDOW_END: times}

        def read(attribute: Attribute) -> pa.Array:
            return values[attribute.name]

        columns = [
            values[o.expression.name].cast(field.type)
            if isinstance(o.expression, Attribute)
            else typed(evaluate(o.expression, read, n), field.type)
            for o, field in zip(self._shape.outputs, self.schema, strict=False)
        ]
        batch = pa.RecordBatch.from_arrays([*columns, times, times], schema=self.schema)
        for condition in self._shape.having:
            kept = pc.fill_null(evaluate(condition, read, n).cast(pa.bool_()), False)
            values, batch = _filtered(values, batch, kept)
            n = batch.num_rows
        return batch

    def _moments(self, ticks: Ints) -> pa.Array:
        array = pa.array(ticks, pa.int64())
        return array if pa.types.is_integer(self._time) else array.cast(self._time)


def _order(keys: list[pa.Array], ends: Ints) -> pa.Array:
    sortable = [key for key in keys if not pa.types.is_null(key.type)]
    columns = {"end": pa.array(ends), **{f"g{n}": key for n, key in enumerate(sortable)}}
    names = [(name, "ascending") for name in columns]
    return pc.sort_indices(pa.table(columns), sort_keys=names)


def _filtered(
    values: dict[str, pa.Array], batch: pa.RecordBatch, kept: pa.Array
) -> tuple[dict[str, pa.Array], pa.RecordBatch]:
    return {name: column.filter(kept) for name, column in values.items()}, batch.filter(kept)


def _exact(time: pa.DataType) -> pa.DataType:
    """A type that has every tick of the clock, where windows may end."""
    if pa.types.is_integer(time):
        return pa.int64()
    return pa.timestamp("us", time.tz if pa.types.is_timestamp(time) else None)
