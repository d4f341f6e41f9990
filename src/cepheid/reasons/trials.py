"""Running variations of a query over the same events, with the rows that each match binds.

Every figure of this room comes from here, so it comes from the engine.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra import bind, patterns
from cepheid.algebra.query import BoundQuery, Clock, Window
from cepheid.algebra.schemas import columns_schema
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.engine.rows.clock import times
from cepheid.errors import CepheidError, DataError
from cepheid.inprocess.runtime import InProcess
from cepheid.language import ast
from cepheid.language.diagnostics import nearest
from cepheid.options import Options

MOST = 10_000
"""Matches of a variation that are counted. One condition less may give billions."""

INTERPRETED = 20_000
"""Events up to which kernels run as plain Python: compiling them for every variation takes
longer."""


@dataclass(frozen=True)
class Variation:
    """A query as written, without a text: what a runtime needs of one."""

    syntax: ast.Query

    @property
    def source(self) -> None:
        """There is no text."""

    def bind(self, schema: Any, options: Options) -> BoundQuery:
        return bind(self.syntax, columns_schema(schema, options), options.params)

    def require_bounds(self, bound: BoundQuery, options: Options) -> None:
        """The events are all there."""


Identity = tuple[tuple[str, tuple[int, ...]], ...]
"""The variables that a match binds, with their rows."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A match: the rows of each variable in order, none if it is absent; its start and end in ticks
    of time."""

    rows: Mapping[str, tuple[int, ...]]
    start: int
    end: int

    @property
    def identity(self) -> Identity:
        return tuple(sorted((v, rows) for v, rows in self.rows.items() if rows))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The matches of a variation, in the order of their ends; only the first if there are more than
    `MOST`. `refused` says why it can't be run."""

    matches: tuple[Binding, ...] = ()
    complete: bool = True
    refused: str | None = None

    def __len__(self) -> int:
        return len(self.matches)


@dataclass(frozen=True)
class Trials:
    """The events that variations are run over. `row` is the column that numbers them; `total` is
    how many the data have, if these are a sample, and `sample` says which."""

    data: Any
    row: str
    moments: NDArray[np.int64]
    options: Options
    total: int
    sample: str | None = None
    known: dict[tuple[ast.Query, int | None], Outcome] = field(
        default_factory=dict, repr=False, compare=False
    )

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

    def run(self, query: ast.Query, most: int | None = MOST) -> Outcome:
        """The matches of a variation, at most so many of them."""
        plain = replace(query, into=None, returns=())
        if (plain, most) not in self.known:
            self.known[plain, most] = self._run(plain, most)
        return self.known[plain, most]

    def _run(self, plain: ast.Query, most: int | None) -> Outcome:
        try:
            bound = self.bound(plain)
            names = patterns.positive(bound.pattern)
            table = self._matched(self._returning(plain, bound, names, most))
        except CepheidError as error:
            return Outcome(refused=_first_line(error))
        return _outcome(table, names, most)

    def check_column(self, name: str) -> None:
        """Refuse a column that no stream has."""
        known = [column for table in self._tables() for column in table.column_names]
        if name not in known and name.lower() not in map(str.lower, known):
            close = nearest(name, known)
            hint = f"; did you mean `{close}`?" if close else ""
            raise DataError(f"there is no column `{name}`{hint}")

    def cell(self, row: int, column: str) -> Any:
        """A value of an event; None also if there is no such column."""
        for table in self._tables():
            place = int(np.searchsorted(table[self.row].to_numpy(), row))
            if place < table.num_rows and table[self.row][place].as_py() == row:
                names = [n for n in table.column_names if n == column] or [
                    n for n in table.column_names if n.lower() == column.lower()
                ]
                return table[names[0]][place].as_py() if names else None
        return None

    def _tables(self) -> tuple[pa.Table, ...]:
        return tuple(self.data.values()) if isinstance(self.data, Mapping) else (self.data,)

    def _returning(
        self, query: ast.Query, bound: BoundQuery, names: tuple[str, ...], most: int | None
    ) -> ast.Query:
        returns = tuple(
            ast.ReturnItem(ast.Attribute(name, self.row), f"v{n}") for n, name in enumerate(names)
        )
        counted = bound.window is not None and bound.window.clock is Clock.EVENTS
        limited = most is not None and query.limit is None and not (counted and bound.key)
        limit = ast.MatchLimit(ast.EventCount(most + 1)) if limited and most else query.limit
        return replace(query, returns=returns, limit=limit)

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


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
