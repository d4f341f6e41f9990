"""Counts the matches of a chain by walking from each of its anchors; see `chain_walks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Expr, variables, walk
from cepheid.algebra.query import BoundQuery
from cepheid.answers.aggregate_states import MatchCounts
from cepheid.answers.counted.chain_kernel import ChainKernel
from cepheid.answers.counted.chain_walks import ChainWalk, before
from cepheid.answers.counted.countable import of_last
from cepheid.answers.counted.counted_matches import CountedMatches, value_of
from cepheid.answers.counted.step_rows import StepRows, key_columns
from cepheid.answers.group_ids import numbered
from cepheid.engine.arrays.vector import evaluate

Ints: TypeAlias = NDArray[np.int64]


class ChainCounter:
    """Says how many matches there are, by their ends, and by what else answers read of them."""

    def __init__(self, query: BoundQuery, schema: pa.Schema, jit: bool, walk_: ChainWalk) -> None:
        assert query.window is not None
        self._query, self._schema, self._walk, self._jit = query, schema, walk_, jit
        self._values = [of_last(output.expression, query) for output in query.outputs]
        self._kernel = ChainKernel(walk_, query.window.size, jit)
        names = {a.name for expr in self._values for a in attributes(expr)}
        every = (query.schema.time, *key_columns(query), *names, *self._kernel.names)
        self.columns = [*dict.fromkeys(every)]
        self.steps = walk_.events

    def matches(self, rows: StepRows) -> Iterator[CountedMatches]:
        table, ticks = rows.table, rows.ticks
        end = self._walk.end
        keys = rows.by_key(self._query, self._jit)
        counted = self._kernel.run(table, ticks, rows.bits, keys, self._codes(table))
        for places, counts in counted:
            order = np.argsort(ticks.time[places[end]], kind="stable")
            places = {variable: of_step[order] for variable, of_step in places.items()}
            counts = MatchCounts(counts.exact[order], counts.about[order])
            yield CountedMatches(self.values(table, places), counts)

    def _codes(self, table: pa.Table) -> dict[int, Ints]:
        """For each step whose events are live, numbers for what is read of them."""
        live = {step for step in self._walk.live if step is not None}
        return {step: numbered([*self._read_of(self._walk.steps[step], table)])[0] for step in live}

    def _read_of(self, variable: str, table: pa.Table) -> Iterator[pa.Array]:
        def read(attribute: Attribute) -> pa.Array:
            return table[attribute.name].combine_chunks()

        read_whole = [expr for expr in self._values if variables(expr) == {variable}]
        others = (*self._walk.conditions, *(e for e in self._values if e not in read_whole))
        own = (variable, before(variable))
        names = (
            Attribute(variable, a.name, a.type)
            for expr in others
            for a in attributes(expr)
            if a.variable in own
        )
        for expr in (*dict.fromkeys(names), *read_whole):
            if isinstance(expr, Attribute):
                yield read(expr)
            else:
                yield evaluate(expr, read, table.num_rows)

    def values(self, table: pa.Table, rows: dict[str, Ints]) -> pa.RecordBatch:
        """What answers read of matches that have these events."""
        end = self._walk.end
        taken: dict[tuple[str, str], pa.Array] = {}

        def read(attribute: Attribute) -> pa.Array:
            place = (attribute.variable, attribute.name)
            if place not in taken:
                column = table[attribute.name].combine_chunks()
                taken[place] = column.take(pa.array(rows[attribute.variable]))
            return taken[place]

        n = len(rows[end])
        columns = [
            value_of(expr, read, n, self._schema.field(i).type)
            for i, expr in enumerate(self._values)
        ]
        time = table[self._query.schema.time].combine_chunks().take(pa.array(rows[end]))
        time = time.cast(self._schema.field(-1).type)
        return pa.RecordBatch.from_arrays([*columns, time, time], schema=self._schema)


def attributes(expr: Expr) -> Iterator[Attribute]:
    return (node for node in walk(expr) if isinstance(node, Attribute))
