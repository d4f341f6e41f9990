"""What a run has to say of its events when it ends, as warnings: what was left out, what was lost,
and what the writer of the query may not have meant.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.query import BoundQuery
from cepheid.engine.arrays.columns import microseconds
from cepheid.engine.rows.event_types import no_such_type, types_in
from cepheid.engine.rows.ties import Ties, dependent
from cepheid.engine.run import Engine
from cepheid.language.diagnostics import nearest

SAMPLE = 1000
"""Rows of each batch whose types are noted, where the events can't be read again."""


class Notices:
    """Looks at the batches on their way to the engine. `present` gives the types of the events,
    if all of them can be read."""

    def __init__(
        self,
        query: BoundQuery,
        engine: Engine,
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

    def watch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        type_, time = self._plan.schema.type, self._plan.schema.time
        for batch in batches:
            if type_ is not None and self._present is None and self._engine.unseen:
                self._types |= types_in(batch.column(type_).slice(0, SAMPLE))
            if self._plan.schema.tie is None and is_finer(batch.schema.field(time).type):
                self._compare(batch.column(time))
            if self._dependent is not None:
                self._ties.add(batch)
            yield batch

    def _compare(self, time: pa.Array) -> None:
        moments = pa.concat_arrays([self._last.cast(time.type), time.drop_null()])
        self._finer += made_simultaneous(moments)
        self._last = moments.slice(max(0, len(moments) - 1))

    def tell(self) -> None:
        """Say it, as warnings."""
        counts, schema = self._engine.counts, self._plan.schema
        if counts.rejected:
            what, how = "have no time", "time=..."
            if schema.start is not None:
                what, how = "have no time, or start after their end,", "time=..., start=..."
            _warn(
                f"{counts.rejected} of {counts.events} events {what} and were left out; "
                f"cepheid.rejected(data, {how}) shows them"
            )
        if counts.shed:
            _warn(
                f"{counts.shed} of {counts.events} events were dropped because of the limit, "
                "so matches that begin with or before them are missing"
            )
        if counts.undecided:
            several = counts.undecided > 1
            were = "matches were left out: they were" if several else "match was left out: it was"
            _warn(f"{counts.undecided} {were} undecided at the time until=")
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
            time, found = self._plan.schema.time, (ties.count, ties.complete)
            _warn(tied(found, events, (time, *ties.key), f"{dependent} depends"))

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


def tied(found: tuple[int, bool], events: int, same: Iterable[str], what: str) -> str:
    """What to say of simultaneous events, of which so many were found, or at least so many."""
    count, complete = found
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
    """Of moments in order, how many are after the one before, but not in microseconds."""
    steps = np.diff(moments.cast(pa.int64()).to_numpy())
    near = np.flatnonzero((steps > 0) & (steps < 1000))
    one, other = (microseconds(moments.take(pa.array(at))) for at in (near, near + 1))
    return int(pc.equal(one, other).true_count)


def finer(count: int, events: int, time: str) -> str:
    """What to say of those."""
    return (
        f"{count} of {events} events are less than a microsecond after the previous one and count "
        f"as simultaneous, because times are read in microseconds: tie={time!r} keeps their order"
    )
