"""What a plan is expected to cost (ZStream 5.1), per window of time.

Formula 1 with weights measured on this engine: `access * C_i + test * n * C_i + output * C_o`,
and a term for each record that begins a search, since candidates are found by binary search or
through a hash chain. C_i are the combinations that are tried, C_o the records that come out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar, assert_never

import numpy as np
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Call, Expr
from cepheid.algebra.types import Type
from cepheid.language.ast import Quantifier
from cepheid.plan.nodes import (
    Automaton,
    Conj,
    Equality,
    Filter,
    Kseq,
    LeafNode,
    Neg,
    Node,
    Nseq,
    Plan,
    Run,
    Seq,
    Stacks,
    walk,
)
from cepheid.planner.cost.demand_cost import demanded
from cepheid.planner.cost.figures import Figures, figures_of
from cepheid.planner.cost.flows import (
    Edge,
    Flow,
    Forbidden,
    Grouped,
    Met,
    clear,
    conjunction,
    power,
    sequence,
)
from cepheid.planner.cost.scan_cost import automaton_estimate, stacks_estimate
from cepheid.planner.cost.weights import Weights, calibrated
from cepheid.planner.planned import Estimate
from cepheid.statistics import Statistics

Number = TypeVar("Number", float, NDArray[np.float64])


def cost_of(plan: Plan, statistics: Statistics, weights: Weights | None = None) -> float:
    """The cost of all operators; one that several alternatives share counts once."""
    return sum(e.cost for e in estimate(plan, statistics, weights).values())


def estimate(
    plan: Plan, statistics: Statistics, weights: Weights | None = None
) -> Mapping[Node, Estimate]:
    """The estimates of every distinct node of the plan."""
    return Costing(figures_of(plan, statistics), weights or calibrated()).estimated(plan)


# ── operators: formulas that the plan search uses, too, on matrices ──


def seq_tried(left: Number, right: Number, events: Number, clear: Number) -> Number:
    """Combinations that SEQ looks at: for each record of the right, the left ones that end
    between the window's begin and its start, which is 1 / m of a window if it has m events. A
    floor (NSEQ) keeps the share `clear` of them."""
    return left * right * clear / events


def seq_scan(weights: Weights, right: Number, tests: Number, tried: Number) -> Number:
    """The cost by binary search, without the output; `tests` includes the equalities."""
    return weights.probe * right + (weights.access + weights.test * tests) * tried


def seq_hash(
    weights: Weights, left: Number, right: Number, tests: Number, chance: Number
) -> Number:
    """The cost along hash chains, without the output. A chain has all records of one hash, also
    those that end too late."""
    walked = left * right * chance
    return weights.hash * (left + right) + (weights.chain + weights.test * tests) * walked


def conj_cost(
    weights: Weights, left: Number, right: Number, hashed: Number, tests: Number, chance: Number
) -> Number:
    """The cost of CONJ without the output: each record meets those of the other side in the window
    before it. With hashing, each record enters one table and is looked up in another."""
    tried = 2 * left * right * chance
    search = (2 * hashed * weights.hash + (1 - hashed) * weights.probe) * (left + right)
    step = hashed * weights.chain + (1 - hashed) * weights.access
    return search + (step + weights.test * tests) * tried


def join_estimate(
    weights: Weights,
    node: Seq | Conj,
    left: Flow,
    right: Flow,
    both: Flow,
    floors: Iterable[Forbidden] = (),
) -> Estimate:
    """SEQ or CONJ of two flows; `both` is what comes out. `floors`: NSEQ on the right."""
    chance = power(both.hashing - left.hashing - right.hashing)
    hashed, tests = len(node.equalities), float(len(node.predicates))
    if isinstance(node, Conj):
        tried = 2 * left.rows * right.rows * chance
        cost = conj_cost(weights, left.rows, right.rows, float(bool(hashed)), tests, chance)
    elif hashed and not node.scan:
        tried = left.rows * right.rows * chance
        cost = seq_hash(weights, left.rows, right.rows, tests, chance)
    else:
        load = sum(f.load for f in floors)
        share = clear(load, right.events + 1) if load else 1.0
        tried = seq_tried(left.rows, right.rows, float(right.events), share)
        cost = seq_scan(weights, right.rows, tests + hashed, tried)
    return Estimate(both.rows, tried, cost + weights.output * both.rows)


def nseq_estimate(weights: Weights, rows: float, met: Forbidden) -> Estimate:
    """The cost of NSEQ: back from each record to the nearest forbidden event, the first that is met
    or, with predicates, the first that satisfies them."""
    return _search(weights, rows, met, power(met.candidates), rows)


def neg_estimate(
    weights: Weights, rows: float, met: Forbidden, events: int, survivors: float
) -> Estimate:
    """The cost of NEG: it searches the gap up to the first forbidden event."""
    return _search(weights, rows, met, power(met.candidates) / events, survivors)


def _search(weights: Weights, rows: float, met: Met, reach: float, made: float) -> Estimate:
    steps = min(reach, power(-met.chance)) if met.tests else min(reach, 1.0)
    tried = rows * steps
    cost = _find(weights, rows, met) + _look(weights, met) * tried
    return Estimate(made, tried, cost + weights.output * made)


def kseq_estimate(
    weights: Weights, rows: float, met: Grouped, events: int, checks: int, made: float
) -> Estimate:
    """The cost of a closure: all candidates of each record's gap (N of Table 2); groups are written
    element by element."""
    tried = rows * power(met.candidates) / events
    cost = (
        _find(weights, rows, met)
        + _look(weights, met) * tried
        + weights.test * checks * rows
        + (weights.output + weights.element * met.size(events)) * made
    )
    return Estimate(made, tried, cost)


def _find(weights: Weights, rows: float, met: Met) -> float:
    """The cost of finding the first candidate."""
    if met.hashed:
        return weights.hash * (rows + power(met.candidates))
    return weights.probe * rows


def _look(weights: Weights, met: Met) -> float:
    """The cost of testing one candidate."""
    return (weights.chain if met.hashed else weights.access) + weights.test * met.tests


# ── plans ──


class Costing:
    """Flows and estimates of nodes, each made once."""

    def __init__(self, figures: Figures, weights: Weights) -> None:
        self.figures = figures
        self.weights = weights
        self.flows: dict[Node, Flow] = {}
        self.estimates: dict[Node, Estimate] = {}
        self._seen: dict[int, tuple[Node, Flow]] = {}  # to hash a tree is to walk it

    def cost(self, plan: Plan) -> float:
        """The cost of all operators of a plan of this query."""
        return sum(e.cost for e in self.estimated(plan).values())

    def estimated(self, plan: Plan) -> Mapping[Node, Estimate]:
        """The estimates of every distinct node of a plan of this query."""
        roots = dict.fromkeys(plan.alternatives)
        estimates = {node: self.estimate(node) for root in roots for node in walk(root)}
        for root in roots:
            made = estimates[root]
            # What a root makes is projected, and not kept in a buffer.
            saved = 0.0 if isinstance(root, LeafNode) else self.weights.output
            cost = made.cost + (self.weights.emit - saved) * made.rows
            estimates[root] = replace(made, cost=cost)
        return demanded(plan, self.flows, estimates, self.figures, self.weights)

    def estimate(self, node: Node) -> Estimate:
        self.flow(node)
        return self.estimates[node]

    def flow(self, node: Node) -> Flow:
        seen = self._seen.get(id(node))
        if seen is not None:
            return seen[1]
        flow = self.flows.get(node)
        if flow is None:
            flow, self.estimates[node] = self._node(node)
            self.flows[node] = flow
        self._seen[id(node)] = node, flow
        return flow

    def _node(self, node: Node) -> tuple[Flow, Estimate]:
        weights = self.weights
        match node:
            case LeafNode():
                flow = self.leaf(node)
                return flow, Estimate(flow.rows, flow.rows, weights.event * flow.rows)
            case Seq() | Conj():
                return self._join(node)
            case Nseq():
                flow = self.flow(node.input)
                return flow, nseq_estimate(weights, flow.rows, self._forbidden(node))
            case Neg():
                before, met = self.flow(node.input), self._forbidden(node)
                flow = before.attach(met)
                return flow, neg_estimate(weights, before.rows, met, flow.events, flow.rows)
            case Kseq():
                before = self.flow(node.input)
                tests = (*node.predicates, *node.running)
                group = self.grouped(node.element, node.equalities, tests, node.quantifier)
                flow = before.attach(group, chance=self.chances(node.checks))
                return flow, kseq_estimate(
                    weights, before.rows, group, flow.events, len(node.checks), flow.rows
                )
            case Run():
                return self._run(node)
            case Filter():
                before = self.flow(node.input)
                flow = before.attach(chance=self.chances(node.predicates))
                cost = weights.test * len(node.predicates) * before.rows
                return flow, Estimate(flow.rows, before.rows, cost + weights.output * flow.rows)
            case Stacks():
                return stacks_estimate(self, node)
            case Automaton():
                return automaton_estimate(self, node)
            case _:
                assert_never(node)

    def leaf(self, leaf: LeafNode) -> Flow:
        events = self.figures.events(leaf)
        parts = [part.get(leaf.variable) for part in self.figures.key]
        values = [0.0 if p is None else self.figures.values(leaf.variable, p) for p in parts]
        return Flow(1, events, events, tuple((v, v) for v in values))

    def chances(self, predicates: Iterable[Expr]) -> float:
        return sum(self.figures.chance(p) for p in predicates)

    def edge(self, left: Attribute, right: Attribute) -> Edge:
        places = sorted([(left.variable, left.name), (right.variable, right.name)])
        chance = self.figures.chance(Call("=", (left, right), Type.BOOLEAN))
        return Edge(chance, places[0], places[1])

    def _join(self, node: Seq | Conj) -> tuple[Flow, Estimate]:
        left, right = self.flow(node.left), self.flow(node.right)
        edges = [
            self.edge(e.left, e.right)
            for e in node.equalities
            if not self.figures.is_key(e.left, e.right)
        ]
        both = sequence(left, right) if isinstance(node, Seq) else conjunction(left, right)
        floors = [self._forbidden(n) for n in _bounds(node.right)]
        ceilings = [self._forbidden(n) for n in _bounds(node.left)]
        both = both.attach(*floors, *ceilings, chance=self.chances(node.predicates), edges=edges)
        return both, join_estimate(self.weights, node, left, right, both, floors)

    def _forbidden(self, node: Nseq | Neg) -> Forbidden:
        return self.forbidden(node.negated, node.equalities, node.predicates)

    def _run(self, node: Run) -> tuple[Flow, Estimate]:
        leaf = self.flow(node.element)
        flow = leaf.attach(chance=self.chances((*node.running, *node.checks)))
        tried = leaf.rows * node.count
        tests = len(node.running) * tried + len(node.checks) * leaf.rows
        search = self.weights.hash if node.key else 0.0
        cost = (
            (search + self.weights.element * node.count) * leaf.rows
            + self.weights.access * tried
            + self.weights.test * tests
            + self.weights.output * flow.rows
        )
        return flow, Estimate(flow.rows, tried, cost)

    def forbidden(
        self, negated: Node, equalities: Iterable[Equality], tests: tuple[Expr, ...]
    ) -> Forbidden:
        """The search of a negation."""
        return Forbidden(*self._met(negated, equalities, tests))

    def grouped(
        self,
        element: LeafNode,
        equalities: Iterable[Equality],
        tests: tuple[Expr, ...],
        quantifier: Quantifier,
    ) -> Grouped:
        """The search of a closure."""
        return Grouped(*self._met(element, equalities, tests), quantifier)

    def _met(
        self, node: Node, equalities: Iterable[Equality], tests: tuple[Expr, ...]
    ) -> tuple[float, float, int, bool]:
        hashes = [self._agree(e.left, e.right) for e in equalities]
        candidates = self.flow(node).log_rows + sum(hashes)
        return candidates, self.chances(tests), len(tests), bool(hashes)

    def _agree(self, left: Attribute, right: Attribute) -> float:
        """log of the share of the second's events that a record finds under its hash. Of the key
        only the second's values count, so that it doesn't matter which variable speaks for a
        record."""
        if self.figures.is_key(left, right):
            return -self.figures.values(right.variable, right.name)
        return self.edge(left, right).chance


def _bounds(node: Node) -> Iterable[Nseq]:
    """The negations whose bounds the records of an input carry."""
    while isinstance(node, Nseq):
        yield node
        node = node.input
