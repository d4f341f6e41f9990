"""Merged rules as an engine whose state can be saved: what a bucket of a stream runs.

What is saved are the events that instances may need. The instances themselves are made anew by
going through those events again, and so rules can change between two batches: a machine of other
rules goes through the same events, and what those it has in common with the one before had begun
is there again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.types import Schema
from cepheid.engine.arrays.columns import with_clean_dictionaries
from cepheid.engine.attribution.json_rows import alert_rows
from cepheid.engine.counts import Counts
from cepheid.engine.limits import Floors
from cepheid.engine.merged.group import RuleGroup
from cepheid.engine.merged.machine import CHUNK, BranchMatches, Machine
from cepheid.engine.operators.base import Horizon
from cepheid.engine.rows.clock import Ticker
from cepheid.engine.rows.order import sorted_by
from cepheid.engine.run import Advisor
from cepheid.engine.state import EngineState, LoadedRows

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class HeldRows:
    """The events held: their number, the number of the first one, and their columns."""

    n: int
    base: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class MergedRules:
    """A group of rules, ready to run; the group is None if there are none. `rules` has the names of
    all rules and their carried columns, `since` the number of the first row of each rule."""

    group: RuleGroup | None
    rules: pa.Table
    since: Ints
    schema: Schema
    alert_schema: pa.Schema

    def engine(self, schema: pa.Schema, jit: bool, journal: list[LoadedRows]) -> MergedEngine:
        return MergedEngine(self, schema, jit, journal)

    def in_order(self, table: pa.Table) -> pa.Table:
        return sorted_by(table, self.schema.order)

    def replanned(self, statistics: str) -> MergedRules:
        raise AssertionError(f"merged rules have no statistics: {statistics}")


class MergedEngine:
    """Runs merged rules; see `cepheid.engine.run.Engine`."""

    advisor: Advisor | None = None
    classes = 1
    waits = False

    def __init__(
        self, rules: MergedRules, schema: pa.Schema, jit: bool, journal: list[LoadedRows]
    ) -> None:
        self.counts = Counts()
        self.schema = rules.alert_schema
        self._rules, self._names = rules, tuple(sorted(schema.names))
        self._ticker = Ticker(rules.schema, None, ())
        self._base = 0  # where there is no machine
        self._machine: Machine | None = None
        if rules.group is not None:
            numbers = np.concatenate(rules.group.numbers)
            self._machine = Machine(
                rules.group.merged, schema, jit=jit, since=rules.since[numbers], journal=journal
            )

    @property
    def store(self) -> HeldRows:
        machine = self._machine
        n, base = (0, self._base) if machine is None else (machine.rows, machine.base)
        return HeldRows(n, base, self._names)

    @property
    def instances(self) -> int:
        """Partial matches that are held, some of which may be over."""
        return 0 if self._machine is None else self._machine.instances

    @property
    def last(self) -> pa.RecordBatch | None:
        return self._ticker.save().last

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Match the next batch of events, which is not earlier than those before."""
        batch = with_clean_dictionaries(batch)
        for begin in range(0, batch.num_rows, CHUNK):
            chunk = batch.slice(begin, CHUNK)
            ticks = self._ticker.read(chunk, np.arange(chunk.num_rows))
            if self._machine is not None:
                yield from map(self._rows, self._machine.match(chunk, ticks))
                self._machine.expire(int(ticks.time[-1]))  # so that it isn't saved

    def _rows(self, attributed: BranchMatches) -> pa.RecordBatch:
        rules = self._rules
        assert rules.group is not None
        numbers = rules.group.numbers[attributed.branch][attributed.rules]
        self.counts.matches += len(numbers)
        return alert_rows(rules.rules, numbers, attributed.matches, rules.alert_schema)

    def advance(self, time: int) -> Iterator[pa.RecordBatch]:
        """Advance the time: rows older than any window are dropped."""
        self._ticker.advance(time + 1)
        if self._machine is not None:
            self._machine.expire(time + 1)
        yield from ()

    def spare(self) -> Ints | None:
        """None: all events that are held may matter."""
        return None

    def compact(self, kept: Ints) -> None:
        raise AssertionError(f"events of merged rules keep their numbers: {len(kept)}")

    # ── in another process ──

    def save(self) -> EngineState:
        store = self.store
        return EngineState(
            base=store.base,
            end=store.base + store.n,
            started=True,
            frontier=0,
            horizon=Horizon(0, 0),
            eat=0,
            numbering=self._ticker.save(),
            choice=None,
            strings={},
            floor=None,
            floors=Floors(np.zeros((0, 0), np.int64), np.zeros(0, np.int64)),
        )

    def resume(self, state: EngineState, loaded: Iterable[LoadedRows]) -> None:
        """Resume a saved engine with all its rows, or with those that this one hasn't seen."""
        self._ticker.resume(state.numbering)
        self._base = state.end
        if self._machine is not None:
            self._machine.begin(state.base)
            for rows in loaded:
                self._machine.replay(rows)
