"""Partial aggregates as rows of Arrow, which can be sent to another process, and saved."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.algebra.answer_shape import Answers
from cepheid.answers.aggregate_states import MatchCounts, State, first_state
from cepheid.answers.group_ids import GroupIds
from cepheid.answers.partial_groups import PartialGroups

_NUMBERS = ("place", "first", "last", "matches")


class PartialRows:
    """Makes rows of one query's partial aggregates, and those again of the rows. `matches` is the
    schema of its matches. Columns have the names of their places, since values may have any."""

    def __init__(self, shape: Answers, matches: pa.Schema) -> None:
        self._aggregates = shape.aggregates
        self._groups = [matches.field(name).type for name in shape.groups]
        nothing = np.zeros(0, np.int64)
        self._states = [
            first_state(
                a,
                None if a.column is None else pa.array([], matches.field(a.column).type),
                nothing,
                nothing,
                MatchCounts.single(0),
            )
            for a in shape.aggregates
        ]
        states = [part.type for state in self._states for part in state]
        self.schema = pa.schema(
            [
                *(pa.field(f"group {n}", type_) for n, type_ in enumerate(self._groups)),
                *(pa.field(name, pa.int64()) for name in _NUMBERS),
                *(pa.field(f"state {n}", type_) for n, type_ in enumerate(states)),
            ]
        )

    def keys(self, rows: pa.Table) -> list[pa.Array]:
        """The values of the group expressions."""
        return [rows.column(n).combine_chunks() for n in range(len(self._groups))]

    def table(self, cells: PartialGroups, keys: list[pa.Array]) -> pa.Table:
        numbers = [pa.array(getattr(cells, name)) for name in _NUMBERS]
        states = [part for state in cells.states for part in state]
        columns = [*keys, *numbers, *states]
        return pa.table(
            [c.cast(f.type) for c, f in zip(columns, self.schema, strict=True)], schema=self.schema
        )

    def cells(self, rows: pa.Table, ids: GroupIds) -> PartialGroups:
        group = ids.of(self.keys(rows), rows.num_rows)
        place, first, last, matches = (
            np.asarray(rows[name].to_numpy(), np.int64) for name in _NUMBERS
        )
        left = [column.combine_chunks() for column in rows.columns[len(self._groups) + 4 :]]
        states: list[State] = []
        for state in self._states:
            states.append(left[: len(state)])
            left = left[len(state) :]
        return PartialGroups(group, place, first, last, matches, tuple(states))
