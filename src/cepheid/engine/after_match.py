"""AFTER MATCH and LIMIT: the order in which matches are considered, and what is remembered of the
kept ones.

Every mode is one rule over numbers. A match *leads* somewhere, and one that is kept sets a bound
*until* which the later ones of its key are dropped:

- SKIP PAST LAST EVENT: it leads at the position of its start, until after its end;
- SKIP TO FIRST x, LAST x: it leads there, too, until that event starts;
- SKIP FOR: it leads at the time of its end, until the pause after that is over;
- SKIP TO NEXT EVENT: it leads with the row of its first event, which is a part of the key then,
  until the next row.

A bound is dropped once nothing can lead before it any more, so what is remembered follows the
window (and the pause), not the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute
from cepheid.algebra.patterns import moves_end
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import Column, as_integers, hashes
from cepheid.engine.operators.base import FOREVER, Operator
from cepheid.engine.rows.order import ascending
from cepheid.kernels import load
from cepheid.kernels.templates.after_match import BOUNDS, SKIP
from cepheid.language.ast import Skip
from cepheid.plan.nodes import Automaton, Plan

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

FORGET_AT = 4096
"""How many keys may be remembered before unreachable ones are dropped."""


@dataclass(frozen=True)
class Considered:
    """Matches as AFTER MATCH sees them, whatever alternative they are of.

    `last` and `first` are positions. `rows` has the events of all matches, one match after the
    other from `offsets` on, each in the order of the pattern. FOREVER stands for a variable that
    is not bound, and after every group: so a longer group sorts before its own prefix.
    """

    last: Ints
    first: Ints
    keys: Ints  # a row per match, a column per part of the key
    lead: Ints
    until: Ints
    offsets: Ints
    rows: Ints
    positions: Ints  # of the rows

    def __len__(self) -> int:
        return len(self.last)

    def take(self, chosen: Ints) -> Considered:
        lengths = np.diff(self.offsets)[chosen]
        inside = spread(self.offsets[chosen], lengths)
        return Considered(
            self.last[chosen],
            self.first[chosen],
            self.keys[chosen],
            self.lead[chosen],
            self.until[chosen],
            _offsets(lengths),
            self.rows[inside],
            self.positions[inside],
        )


def together(parts: Sequence[Considered]) -> Considered:
    """The concatenation of all parts."""
    if len(parts) == 1:
        return parts[0]
    return Considered(
        np.concatenate([p.last for p in parts]),
        np.concatenate([p.first for p in parts]),
        np.concatenate([p.keys for p in parts]),
        np.concatenate([p.lead for p in parts]),
        np.concatenate([p.until for p in parts]),
        _offsets(np.concatenate([np.diff(p.offsets) for p in parts])),
        np.concatenate([p.rows for p in parts]),
        np.concatenate([p.positions for p in parts]),
    )


def _offsets(lengths: Ints) -> Ints:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))


def spread(starts: Ints, lengths: Ints) -> Ints:
    """The indexes `start` to `start + length` of every pair, one after the other."""
    before = np.cumsum(lengths) - lengths
    indexes: Ints = np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)
    return indexes


# ── order ──


def considered_order(matches: Considered) -> Ints:
    """The order of matches: by end, start, the positions of the events in the order of the pattern,
    and then input order, which is that of rows."""
    order = _Order(matches.last)
    order.refine(matches.first[order.tied])
    lengths = np.diff(matches.offsets)
    for values in (matches.positions, matches.rows):
        at = 0
        while len(order.tied) and at < lengths[order.tied].max():
            inside = at < lengths[order.tied]
            column = np.full(len(inside), FOREVER)
            column[inside] = values[matches.offsets[order.tied[inside]] + at]
            order.refine(column)
            at += 1
    return order.order


class _Order:
    """An order that is refined step by step. Only rows that are still `tied` are compared: mostly
    few."""

    def __init__(self, values: Ints) -> None:
        self.order: Ints = ascending(values)
        self._places, self._classes = _ties(np.diff(values[self.order]) != 0)
        self.tied = self.order[self._places]

    def refine(self, values: Ints) -> None:
        """Order the tied rows by these values."""
        between, steps = np.diff(self._classes) != 0, np.diff(values)
        if not ((steps != 0) & ~between).any():
            return
        if ((steps < 0) & ~between).any():
            finer = np.lexsort((values, self._classes))
            self.order[self._places] = self.tied[finer]
            steps = np.diff(values[finer])
        still, self._classes = _ties((steps != 0) | between)
        self._places = self._places[still]
        self.tied = self.order[self._places]


def _ties(steps: Mask) -> tuple[Ints, Ints]:
    """Given whether each differs from the one before it: the places of those that have an equal
    beside them, and numbers that are the same for equals."""
    begins = np.concatenate(([True], steps, [True]))
    tied = np.flatnonzero(~(begins[:-1] & begins[1:]))
    return tied, np.cumsum(begins[:-1])[tied]


# ── from records ──


class Reader:
    """Reads the records of an alternative's root. `variables` are those that any alternative
    binds, in the order of the pattern."""

    def __init__(self, plan: Plan, root: Operator, variables: Sequence[str]) -> None:
        assert plan.selection is not None
        self._root = root
        self._variables = variables
        self._key = [
            {v: _column(plan, part[v]) for v in variables if v in root.slots} for part in plan.key
        ]
        self._skip = plan.selection.skip
        self._target = plan.selection.variable
        self._pause = plan.selection.pause

    def read(self) -> Considered:
        """Read all records that the root has collected."""
        out, store = self._root.out, self._root.context.store
        records, n = out.records, out.n
        bound = {v: self._bound(v) for v in self._variables}
        lengths = np.zeros(n, np.int64)
        for variable, (_, counts) in bound.items():
            lengths += counts + 1 if variable in self._root.groups else 1
        offsets = _offsets(lengths)
        rows = np.full(offsets[-1], FOREVER)
        cursor = offsets[:-1].copy()
        for variable, (bound_rows, counts) in bound.items():
            rows[spread(cursor, counts)] = bound_rows
            cursor += counts + 1 if variable in self._root.groups else 1
        positions = rows.copy()
        there = rows < FOREVER
        positions[there] = self._root.positions()[1][rows[there] - store.base]
        last, first = records.last[:n].copy(), records.first[:n].copy()
        keys = self._keys(bound)
        match self._skip:
            case Skip.TO_NEXT_EVENT:
                lead = self._first(rows, offsets)
                until = lead + 1
                keys = np.column_stack((keys, lead))
            case Skip.PAST_LAST_EVENT:
                lead, until = first, last + 1
            case Skip.TO_FIRST | Skip.TO_LAST:
                lead, until = first, self._until(bound)
            case Skip.FOR:
                lead = self._ends(rows, offsets)
                until = lead + self._pause
            case Skip.NONE:  # there is a LIMIT
                lead, until = last, last
            case _:
                assert_never(self._skip)
        return Considered(last, first, keys, lead, until, offsets, rows, positions)

    @property
    def _begins(self) -> Ints:
        return self._root.positions()[0]

    def _bound(self, variable: str) -> tuple[Ints, Ints]:
        """The rows that the records bind to a variable, record after record, and how many."""
        root, n = self._root, self._root.out.n
        slots = root.out.records.slots
        slot = root.slots.get(variable)
        if slot is None:
            return np.zeros(0, np.int64), np.zeros(n, np.int64)
        if variable not in root.groups:
            slot_rows = slots[slot, :n]
            there = slot_rows >= 0
            return slot_rows[there], there.astype(np.int64)
        pool, counts = root.groups[variable], np.maximum(slots[slot + 1, :n], 0)
        return pool.rows[spread(slots[slot, :n] - pool.base, counts)], counts

    def _keys(self, bound: Mapping[str, tuple[Ints, Ints]]) -> Ints:
        """The key of each record, read from one of its events: all events of a match agree."""
        store, n = self._root.context.store, self._root.out.n
        keys = np.zeros((n, len(self._key)), np.int64)
        missing = np.ones(n, np.bool_)
        for variable, (rows, counts) in bound.items():
            chosen = missing & (counts > 0)
            if self._key and chosen.any():
                some = rows[(np.cumsum(counts) - counts)[chosen]] - store.base
                for part, columns in enumerate(self._key):
                    keys[chosen, part] = as_integers(store.values[columns[variable]][some])
                missing &= ~chosen
        return keys

    def _ends(self, rows: Ints, offsets: Ints) -> Ints:
        """The time at which each record ends."""
        root, store = self._root, self._root.context.store
        if root.times is not None:  # a delay may have moved it
            moved: Ints = root.out.records.slots[root.times[1], : root.out.n].copy()
            return moved
        times = np.full(len(rows), -FOREVER)
        there = rows < FOREVER
        times[there] = store.time[rows[there] - store.base]
        ends: Ints = np.maximum.reduceat(times, offsets[:-1])
        return ends

    def _first(self, rows: Ints, offsets: Ints) -> Ints:
        """The row of each record's first event: of those that start first, the one that ends
        first, then the first of the input, which is the order of rows."""
        store, starts = self._root.context.store, offsets[:-1]
        if store.lasting:
            there = rows < FOREVER
            begins = np.full(len(rows), FOREVER)
            begins[there] = self._begins[rows[there] - store.base]
            earliest = np.repeat(np.minimum.reduceat(begins, starts), np.diff(offsets))
            rows = np.where(begins == earliest, rows, FOREVER)
        first: Ints = np.minimum.reduceat(rows, starts)
        return first

    def _until(self, bound: Mapping[str, tuple[Ints, Ints]]) -> Ints:
        """The start of the event that is skipped to; if there is none, nothing is dropped."""
        store = self._root.context.store
        rows, counts = bound.get(self._target or "", (_NONE, np.zeros(self._root.out.n, np.int64)))
        until = np.full(len(counts), -FOREVER)
        some, behind = counts > 0, np.cumsum(counts)
        at = behind - counts if self._skip is Skip.TO_FIRST else behind - 1
        until[some] = self._begins[rows[at[some]] - store.base]
        return until


_NONE: Ints = np.zeros(0, np.int64)


class Freeing:
    """Frees the starts of which every match would be dropped, if the operator looks for matches
    from their starts: SKIP PAST LAST EVENT rules out all before a bound that only ever rises, SKIP
    TO NEXT EVENT those that have had their match. (The other modes may let an earlier start in
    again.)"""

    def __init__(self, plan: Plan, root: Operator) -> None:
        assert plan.selection is not None
        self._root = root
        self._by_row = plan.selection.skip is Skip.TO_NEXT_EVENT
        self._plan = plan

    def free(self, memory: Memory) -> None:
        if not len(memory) or (self._by_row and not self._root.begins_with_start):
            return
        for entry, rows, keys in keyed_starts(self._plan, self._root):
            lead = self._root.positions()[0][rows]
            if self._by_row:
                lead = rows + self._root.context.store.base
                keys = np.column_stack((keys, lead))
            self._root.free(entry, rows[lead < memory.bounds(keys)])


def keyed_starts(plan: Plan, root: Operator) -> Iterator[tuple[int, Ints, Ints]]:
    """The ways in which a match can start: for each its number, the rows that are alive, and their
    keys."""
    store = root.context.store
    for entry, variable, rows in root.starts():
        if not len(rows):
            continue  # a store that has had no row yet has no columns either
        columns = [_column(plan, part[variable]) for part in plan.key]
        keys = [as_integers(store.values[column][rows]) for column in columns]
        yield entry, rows, np.column_stack(keys) if keys else np.zeros((len(rows), 0), np.int64)


def key_columns(plan: Plan) -> Iterator[Column]:
    """The columns that the store must keep to distinguish keys."""
    for part in plan.key:
        for name in dict.fromkeys(part.values()):
            yield _column(plan, name)


def moves_ends(plan: Plan) -> bool:
    """Whether the ends of matches are moved: positions are times then, in the automaton's records
    and here."""
    return any(moves_end(r.pattern) for r in plan.alternatives if isinstance(r, Automaton))


def textual(plan: Plan, keys: Ints) -> Iterator[int]:
    """The parts of keys that are codes of strings."""
    types = plan.schema.columns
    for n, part in enumerate(plan.key[: keys.shape[1]] if len(keys) else ()):
        if types[next(iter(part.values()))] in (Type.STRING, Type.BINARY):
            yield n


def _column(plan: Plan, name: str) -> Column:
    return Column(Attribute("", name, plan.schema.columns[name]))


# ── choosing ──


class Memory:
    """What is remembered of kept matches, a number by key: the bound that they have set, or, with
    the kernel COUNT, how many there were."""

    def __init__(self, jit: bool, kernel: str = SKIP) -> None:
        self._kernel: Callable[..., Any] = load(kernel, jit)
        self._lookup: Callable[..., Any] = load(BOUNDS, jit)
        self._limit = FORGET_AT
        self._allocate(0, 0)

    def __len__(self) -> int:
        """The number of remembered keys."""
        return self._count

    def _allocate(self, room: int, parts: int) -> None:
        size = 1 << (2 * room + 1).bit_length()  # half of it stays empty
        self._room, self._count = room, 0
        self._table: Ints = np.full(size, -1, np.int64)
        self._hashes: Ints = np.zeros(room, np.int64)
        self._keys: Ints = np.zeros((room, parts), np.int64)
        self._bounds: Ints = np.zeros(room, np.int64)

    def choose(self, matches: Considered) -> Ints:
        """Which of these are kept, in the order in which they are considered."""
        order = considered_order(matches)
        kept = self.admit(matches.keys[order], matches.lead[order], matches.until[order])
        return order[kept]

    def admit(self, keys: Ints, lead: Ints, until: Ints) -> Mask:
        """Which of these, in the order in which they are considered, are kept."""
        if self._count + len(keys) > self._room:
            room = max(2 * self._room, self._count + len(keys))
            self._rebuild(np.arange(self._count), room, keys.shape[1])
        return self._apply(_hashed(keys), keys, lead, until)

    def _apply(self, hashed: Ints, keys: Ints, lead: Ints, until: Ints) -> Mask:
        kept = np.zeros(len(lead), np.bool_)
        memory = (self._table, self._hashes, self._keys, self._bounds)
        self._count = self._kernel(hashed, keys, lead, until, memory, self._count, kept)
        return kept

    def _rebuild(self, chosen: Ints, room: int, parts: int) -> None:
        hashed, keys, bounds = self._hashes[chosen], self._keys[chosen], self._bounds[chosen]
        self._allocate(room, parts)
        if len(chosen):
            self._apply(hashed, keys, bounds, bounds)

    def warm(self) -> None:
        """Have the kernels compiled, by calls in which there is nothing to do."""
        none = np.zeros(0, np.int64)
        self._apply(none, none.reshape(0, 1), none, none)
        memory = (self._table, self._hashes, self._keys, self._bounds)
        self._lookup(none, none.reshape(0, 1), memory, none)

    def keys(self) -> Ints:
        """The remembered keys."""
        return self._keys[: self._count]

    def above(self, floor: int) -> tuple[Ints, Ints]:
        """The keys whose bounds still exclude matches, and the bounds."""
        live = np.flatnonzero(self._bounds[: self._count] > floor)
        return self._keys[live], self._bounds[live]

    def replace(self, keys: Ints, bounds: Ints) -> None:
        """Replace the memory with these keys and bounds."""
        self._allocate(len(keys), keys.shape[1])
        if len(keys):
            self._apply(_hashed(keys), keys, bounds, bounds)

    def bounds(self, keys: Ints) -> Ints:
        """The bound that matches of each of these keys have set so far."""
        bounds = np.full(len(keys), -FOREVER)
        if self._count:
            hashed = _hashed(keys)
            memory = (self._table, self._hashes, self._keys, self._bounds)
            self._lookup(hashed, keys, memory, bounds)
        return bounds

    def copy(self) -> Memory:
        """A copy."""
        other = copy(self)
        other._table, other._hashes = self._table.copy(), self._hashes.copy()
        other._keys, other._bounds = self._keys.copy(), self._bounds.copy()
        return other

    def forget(self, floor: int) -> None:
        """Drop bounds up to the floor: no match will lead before it any more."""
        if self._count > self._limit:
            live = np.flatnonzero(self._bounds[: self._count] > floor)
            self._rebuild(live, 2 * len(live), self._keys.shape[1])
            self._limit = max(FORGET_AT, 2 * len(live))


def _hashed(keys: Ints) -> Ints:
    return hashes(((column, None) for column in keys.T), len(keys))
