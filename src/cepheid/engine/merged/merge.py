"""The rules of several templates as one automaton: what each step takes, and all their paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cepheid.engine.arrays.columns import Column, Interner
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
        """With the rules that have these places."""
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
        """How long an event may matter: as long as instances wait, which those of rules that end
        with it don't."""
        waiting = np.diff(self.graph.rules.begins) == 0
        return int(self.graph.reach[waiting].max(initial=0))


Taken: TypeAlias = list[tuple[Boxes, Level | None, list[Boxes]]]
"""Of each step, the events that it takes, what is checked on them later, and those that are
forbidden before it."""


def merge(branches: Sequence[TemplateRules]) -> tuple[Merged | None, dict[int, str]]:
    """All rules of the branches in one automaton; and why those that are not in it can't be: a
    condition is no disjunction of intervals, or has too many alternatives."""
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
    found: Taken = []
    for step in branch.path.steps:
        own, level = boxes(step.conditions, branch.rows, interner), None
        if len(branch.path.steps) > 1:  # else the index has found the matches
            own, level = leveled(own, branch.rows.length)
        forbidden = [boxes(f.conditions, branch.rows, interner) for f in step.forbidden]
        found.append((own, level, forbidden))
    return found


def _member(
    branch: TemplateRules, begin: int, taken: Taken, predicates: Predicates
) -> TemplatePaths:
    rules = np.arange(branch.rows.length)
    steps: list[Ints] = []
    ends: list[tuple[Ints, ...]] = []
    for found, _, forbidden in taken:
        rules, again, box = _joined(rules, found.rule)
        steps = [*(own[again] for own in steps), predicates.of(found)[box]]
        ends = [tuple(one[again] for one in own) for own in ends]
        ends.append(tuple(_enders(one, predicates, rules) for one in forbidden))
    return TemplatePaths(
        branch.path, begin + rules, tuple(steps), tuple(ends), _windows(branch, begin)
    )


def _windows(branch: TemplateRules, begin: int) -> Ints:
    """By the numbers of rules."""
    return np.concatenate((np.zeros(begin, np.int64), branch.window))


def _joined(rules: Ints, boxes_of: Ints) -> tuple[Ints, Ints, Ints]:
    """Every path of a rule with every box of it: the rules, the paths, the boxes."""
    order = np.argsort(boxes_of, kind="stable")
    first = np.searchsorted(boxes_of[order], rules)
    count = np.searchsorted(boxes_of[order], rules, "right") - first
    again = np.repeat(np.arange(len(rules)), count)
    within = np.arange(len(again)) - np.repeat(np.cumsum(count) - count, count)
    return rules[again], again, order[first[again] + within]


def _enders(found: Boxes, predicates: Predicates, rules: Ints) -> Ints:
    """For each path the predicates that end it, as a row."""
    numbers = predicates.of(found)
    order = np.argsort(found.rule, kind="stable")
    first = np.searchsorted(found.rule[order], rules)
    count = np.searchsorted(found.rule[order], rules, "right") - first
    width = int(count.max(initial=0))
    ends = np.full((len(rules), width), NEVER)
    for k in range(width):
        has = count > k
        ends[has, k] = numbers[order[first[has] + k]]
    return ends
