"""What stacks and automata are expected to cost, in the terms of `plan_cost`.

Both go from event to event instead of joining parts. Stacks walk back from the last class, so that
their partial records are the suffixes of the chain; an automaton goes forward from each event that
a match may start with, so that its are prefixes, of which `->` and `=>` leave few.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, assert_never

from cepheid.algebra.expressions import variables
from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    leaves,
)
from cepheid.language.ast import Mode, SequenceOperator
from cepheid.plan.nodes import Automaton, Equivalence, Stacks
from cepheid.planner.cost.flows import Flow, clear, power, sequence
from cepheid.planner.planned import Estimate

if TYPE_CHECKING:
    from cepheid.planner.cost.plan_cost import Costing

_MOST = 1e100
_SUBSETS = 30.0
"""The most elements of a group whose subsets are counted; more would be as expensive."""


def stacks_estimate(costing: Costing, node: Stacks) -> tuple[Flow, Estimate]:
    """Scan: every event enters its stack, looked up by the attributes that `strategy` chains or
    filters by. Construction: for each suffix that has been found, the instances of the class
    before that lie in the window before it and in its partition; along several chains all of them,
    until they meet."""
    weights, figures = costing.weights, costing.figures
    flows = [costing.flow(leaf) for leaf in node.classes]
    several = node.strategy is Equivalence.MULTIPLE
    followed = node.equivalences if several else node.equivalences[:1]
    tested = node.equivalences[len(followed) :]
    looked_up = followed if node.strategy is Equivalence.PARTITION else node.equivalences
    kept = _awaited(costing, node, [flow.rows for flow in flows])
    scanned = sum(flow.rows for flow in flows)
    pushed = sum(flow.rows * share for flow, share in zip(flows, kept, strict=True))
    cost = weights.hash * len(looked_up) * scanned
    cost += weights.push * max(len(followed), 1) * pushed
    waiting = list(node.predicates)
    present = {node.classes[-1].variable}
    suffix, tried = flows[-1], 0.0
    for k in reversed(range(len(flows) - 1)):
        present.add(node.classes[k].variable)
        now = [p for p in waiting if variables(p) <= present]
        waiting = [p for p in waiting if not variables(p) <= present]
        shares = [power(-figures.values(e[k].variable, e[k].name)) for e in followed]
        started = suffix.rows * (kept[-1] if k == len(flows) - 2 else 1.0)
        walked = flows[k].rows * kept[k] * started * (sum(shares) or 1.0) / suffix.events
        cost += (weights.back + weights.test * (len(now) + len(tested))) * walked
        tried += walked
        edges = [
            costing.edge(e[k], e[k + 1])
            for e in node.equivalences
            if not figures.is_key(e[k], e[k + 1])
        ]
        suffix = sequence(flows[k], suffix).attach(chance=costing.chances(now), edges=edges)
    return suffix, Estimate(suffix.rows, tried, cost + weights.output * suffix.rows)


def _awaited(costing: Costing, node: Stacks, rows: list[float]) -> list[float]:
    """The share of each class's events that Dynamic Filtering keeps: those whose values of all
    other attributes some event of the class before has."""
    kept = [1.0] * len(rows)
    if node.strategy is not Equivalence.FILTERING:
        return kept
    for k in range(1, len(rows)):
        for part in node.equivalences[1:]:
            values = power(costing.figures.values(part[k - 1].variable, part[k - 1].name))
            kept[k] *= -math.expm1(-rows[k - 1] * kept[k - 1] / values)
    return kept


def automaton_estimate(costing: Costing, node: Automaton) -> tuple[Flow, Estimate]:
    """All events are laid out, key by key if there is one. Its matches count as single events:
    those of `->` and `=>` are short beside the window."""
    weights = costing.weights
    flows = {leaf.variable: costing.flow(leaf) for leaf in node.leaves}
    run = _Run(costing, node, {name: flow.rows for name, flow in flows.items()})
    run.item(node.pattern, SequenceOperator.ANY)
    laid = sum(flow.rows for flow in flows.values())
    rows = min(run.count * power(costing.chances(node.checks)), _MOST)
    cost = (
        (weights.start + (weights.hash if node.key else 0.0)) * laid
        + weights.look * run.tried
        + weights.test * run.tests
        + weights.output * rows
    )
    first = flows[leaves(node.pattern)[0]]
    key = tuple((least, least) for _, least in first.key)
    scarcest = min(flows[name].scarcest for name in leaves(node.pattern))
    log = math.log(max(rows, 1 / _MOST))
    return Flow(1, log, min(scarcest, log), key), Estimate(rows, run.tried, cost)


class _Run:
    """How many partial matches there are after each item, and what was looked at until then."""

    def __init__(self, costing: Costing, node: Automaton, rows: dict[str, float]) -> None:
        self.costing = costing
        self.where = node.where
        self.rows = rows
        self.stream = max(sum(rows[name] for name in leaves(node.pattern)), 1e-9)
        self.keyed = {
            attribute.variable: power(
                -sum(
                    costing.figures.values(a.variable, a.name)
                    for part in node.key
                    for a in part
                    if a is not None and a.variable == attribute.variable
                )
            )
            for part in node.key
            for attribute in part
            if attribute is not None
        }
        self.bound: list[str] = []
        self.count = 1.0
        self.tried = 0.0
        self.tests = 0.0

    def item(self, pattern: Pattern, operator: SequenceOperator) -> None:
        match pattern:
            case Leaf():
                self._event(pattern.variable, operator)
            case Sequence():
                for n, part in enumerate(pattern.items):
                    self.item(part, pattern.operators[n - 1] if n else operator)
            case Conjunction():
                for part in pattern.items:
                    self.item(part, SequenceOperator.ANY)
            case Disjunction():
                self._branches(pattern, operator)
            case Negation() | Absence():
                self._forbidden(pattern.item)
            case Unless():
                self.item(pattern.item, operator)
                self._forbidden(pattern.exception)
            case Closure():
                self._group(pattern)
            case Delay():
                self.item(pattern.item, operator)
            case _:
                assert_never(pattern)

    def _candidates(self, variable: str) -> float:
        """The events of the class per window; per key once the run has one."""
        return self.rows[variable] * (self.keyed.get(variable, 1.0) if self.bound else 1.0)

    def _conditions(self, names: set[str]) -> tuple[int, float]:
        """Conjuncts that become evaluable with these variables, and the share that they leave."""
        have = names.union(self.bound)
        reads = [(c.expression, set(c.variables)) for c in self.where]
        now = [expression for expression, read in reads if read & names and read <= have]
        return len(now), power(self.costing.chances(now))

    def _look(self, each: float, tests: int) -> None:
        looked = min(self.count * each, _MOST)
        self.tried = min(self.tried + looked, _MOST)
        self.tests = min(self.tests + tests * looked, _MOST)

    def _multiply(self, factor: float) -> None:
        self.count = min(self.count * factor, _MOST)

    def _event(self, variable: str, operator: SequenceOperator) -> None:
        candidates = self._candidates(variable)
        tests, chance = self._conditions({variable})
        before = len(self.bound)
        match operator:
            case SequenceOperator.NEXT if before:
                self._look(min(candidates, 1 / chance), tests)
                self._multiply(min(1.0, candidates * chance))
            case SequenceOperator.STRICT if before:
                self._look(1.0, tests)
                self._multiply(self.rows[variable] / self.stream * chance)
            case _:
                self._look(candidates / max(before, 1), tests)
                self._multiply(candidates * chance / max(before, 1))
        self.bound.append(variable)

    def _branches(self, pattern: Disjunction, operator: SequenceOperator) -> None:
        count, bound, total = self.count, self.bound, 0.0
        for branch in pattern.items:
            self.count, self.bound = count, list(bound)
            self.item(branch, operator)
            total += self.count
        self.count = min(total, _MOST)

    def _forbidden(self, pattern: Pattern) -> None:
        names = leaves(pattern)
        tests, chance = self._conditions(set(names))
        candidates = min(self._candidates(name) for name in names)
        self._look(min(candidates, 1 / chance), tests)
        self._multiply(clear(candidates * chance, max(len(self.bound), 1)))

    def _group(self, closure: Closure) -> None:
        names = leaves(closure)
        tests, chance = self._conditions(set(names))
        candidates = min(self._candidates(name) for name in names) / max(len(self.bound), 1)
        self._look(candidates, tests)
        taken = candidates * chance
        match closure.mode:
            case Mode.MAXIMAL:
                self._multiply(min(1.0, taken) if self.bound else max(taken, 1e-9))
            case Mode.PREFIXES:
                self._multiply(max(taken, 1e-9))
            case Mode.RUNS:
                self._multiply(max(taken * taken / 2, 1e-9))
            case Mode.SUBSETS:
                self._multiply(2.0 ** min(taken, _SUBSETS))
            case _:
                assert_never(closure.mode)
        self.bound.extend(names)
