"""The rules of several templates as one automaton: what each step takes, and all their paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cepheid.engine.arrays.columns import Column
from cepheid.engine.arrays.interner import Interner
from cepheid.engine.attribution.parameters import RuleParameters
from cepheid.engine.merged.dag import NEVER, Graph, Predicates, TemplatePaths, merged
from cepheid.engine.merged.index import Index, index_of
from cepheid.engine.merged.intervals import Boxes, boxes
from cepheid.engine.merged.levels import Level, leveled
from cepheid.engine.merged.paths import NoPath, Path

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class TemplateRules:
    """The rules of one template: the path that they share, their parameters and windows."""

    path: Path
    rows: RuleParameters
    window: Ints

    def of(self, rules: Ints) -> TemplateRules:
        """The same for the rules at these places."""
        return TemplateRules(self.path, self.rows.of(rules), self.window[rules])


@dataclass(frozen=True)
class Merged:
    """The rules of several templates as one automaton. Rules are numbered through all branches;
    those of branch i begin with `begins[i]`; what its matches still have to satisfy, step by step,
    is `levels[i]`."""

    branches: tuple[TemplateRules, ...]
    begins: Ints
    levels: tuple[tuple[Level | None, ...], ...]
    doubtful: Mask
    graph: Graph
    index: Index
    columns: tuple[Column, ...]
    interner: Interner

    @property
    def reach(self) -> int:
        """How long an event may matter: as long as instances wait; instances of rules that end with
        it don't."""
        waiting = np.diff(self.graph.rules.begins) == 0
        return int(self.graph.reach[waiting].max(initial=0))


Taken: TypeAlias = list[tuple[Boxes, Level | None, list[Boxes]]]
"""For each step: the events that it takes, what is checked on them later, and the events that are
forbidden before it."""


def merge(branches: Sequence[TemplateRules]) -> tuple[Merged | None, dict[int, str]]:
    """Merge all rules of the branches into one automaton. Also returns the reasons of rules that
    can't be merged: a condition is no disjunction of intervals, or has too many alternatives."""
    interner, predicates = Interner(), Predicates()
    taken: dict[int, Taken] = {}
    refused: dict[int, str] = {}
    for n, branch in enumerate(branches):
        try:
            taken[n] = _taken(branch, interner)
        except NoPath as reason:
            refused[n] = str(reason)
    if not taken:
        return None, refused
    fitting = tuple(branches[n] for n in taken)
    begins = np.concatenate(([0], np.cumsum([branch.rows.length for branch in fitting])))
    members = [
        _member(branch, int(begin), steps, predicates)
        for branch, begin, steps in zip(fitting, begins[:-1], taken.values(), strict=True)
    ]
    graph = merged(members, predicates)
    # A rule with several paths may find the same match on two of them.
    doubtful = np.array([len(np.unique(m.rule)) < len(m.rule) for m in members], np.bool_)
    levels = tuple(tuple(level for _, level, _ in steps) for steps in taken.values())
    columns, index = tuple(predicates.columns), index_of(predicates)
    return Merged(fitting, begins, levels, doubtful, graph, index, columns, interner), refused


def _taken(branch: TemplateRules, interner: Interner) -> Taken:
    steps: Taken = []
    for step in branch.path.steps:
        step_boxes, level = boxes(step.conditions, branch.rows, interner), None
        if len(branch.path.steps) > 1:  # else the index has found the matches
            step_boxes, level = leveled(step_boxes, branch.rows.length)
        forbidden = [boxes(f.conditions, branch.rows, interner) for f in step.forbidden]
        steps.append((step_boxes, level, forbidden))
    return steps


def _member(
    branch: TemplateRules, begin: int, taken: Taken, predicates: Predicates
) -> TemplatePaths:
    rules = np.arange(branch.rows.length)
    steps: list[Ints] = []
    ends: list[tuple[Ints, ...]] = []
    for step_boxes, _, forbidden in taken:
        rules, again, box = _joined(rules, step_boxes.rule)
        steps = [*(path_ends[again] for path_ends in steps), predicates.of(step_boxes)[box]]
        ends = [tuple(end[again] for end in path_ends) for path_ends in ends]
        ends.append(tuple(_enders(end, predicates, rules) for end in forbidden))
    return TemplatePaths(
        branch.path, begin + rules, tuple(steps), tuple(ends), _windows(branch, begin)
    )


def _windows(branch: TemplateRules, begin: int) -> Ints:
    """The windows, by the rules' numbers."""
    return np.concatenate((np.zeros(begin, np.int64), branch.window))


def _joined(rules: Ints, boxes_of: Ints) -> tuple[Ints, Ints, Ints]:
    """Combine every path of a rule with every box of it: returns rules, paths and boxes."""
    order = np.argsort(boxes_of, kind="stable")
    first = np.searchsorted(boxes_of[order], rules)
    count = np.searchsorted(boxes_of[order], rules, "right") - first
    again = np.repeat(np.arange(len(rules)), count)
    within = np.arange(len(again)) - np.repeat(np.cumsum(count) - count, count)
    return rules[again], again, order[first[again] + within]


def _enders(forbidden: Boxes, predicates: Predicates, rules: Ints) -> Ints:
    """For each path, a row with the predicates that end it."""
    numbers = predicates.of(forbidden)
    order = np.argsort(forbidden.rule, kind="stable")
    first = np.searchsorted(forbidden.rule[order], rules)
    count = np.searchsorted(forbidden.rule[order], rules, "right") - first
    width = int(count.max(initial=0))
    ends = np.full((len(rules), width), NEVER)
    for k in range(width):
        has = count > k
        ends[has, k] = numbers[order[first[has] + k]]
    return ends
