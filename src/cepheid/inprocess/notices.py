"""The warnings of a run about its events: what was left out, what was lost, and what the query's
author may not have meant."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.query import BoundQuery
from cepheid.engine.arrays.columns import microseconds
from cepheid.engine.counts import Counts
from cepheid.engine.rows.event_types import no_such_type, types_in
from cepheid.engine.rows.ties import Ties, dependent
from cepheid.language.diagnostics import nearest
from cepheid.plan.nodes import Plan

SAMPLE = 1000
"""How many rows of each batch are checked for their types, where events can't be read again."""


class Counted(Protocol):
    """One engine, or several as one: what they have read and found."""

    @property
    def plan(self) -> Plan: ...

    @property
    def counts(self) -> Counts: ...

    @property
    def unseen(self) -> set[str]: ...

    @property
    def done(self) -> bool: ...


class Notices:
    """Observes the batches before the engine gets them. `present` returns the types of the events,
    if all of them can be read."""

    def __init__(
        self,
        query: BoundQuery,
        engine: Counted,
        present: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        self._engine = engine
        self._plan = engine.plan
        self._present = present
        self._types: set[str] = set()
        self._finer = 0
        self._last = pa.nulls(0, pa.timestamp("ns"))
        ordered = self._plan.schema.tie is not None or self._plan.schema.start is not None
        self._dependent = None if ordered else dependent(query)
        self._ties = Ties(engine.plan)

    def look(self, batch: pa.RecordBatch) -> None:
        """At a batch that is about to be matched."""
        type_, time = self._plan.schema.type, self._plan.schema.time
        if type_ is not None and self._present is None and self._engine.unseen:
            self._types |= types_in(batch.column(type_).slice(0, SAMPLE))
        if self._plan.schema.tie is None and is_finer(batch.schema.field(time).type):
            self._compare(batch.column(time))
        if self._dependent is not None:
            self._ties.add(batch)

    def _compare(self, time: pa.Array) -> None:
        moments = pa.concat_arrays([self._last.cast(time.type), time.drop_null()])
        self._finer += made_simultaneous(moments)
        self._last = moments.slice(max(0, len(moments) - 1))

    def tell(self) -> None:
        """Issue the warnings."""
        counts, schema = self._engine.counts, self._plan.schema
        if counts.rejected:
            _warn(without_time(counts.rejected, counts.events, schema.start))
        if counts.late:
            _warn(came_late(counts.late))
        if counts.shed:
            _warn(
                f"{counts.shed} of {counts.events} events were dropped because of the limit, "
                "so matches that begin with or before them are missing"
            )
        tell_undecided(counts.undecided)
        if self._finer:
            _warn(finer(self._finer, counts.events, schema.time))
        if self._dependent is not None:
            self._tell_ties(self._dependent)
        if counts.events > counts.rejected:
            self._tell_types()

    def _tell_ties(self, dependent: str) -> None:
        ties, events = self._ties, self._engine.counts.events
        ties.close()
        if ties.count:
            time, counted = self._plan.schema.time, (ties.count, ties.complete)
            _warn(tied(counted, events, (time, *ties.key), f"{dependent} depends"))

    def _tell_types(self) -> None:
        unseen = self._engine.unseen - set(self._plan.schema.streams or ())
        if not unseen or self._engine.done:  # it may not have been read
            return
        present = self._types if self._present is None else set(self._present())
        every = dict.fromkeys(t for v in self._plan.variables.values() for t in v.types)
        for name in (name for name in every if name in unseen and name not in present):
            # A type that was negated, or beside others, may well be missing for once.
            if self._engine.counts.matches == 0 or nearest(name, present):
                _warn(no_such_type(name, present, str(self._plan.schema.type)))


def without_time(rejected: int, events: int, start: str | None) -> str:
    """The warning for rows that can't be placed in time."""
    what, how = "have no time", "time=..."
    if start is not None:
        what, how = "have no time, or start after their end,", "time=..., start=..."
    return (
        f"{rejected} of {events} events {what} and were left out; cepheid.rejected(data, {how}) "
        "shows them"
    )


def tell_undecided(matches: int) -> None:
    """Warn of the matches that were undecided at the end of the data."""
    if matches:
        were = "matches were left out: they were" if matches > 1 else "match was left out: it was"
        _warn(f"{matches} {were} undecided at the time until=")


def came_late(late: int) -> str:
    """The warning for rows that came later than the delay allows."""
    were = "events were left out: they came" if late > 1 else "event was left out: it came"
    return f"{late} {were} later than delay= allows; a session (cepheid.open) hands such events out"


def tied(counted: tuple[int, bool], events: int, same: Iterable[str], what: str) -> str:
    """The warning about simultaneous events; `counted` is their number, and whether it is
    complete."""
    count, complete = counted
    columns = " and ".join(f"`{name}`" for name in same)
    return (
        f"{'' if complete else 'at least '}{count} of {events} events have the same {columns} as "
        f"another, and {what} on their order: pass tie=..., the column that orders them"
    )


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)


# ── times ────────────────────────────────────────────────────────────────────


def is_finer(type_: pa.DataType) -> bool:
    """Whether times of this type may be less than a microsecond apart."""
    return bool(pa.types.is_timestamp(type_) and type_.unit == "ns")


def made_simultaneous(moments: pa.Array) -> int:
    """How many of these sorted moments differ from the one before, but not in microseconds."""
    steps = np.diff(moments.cast(pa.int64()).to_numpy())
    near = np.flatnonzero((steps > 0) & (steps < 1000))
    before, after = (microseconds(moments.take(pa.array(at))) for at in (near, near + 1))
    return int(pc.equal(before, after).true_count)


def finer(count: int, events: int, time: str) -> str:
    """The warning about such moments."""
    return (
        f"{count} of {events} events are less than a microsecond after the previous one and count "
        f"as simultaneous, because times are read in microseconds: tie={time!r} keeps their order"
    )
