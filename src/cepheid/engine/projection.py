"""From the records of a plan's root to rows of matches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.algebra.expressions import Attribute, Expr, TimeSpan, Whole, transform
from cepheid.algebra.query import Clock, Renamed
from cepheid.algebra.types import Type
from cepheid.engine.match_schema import MATCH_START, output_schema
from cepheid.engine.match_values import Ints, View
from cepheid.engine.operators.base import Operator
from cepheid.plan.nodes import Plan


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
        self._returned_places = plan.returned[alternative] if plan.returned else every
        self.schema = output_schema(plan, input_schema)
        self.input_schema = input_schema

    def outputs(self, bound: Collection[str]) -> list[Expr]:
        """RETURN for matches that bind these variables: the schema follows from it as written, the
        values from the trees' own names."""
        return [
            _in_tree(o.expression, self.plan.renamed, bound)
            if place in self._returned_places
            else _NOTHING
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
        """Take the columns that the kernel wrote, and give it new ones."""
        written = self.root.results
        arrays = [
            pa.Array.from_buffers(field.type, n, [None, pa.py_buffer(values)])
            for field, values in zip(self.schema, written, strict=True)
        ]
        self.root.results = tuple(np.empty_like(values) for values in written)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def batch(self) -> pa.RecordBatch:
        """Project all records of the root."""
        n = self.root.out.n
        if self.root.returned is not None:
            return self._fused(n)
        records = self.root.out.records.slots[:, :n]
        if not self.root.optional:
            return self._rows(self._view(self.root.slots, records, self._times(records)))
        # Matches that took the same branches together: each kind binds its own variables.
        slots = [self.root.slots[v] + (v in self.root.groups) for v in self.root.optional]
        kinds, of = np.unique(records[slots] < 0, axis=1, return_inverse=True)
        parts: list[pa.RecordBatch] = []
        for kind in range(kinds.shape[1]):
            absent = {v for v, gone in zip(self.root.optional, kinds[:, kind], strict=True) if gone}
            bound = {v: s for v, s in self.root.slots.items() if v not in absent}
            chosen = of == kind
            times = self._times(records)
            if times is not None:
                times = times[0][chosen], times[1][chosen]
            parts.append(self._rows(self._view(bound, records[:, chosen], times)))
        order = np.argsort(np.argsort(of, kind="stable"))
        table = pa.Table.from_batches(parts).combine_chunks().take(pa.array(order))
        return table.combine_chunks().to_batches()[0]

    def _times(self, records: Ints) -> tuple[Ints, Ints] | None:
        """The starts and ends of all records: an automaton writes them; of joins of single events,
        they are what the window is measured on, if that is time."""
        root, n = self.root, self.root.out.n
        if root.times is not None:
            return records[root.times[0]], records[root.times[1]]
        if root.context.in_time and not root.groups:
            return root.out.records.start[:n], root.out.records.end[:n]
        return None

    def _view(
        self, slots: Mapping[str, int], records: Ints, times: tuple[Ints, Ints] | None
    ) -> View:
        store = self.root.context.store
        return View(self.plan, store, self.input_schema, slots, records, self.root.groups, times)

    def _rows(self, view: View) -> pa.RecordBatch:
        return view.rows_of(self.outputs(view.slots.keys()), self.schema)


_ABSENT = ""
"""The value of a variable that no tree binds."""

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
