"""Folds the matches of a query into answers, as they come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.answer_shape import Answers, MatchAggregate
from cepheid.answers.aggregate_states import MatchCounts, State, first_state
from cepheid.answers.answer_rows import AnswerRows
from cepheid.answers.closed_windows import (
    FOREVER,
    Closed,
    HoppingWindows,
    SessionWindows,
    windows_of,
)
from cepheid.answers.group_ids import GroupIds
from cepheid.answers.partial_groups import PartialGroups, joined
from cepheid.answers.partial_rows import PartialRows
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.engine.rows.clock import times
from cepheid.errors import DataError, StateLimitError
from cepheid.options import Limit

Ints: TypeAlias = NDArray[np.int64]

_PENDING = 1 << 16
"""Parts of groups that may wait before those of one group and place are merged."""
_EMPTY_AT_ONCE = 1 << 16
_MOST_EMPTY = 10_000_000


@dataclass(frozen=True)
class FoldProgress:
    """How far a fold has come, besides what it holds: which answers are out, the number of the last
    window among them, and how many LIMIT still lets out."""

    first_open: int
    last_window: int | None
    left: int | None


class AnswerFold:
    """One query's answers over an ordered stream of matches. `push` takes matches, `advance` says
    that all matches that end before a time have been pushed, `finish` that there are no more."""

    def __init__(self, shape: Answers, matches: pa.Schema, limit: Limit | None = None) -> None:
        self._shape = shape
        self._rows = AnswerRows(shape, matches)
        self._partial = PartialRows(shape, matches)
        self._windows = windows_of(shape.window)
        self._ids = GroupIds([matches.field(name).type for name in shape.groups])
        self._most_cells = None if limit is None else limit.total
        self._pending: list[PartialGroups] = []
        self._due = FOREVER
        self._last_window: int | None = None
        self._left = shape.most

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    @property
    def windowed(self) -> bool:
        """Whether time decides when an answer is complete."""
        return self._shape.window is not None

    @property
    def done(self) -> bool:
        """Whether LIMIT lets no further answer out."""
        return self._left == 0

    @property
    def open(self) -> int:
        """How many matches are in groups that are not complete."""
        return sum(int(cells.matches.sum()) for cells in self._pending)

    def push(
        self,
        matches: pa.RecordBatch,
        weights: MatchCounts | None = None,
        states: Mapping[str, State] = MappingProxyType({}),
    ) -> None:
        """Matches; with weights, each row stands for so many of them. `states` are those of
        aggregates that are known already, by name."""
        if not matches.num_rows or self.done:
            return
        weights = weights or MatchCounts.single(matches.num_rows)
        ends, starts = (times(matches.column(name)) for name in (MATCH_END, MATCH_START))
        groups = [matches.column(name) for name in self._shape.groups]

        def state(a: MatchAggregate) -> State:
            if a.name in states:
                return states[a.name]
            values = None if a.column is None else matches.column(a.column)
            return first_state(a, values, ends, starts, weights)

        states_of_rows = tuple(map(state, self._shape.aggregates))
        ids, places = self._ids.of(groups, len(ends)), self._windows.places(ends)
        cells = PartialGroups(ids, places, ends, ends, weights.exact, states_of_rows).in_order(
            self._shape.aggregates
        )
        self._add(cells)

    def _add(self, cells: PartialGroups) -> None:
        self._pending.append(cells)
        self._due = min(self._due, self._windows.due(cells))
        first, *others = map(len, self._pending)
        if sum(others) > self._most_pending(first):
            self._cells()

    def _most_pending(self, merged: int) -> int:
        """How many cells may wait to be merged with those that are. With a limit, so few that they
        are hardly beyond it."""
        most = max(_PENDING, merged)
        if self._most_cells is None:
            return most
        left = self._most_cells - merged
        return min(most, max(left, self._most_cells // 8)) if left >= 0 else -1

    def _cells(self) -> PartialGroups:
        """All that is pending, in order and merged."""
        aggregates = self._shape.aggregates
        cells = joined(self._pending)
        if len(self._pending) > 1:
            cells = cells.in_order(aggregates)
        if isinstance(self._windows, SessionWindows):
            cells = self._windows.grown(cells, aggregates)
        self._pending = [cells]
        if self._most_cells is not None and len(cells) > self._most_cells:
            raise StateLimitError(
                f"GROUP BY holds {len(cells):,} groups and slices of windows, more than "
                f"limit=Limit(total={self._most_cells:,}) allows: group by less, make windows "
                "shorter, or raise the limit"
            )
        return cells

    def advance(self, time: int) -> Iterator[pa.RecordBatch]:
        """What is known once all matches that end before this time are."""
        if self._pending and time >= self._due and not self.done:
            yield from self._limited(self._close(time))

    def _close(self, time: int) -> Iterator[pa.RecordBatch]:
        cells = self._cells()
        for closed in self._windows.close(cells, self._shape.aggregates, time):
            if self._shape.groups or not isinstance(self._windows, HoppingWindows):
                yield self._answers(closed)
            else:
                yield from self._with_empty(closed, self._windows)
        kept = self._windows.drop(cells, time)
        if len(kept):
            kept = replace(kept, group=self._ids.renumbered(kept.group))
        self._pending = [kept] if len(kept) else []
        self._due = self._windows.due(kept) if len(kept) else FOREVER

    def _answers(self, closed: Closed) -> pa.RecordBatch:
        cells, start, end = closed.cells, closed.start, closed.end
        if closed.copies is not None:
            rows = np.repeat(np.arange(len(cells)), closed.copies)
            cells, start, end = cells.take(rows), start[rows], end[rows]
        windowed = self._shape.window is not None
        keys = self._ids.columns(cells.group)
        return self._rows.of_groups(cells, keys, start if windowed else None, end)

    def _with_empty(self, closed: Closed, windows: HoppingWindows) -> Iterator[pa.RecordBatch]:
        """The windows between the last one that had matches and these, too."""
        numbers = closed.cells.place
        bounds = [0, *(np.flatnonzero(np.diff(numbers) > 1) + 1).tolist(), len(numbers)]
        for begin, end in pairwise(bounds):
            yield from self._empty(windows, int(numbers[begin]))
            rows = np.arange(begin, end)
            part = Closed(closed.cells.take(rows), closed.start[rows], closed.end[rows])
            yield self._answers(part)
            self._last_window = int(numbers[end - 1])

    def _empty(self, windows: HoppingWindows, until: int) -> Iterator[pa.RecordBatch]:
        if self._last_window is None:
            return
        if until - self._last_window > _MOST_EMPTY:
            raise DataError(
                f"there are {until - self._last_window - 1:,} empty windows between two matches: "
                "make windows longer, or add an expression to GROUP BY, which leaves them out"
            )
        for first in range(self._last_window + 1, until, _EMPTY_AT_ONCE):
            numbers = np.arange(first, min(until, first + _EMPTY_AT_ONCE))
            start = numbers * windows.slide
            yield self._rows.of_nothing(start, start + windows.size, len(numbers))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Time passes to infinity."""
        if self.done:
            return
        if self._pending:
            yield from self._limited(self._close(FOREVER))
        elif self._shape.whole:
            yield from self._limited(iter([self._rows.of_nothing(None, None, 1)]))

    def _limited(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if self._left is not None:
                batch = batch.slice(0, self._left)
                self._left -= batch.num_rows
            if batch.num_rows:
                yield batch
            if self.done:
                self._pending, self._due = [], FOREVER
                return

    # ── parts, sent and saved ──

    @property
    def due(self) -> int:
        """The time from which on `advance` may give answers."""
        return self._due

    @property
    def held(self) -> int:
        """How many parts of groups are held."""
        return sum(map(len, self._pending))

    def parts(self) -> pa.Table:
        """All that is held, as rows."""
        if not self._pending:
            return self._partial.schema.empty_table()
        cells = self._cells()
        return self._partial.table(cells, self._ids.columns(cells.group))

    def merge(self, parts: pa.Table) -> None:
        """Take up what another fold of the query held."""
        if parts.num_rows and not self.done:
            cells = self._partial.cells(parts, self._ids)
            self._add(cells.in_order(self._shape.aggregates))

    def save(self) -> tuple[pa.Table, FoldProgress]:
        """All that another fold needs to continue this one."""
        progress = FoldProgress(self._windows.first_open, self._last_window, self._left)
        return self.parts(), progress

    def resume(self, parts: pa.Table, progress: FoldProgress) -> None:
        """Continue a saved fold; this one is new."""
        self._windows.first_open = progress.first_open
        self._last_window, self._left = progress.last_window, progress.left
        self.merge(parts)
