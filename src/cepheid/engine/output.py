"""From records to rows: the RETURN columns, gathered from the event store.

Nothing is copied before this point. Only the columns that RETURN names are gathered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.aggregates import AGGREGATES, FoldStep
from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Previous,
    Some,
    TimeSpan,
    Whole,
    transform,
    walk,
)
from cepheid.algebra.query import Clock, Kind, Output, Renamed, Variable
from cepheid.algebra.types import Schema, Type
from cepheid.engine.buffers import Pool
from cepheid.engine.operators.base import Operator
from cepheid.engine.reduction import reduced
from cepheid.engine.store import EventStore
from cepheid.engine.vector import ARROW, Read, evaluate
from cepheid.plan.nodes import Plan

MATCH_START, MATCH_END = "match_start", "match_end"

Ints = NDArray[np.int64]


class Returning(Protocol):
    """What is known of the query: a plan has it, and a bound query."""

    @property
    def outputs(self) -> tuple[Output, ...]: ...

    @property
    def variables(self) -> Mapping[str, Variable]: ...

    @property
    def schema(self) -> Schema: ...


def returned_columns(query: Returning) -> tuple[str, ...]:
    """Columns that RETURN reads."""
    return columns_read(output.expression for output in query.outputs)


def columns_read(expressions: Iterable[Expr]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for expression in expressions:
        for node in walk(expression):
            match node:
                case Attribute():
                    names[node.name] = None
                case Whole():
                    names.update(dict.fromkeys(node.columns))
                case _:
                    pass
    return tuple(names)


def output_schema(query: Returning, input_schema: pa.Schema) -> pa.Schema:
    """The schema of the matches, given that of the events."""
    time = _value_type(input_schema.field(query.schema.time).type)
    fields = [
        pa.field(o.name, _arrow_type(o.expression, query, input_schema)) for o in query.outputs
    ]
    return pa.schema([*fields, pa.field(MATCH_START, time), pa.field(MATCH_END, time)])


def _value_type(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _arrow_type(expr: Expr, query: Returning, schema: pa.Schema) -> pa.DataType:
    match expr:
        case Attribute():
            return _value_type(schema.field(expr.name).type)
        case Whole():
            struct = _struct_type(expr.columns, schema)
            grouped = query.variables[expr.variable].kind is Kind.GROUP
            return pa.list_(struct) if grouped else struct
        case Aggregate() if _keeps_values(expr):
            assert expr.argument is not None
            if isinstance(expr.argument, Whole):
                element = _struct_type(expr.argument.columns, schema)
            else:
                element = _arrow_type(expr.argument, query, schema)
            return pa.list_(element) if AGGREGATES[expr.function].lists else element
        case Constant(type=Type.NULL):
            return pa.null()
        case _:
            return computed_type(expr.type, schema.field(query.schema.time).type)


def _keeps_values(expr: Aggregate) -> bool:
    """Whether it returns values of the group's events as they are."""
    function = AGGREGATES[expr.function]
    return function.chooses or function.lists


def _struct_type(columns: Iterable[str], schema: pa.Schema) -> pa.DataType:
    return pa.struct([pa.field(c, _value_type(schema.field(c).type)) for c in columns])


def computed_type(type_: Type, time: pa.DataType) -> pa.DataType:
    match type_:
        case Type.TIMESTAMP:
            return pa.timestamp("us", time.tz if pa.types.is_timestamp(time) else None)
        case Type.DATE:
            return pa.date32()
        case Type.DURATION:
            return pa.int64() if pa.types.is_integer(time) else pa.duration("us")
        case _:
            return ARROW[type_]


class Projection:
    """Turns the records of an alternative's root into a batch of matches.

    If RETURN is nothing but attributes of fixed width, `fused` lets the root's kernel write the
    columns itself, which halves the cost of a match.
    """

    def __init__(
        self, plan: Plan, root: Operator, input_schema: pa.Schema, alternative: int
    ) -> None:
        self.plan = plan
        self.root = root
        every = frozenset(range(len(plan.outputs)))
        self._own = plan.returned[alternative] if plan.returned else every
        self.schema = output_schema(plan, input_schema)
        self.input_schema = input_schema

    def outputs(self, bound: Collection[str]) -> list[Expr]:
        """RETURN for matches that bind these variables: the schema follows from it as written, the
        values from the trees' own names."""
        return [
            _in_tree(o.expression, self.plan.renamed, bound) if place in self._own else _NOTHING
            for place, o in enumerate(self.plan.outputs)
        ]

    def fuse(self, capacity: int) -> None:
        """Let the kernel write the columns, as long as none of them has a NULL."""
        returned = self._returned()
        self.root.returned = returned
        self.root.results = () if returned is None else self._arrays(returned, capacity)

    def _returned(self) -> tuple[Attribute, ...] | None:
        attributes: list[Attribute] = []
        if self.root.optional:
            return None
        for expression in self.outputs(self.root.slots.keys()):
            match expression:
                case Attribute() as a if a.variable in self.root.slots:
                    column = self.root.context.store.returned[a.name]
                    single = a.variable not in self.root.groups
                    if column is None or column.numbers is None or not single:
                        return None
                    attributes.append(a)
                case _:
                    return None
        time = self.schema.field(MATCH_START).type
        exact = pa.types.is_int64(time) or (pa.types.is_timestamp(time) and time.unit == "us")
        events = self.plan.window is not None and self.plan.window.clock is Clock.EVENTS
        return tuple(attributes) if exact and not events else None

    def _arrays(self, returned: tuple[Attribute, ...], capacity: int) -> tuple[Any, ...]:
        store = self.root.context.store
        types = [store.stored(a.name).dtype for a in returned]
        return tuple(np.empty(capacity, t) for t in (*types, np.int64, np.int64))

    def _fused(self, n: int) -> pa.RecordBatch:
        """The columns that the kernel wrote; it gets new ones."""
        written = self.root.results
        arrays = [
            pa.Array.from_buffers(field.type, n, [None, pa.py_buffer(values)])
            for field, values in zip(self.schema, written, strict=True)
        ]
        self.root.results = tuple(np.empty_like(values) for values in written)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def batch(self) -> pa.RecordBatch:
        """All records of the root, as rows."""
        n = self.root.out.n
        if self.root.returned is not None:
            return self._fused(n)
        records = self.root.out.records.slots[:, :n]
        if not self.root.optional:
            return self._rows(self._view(self.root.slots, records))
        # Matches that took the same branches together: each kind binds its own variables.
        slots = [self.root.slots[v] + (v in self.root.groups) for v in self.root.optional]
        kinds, of = np.unique(records[slots] < 0, axis=1, return_inverse=True)
        parts: list[pa.RecordBatch] = []
        for kind in range(kinds.shape[1]):
            absent = {v for v, gone in zip(self.root.optional, kinds[:, kind], strict=True) if gone}
            bound = {v: s for v, s in self.root.slots.items() if v not in absent}
            parts.append(self._rows(self._view(bound, records[:, of == kind])))
        order = np.argsort(np.argsort(of, kind="stable"))
        table = pa.Table.from_batches(parts).combine_chunks().take(pa.array(order))
        return table.combine_chunks().to_batches()[0]

    def _view(self, slots: Mapping[str, int], records: Ints) -> View:
        root = self.root
        store = root.context.store
        return View(self.plan, store, self.input_schema, slots, records, root.groups, root.times)

    def _rows(self, view: View) -> pa.RecordBatch:
        return view.rows_of(self.outputs(view.slots.keys()), self.schema)


