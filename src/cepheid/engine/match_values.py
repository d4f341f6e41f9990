"""The values of matches: the RETURN columns, gathered from the event store.

Nothing is copied before this point. Only the columns that RETURN names are gathered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.aggregates import AGGREGATES, FoldStep
from cepheid.algebra.expressions import (
    Accumulator,
    Aggregate,
    Attribute,
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Previous,
    PreviousOr,
    Reduce,
    Some,
    TimeSpan,
    Whole,
)
from cepheid.algebra.query import Kind
from cepheid.engine.arrays.reduction import reduced
from cepheid.engine.arrays.vector import ARROW, Read, evaluate
from cepheid.engine.match_schema import MATCH_START, Returning, keeps_values, value_type
from cepheid.engine.rows.buffers import Pool
from cepheid.engine.rows.store import EventStore

Ints = NDArray[np.int64]


def _from_ticks(values: Ints, type_: pa.DataType) -> pa.Array:
    array = pa.array(values, pa.int64())
    if pa.types.is_timestamp(type_):
        return array.cast(pa.timestamp("us", type_.tz)).cast(type_)
    if pa.types.is_date(type_):
        return array.cast(pa.timestamp("us")).cast(type_)
    return array.cast(type_)


class View:
    """A set of records that bind the same variables: their rows, and columns gathered once. `times`
    are their starts and ends, if the records know them."""

    def __init__(
        self,
        query: Returning,
        store: EventStore,
        input_schema: pa.Schema,
        slots: Mapping[str, int],
        records: Ints,
        groups: Mapping[str, Pool],
        times: tuple[Ints, Ints] | None,
    ) -> None:
        self.query = query
        self.store = store
        self.input_schema = input_schema
        self.slots = slots
        self.records = records
        self._pools = groups
        self._times = times
        self.n = records.shape[1]
        self._rows: dict[str, Ints] = {}
        self._groups: dict[str, tuple[Ints, Ints]] = {}

    def rows_of(self, outputs: Sequence[Expr], schema: pa.Schema) -> pa.RecordBatch:
        """The values of RETURN, and the times of the matches."""
        columns = [
            self.output(expression, schema.field(i).type) for i, expression in enumerate(outputs)
        ]
        time = schema.field(MATCH_START).type
        start, end = self.times()
        columns += [_from_ticks(start, time), _from_ticks(end, time)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    # ── rows ──

    def rows(self, variable: str) -> Ints:
        """Index in the store of the event that each record binds."""
        if variable not in self._rows:
            self._rows[variable] = self.records[self.slots[variable]] - self.store.base
        return self._rows[variable]

    def group(self, variable: str) -> tuple[Ints, Ints]:
        """Offsets of each record's elements, and the index in the store of every element."""
        if variable not in self._groups:
            slot = self.slots[variable]
            pool = self._pools[variable]
            starts, counts = self.records[slot] - pool.base, self.records[slot + 1]
            offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
            within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
            elements = pool.rows[np.repeat(starts, counts) + within] - self.store.base
            self._groups[variable] = offsets, elements
        return self._groups[variable]

    def times(self) -> tuple[Ints, Ints]:
        """Start and end of each match, as times: the extremes over its events, unless the records
        know them."""
        if self._times is not None:
            first, last = self._times
            # Copied: Arrow would hold on to the buffer, which is written to again.
            return first.copy(), last.copy()
        start, time = self.store.start, self.store.time
        starts = np.full(self.n, np.iinfo(np.int64).max)
        ends = np.full(self.n, np.iinfo(np.int64).min)
        for variable in self.slots:
            if variable in self._pools:
                offsets, elements = self.group(variable)
                some = np.flatnonzero(offsets[1:] > offsets[:-1])
                if len(some):  # the last element ends last, but any may start first
                    first = np.minimum.reduceat(start[elements], offsets[some])
                    last = time[elements[offsets[some + 1] - 1]]
                    starts[some] = np.minimum(starts[some], first)
                    ends[some] = np.maximum(ends[some], last)
            else:
                rows = self.rows(variable)
                np.minimum(starts, start[rows], out=starts)
                np.maximum(ends, time[rows], out=ends)
        return starts, ends

    # ── columns ──

    def output(self, expr: Expr, type_: pa.DataType) -> pa.Array:
        match expr:
            case Attribute() | Whole() if expr.variable not in self.slots:
                return pa.nulls(self.n, type_)
            case Aggregate() if expr.variable not in self.slots:
                return pa.nulls(self.n, type_)
            case Attribute():
                return self._take(expr.name, self.rows(expr.variable))
            case Whole():
                return self._whole(expr)
            case Aggregate() if keeps_values(expr):
                return self._from_group(expr, type_)
            case _:
                return typed(evaluate(expr, self._read, self.n, self._special), type_)

    def _take(self, name: str, rows: Ints) -> pa.Array:
        column = self.store.returned[name]
        assert column is not None
        return column.take(rows)

    def _whole(self, expr: Whole) -> pa.Array:
        if expr.variable not in self._pools:
            return self._struct(expr.columns, self.rows(expr.variable), None)
        offsets, elements = self.group(expr.variable)
        if self.query.variables[expr.variable].kind is Kind.OPTIONAL:
            present = offsets[1:] > offsets[:-1]
            rows = np.zeros(self.n, np.int64)
            rows[present] = elements
            return self._struct(expr.columns, rows, present)
        structs = self._struct(expr.columns, elements, None)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)

    def _struct(
        self, columns: Sequence[str], rows: Ints, present: NDArray[np.bool_] | None
    ) -> pa.Array:
        arrays = [self._take(c, rows) for c in columns]
        mask = None if present is None else pa.array(~present)
        return pa.StructArray.from_arrays(arrays, names=list(columns), mask=mask)

    def _from_group(self, expr: Aggregate, type_: pa.DataType) -> pa.Array:
        """Aggregates whose result has the type of the element's attribute."""
        offsets, elements = self.group(expr.variable)
        argument = expr.argument
        assert argument is not None
        if isinstance(argument, Whole):
            values = self._struct(argument.columns, elements, None)
        elif isinstance(argument, Attribute):
            values = self._take(argument.name, elements)
        else:
            inner = type_.value_type if AGGREGATES[expr.function].lists else type_
            values = typed(evaluate(argument, self._elements(expr.variable), len(elements)), inner)
        return _reduced(expr, offsets, values)

    def _elements(self, variable: str) -> Read:
        """Reads the elements of a group. The variables of a closure over a pattern go through its
        rounds together."""
        return lambda a: self._take(a.name, self.group(a.variable or variable)[1])

    # ── inside expressions ──

    def _read(self, attribute: Attribute) -> pa.Array:
        if attribute.variable not in self.slots:
            return pa.nulls(self.n, value_type(self.input_schema.field(attribute.name).type))
        return self._take(attribute.name, self.rows(attribute.variable))

    def _special(self, expr: Expr) -> pa.Array:
        match expr:
            case MatchDuration():
                start, end = self.times()
                return pa.array(end - start)
            case Aggregate():
                return self._aggregate(expr)
            case Reduce():
                return self._reduce(expr)
            case TimeSpan():
                return self._span(expr)
            case (
                Every()
                | Some()
                | Previous()
                | PreviousOr()
                | Accumulator()
                | Whole()
                | Attribute()
                | Call()
                | Constant()
            ):
                raise AssertionError(f"{type(expr).__name__} in RETURN")
            case _:
                assert_never(expr)

    def _aggregate(self, expr: Aggregate) -> pa.Array:
        target = ARROW.get(expr.type, pa.int64())
        if expr.variable not in self.slots:
            return pa.nulls(self.n, target)
        if expr.argument is None:
            return pa.array(self.records[self.slots[expr.variable] + 1].copy())
        offsets, elements = self.group(expr.variable)
        values = evaluate(expr.argument, self._elements(expr.variable), len(elements))
        function = AGGREGATES[expr.function]
        folded = _reduced(expr, offsets, values)
        return folded if function.step in (FoldStep.FIRST, FoldStep.LAST) else folded.cast(target)

    def _reduce(self, expr: Reduce) -> pa.Array:
        """Fold the n-th elements of all groups at once."""
        target = ARROW.get(expr.type, pa.int64())
        if expr.variable not in self.slots:
            return pa.nulls(self.n, target)
        offsets, _ = self.group(expr.variable)
        sizes = np.diff(offsets)
        totals = evaluate(expr.start, self._read, self.n, self._special).cast(target)
        for n in range(int(sizes.max(initial=0))):
            groups = np.flatnonzero(sizes > n)
            step = self._step(expr.step, totals.take(pa.array(groups)), offsets[groups] + n)
            index = np.arange(self.n)
            index[groups] = self.n + np.arange(len(groups))
            totals = pa.concat_arrays([totals, step.cast(target)]).take(pa.array(index))
        return totals

    def _step(self, step: Expr, before: pa.Array, places: Ints) -> pa.Array:
        """The step of `reduce`, at these places of the elements."""

        def read(attribute: Attribute) -> pa.Array:
            return self._take(attribute.name, self.group(attribute.variable)[1][places])

        return evaluate(step, read, len(before), lambda accumulator: before)

    def _span(self, expr: TimeSpan) -> pa.Array:
        start, time = self.store.start, self.store.time
        earliest = np.full(self.n, np.iinfo(np.int64).max)
        latest = np.full(self.n, np.iinfo(np.int64).min)
        for variable in expr.variables:
            if variable in self.slots and variable not in self._pools:
                rows = self.rows(variable)
                earliest = np.minimum(earliest, start[rows])
                latest = np.maximum(latest, time[rows])
        return pa.array(latest - earliest)


def _reduced(expr: Aggregate, offsets: Ints, values: pa.Array) -> pa.Array:
    function = AGGREGATES[expr.function]
    return reduced(function, offsets, values, distinct=expr.distinct, offset=expr.offset)


def typed(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """A computed array (integers for times) as the column's type."""
    if array.type == type_:
        return array
    if pa.types.is_date32(type_):
        return array.cast(pa.int32()).cast(type_)
    if pa.types.is_null(array.type) or pa.types.is_null(type_):
        return pa.nulls(len(array), type_)
    return array.cast(type_)
