"""An engine that counts matches instead of finding them: what comes out are parts of groups.

Events are held until they are counted, and then as long as later ones may be in a match with them.
A *round* counts the matches among all events that are held, and lets those out that end in events
which no round has counted. So a round costs as much as the window and the new events: it waits
until there are many of these, or until an answer may be complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.patterns import Disjunction, Leaf
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.types import Schema
from cepheid.answers.aggregate_states import MatchCounts, taken
from cepheid.answers.answer_fold import AnswerFold
from cepheid.answers.closed_windows import windows_of
from cepheid.answers.counted.countable import Way
from cepheid.answers.counted.counted_matches import CountedMatches
from cepheid.answers.counted.counters import counter_of
from cepheid.answers.counted.step_rows import StepRows, WindowRows, step_bits, step_classes
from cepheid.engine.arrays.columns import decoded, with_clean_dictionaries
from cepheid.engine.counts import Counts
from cepheid.engine.limits import no_floors
from cepheid.engine.match_schema import MATCH_END, output_schema
from cepheid.engine.operators.base import FOREVER, Horizon
from cepheid.engine.rows.classes import classify
from cepheid.engine.rows.clock import Ticker, times, with_times
from cepheid.engine.rows.order import in_order
from cepheid.engine.state import EngineState, LoadedRows
from cepheid.plan.nodes import Plan
from cepheid.plan.reads import leaves

Ints: TypeAlias = NDArray[np.int64]

ROUND = 1 << 20
"""So many events are counted at once, where no answer is waited for."""

EVER = (-FOREVER, FOREVER)


@dataclass(frozen=True)
class CountedQuery:
    """A query whose answers are counted, ready to run. `prompt`: they are wanted as soon as time
    has reached the ends of their windows."""

    query: BoundQuery
    plan: Plan
    way: Way
    prompt: bool = True

    @property
    def schema(self) -> Schema:
        return self.plan.schema

    def engine(
        self,
        schema: pa.Schema,
        jit: bool = True,
        journal: list[LoadedRows] | None = None,
        owned: tuple[int, int] = EVER,
    ) -> CountingEngine:
        """`owned`: only matches that end in this range of times are counted."""
        return CountingEngine(self, schema, jit, journal, owned)

    def in_order(self, table: pa.Table) -> pa.Table:
        return in_order(self.plan, table)

    def replanned(self, statistics: str) -> CountedQuery:
        return self


class CountingEngine:
    """Counts the matches among the events of one ordered stream; see `cepheid.engine.run.Engine`
    and, for what a bucket needs of it, `cepheid.streaming.evaluation`."""

    advisor = None
    done = False

    def __init__(
        self,
        job: CountedQuery,
        schema: pa.Schema,
        jit: bool,
        journal: list[LoadedRows] | None,
        owned: tuple[int, int],
    ) -> None:
        query, plan = job.query, job.plan
        assert query.answers is not None
        self.plan, self.counts = plan, Counts()
        self.matches = output_schema(plan, schema)
        """The columns of the matches, if they were found."""
        self._shape = replace(query.answers, most=None)
        self.schema = self._fold().parts().schema
        self._counter = counter_of(job.way, query, self.matches, jit)
        self._leaves = leaves(plan)
        self._classes = step_classes(query, plan, self._counter.steps)
        self.unseen = {t for leaf in self._leaves for t in plan.variables[leaf.variable].types}
        self._ticker = Ticker(plan.schema, plan.window, plan.key)
        self._window = _span(query)
        self._windows = windows_of(self._shape.window)
        self._prompt, self._journal, self._owned = job.prompt, journal, owned
        self.base = 0
        self._rows = WindowRows()
        self._counted = -FOREVER  # matches that end before this are out
        self._waiting = 0  # events from then on
        self._first = FOREVER  # the time of the first of them
        self.reached = -FOREVER
        """No earlier event follows."""

    def _fold(self) -> AnswerFold:
        return AnswerFold(self._shape, self.matches)

    # ── events ──

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take the next events, which must not be earlier than those before."""
        batch = with_times(with_clean_dictionaries(batch), self.plan.schema, self.counts)
        if batch.num_rows:
            self._load(batch)
        yield from self._turn()

    def _load(self, batch: pa.RecordBatch) -> None:
        plan = self.plan
        classified = classify(
            batch, self._leaves, plan.variables, plan.schema.type, plan.key, self.unseen
        )
        self.unseen -= classified.types
        ticks = self._ticker.read(batch, classified.rows)
        self.reached = max(self.reached, ticks.reached)
        if len(classified.rows):
            loaded = LoadedRows(classified.batch, ticks, classified.masks)
            if self._journal is not None:
                self._journal.append(loaded)
            self._hold(loaded)

    def _hold(self, loaded: LoadedRows) -> None:
        rows, ticks = loaded.batch.select(self.names), loaded.ticks
        if self._journal is not None:  # dictionaries differ from what was saved
            rows = pa.record_batch([decoded(c) for c in rows.columns], list(self.names))
        bits = step_bits(loaded.masks, self._classes)
        self._rows.append(StepRows(pa.Table.from_batches([rows]), bits, ticks))
        new = int(np.searchsorted(ticks.time, self._counted))
        if new < len(bits):
            self._first = min(self._first, int(ticks.time[new]))
            self._waiting += len(bits) - new

    def advance(self, time: int) -> Iterator[pa.RecordBatch]:
        """Every event at or before this time is known."""
        self._ticker.advance(time + 1)
        self.reached = max(self.reached, time + 1)
        yield from self._turn()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """There are no more events."""
        yield from self._round(FOREVER)

    # ── rounds ──

    @property
    def due(self) -> int:
        """The time from which on an answer may be complete that needs a round."""
        return self._windows.closes(self._first) if self._prompt and self._waiting else FOREVER

    @property
    def settled(self) -> int:
        """Every match that ends before this time is out."""
        return min(self.reached, self._first)

    def _turn(self) -> Iterator[pa.RecordBatch]:
        many = self._waiting >= max(ROUND, 2 * (len(self._rows) - self._waiting))
        if many or self.due <= self.reached:
            yield from self._round(self.reached)

    def _round(self, before: int) -> Iterator[pa.RecordBatch]:
        """Let the parts out of matches that end before this time: of its own events, there may be
        more."""
        if self._first >= before:
            return
        rows = self._rows.joined()
        end = int(np.searchsorted(rows.ticks.time, before))
        fold, begin = self._fold(), max(self._counted, self._owned[0])
        for counted in self._counter.matches(rows.until(end)):
            _fold_between(fold, counted, begin, self._owned[1])
        self._counted, self._waiting = before, len(rows) - end
        self._first = int(rows.ticks.time[end]) if self._waiting else FOREVER
        past = int(np.searchsorted(rows.ticks.clock[:end], before - self._window, "right"))
        self._rows.drop(past)
        self.base += past
        self.counts.rounds += 1
        self.counts.matches += fold.open
        if fold.held:
            yield from fold.parts().combine_chunks().to_batches()

    # ── what a bucket calls ──

    @property
    def store(self) -> CountingEngine:
        return self

    @property
    def n(self) -> int:
        """How many events are held."""
        return len(self._rows)

    @property
    def names(self) -> tuple[str, ...]:
        """What is read of them."""
        return tuple(self._counter.columns)

    @property
    def classes(self) -> int:
        return len(self._leaves)

    @property
    def last(self) -> pa.RecordBatch | None:
        return self._ticker.save().last

    @property
    def waits(self) -> bool:
        """Whether passing time alone brings parts."""
        return self._waiting > 0

    def spare(self) -> Ints | None:
        return None

    def compact(self, kept: Ints) -> None:
        raise AssertionError("events are dropped from the first one on")

    def save(self) -> EngineState:
        return EngineState(
            base=self.base,
            end=self.base + self.n,
            started=True,
            frontier=self.reached,
            horizon=Horizon(0, 0),
            eat=self._counted,
            numbering=self._ticker.save(),
            choice=None,
            strings={},
            floor=None,
            floors=no_floors(self.plan),
        )

    def resume(self, state: EngineState, loaded: Iterable[LoadedRows]) -> None:
        """Continue where another stopped: with its events, or with those that this one hasn't
        seen."""
        self._counted, self.reached = state.eat, state.frontier
        self._rows.drop(max(0, state.base - self.base))
        for rows in loaded:
            self._hold(rows)
        self._rows.drop(
            max(0, self.n - (state.end - state.base))
        )  # others may be saved beside them
        self.base = state.base
        self._ticker.resume(state.numbering)
        self._waiting, self._first = 0, FOREVER
        if self.n:
            at = self._rows.joined().ticks.time
            begin = int(np.searchsorted(at, self._counted))
            self._waiting = self.n - begin
            self._first = int(at[begin]) if self._waiting else FOREVER


def _span(query: BoundQuery) -> int:
    """How long an event is needed. A match of one event needs no other."""
    if query.window is not None:
        return query.window.size
    parts = query.pattern.items if isinstance(query.pattern, Disjunction) else (query.pattern,)
    return 0 if all(isinstance(part, Leaf) for part in parts) else FOREVER


def _fold_between(fold: AnswerFold, counted: CountedMatches, begin: int, end: int) -> None:
    """Fold the matches that end from one time on, and before another."""
    rows, counts, states = counted.rows, counted.counts, counted.states
    ends = times(rows.column(MATCH_END))
    kept = np.flatnonzero((begin <= ends) & (ends < end))
    if len(kept) < len(ends):
        rows = rows.take(pa.array(kept))
        counts = MatchCounts(counts.exact[kept], counts.about[kept])
        states = {name: taken(state, kept) for name, state in states.items()}
    fold.push(rows, counts, states)
