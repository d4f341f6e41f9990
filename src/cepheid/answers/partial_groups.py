"""Partial aggregates of matches, by group and place in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cepheid.algebra.answer_shape import MatchAggregate
from cepheid.answers.aggregate_states import State, joined_states, merged, taken
from cepheid.answers.merged_ranges import added, merged_ranges

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class PartialGroups:
    """Matches of one group that stand together for good: in one slice of a window (`place` is its
    number), in one session, or at one time. `first` and `last` are the earliest and the latest end
    of them, `matches` says how many there are; `states` are those of the aggregates."""

    group: Ints
    place: Ints
    first: Ints
    last: Ints
    matches: Ints
    states: tuple[State, ...]

    def __len__(self) -> int:
        return len(self.group)

    def take(self, rows: Ints) -> PartialGroups:
        return PartialGroups(
            self.group[rows],
            self.place[rows],
            self.first[rows],
            self.last[rows],
            self.matches[rows],
            tuple(taken(state, rows) for state in self.states),
        )

    def merged(self, aggregates: Sequence[MatchAggregate], bounds: Ints) -> PartialGroups:
        """PartialGroups that stand side by side as one: number n begins at `bounds[n]`."""
        if len(bounds) == len(self):
            return self
        offsets = np.append(bounds, len(self))
        return PartialGroups(
            self.group[bounds],
            self.place[bounds],
            np.minimum.reduceat(self.first, bounds),
            np.maximum.reduceat(self.last, bounds),
            np.add.reduceat(self.matches, bounds),
            tuple(
                merged(aggregate, state, offsets)
                for aggregate, state in zip(aggregates, self.states, strict=True)
            ),
        )

    def ranges(
        self, aggregates: Sequence[MatchAggregate], begins: Ints, counts: Ints
    ) -> PartialGroups:
        """Of each range of cells of one group, in the order of time, one."""
        if (counts == 1).all():
            return self.take(begins)
        return PartialGroups(
            self.group[begins],
            self.place[begins],
            self.first[begins],
            self.last[begins + counts - 1],
            added(self.matches, begins, counts),
            tuple(
                merged_ranges(aggregate, state, begins, counts)
                for aggregate, state in zip(aggregates, self.states, strict=True)
            ),
        )

    def in_order(self, aggregates: Sequence[MatchAggregate]) -> PartialGroups:
        """By group and place, those of the same group and place as one."""
        if not len(self):
            return self
        group, place = self.group, self.place
        if not ascending(group, place):
            order = np.lexsort((place, group))
            return self.take(order).in_order(aggregates)
        new = (np.diff(group) != 0) | (np.diff(place) != 0)
        return self.merged(aggregates, np.flatnonzero(np.append(True, new)))


def ascending(group: Ints, place: Ints) -> bool:
    step = np.diff(group)
    return bool(((step > 0) | ((step == 0) & (np.diff(place) >= 0))).all())


def joined(parts: Sequence[PartialGroups]) -> PartialGroups:
    if len(parts) == 1:
        return parts[0]
    return PartialGroups(
        np.concatenate([part.group for part in parts]),
        np.concatenate([part.place for part in parts]),
        np.concatenate([part.first for part in parts]),
        np.concatenate([part.last for part in parts]),
        np.concatenate([part.matches for part in parts]),
        tuple(
            joined_states(list(states))
            for states in zip(*(part.states for part in parts), strict=True)
        ),
    )
