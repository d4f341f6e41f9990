"""Simultaneous events of one key, where a query depends on their order and nothing says which
comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra import patterns
from cepheid.algebra.expressions import Aggregate, Expr, Previous, Reduce
from cepheid.algebra.expressions import walk as parts
from cepheid.algebra.patterns import Closure, walk
from cepheid.algebra.query import BoundQuery, Clock, Role
from cepheid.engine.arrays.columns import decoded
from cepheid.engine.rows.classes import classify
from cepheid.engine.rows.clock import times
from cepheid.language.ast import Exactly, Mode, Optional, SequenceOperator, Skip
from cepheid.plan.nodes import Plan
from cepheid.plan.reads import leaves

MOST = 1 << 12
"""Simultaneous rows whose keys are compared; beyond that the number is a lower bound. So data in
which most events share their time cost a run no more than others."""


def dependent(query: BoundQuery) -> str | None:
    """What in the query depends on the order of simultaneous events, if anything does.

    `;`, `&` and negations don't: neither of two simultaneous events is before the other. `->` and
    `=>` take all that come first. Where one has to be chosen, or events are counted or compared
    with those before them, the order of the input decides.
    """
    if query.selection is not None:
        return "LIMIT" if query.selection.skip is Skip.NONE else "AFTER MATCH"
    if query.window is not None and query.window.clock is Clock.EVENTS:
        return "a window of EVENTS"
    for part in walk(query.pattern):
        match part:
            case patterns.Sequence(operators=operators):
                for operator in (SequenceOperator.NEXT, SequenceOperator.STRICT):
                    if operator in operators:
                        return f"`{operator.value}`"
            case Closure(quantifier=Optional()):
                return "`?`"
            case Closure():
                chosen = isinstance(part.quantifier, Exactly) or part.mode is not Mode.MAXIMAL
                if chosen or part.strict or part.until is not None:
                    return "the choice of a group"
            case _:
                pass
    if any(conjunct.role is Role.RUNNING for conjunct in query.where):
        return "a condition on the element before"
    read = (*(c.expression for c in query.where), *query.having)
    read += tuple(output.expression for output in query.outputs)
    return "PREV, FIRST or LAST" if any(map(_reads_an_end, read)) else None


def tied_by(queries: Iterable[BoundQuery]) -> tuple[str, ...] | None:
    """The columns in which, beside their time, events must agree to be ties for one of the queries;
    None if none depends on the order of such events, or a column says what it is."""
    shared: tuple[str, ...] | None = None
    for query in queries:
        ordered = query.schema.tie is not None or query.schema.start is not None
        if not ordered and dependent(query) is not None:
            key = key_columns(part.columns for part in query.key)
            shared = key if shared is None else tuple(name for name in shared if name in key)
    return shared


def key_columns(key: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """The parts of a key that have the same name for all variables."""
    names = [set(part.values()) for part in key]
    return tuple(name for columns in names if len(columns) == 1 for name in columns)


def count_ties(rows: pa.Table, time: str, key: Sequence[str]) -> tuple[int, bool]:
    """How many rows have the time and the key of another one, and whether all were counted. Rows
    without a time are none; the rows may be in any order."""
    rows = rows.filter(rows[time].is_valid()).select([time, *key])
    at = times(rows[time].combine_chunks()) if rows.num_rows else np.zeros(0, np.int64)
    order = np.argsort(at, kind="stable")
    again = np.diff(at[order]) == 0
    if not again.any():
        return 0, True
    tied = np.append(again, False)
    tied[1:] |= again
    tied_rows = order[tied]
    groups = _sizes(rows.take(pa.array(tied_rows[:MOST])), time, key)
    return int(groups[groups > 1].sum()), len(tied_rows) <= MOST


def _sizes(rows: pa.Table | pa.RecordBatch, time: str, key: Sequence[str]) -> NDArray[np.int64]:
    """How many rows there are of each time and key."""
    moments = rows[time].combine_chunks() if isinstance(rows, pa.Table) else rows.column(time)
    columns = {"time": pa.array(times(moments))}
    columns |= {f"key {name}": decoded(rows[name]) for name in key}
    table = pa.table(columns)
    groups = table.group_by(list(columns), use_threads=False).aggregate([([], "count_all")])
    sizes: NDArray[np.int64] = groups["count_all"].to_numpy()
    return sizes


def _reads_an_end(expr: Expr) -> bool:
    return any(
        isinstance(part, Previous | Reduce)
        or (isinstance(part, Aggregate) and part.function in ("first", "last"))
        for part in parts(expr)
    )


class Ties:
    """Counts the events that have time and key of another one, of those that the plan looks at.
    Batches come as the engine gets them: in the order of time, or key by key."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._leaves = leaves(plan)
        self.key = key_columns(plan.key)
        self.count = 0
        self._looked = 0
        self._open: list[pa.RecordBatch] = []  # the last rows, which all have the same time
        self._time: int | None = None

    @property
    def complete(self) -> bool:
        """Whether all were counted."""
        return self._looked <= MOST

    def add(self, batch: pa.RecordBatch) -> None:
        if not self.complete:
            return
        time = batch.column(self._plan.schema.time)
        if time.null_count:
            batch, time = batch.filter(time.is_valid()), time.drop_null()
        if not batch.num_rows:
            return
        at = times(time)
        again = at[1:] == at[:-1]  # of each row but the first: it has the time of the one before
        if int(at[0]) == self._time:
            first = 1 + _run(again)
            self._open.append(batch.slice(0, first))
            if sum(part.num_rows for part in self._open) > MOST:
                self.close()
            if first == len(at):
                return
            batch, at, again = batch.slice(first), at[first:], again[first:]
        self.close()
        last = len(at) - 1 - _run(again[::-1])
        before = again[: max(0, last - 1)]
        if before.any():
            tied = np.append(before, False)
            tied[1:] |= before
            self._compare(batch.take(pa.array(np.flatnonzero(tied)[: MOST + 1])))
        self._open, self._time = [batch.slice(last)], int(at[-1])

    def close(self) -> None:
        """Finish the last time: no more rows of it will come."""
        if sum(batch.num_rows for batch in self._open) > 1:
            table = pa.Table.from_batches(self._open).slice(0, MOST + 1)
            self._compare(table.combine_chunks().to_batches()[0])
        self._open = []

    def _compare(self, tied: pa.RecordBatch) -> None:
        """Count the rows of this time that also share their key."""
        plan = self._plan
        self._looked += tied.num_rows
        relevant = tied
        if plan.window is None or plan.window.clock is not Clock.EVENTS:  # which counts every row
            relevant = classify(
                tied, self._leaves, plan.variables, plan.schema.type, plan.key
            ).batch
        sizes = _sizes(relevant, plan.schema.time, self.key)
        self.count += int(sizes[sizes > 1].sum())


def _run(flags: NDArray[np.bool_]) -> int:
    """How many are true before the first that isn't."""
    return len(flags) if flags.all() else int(np.argmin(flags))
