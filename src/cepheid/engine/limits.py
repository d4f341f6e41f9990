"""How many events are held, and what happens if that is more than the caller allows."""

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
    """Whether `total` events, and `most` of one key, may be held; an error if a run must stop."""
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
        """Of each key the higher one."""
        if not len(other):
            return self
        both = np.concatenate((self.keys, other.keys))
        keys, codes = np.unique(both, axis=0, return_inverse=True)
        positions = np.full(len(keys), -FOREVER)
        np.maximum.at(positions, codes.ravel(), np.concatenate((self.positions, other.positions)))
        return Floors(keys, positions)

    def after(self, position: int) -> Floors:
        """Those that say something about events at this position, or later ones."""
        live = self.positions >= position
        return Floors(self.keys[live], self.positions[live])


def no_floors(plan: Plan) -> Floors:
    return Floors(np.zeros((0, len(plan.key)), np.int64), np.zeros(0, np.int64))


class HeldWindow:
    """What joins and stacks hold: all events of their classes for as long as the window. And what
    is given up, by any plan, where that is too much."""

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
        """Columns that the store must keep for it."""
        return (column for _, columns in self._leaves for column in columns)

    def held(self, until: int) -> Mask:
        """The rows inside the window, up to the one that the rounds have reached."""
        store = self._context.store
        held: Mask = store.clock > self._context.eat
        held[until - store.base :] = False
        return held

    def counts(self, held: Mask) -> tuple[int, int]:
        """How many events are held altogether, and of one class and key."""
        most = 0
        for leaf, columns in self._leaves:
            rows = self._rows(leaf, held)
            if len(rows):
                _, counts = np.unique(self._keys(columns, rows), axis=0, return_counts=True)
                most = max(most, int(counts.max()))
        return int(np.count_nonzero(held)), most

    def excess(self, held: Mask) -> tuple[int, Floors]:
        """Which of the held rows have to go so that there is room again: how many of the first of
        the store, and up to which positions those of single keys. Never those of an instant that
        may not be complete: events that arrive with them couldn't be distinguished from dropped
        ones."""
        limit, store = self._context.limit, self._context.store
        assert limit is not None
        cut, floors = 0, self._none
        rows = np.flatnonzero(held)
        if limit.total is not None and len(rows) > limit.total:
            cut = int(rows[len(rows) - _room(limit.total) - 1]) + 1
        if limit.per_key is not None:
            for leaf, columns in self._leaves:
                rows = self._rows(leaf, held)
                own, last = _oldest(self._keys(columns, rows), rows, limit.per_key)
                if not len(last):
                    continue
                if self._by_key:
                    known = self._context.horizon.position - 1
                    floors = floors.plus(Floors(own, np.minimum(store.position[last], known)))
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
        """Forget the events up to this position, and those below the floors of their keys. The
        rows that some class has lost: other operators over it must be made anew."""
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
        """Those of a class that are held, as places in the store."""
        rows = leaf.out.records.slots[0, : leaf.out.visible] - self._context.store.base
        rows = rows[rows >= 0]
        own: Ints = rows[held[rows]]
        return own

    def _keys(self, columns: list[Column], rows: Ints) -> Ints:
        """Without a key all are of one."""
        values = self._context.store.values
        parts = [as_integers(values[c][rows]) for c in columns]
        return np.column_stack(parts) if parts else np.zeros((len(rows), 1), np.int64)


def _room(allowed: int) -> int:
    """As many are kept when others have to go: fewer than allowed, so that it is worth the
    effort."""
    return max(1, allowed * 7 // 8)


def _oldest(keys: Ints, rows: Ints, allowed: int) -> tuple[Ints, Ints]:
    """The keys that have more rows than allowed, and of each the last of the rows that go."""
    found, codes, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    ordered = rows[np.argsort(codes.ravel(), kind="stable")]
    over = np.flatnonzero(counts > allowed)
    ends = np.cumsum(counts)[over]
    return found[over], ordered[ends - _room(allowed) - 1]


def _parts_by_key(plan: Plan) -> bool:
    """Whether the past of a single key can be dropped: no match of it that starts later depends on
    dropped events, and nobody keeps the numbers of rows."""
    plain = plan.schema.start is None and not looks_back(plan)
    by_row = plan.selection is not None and plan.selection.skip is Skip.TO_NEXT_EVENT
    return bool(plan.key) and plain and not by_row


def looks_back(plan: Plan) -> bool:
    """Whether a match is judged by events before its start: a window before its end."""
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
