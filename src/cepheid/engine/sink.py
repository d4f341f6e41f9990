"""Where matches leave the engine: chosen by AFTER MATCH and LIMIT, projected, in the order of their
ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.engine.after_match import (
    Considered,
    Freeing,
    Memory,
    Reader,
    considered_order,
    key_columns,
    moves_ends,
    textual,
    together,
)
from cepheid.engine.arrays.columns import Column
from cepheid.engine.operators.base import FOREVER, Horizon, Operator
from cepheid.engine.projection import Projection
from cepheid.engine.quota import Quota
from cepheid.engine.rows.classes import Classified
from cepheid.engine.rows.order import ascending, key_by_key
from cepheid.language.ast import Skip
from cepheid.plan.nodes import Plan

Ints = NDArray[np.int64]

SHRINK_AT = 1 << 14
"""Matches that may be held back before those are dropped that others will certainly rule out."""


def make_sink(
    roots: list[Operator], plan: Plan, schema: pa.Schema, waits: bool, in_order: bool
) -> Sink:
    """`waits`: records may come out of the order of their ends, also of a single root. Unless
    matches must come `in_order` they need not be held back for that. Those of several queries have
    no order among them."""
    ordered = bool(plan.returned) or (not waits and len(roots) == 1)
    if plan.selection is None:
        return Emitting(roots, plan, schema, ordered, hold=in_order and not ordered)
    return Choosing(roots, plan, schema, ordered)


class Sink(ABC):
    """Takes the records that the roots have collected, and lets matches out. `ends` has the
    positions of the ends of what was let out, if somebody has made it a list: only of what an
    automaton has matched at once."""

    ends: list[Ints] | None = None

    def columns(self) -> Iterable[Column]:
        """Columns that the store must keep for it."""
        return ()

    def codes(self) -> Iterable[Ints]:
        """The codes of strings that it remembers, beyond those of the store."""
        return ()

    @property
    def notes_rows(self) -> bool:
        """Whether it remembers the numbers of rows."""
        return False

    @property
    def holds(self) -> bool:
        """Whether there are matches that only time can decide on."""
        return False

    @property
    def done(self) -> bool:
        """Whether no match will be let out any more."""
        return False

    def narrowed(self, classified: Classified) -> Classified:
        """Those of the events that may still be in a match that is let out."""
        return classified

    @abstractmethod
    def inherit(self, other: Sink) -> None:
        """Resume where the sink of another plan stopped."""

    def save(self) -> SkipState | None:
        """What the next sink must know, beyond this process; between rounds."""
        return None

    def resume(self, choice: SkipState) -> None:
        """Resume where a saved sink stopped."""
        raise AssertionError("nothing was chosen")

    def warm(self) -> None:
        """Have the kernels compiled that choose matches."""
        return

    @abstractmethod
    def fuse(self, capacity: int) -> None:
        """Where nothing is held back or dropped, kernels may write the result themselves."""

    @abstractmethod
    def take(self, index: int) -> Iterator[pa.RecordBatch]:
        """Empty a root's buffer, also in the middle of a round."""

    def in_turn(self) -> Iterator[pa.RecordBatch]:
        """What is known, and was held back only so that matches come in their order."""
        return iter(())

    @abstractmethod
    def release(self, undecided: int) -> Iterator[pa.RecordBatch]:
        """After a round: what no record that still waits, with this end or a later one, can come
        before."""


class Emitting(Sink):
    """Projects the roots' records; holds them back where ends would come out of order."""

    def __init__(
        self, roots: list[Operator], plan: Plan, schema: pa.Schema, ordered: bool, hold: bool
    ) -> None:
        self._roots = roots
        self._projections = [Projection(plan, root, schema, n) for n, root in enumerate(roots)]
        self._ordered = ordered
        self._hold = hold
        self._held: list[tuple[Ints, pa.RecordBatch]] = []

    def inherit(self, other: Sink) -> None:
        assert isinstance(other, Emitting)
        self._held = other._held

    def fuse(self, capacity: int) -> None:
        if self._ordered:
            for projection in self._projections:
                projection.fuse(capacity)

    def take(self, index: int) -> Iterator[pa.RecordBatch]:
        out = self._roots[index].out
        if out.n == 0:
            return
        batch = self._projections[index].batch()
        if self._hold:
            self._held.append((out.records.last[: out.n].copy(), batch))
        else:
            yield batch
        out.drop(out.n)

    def in_turn(self) -> Iterator[pa.RecordBatch]:
        return self.release(FOREVER)

    def release(self, undecided: int) -> Iterator[pa.RecordBatch]:
        if self._ordered:
            return
        for index in range(len(self._roots)):
            yield from self.take(index)
        if not self._held:
            return
        last = np.concatenate([positions for positions, _ in self._held])
        table = pa.Table.from_batches([batch for _, batch in self._held]).combine_chunks()
        if (last[1:] < last[:-1]).any():  # those of one key mostly come in order
            order = ascending(last)
            last, table = last[order], table.take(pa.array(order))
        ready = int(np.searchsorted(last, undecided, "left"))
        # Taken, not sliced: what waits keeps no memory of what is released.
        if self.ends is not None:
            self.ends.append(last[:ready])
        rest = table.take(pa.array(np.arange(ready, len(last)))).combine_chunks()
        self._held = [(last[ready:], b) for b in rest.to_batches()] if ready < len(last) else []
        yield from table.slice(0, ready).combine_chunks().to_batches()


