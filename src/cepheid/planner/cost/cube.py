"""The cost of each join of two parts of a pattern, before any tree is built.

A part is a set of the pattern's bound events: an interval of a sequence, a subset of a
conjunction. Whatever tree makes it, it has the same records (`flows`), and `build` attaches the
same predicates, closures and negations to it. So a join of two parts evaluates what is inside the
whole and inside neither part: the thesis' rule (3.5.4) that a predicate [start, end] belongs to
the root r of an interval iff it lies inside and start < r <= end, as a difference of what is
inside, which also holds for closures, negations and conjunctions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cepheid.algebra.expressions import Expr, variables
from cepheid.algebra.patterns import Leaf, Pattern
from cepheid.plan.nodes import Conj, Node, Seq, bound
from cepheid.planner.cost.flows import (
    Edge,
    Flow,
    Forbidden,
    Grouped,
    clear,
    conjunction,
    power,
    sequence,
)
from cepheid.planner.cost.plan_cost import (
    Costing,
    conj_cost,
    kseq_estimate,
    neg_estimate,
    nseq_estimate,
    seq_hash,
    seq_scan,
    seq_tried,
)
from cepheid.planner.trees.build import negated_node
from cepheid.planner.trees.gaps import core
from cepheid.planner.trees.parts import Negated, Parts, PendingClosure

Floats = NDArray[np.float64]
Splits = Callable[[int], tuple[Floats, NDArray[np.int64]]]
Kind = type[Seq] | type[Conj]

_WIDEST = 230.0


@dataclass(frozen=True, slots=True)
class PatternSpan:
    """A part of the pattern: sets are bits, of variables, of predicates, of what is attached."""

    flow: Flow
    plain: Flow  # without anything inside
    core: int
    bound: int
    predicates: int
    attached: int
    tests: int
    equalities: int


@dataclass(frozen=True, slots=True)
class _Predicate:
    reads: int
    chance: float
    edge: Edge | None


@dataclass(frozen=True, slots=True)
class _Closure:
    met: Grouped
    needs: int
    binds: int


@dataclass(frozen=True, slots=True)
class _Negation:
    met: Forbidden
    needs: int
    outer: int
    between: int  # the two items whose join can have it as NSEQ; 0 for none


class Spans:
    """The parts of one alternative."""

    def __init__(self, parts: Parts, costing: Costing) -> None:
        self.parts = parts
        self.costing = costing
        self.bits: dict[str, int] = {}
        self.predicates = [self._predicate(p) for p in parts.predicates if variables(p)]
        self.closures = [self._closure(g) for g in parts.groups if not g.late]
        self.negations = [self._negation(n) for n in parts.negated if not n.late]

    @property
    def hangs(self) -> bool:
        """Whether joins have closures or negations to evaluate."""
        return bool(self.closures or self.negations)

    def bit(self, variable: str) -> int:
        return self.bits.setdefault(variable, 1 << len(self.bits))

    def mask(self, names: frozenset[str]) -> int:
        return sum(self.bit(name) for name in names)

    def _predicate(self, predicate: Expr) -> _Predicate:
        read = variables(predicate)
        equality = self.parts.equality(predicate, read, read)
        if equality is None:
            return _Predicate(self.mask(read), self.costing.figures.chance(predicate), None)
        return _Predicate(self.mask(read), 0.0, self.costing.edge(equality.left, equality.right))

    def _closure(self, group: PendingClosure) -> _Closure:
        element = self.parts.leaf(group.name)
        keys, filters = self.parts.split(group.needs, (group.name,), group.filters)
        tests = (*filters, *group.running)
        met = self.costing.grouped(element, keys, tests, group.quantifier)
        return _Closure(met, self.mask(group.needs), self.bit(group.name))

    def _negation(self, negated: Negated) -> _Negation:
        inner: Node = negated_node(self.parts, negated)
        keys, rest = self.parts.split(negated.needs, bound(inner), negated.predicates)
        met = self.costing.forbidden(inner, keys, rest)
        gap = frozenset((*negated.gap.before, *negated.gap.after))
        between = self.mask(gap) if negated.simple else 0
        return _Negation(met, self.mask(negated.needs), self.mask(negated.outer), between)

    # ── parts ──

    def leaf(self, pattern: Leaf) -> PatternSpan:
        """One event. Conditions on it alone that aren't its filters wait for a join."""
        flow = self.costing.leaf(self.parts.leaf(pattern.variable))
        mask = self.bit(pattern.variable)
        return PatternSpan(flow, flow, mask, mask, 0, 0, 0, 0)

    def segment(self, pattern: Pattern) -> PatternSpan:
        """The matches of an automaton."""
        flow = self.costing.flow(self.parts.segments[pattern])
        mask = self.mask(frozenset(core(pattern)))
        return PatternSpan(flow, flow, mask, mask, 0, 0, 0, 0)

    def whole(self, kind: Kind, left: PatternSpan, right: PatternSpan) -> PatternSpan:
        """The join of both parts, with everything attached inside."""
        plain = (sequence if kind is Seq else conjunction)(left.plain, right.plain)
        both = left.core | right.core
        have, attached = self._groups(both)
        negations = [
            (1 << i, n.met)
            for i, n in enumerate(self.negations, len(self.closures))
            if not n.needs & ~have
        ]
        inside = [(1 << i, p) for i, p in enumerate(self.predicates) if not p.reads & ~have]
        edges = [p.edge for _, p in inside if p.edge is not None]
        flow = plain.attach(
            *(c.met for i, c in enumerate(self.closures) if attached >> i & 1),
            *(met for _, met in negations),
            chance=sum(p.chance for _, p in inside),
            edges=edges,
        )
        return PatternSpan(
            flow,
            plain,
            both,
            have,
            sum(bit for bit, _ in inside),
            attached | sum(bit for bit, _ in negations),
            len(inside) - len(edges),
            len(edges) + (plain.events - 1) * len(self.parts.query.key),
        )

    def _groups(self, have: int) -> tuple[int, int]:
        """Everything that is bound together with these events, and the closures among it."""
        attached = 0
        for index, _ in self._attachable(have, 0):
            attached |= 1 << index
            have |= self.closures[index].binds
        return have, attached

    def _attachable(self, have: int, attached: int) -> Iterator[tuple[int, _Closure]]:
        """Closures, each as soon as its neighbors are bound, the first ones first (as `build`)."""
        waiting = [(i, c) for i, c in enumerate(self.closures) if not attached >> i & 1]
        while next_ := next((w for w in waiting if not w[1].needs & ~have), None):
            waiting.remove(next_)
            have |= next_[1].binds
            yield next_

    # ── joins ──

    def join(
        self, kind: Kind, left: PatternSpan, right: PatternSpan, whole: PatternSpan, at: int = 0
    ) -> float:
        """The cost of joining two parts, and of all that hangs on the join. `at`, in a sequence:
        the bound events of the two items that meet there."""
        weights = self.costing.weights
        events, rows = whole.flow.events, whole.flow.log_rows
        equalities = whole.equalities - left.equalities - right.equalities
        chance = power(whole.flow.hashing - left.flow.hashing - right.flow.hashing)
        tests = whole.tests - left.tests - right.tests
        cost, load, rest = self._push(kind, left, right, whole, at)
        steps = list(self._closures(left, right, whole)) if self.closures else []
        # What is made before the closures and negations that are evaluated here.
        rows -= sum(c.met.factor(events) + chances for c, _, chances in steps)
        rows -= sum(n.met.factor(events) for n in rest)
        tests -= sum(checks for _, checks, _ in steps)
        cost += self._join(kind, left, right, equalities, chance, load, tests)
        cost += weights.output * power(rows)
        for closure, checks, chances in steps:
            before = power(rows)
            rows += closure.met.factor(events) + chances
            cost += kseq_estimate(weights, before, closure.met, events, checks, power(rows)).cost
        for negation in rest:
            before = power(rows)
            rows += negation.met.factor(events)
            cost += neg_estimate(weights, before, negation.met, events, power(rows)).cost
        return cost

    def _join(
        self,
        kind: Kind,
        left: PatternSpan,
        right: PatternSpan,
        equalities: int,
        chance: float,
        load: float,
        tests: int,
    ) -> float:
        weights, a, b = self.costing.weights, left.flow.rows, right.flow.rows
        if kind is Conj:
            return conj_cost(weights, a, b, float(equalities > 0), float(tests), chance)
        events = right.flow.events
        share = clear(load, events + 1) if load else 1.0
        tried = seq_tried(a, b, float(events), share)
        scan = seq_scan(weights, b, float(tests + equalities), tried)
        if not equalities:
            return scan
        hashing = seq_hash(weights, a, b, float(tests), chance)
        return min(scan, hashing) if self.costing.figures.scans else hashing

    def _closures(
        self, left: PatternSpan, right: PatternSpan, whole: PatternSpan
    ) -> Iterator[tuple[_Closure, int, float]]:
        """Closures that are evaluated at the join, in order; of each, how many predicates check
        its groups and how likely these are."""
        have = left.bound | right.bound
        fresh = [
            p
            for i, p in enumerate(self.predicates)
            if (whole.predicates & ~left.predicates & ~right.predicates) >> i & 1
            and p.reads & ~have
        ]
        for _, closure in self._attachable(have, left.attached | right.attached):
            have |= closure.binds
            checks = [p for p in fresh if not p.reads & ~have]
            fresh = [p for p in fresh if p.reads & ~have]
            yield closure, len(checks), sum(p.chance for p in checks)

    def _push(
        self, kind: Kind, left: PatternSpan, right: PatternSpan, whole: PatternSpan, at: int
    ) -> tuple[float, float, list[_Negation]]:
        """The cost of NSEQ where `build` makes one, the events per window that set floors, and the
        remaining negations."""
        weights = self.costing.weights
        cost, load, ceiling = 0.0, 0.0, False
        rest: list[_Negation] = []
        new = whole.attached & ~left.attached & ~right.attached
        for i, negation in enumerate(self.negations, len(self.closures)):
            if not new >> i & 1:
                continue
            met = negation.met
            if kind is Conj or negation.between != at:
                rest.append(negation)
            elif not negation.outer & ~right.bound:
                cost += nseq_estimate(weights, right.flow.rows, met).cost
                load += met.load
            elif not negation.outer & ~left.bound and not ceiling:
                cost += nseq_estimate(weights, left.flow.rows, met).cost
                ceiling = True
            else:
                rest.append(negation)
        return cost, load, rest

    # ── many joins at once ──

    def intervals(self, items: Sequence[PatternSpan]) -> tuple[list[list[PatternSpan]], Floats]:
        """For a sequence: the spans from i to j, and at [i, j, r] the cost of joining the spans
        from i to r - 1 and from r to j."""
        n = len(items)
        spans = [[item] * n for item in items]
        for first in range(n):
            for last in range(first + 1, n):
                spans[first][last] = self.whole(Seq, spans[first][last - 1], items[last])
        facts = _facts(spans)
        i, j, r = np.ogrid[:n, :n, :n]
        left, right, whole = facts[:, i, np.maximum(r - 1, 0)], facts[:, r, j], facts[:, i, j]
        costs = self._costs(Seq, left, right, whole)
        inside = (i < r) & (r <= j)
        if self.hangs:
            for a, b, c in np.argwhere(inside & (whole[5] > left[5] + right[5])):
                meeting = items[c - 1].core | items[c].core
                costs[a, b, c] = self.join(Seq, spans[a][c - 1], spans[c][b], spans[a][b], meeting)
        costs[~inside] = np.inf
        return spans, costs

    def subsets(self, items: Sequence[PatternSpan]) -> tuple[list[PatternSpan], Splits]:
        """For a conjunction: the spans by subset, and a function that returns the costs of all
        splits of a subset in two, each with the half that has the subset's first item."""
        spans = [items[0]] * (1 << len(items))
        for subset in range(1, 1 << len(items)):
            low = subset & -subset
            first, rest = items[low.bit_length() - 1], subset ^ low
            spans[subset] = self.whole(Conj, first, spans[rest]) if rest else first
        facts = _facts([spans])[:, 0]
        every = np.arange(1 << len(items))

        def costs(subset: int) -> tuple[Floats, NDArray[np.int64]]:
            low = subset & -subset
            halves = every[:subset]
            halves = halves[((halves & ~subset) == 0) & ((halves & low) != 0)]
            left, right = facts[:, halves], facts[:, subset ^ halves]
            whole = facts[:, subset : subset + 1]
            costs = self._costs(Conj, left, right, whole)
            if self.hangs:
                for k in np.flatnonzero(whole[5] > left[5] + right[5]):
                    half = int(halves[k])
                    costs[k] = self.join(Conj, spans[half], spans[subset ^ half], spans[subset])
            return costs, halves

        return spans, costs

    def _costs(self, kind: Kind, left: Floats, right: Floats, whole: Floats) -> Floats:
        """`join` without anything attached, for arrays of `_facts`."""
        weights = self.costing.weights
        equalities = whole[4] - left[4] - right[4]
        chance = np.exp(np.clip(whole[3] - left[3] - right[3], -_WIDEST, _WIDEST))
        tests = whole[2] - left[2] - right[2]
        if kind is Seq:
            tried = seq_tried(left[0], right[0], right[1], np.float64(1.0))
            scan = seq_scan(weights, right[0], tests + equalities, tried)
            hashing = seq_hash(weights, left[0], right[0], tests, chance)
            best = np.minimum(scan, hashing) if self.costing.figures.scans else hashing
            cost = np.where(equalities > 0, best, scan)
        else:
            hashed = (equalities > 0).astype(np.float64)
            cost = conj_cost(weights, left[0], right[0], hashed, tests, chance)
        costs: Floats = cost + weights.output * whole[0]
        return costs


def _facts(table: Sequence[Sequence[PatternSpan]]) -> Floats:
    """For each span: rows, events, tests, log of the hashed selectivity, equalities, attached."""
    return np.array(
        [
            [[s.flow.rows for s in row] for row in table],
            [[s.flow.events for s in row] for row in table],
            [[s.tests for s in row] for row in table],
            [[s.flow.hashing for s in row] for row in table],
            [[s.equalities for s in row] for row in table],
            [[s.attached.bit_count() for s in row] for row in table],
        ],
        dtype=np.float64,
    )