_ABSENT = ""
"""A variable that no tree binds."""

_NOTHING = Attribute(_ABSENT, "", Type.NULL)


def _in_tree(expr: Expr, renamed: Sequence[Renamed], bound: Collection[str]) -> Expr:
    """The expression in terms of an alternative's own variables."""
    names = {r.name: _ABSENT for r in renamed}
    names.update((r.name, r.variable) for r in renamed if not r.within.isdisjoint(bound))

    def change(node: Expr) -> Expr | None:
        match node:
            case Attribute() | Whole() if node.variable in names:
                return replace(node, variable=names[node.variable])
            case TimeSpan():
                return replace(node, variables=tuple(names.get(v, v) for v in node.variables))
            case _:
                return None

    return transform(expr, change) if names else expr


def _from_ticks(values: Ints, type_: pa.DataType) -> pa.Array:
    array = pa.array(values, pa.int64())
    if pa.types.is_timestamp(type_):
        return array.cast(pa.timestamp("us", type_.tz)).cast(type_)
    if pa.types.is_date(type_):
        return array.cast(pa.timestamp("us")).cast(type_)
    return array.cast(type_)


class View:
    """The records at hand, which all bind the same variables: their rows, and columns gathered
    once. `times` are slots of their starts and ends, if a delay may have moved them."""

    def __init__(
        self,
        query: Returning,
        store: EventStore,
        input_schema: pa.Schema,
        slots: Mapping[str, int],
        records: Ints,
        groups: Mapping[str, Pool],
        times: tuple[int, int] | None,
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
        """Start and end of each match, as times: the extremes over its events, unless they are
        among the records."""
        if self._times is not None:
            first_slot, last_slot = self._times
            # Copied: Arrow would hold on to the buffer, which is written to again.
            return self.records[first_slot].copy(), self.records[last_slot].copy()
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
            case Aggregate() if _keeps_values(expr):
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
        return reduced(AGGREGATES[expr.function], offsets, values)

    def _elements(self, variable: str) -> Read:
        """Reads the elements of a group. The variables of a closure over a pattern go through its
        rounds together."""
        return lambda a: self._take(a.name, self.group(a.variable or variable)[1])

    # ── inside expressions ──

    def _read(self, attribute: Attribute) -> pa.Array:
        if attribute.variable not in self.slots:
            return pa.nulls(self.n, _value_type(self.input_schema.field(attribute.name).type))
        return self._take(attribute.name, self.rows(attribute.variable))

    def _special(self, expr: Expr) -> pa.Array:
        match expr:
            case MatchDuration():
                start, end = self.times()
                return pa.array(end - start)
            case Aggregate():
                return self._aggregate(expr)
            case TimeSpan():
                return self._span(expr)
            case Every() | Some() | Previous() | Whole() | Attribute() | Call() | Constant():
                raise AssertionError(f"{type(expr).__name__} in RETURN")
            case _:
                assert_never(expr)

    def _aggregate(self, expr: Aggregate) -> pa.Array:
        target = ARROW.get(expr.type, pa.int64())
        if expr.variable not in self.slots:
            return pa.nulls(self.n, target)
        offsets, elements = self.group(expr.variable)
        if expr.argument is None:
            return pa.array(np.diff(offsets))
        values = evaluate(expr.argument, self._elements(expr.variable), len(elements))
        function = AGGREGATES[expr.function]
        found = reduced(function, offsets, values)
        return found if function.step in (FoldStep.FIRST, FoldStep.LAST) else found.cast(target)

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


def typed(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """A computed array (integers for times) as the column's type."""
    if array.type == type_:
        return array
    if pa.types.is_date32(type_):
        return array.cast(pa.int32()).cast(type_)
    if pa.types.is_null(array.type) or pa.types.is_null(type_):
        return pa.nulls(len(array), type_)
    return array.cast(type_)
