"""Counts the matches of each branch of a pattern, in a way of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from cepheid.algebra.query import BoundQuery
from cepheid.answers.counted.countable import ChainWay, CountedBranches
from cepheid.answers.counted.counted_matches import CountedMatches, Counter
from cepheid.answers.counted.step_rows import StepRows

NewCounter: TypeAlias = Callable[[ChainWay, BoundQuery], Counter]


class BranchCounter:
    """Says what the matches of all branches come to."""

    def __init__(self, way: CountedBranches, new_counter: NewCounter) -> None:
        self._counters = [
            (new_counter(of_branch, branch.query), branch.loose)
            for branch, of_branch in way.branches
        ]
        steps = (step for counter, _ in self._counters for step in counter.steps)
        self.steps = tuple(dict.fromkeys(steps))
        columns = (name for counter, _ in self._counters for name in counter.columns)
        self.columns = list(dict.fromkeys(columns))

    def matches(self, rows: StepRows) -> Iterator[CountedMatches]:
        for counter, loose in self._counters:
            yield from counter.matches(self._rows_of(counter, loose, rows))

    def _rows_of(self, counter: Counter, loose: bool, rows: StepRows) -> StepRows:
        """The same events, with the branch's own steps."""
        bits = np.zeros(len(rows), np.int64)
        for n, step in enumerate(counter.steps):
            bits |= (rows.bits >> self.steps.index(step) & 1) << n
        ticks = replace(rows.ticks, position=np.arange(len(rows))) if loose else rows.ticks
        return StepRows(rows.table, bits, ticks)
