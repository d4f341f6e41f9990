"""Trials over events in this process."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra import patterns
from cepheid.algebra.query import BoundQuery, Clock, Window
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.engine.rows.clock import times
from cepheid.engine.rows.event_types import types_in
from cepheid.errors import CepheidError
from cepheid.inprocess.runtime import InProcess
from cepheid.language import ast
from cepheid.options import Options
from cepheid.plan.amounts import count
from cepheid.reasons.first_groups import Groups, StartWindows, group_text
from cepheid.reasons.trials import (
    COUNT,
    MOST,
    VALUES,
    Binding,
    MatchCount,
    Outcome,
    Starts,
    Steps,
    StepTime,
    Variation,
    check_name,
    counted,
    earliest,
    first_line,
    limited,
    plain,
)

INTERPRETED = 20_000
"""Events up to which kernels run as plain Python: compiling them for every variation takes
longer."""


@dataclass(frozen=True)
class LocalTrials:
    """Events in this process (see `Trials`). `row` is the column that numbers them."""

    data: Any
    row: str
    moments: NDArray[np.int64]
    options: Options
    total: int
    sample: str | None = None
    numbered: bool = True
    known: dict[tuple[ast.Query, int | None], Outcome] = field(
        default_factory=dict, repr=False, compare=False
    )
    cells: dict[str, Mapping[int, Any]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def count(self) -> int:
        return sum(int(table.num_rows) for table in self._tables())

    def longest(self, window: Window | None) -> int:
        """A window that all events are in."""
        if window is not None and window.clock is Clock.EVENTS:
            return max(self.count, 1)
        placed = self.moments[self.moments > np.iinfo(np.int64).min]
        return int(placed.max() - placed.min()) + 1 if len(placed) else 1

    def bound(self, query: ast.Query) -> BoundQuery:
        return Variation(query).bind(InProcess().columns(self.data), self.options)

    # ── runs ────────────────────────────────────────────────────────────────

    def run(self, query: ast.Query, most: int | None = MOST) -> Outcome:
        """The matches of a variation, at most so many of them."""
        question = plain(query), most
        if question not in self.known:
            self.known[question] = self._run(*question)
        return self.known[question]

    def _run(self, query: ast.Query, most: int | None) -> Outcome:
        try:
            bound = self.bound(query)
            names = patterns.positive(bound.pattern)
            table = self._matched(self._returning(query, bound, names, most))
        except CepheidError as error:
            return Outcome(refused=first_line(error))
        return _outcome(table, names, most)

    def expect(
        self, steps: Steps, queries: Iterable[ast.Query], shortest: Collection[ast.Query]
    ) -> None:
        """Here each runs when it is needed."""

    def starts(
        self, steps: Steps, query: ast.Query, shortest: bool = False
    ) -> tuple[Starts, str | None]:
        wanted, many = earliest(query)
        outcome = self.run(wanted, MOST if many else None)
        if not outcome.complete:
            return {}, f"more than {count(MOST)} partial matches"
        matches = outcome.matches
        if shortest:
            matches = tuple(sorted(matches, key=lambda match: match.end - match.start))
        return {self.first(m, steps): m for m in reversed(matches)}, outcome.refused

    def first(self, match: Binding, steps: Steps) -> int:
        """The earliest event of the first step that binds one."""
        for step in steps:
            rows = [row for v in step for row in match.rows.get(v, ())[:1]]
            if rows:
                return min(rows, key=lambda row: (int(self.moments[row]), row))
        return -1

    def step_times(
        self, steps: Steps, queries: Sequence[ast.Query], by: Groups | None
    ) -> list[Mapping[str | None, StepTime]]:
        return [
            self._step_times(steps, place, query, by)
            for place, query in enumerate(queries, start=1)
        ]

    def _step_times(
        self, steps: Steps, place: int, query: ast.Query, by: Groups | None
    ) -> Mapping[str | None, StepTime]:
        times: dict[str | None, list[int]] = {}
        for start, match in self.starts(steps, query)[0].items():
            before, now = (self._latest(match, step) for step in steps[place - 1 : place + 1])
            if before is not None and now is not None:
                group = None if by is None else self.group(start, by)
                times.setdefault(group, []).append(now - before)
        return {group: _quantiles(known) for group, known in times.items()}

    def _latest(self, match: Binding, step: tuple[str, ...]) -> int | None:
        times = [int(self.moments[row]) for v in step for row in match.rows.get(v, ())]
        return max(times, default=None)

    def number(self, query: ast.Query, most: int | None) -> MatchCount:
        outcome = self.run(query, most)
        if outcome.refused is not None or outcome.complete:
            return MatchCount(outcome.number, refused=outcome.refused)
        answering = counted(query, self)
        if answering is None:
            return MatchCount(outcome.number, complete=False)
        try:
            answers = self._matched(answering)
        except CepheidError:  # a count beyond 64 bits
            return MatchCount(outcome.number, complete=False)
        return MatchCount(answers[COUNT][0].as_py() if answers.num_rows else 0)

    def numbers(self, queries: Sequence[ast.Query], most: int | None) -> list[MatchCount]:
        return [self.number(query, most) for query in queries]

    def fresh(self, base: ast.Query, queries: Sequence[ast.Query]) -> list[Outcome]:
        known = {match.identity for match in self.run(base).matches}
        outcomes = map(self.run, queries)
        return [
            replace(o, matches=tuple(m for m in o.matches if m.identity not in known))
            for o in outcomes
        ]

    def values(self, query: ast.Query, expression: ast.Expression, most: int = 1) -> list[Any]:
        """The values of an expression in the first match, or so many of them; none if it can't be
        computed."""
        returns = (ast.ReturnItem(expression, "value"),)
        first = replace(plain(query), returns=returns, limit=ast.MatchLimit(ast.EventCount(most)))
        try:
            table = self._matched(first)
        except CepheidError:
            return []
        found = table["value"].to_pylist()
        values = [v for each in found for v in (each if isinstance(each, list) else [each])]
        return [v for v in values if v is not None]

    # ── the events ──────────────────────────────────────────────────────────

    @property
    def streams(self) -> bool:
        return isinstance(self.data, Mapping)

    def rows(self) -> list[int]:
        """The numbers of the events."""
        return [row for table in self._tables() for row in table[self.row].to_pylist()]

    def check_column(self, name: str) -> None:
        check_name(name, [column for table in self._tables() for column in table.column_names])

    def group(self, row: int, by: Groups) -> str:
        if isinstance(by, StartWindows):
            moment = int(self.moments[row])
            return group_text(moment - moment % by.size, by)
        return group_text(self.cell(row, by), by)

    def cell(self, row: int, column: str) -> Any:
        if column not in self.cells:
            self.cells[column] = dict(self._values(column))
        return self.cells[column].get(row)

    def _values(self, column: str) -> Iterator[tuple[int, Any]]:
        for table in self._tables():
            name = next(iter(_named(table, column)), None)
            if name is not None:
                yield from zip(table[self.row].to_pylist(), table[name].to_pylist(), strict=True)

    def types(self, column: str) -> set[str]:
        return {name for table in self._tables() for name in types_in(table[column])}

    def texts(self, column: str) -> set[str]:
        texts: set[str] = set()
        for table in self._tables():
            for name in _named(table, column):
                distinct = pc.unique(table[name]).drop_null()
                if pa.types.is_dictionary(distinct.type):
                    distinct = distinct.cast(distinct.type.value_type)
                if len(distinct) <= VALUES:
                    texts.update(v for v in distinct.to_pylist() if isinstance(v, str))
        return texts

    def _tables(self) -> tuple[pa.Table, ...]:
        return tuple(self.data.values()) if isinstance(self.data, Mapping) else (self.data,)

    def _returning(
        self, query: ast.Query, bound: BoundQuery, names: tuple[str, ...], most: int | None
    ) -> ast.Query:
        returns = tuple(
            ast.ReturnItem(ast.Attribute(name, self.row), f"v{n}") for n, name in enumerate(names)
        )
        query = query if most is None else limited(query, bound, most)
        return replace(query, returns=returns)

    def _matched(self, query: ast.Query) -> pa.Table:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the query itself was heard when it was bound
            matches = InProcess().match(Variation(query), self.data, self.options)
        return matches if isinstance(matches, pa.Table) else pa.table(matches)


def _outcome(table: pa.Table, names: tuple[str, ...], most: int | None) -> Outcome:
    complete = most is None or table.num_rows <= most
    table = table if complete else table.slice(0, most)
    columns = [table[f"v{n}"].to_pylist() for n in range(len(names))]
    start, end = (times(table[name].combine_chunks()) for name in (MATCH_START, MATCH_END))
    matches = tuple(
        Binding(
            {v: _rows(column[n]) for v, column in zip(names, columns, strict=True)},
            int(start[n]),
            int(end[n]),
        )
        for n in range(table.num_rows)
    )
    return Outcome(matches, complete)


def _rows(value: Any) -> tuple[int, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (value,)


def _named(table: pa.Table, column: str) -> list[str]:
    """The column by this name, or those by another case of it."""
    names = [n for n in table.column_names if n == column]
    return names or [n for n in table.column_names if n.lower() == column.lower()]


def _quantiles(times: list[int]) -> StepTime:
    half, most = np.quantile(times, (0.5, 0.9), method="inverted_cdf")
    return StepTime(int(half), int(most))
