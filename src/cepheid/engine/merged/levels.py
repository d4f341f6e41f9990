"""Limits that are nested: one predicate for several of them.

With `a.amount < :small`, an event below the strictest limit is below all others, and would become
an instance for each of them. So neighboring limits share one state, entered at the loosest, and
each rule's own limit is checked on complete matches. There are never more instances than with the
loosest limit alone. Few limits share one, so few checks fail.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cepheid.engine.arrays.columns import Column
from cepheid.engine.arrays.ordered_codes import HIGHEST, LOWEST
from cepheid.engine.merged.dag import distinct
from cepheid.engine.merged.intervals import Boxes

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

SHARING = 8
"""The most limits that share a state."""


@dataclass(frozen=True)
class Level:
    """The interval in which the column must lie for each rule."""

    column: Column
    low: Ints
    high: Ints

    def holds(self, values: Ints, rules: Ints) -> Mask:
        inside: Mask = (values >= self.low[rules]) & (values <= self.high[rules])
        return inside


def leveled(boxes: Boxes, rules: int) -> tuple[Boxes, Level | None]:
    """Widen boxes to their loosest neighbor in one column, the one in which most boxes become
    equal; also returns how wide they were."""
    limited = ((j, np.flatnonzero(_limited(boxes, j, rules))) for j in range(len(boxes.columns)))
    ways = [_shared(boxes, j, at) for j, at in limited if len(at)]
    best = max(ways, key=lambda way: way.saved, default=None)
    if best is None or not best.saved:
        return boxes, None
    j = best.column
    level = Level(boxes.columns[j], np.full(rules, LOWEST), np.full(rules, HIGHEST))
    limited_rules = boxes.rule[best.at]  # all others have the boxes that they had
    level.low[limited_rules], level.high[limited_rules] = (
        boxes.low[best.at, j],
        boxes.high[best.at, j],
    )
    low, high = boxes.low.copy(), boxes.high.copy()
    low[best.at, j] = np.where(best.above, best.weakest, low[best.at, j])
    high[best.at, j] = np.where(best.above, high[best.at, j], ~best.weakest)
    return replace(boxes, low=low, high=high), level


@dataclass(frozen=True)
class _Shared:
    """The limit that each of these boxes gets in the column, `above` or below it; and how many
    distinct boxes that saves."""

    column: int
    at: Ints
    above: Mask
    weakest: Ints
    saved: int


def _shared(boxes: Boxes, j: int, at: Ints) -> _Shared:
    above = boxes.high[at, j] == HIGHEST
    # The stricter, the larger: so the weakest of those that share one comes first.
    strict = np.where(above, boxes.low[at, j], ~boxes.high[at, j])
    others = [np.delete(bounds, j, axis=1)[at] for bounds in (boxes.low, boxes.high, boxes.bound)]
    _, group = distinct(np.column_stack((*others, above)))
    order = np.lexsort((strict, group))
    group, strict = group[order], strict[order]
    new_group = np.diff(group, prepend=-1) != 0
    new_limit = new_group | (np.diff(strict, prepend=0) != 0)
    number = np.cumsum(new_limit) - 1
    number -= np.maximum.accumulate(np.where(new_group, number, 0))  # of the limit in its group
    first = new_limit & (number % SHARING == 0)
    weakest = strict[np.maximum.accumulate(np.where(first, np.arange(len(at)), 0))]
    saved = int(np.count_nonzero(new_limit) - np.count_nonzero(first))
    return _Shared(j, at[order], above[order], weakest, saved)


def _limited(boxes: Boxes, j: int, rules: int) -> Mask:
    """The boxes of rules that have exactly one limit in this column, on one side."""
    low, high = boxes.low[:, j], boxes.high[:, j]
    one_sided = boxes.bound[:, j] & ((low == LOWEST) ^ (high == HIGHEST))
    least, most = np.full(rules, HIGHEST), np.full(rules, LOWEST)
    np.minimum.at(least, boxes.rule, np.where(low == LOWEST, high, low))
    np.maximum.at(most, boxes.rule, np.where(low == LOWEST, high, low))
    uneven = np.zeros(rules, np.bool_)
    uneven[boxes.rule[~one_sided]] = True
    same: Mask = one_sided & ~uneven[boxes.rule] & (least == most)[boxes.rule]
    return same
