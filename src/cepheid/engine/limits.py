"""Limits on held events, and what happens when one is exceeded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute
from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Unless,
)
from cepheid.algebra.patterns import Sequence as SequencePattern
from cepheid.engine.arrays.columns import Column, as_integers
from cepheid.engine.operators.base import FOREVER, Context, LeafOperator
from cepheid.errors import StateLimitError
from cepheid.language.ast import Skip
from cepheid.options import Limit
from cepheid.plan.nodes import STREAM, Automaton, Kseq, LeafNode, Neg, Plan, walk

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


def within(limit: Limit, total: int, most: int) -> bool:
    """Whether `total` events, and `most` of one key, are within the limit. Raises an error if the
    run must stop."""
    for name, count, allowed in (
        ("altogether (total)", total, limit.total),
        ("of one key (per_key)", most, limit.per_key),
    ):
        if allowed is None or count <= allowed:
            continue
        if limit.policy == "fail":
            raise StateLimitError(
                f"{count} events would have to be held {name}, and the limit is {allowed}: "
                "matches may still need them. Add WITHIN, make it shorter, pass a larger limit, or "
                'give up matches with Limit(..., policy="drop-oldest")'
            )
        return False
    return True


@dataclass(frozen=True)
class Floors:
    """For some keys, the position up to which their events were dropped."""

    keys: Ints  # a row for each, a column for each part of the key
    positions: Ints

    def __len__(self) -> int:
        return len(self.positions)

    def below(self, keys: Ints, positions: Ints) -> Mask:
        """Which events, of these keys and at these positions, are dropped."""
        both = np.concatenate((self.keys, keys))
        codes = np.unique(both, axis=0, return_inverse=True)[1].ravel()
        bounds = np.full(len(both), -FOREVER)
        np.maximum.at(bounds, codes[: len(self)], self.positions)
        mask: Mask = positions <= bounds[codes[len(self) :]]
        return mask

    def plus(self, other: Floors) -> Floors:
        """The union; for a key in both, the higher floor."""
        if not len(other):
            return self
        both = np.concatenate((self.keys, other.keys))
        keys, codes = np.unique(both, axis=0, return_inverse=True)
        positions = np.full(len(keys), -FOREVER)
        np.maximum.at(positions, codes.ravel(), np.concatenate((self.positions, other.positions)))
        return Floors(keys, positions)

    def after(self, position: int) -> Floors:
        """The floors that affect events at this position or later."""
        live = self.positions >= position
        return Floors(self.keys[live], self.positions[live])


def no_floors(plan: Plan) -> Floors:
    return Floors(np.zeros((0, len(plan.key)), np.int64), np.zeros(0, np.int64))


class HeldWindow:
    """What joins and stacks hold: all events of their classes within the window. It also chooses,
    for any plan, what is dropped beyond the limit."""

    def __init__(
        self, plan: Plan, context: Context, leaves: Mapping[LeafNode, LeafOperator]
    ) -> None:
        self._context = context
        self._by_key = _parts_by_key(plan)
        self._none = no_floors(plan)
        self._leaves = [
            (leaf, [_column(plan, part[node.variable]) for part in plan.key])
            for node, leaf in leaves.items()
            if node.variable != STREAM
        ]

    def columns(self) -> Iterable[Column]:
        """The columns that the store must keep for the limit."""
        return (column for _, columns in self._leaves for column in columns)

    def held(self, until: int) -> Mask:
        """The rows inside the window, up to the one that the rounds have reached."""
        store = self._context.store
        held: Mask = store.clock > self._context.eat
        held[until - store.base :] = False
        return held

    def counts(self, held: Mask) -> tuple[int, int]:
        """The number of held events: in total, and the most of one class and key."""
        most = 0
        for leaf, columns in self._leaves:
            rows = self._rows(leaf, held)
            if len(rows):
                _, counts = np.unique(self._keys(columns, rows), axis=0, return_counts=True)
                most = max(most, int(counts.max()))
        return int(np.count_nonzero(held)), most

    def excess(self, held: Mask) -> tuple[int, Floors]:
        """The held rows to drop so that there is room again: how many of the oldest rows of the
        store, and up to which positions rows of single keys. Rows of an instant that may be
        incomplete are never dropped: events that arrive later with that time couldn't be
        distinguished from dropped ones."""
        limit, store = self._context.limit, self._context.store
        assert limit is not None
        cut, floors = 0, self._none
        rows = np.flatnonzero(held)
        if limit.total is not None and len(rows) > limit.total:
            cut = int(rows[len(rows) - _room(limit.total) - 1]) + 1
        if limit.per_key is not None:
            for leaf, columns in self._leaves:
                rows = self._rows(leaf, held)
                keys, last = _oldest(self._keys(columns, rows), rows, limit.per_key)
                if not len(last):
                    continue
                if self._by_key:
                    known = self._context.horizon.position - 1
                    floors = floors.plus(Floors(keys, np.minimum(store.position[last], known)))
                else:
                    cut = max(cut, int(last.max()) + 1)
        return self._between_instants(cut), floors

    def _between_instants(self, cut: int) -> int:
        """The next place at which the store can be cut, or else the last one before."""
        store = self._context.store
        if not cut:
            return 0
        apart = (np.diff(store.position) > 0) & (np.diff(store.clock) > 0)
        places = np.concatenate((np.flatnonzero(apart) + 1, [store.n]))
        places = places[store.position[places - 1] < self._context.horizon.position]
        at = int(np.searchsorted(places, cut))
        if at == len(places):
            return int(places[-1]) if len(places) else 0
        return int(places[at])

    def drop(self, position: int, floors: Floors) -> Ints:
        """Drop the events up to this position, and those below the floors of their keys. Returns
        the rows that any class has lost: other operators over it must be rebuilt."""
        store = self._context.store
        lost = [np.zeros(0, np.int64)]
        for leaf, columns in self._leaves:
            records = leaf.out.records
            gone = records.last[: leaf.out.n] <= position
            if len(floors):
                rows = records.slots[0, : leaf.out.n] - store.base
                here = np.flatnonzero(rows >= 0)
                keys = self._keys(columns, rows[here])
                gone[here] |= floors.below(keys, records.last[here])
            if gone.any():
                lost.append(records.slots[0, : leaf.out.n][gone])
                leaf.out.choose(np.flatnonzero(~gone))
                leaf.out.chains.clear()
        return np.unique(np.concatenate(lost))

    def _rows(self, leaf: LeafOperator, held: Mask) -> Ints:
        """The held rows of a class, as places in the store."""
        rows = leaf.out.records.slots[0, : leaf.out.visible] - self._context.store.base
        rows = rows[rows >= 0]
        held_rows: Ints = rows[held[rows]]
        return held_rows

    def _keys(self, columns: list[Column], rows: Ints) -> Ints:
        """The keys of the rows; without a key, all rows have the same."""
        values = self._context.store.values
        parts = [as_integers(values[c][rows]) for c in columns]
        return np.column_stack(parts) if parts else np.zeros((len(rows), 1), np.int64)


def _room(allowed: int) -> int:
    """How many rows are kept when others are dropped: fewer than allowed, so that dropping is worth
    the effort."""
    return max(1, allowed * 7 // 8)


def _oldest(keys: Ints, rows: Ints, allowed: int) -> tuple[Ints, Ints]:
    """The keys with more rows than allowed, and for each key the last row to drop."""
    distinct, codes, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    ordered = rows[np.argsort(codes.ravel(), kind="stable")]
    over = np.flatnonzero(counts > allowed)
    ends = np.cumsum(counts)[over]
    return distinct[over], ordered[ends - _room(allowed) - 1]


def _parts_by_key(plan: Plan) -> bool:
    """Whether the past of a single key can be dropped: no match of it that starts later depends on
    dropped events, and nobody keeps the numbers of rows."""
    plain = plan.schema.start is None and not looks_back(plan)
    by_row = plan.selection is not None and plan.selection.skip is Skip.TO_NEXT_EVENT
    return bool(plan.key) and plain and not by_row


def looks_back(plan: Plan) -> bool:
    """Whether a match depends on events before its start: up to a window before its end."""
    return any(
        node.gap.open_before
        if isinstance(node, Neg | Kseq)
        else isinstance(node, Automaton) and _leads(node.pattern)
        for root in plan.alternatives
        for node in walk(root)
    )


def _leads(pattern: Pattern) -> bool:
    """Whether a negation or a group may have nothing before it."""
    match pattern:
        case Leaf():
            return False
        case Negation() | Absence() | Closure():
            return True
        case SequencePattern():
            return _leads(pattern.items[0])
        case Conjunction() | Disjunction():
            return any(_leads(item) for item in pattern.items)
        case Unless() | Delay():
            return _leads(pattern.item)


def _column(plan: Plan, name: str) -> Column:
    return Column(Attribute("", name, plan.schema.columns[name]))