@dataclass(frozen=True)
class SkipState:
    """What AFTER MATCH remembers: bounds by key, and the matches that are not decided on. What
    LIMIT remembers, if there is one: how many matches of each key were kept."""

    keys: Ints
    bounds: Ints
    held: tuple[HeldMatches, ...]
    counted: tuple[Ints, Ints] | None = None


@dataclass(frozen=True)
class HeldMatches:
    """Matches about which nothing can be said yet, already projected: their events may leave the
    store, and their groups the pools."""

    matches: Considered
    batch: pa.RecordBatch


class Choosing(Sink):
    """AFTER MATCH. A match is decided on when all those are known that are considered before it:
    nothing waits that may end earlier, and time has passed its end, since simultaneous events may
    still come. Only what is kept, and what must be held back, is projected.
    """

    def __init__(self, roots: list[Operator], plan: Plan, schema: pa.Schema, ordered: bool) -> None:
        assert plan.selection is not None
        variables = [v for v in plan.variables if any(v in root.slots for root in roots)]
        skip = plan.selection.skip
        self._by_row = skip is Skip.TO_NEXT_EVENT
        self._by_time = skip is Skip.FOR
        # Of those that end together only the first can be kept, by key or by first event.
        single = ordered and skip in (Skip.TO_NEXT_EVENT, Skip.PAST_LAST_EVENT, Skip.FOR)
        self._skips = skip is not Skip.NONE
        self._shrinks = single or not self._skips
        self._plan = plan
        self._roots = roots
        self._ordered = ordered
        self._projections = [Projection(plan, root, schema, n) for n, root in enumerate(roots)]
        self._readers = [Reader(plan, root, variables) for root in roots]
        self._moved = moves_ends(plan)
        self._context = roots[0].context
        self._memory = Memory(self._context.jit)
        self._held: list[HeldMatches] = []
        self._quota: Quota | None = None
        if plan.selection.most is not None:
            self._quota = Quota(plan, plan.selection.most, self._context.jit)
        self._freeing: Freeing | None = None
        if skip in (Skip.TO_NEXT_EVENT, Skip.PAST_LAST_EVENT):
            self._freeing = Freeing(plan, roots[0])
        if skip is Skip.PAST_LAST_EVENT and self._quota is None and len(roots) == 1:
            roots[0].skips = True

    def columns(self) -> Iterable[Column]:
        return key_columns(self._plan)

    def codes(self) -> Iterable[Ints]:
        counted = [] if self._quota is None else [self._quota.memory.keys()]
        for keys in (self._memory.keys(), *counted, *(held.matches.keys for held in self._held)):
            yield from (keys[:, part] for part in textual(self._plan, keys))

    @property
    def notes_rows(self) -> bool:
        return self._by_row or self.holds

    @property
    def holds(self) -> bool:
        return bool(self._held)

    @property
    def done(self) -> bool:
        return self._quota is not None and self._quota.done

    def narrowed(self, classified: Classified) -> Classified:
        if self._quota is None:
            return classified
        rows = self._quota.open_rows(classified.batch, self._context.store.interner)
        return classified if rows is None else classified.only(rows)

    def inherit(self, other: Sink) -> None:
        assert isinstance(other, Choosing)
        self._memory, self._held, self._quota = other._memory, other._held, other._quota

    def save(self) -> SkipState:
        counted = None if self._quota is None else self._quota.counted()
        return SkipState(*self._memory.above(self._floor()), tuple(self._held), counted)

    def resume(self, choice: SkipState) -> None:
        self._memory.replace(choice.keys, choice.bounds)
        self._held = list(choice.held)
        if self._quota is not None and choice.counted is not None:
            self._quota.memory.replace(*choice.counted)

    def warm(self) -> None:
        for memory in (self._memory, *(() if self._quota is None else (self._quota.memory,))):
            memory.warm()

    def fuse(self, capacity: int) -> None:
        return

    def take(self, index: int) -> Iterator[pa.RecordBatch]:
        out = self._roots[index].out
        if out.n == 0:
            return
        # A single root makes its records in the order of their ends: more may come with the last.
        yield from self._decide(int(out.records.last[out.n - 1]) if self._ordered else -FOREVER)

    def release(self, undecided: int) -> Iterator[pa.RecordBatch]:
        if (
            self._roots[0].whole and self._roots[0].skips
        ):  # it has chosen, and made what it keeps in the order of the ends
            out = self._roots[0].out
            if self.ends is not None:
                self.ends.append(out.records.last[: out.n].copy())
            if out.n:
                yield self._project(0)
            return
        yield from self._decide(min(undecided, self._known()))
        self._memory.forget(self._floor())
        if self._freeing is not None and self._context.frontier < FOREVER:
            self._freeing.free(self._memory)
        if self._quota is not None:
            self._quota.free(self._roots[0])

    def _known(self) -> int:
        """The position before which all events are known."""
        return self._roots[0].place(self._context.horizon)

    def _floor(self) -> int:
        """Nothing leads before this any more: neither what is held, nor what can still be made of
        the events in the store."""
        context, store = self._context, self._context.store
        if self._by_row:
            floor = store.base
        elif self._by_time:
            floor = self._earliest()
        elif store.lasting or self._moved:
            # An event that ends later may have started at any time in the window.
            bounded = self._plan.window is not None and context.in_time
            eat = Horizon(context.eat, context.eat)
            floor = self._roots[0].place(eat) if bounded else -FOREVER
        else:
            floor = int(store.position[0]) if store.n else self._known()
        return min([floor, *(int(held.matches.lead.min()) for held in self._held)])

    def _earliest(self) -> int:
        """The time before which no match can end any more."""
        context, store = self._context, self._context.store
        if key_by_key(self._plan):
            return -FOREVER  # the next key begins anew
        if store.n:
            return int(store.time[0])
        return context.frontier if context.in_time else context.horizon.time

    def _decide(self, until: int) -> Iterator[pa.RecordBatch]:
        """Choose among the matches that end before this position; hold back all others."""
        fresh = [(i, self._readers[i].read()) for i, root in enumerate(self._roots) if root.out.n]
        parts = [*(held.matches for held in self._held), *(matches for _, matches in fresh)]
        count = sum(len(part) for part in parts)
        shrinks = self._shrinks and count > SHRINK_AT
        if not shrinks and not any((part.last < until).any() for part in parts):
            self._held += [HeldMatches(matches, self._project(index)) for index, matches in fresh]
            return
        matches = together(parts)
        decided, waiting = (
            np.flatnonzero(matches.last < until),
            np.flatnonzero(matches.last >= until),
        )
        kept = decided[_chosen(matches.take(decided), self._memory, self._skips, self._quota)]
        if shrinks:  # to what would be kept if no others came
            trial = None if self._quota is None else self._quota.copy()
            left = _chosen(matches.take(waiting), self._memory.copy(), self._skips, trial)
            waiting = waiting[left]
        table, rows = self._table(fresh, count, np.concatenate((kept, waiting)))
        self._held = [
            HeldMatches(matches.take(waiting), batch) for batch in _rows(table, rows[len(kept) :])
        ]
        yield from _rows(table, rows[: len(kept)])

    def _table(
        self, fresh: list[tuple[int, Considered]], count: int, needed: Ints
    ) -> tuple[pa.Table, Ints]:
        """A table that has these of all matches, those held first, then the fresh ones; and in
        which of its rows they are."""
        batches = [held.batch for held in self._held]
        rows = np.arange(count)
        size = begin = sum(batch.num_rows for batch in batches)
        for index, matches in fresh:
            end = begin + len(matches)
            chosen = needed[(begin <= needed) & (needed < end)]
            rows[chosen] = size + np.arange(len(chosen))
            if len(chosen):
                batches.append(self._project(index, chosen - begin))
            else:
                self._roots[index].out.drop(len(matches))
            size, begin = size + len(chosen), end
        return pa.Table.from_batches(batches, self._projections[0].schema), rows[needed]

    def _project(self, index: int, chosen: Ints | None = None) -> pa.RecordBatch:
        """All records of a root, or those chosen; its buffer is empty then."""
        out = self._roots[index].out
        if chosen is not None:
            out.choose(chosen)
        batch = self._projections[index].batch()
        out.drop(out.n)
        return batch


def _chosen(matches: Considered, memory: Memory, skips: bool, quota: Quota | None) -> Ints:
    """Which of the matches are kept, in the order in which they are considered."""
    order = memory.choose(matches) if skips else considered_order(matches)
    return order if quota is None else order[quota.admit(matches.keys[order])]


def _rows(table: pa.Table, rows: Ints) -> Iterator[pa.RecordBatch]:
    """These rows as one batch, or none if there are none."""
    if not len(rows):
        return
    if (np.diff(rows) == 1).all():
        table = table.slice(int(rows[0]), len(rows))
    else:
        table = table.take(pa.array(rows))
    yield from table.combine_chunks().to_batches()
