"""From a bound query and statistics to the plan that is expected to be cheapest.

For each alternative: which negations are filters on top (ZStream 4.4.2), the tree (`trees`), and
how results move. Whatever the caller has chosen is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import assert_never

from cepheid.algebra.patterns import Negation, walk
from cepheid.algebra.query import BoundQuery
from cepheid.plan.nodes import Leaf, Node, Plan, Seq, waits
from cepheid.plan.nodes import walk as walk_plan
from cepheid.planner.alternatives import Alternative, alternatives
from cepheid.planner.build import build, shape_of
from cepheid.planner.choice import Choice, Propagation
from cepheid.planner.cost import Costing, cost_of, estimate
from cepheid.planner.cube import Spans
from cepheid.planner.demand import triggers
from cepheid.planner.figures import figures_of
from cepheid.planner.flows import power
from cepheid.planner.gaps import core
from cepheid.planner.parts import Parts
from cepheid.planner.plan import assemble, require_supported
from cepheid.planner.planned import Candidate, Planned
from cepheid.planner.propagation import choose, eligible, propagated
from cepheid.planner.shapes import LEFT_DEEP, RIGHT_DEEP, Branch, Shape, parse_shape
from cepheid.planner.trees import cheapest
from cepheid.planner.weights import calibrated
from cepheid.statistics import Statistics

AUTO = "auto"

MOST_LOSERS = 5
MOST_NEGATIONS = 4
"""Up to so many, every subset of an alternative's negations is tried on top."""

MOST_PROPAGATED = 8
"""With more alternatives, all of them are lazy: shared operators aren't pulled from anyway."""

WORTH_PULLING = 0.9
"""What pull must lower the cost to: below lies what the model can't tell apart."""


def search(
    query: BoundQuery,
    statistics: Statistics,
    *,
    plan: str = AUTO,
    negation: str = AUTO,
    propagation: str = AUTO,
) -> Planned:
    """The cheapest plan, or the one that the caller has chosen, and some that lost."""
    require_supported(query)
    searching = _Search(query, statistics, negation, propagation)
    shape = None if plan == AUTO else searching.forced(plan)
    candidates = searching.candidates(shape)
    winner = min(candidates, key=lambda c: c.cost) if shape is None else candidates[0]
    losers = sorted((c for c in candidates if c is not winner), key=lambda c: c.cost)
    made = searching.plan(winner.choices)
    return Planned(
        made,
        winner,
        estimate(made, statistics),
        tuple(losers[:MOST_LOSERS]),
        statistics,
        forced=(plan, negation, propagation) != (AUTO, AUTO, AUTO),
    )


def propagation_of(plan: Plan, root: Node, statistics: Statistics) -> Propagation:
    """How the results of one alternative of a plan should move.

    Pull where triggers are so rare that much of what is below is never asked for. Pass-down
    where, furthermore, f >= q * d * λ (appendix A): the time between triggers against the share
    of the window's events that one of them accepts.
    """
    pulls = any(isinstance(n, Seq) and not isinstance(n.left, Leaf) for n in walk_plan(root))
    if not pulls or waits(root):
        return "lazy"
    figures, weights = figures_of(plan, statistics), calibrated()

    def cost(mode: Propagation) -> float:
        moved = propagated(root, mode, plan.variables, lambda p: power(figures.chance(p)))
        return cost_of(replace(plan, alternatives=(moved,)), statistics)

    lazy, pull = cost("lazy"), cost("pull")
    best = choose(eligible(root, plan.variables), lambda p: power(figures.chance(p)))
    if best is not None:
        right = Costing(figures, weights).flow(best.seq.right)
        accepted = weights.pass_down * power(figures.chance(best.predicate))
        if 1 / triggers(right) >= accepted and cost("pass-down") < min(pull, WORTH_PULLING * lazy):
            return "pass-down"
    return "pull" if pull < WORTH_PULLING * lazy else "lazy"


class _Search:
    def __init__(
        self, query: BoundQuery, statistics: Statistics, negation: str, propagation: str
    ) -> None:
        self.query = query
        self.statistics = statistics
        self.negation = negation
        self.propagation = propagation
        self.found = alternatives(query)
        self.costing = Costing(figures_of(query, statistics), calibrated())

    def forced(self, text: str) -> Shape:
        if text in (LEFT_DEEP, RIGHT_DEEP):
            return text
        bound = dict.fromkeys(v for found in self.found for v in core(found.pattern))
        return parse_shape(text, tuple(bound))

    def candidates(self, shape: Shape | None) -> list[Candidate]:
        """Plans with their cost, without repetition; the forced one first, if there is one."""
        ways = [self.ways(alternative) for alternative in self.found]
        plans: dict[tuple[Choice, ...], None] = {}
        if shape is not None:
            plans[tuple(self.placed(a, shape) for a in self.found)] = None
        plans[tuple(w[0] for w in ways)] = None
        for style in (LEFT_DEEP, RIGHT_DEEP):
            styled = (
                Choice(_styled(a, style), w[0].top) for a, w in zip(self.found, ways, strict=True)
            )
            plans[tuple(styled)] = None
        if len(ways) == 1:
            plans.update(dict.fromkeys((way,) for way in ways[0][1:]))
        return [self.candidate(choices) for choices in plans]

    def candidate(self, choices: tuple[Choice, ...]) -> Candidate:
        """With its cost; results move as they should, or as the caller says."""
        plan = assemble(self.query, self.found, choices)
        choices = tuple(
            replace(choice, propagation=self.moved(plan, root))
            for choice, root in zip(choices, plan.alternatives, strict=True)
        )
        cost = cost_of(self.plan(choices), self.statistics)
        return Candidate(_name(self.found, choices), choices, cost)

    def moved(self, plan: Plan, root: Node) -> Propagation:
        match self.propagation:
            case "push" | "lazy" | "pull" | "pass-down":
                return self.propagation
            case _ if len(self.found) > MOST_PROPAGATED:
                return "lazy"
            case _:
                return propagation_of(plan, root, self.statistics)

    def plan(self, choices: Sequence[Choice]) -> Plan:
        plan = assemble(self.query, self.found, choices)
        figures = self.costing.figures
        roots = tuple(
            propagated(root, choice.propagation, plan.variables, lambda p: power(figures.chance(p)))
            for root, choice in zip(plan.alternatives, choices, strict=True)
        )
        eager = any(choice.propagation == "push" for choice in choices)
        return replace(plan, alternatives=roots, eager=eager)

    # ── one alternative ──

    def ways(self, alternative: Alternative) -> list[Choice]:
        """The cheapest choice for an alternative, then other trees, cheapest first."""
        found: dict[frozenset[int], list[Choice]] = {}

        def attempt(top: frozenset[int]) -> float:
            found[top] = self.trees(alternative, top)
            return self.cost(alternative, found[top][0])

        ranked = _ranked(*self.negations(alternative), attempt)
        best, *others = (found[top] for top in ranked)
        return [best[0], *(way[0] for way in others[:2]), *best[1 : MOST_LOSERS + 1]]

    def trees(self, alternative: Alternative, top: frozenset[int]) -> list[Choice]:
        if not core(alternative.pattern):
            return [Choice(LEFT_DEEP, top)]
        parts = Parts(self.query, alternative, top)
        tree = cheapest(Spans(parts, self.costing), alternative.pattern)
        return [Choice(tree.shape, top), *(Choice(shape, top) for _, shape in tree.others)]

    def placed(self, alternative: Alternative, shape: Shape) -> Choice:
        """The given tree, with its negations where they cost least."""
        ranked = _ranked(
            *self.negations(alternative),
            lambda top: self.cost(alternative, Choice(shape, top)),
        )
        return Choice(shape, ranked[0])

    def cost(self, alternative: Alternative, choice: Choice) -> float:
        root = build(self.query, alternative, choice)
        self.costing.flow(root)
        return sum(self.costing.estimates[node].cost for node in set(walk_plan(root)))

    def negations(self, alternative: Alternative) -> tuple[frozenset[int], tuple[int, ...]]:
        """Those that are on top anyway, and those that might be: NSEQ is possible for them."""
        if self.negation == "push":
            return frozenset(), ()
        if self.negation == "top":
            every = (p.index for p in walk(self.query.pattern) if isinstance(p, Negation))
            return frozenset(every), ()
        negated = Parts(self.query, alternative, frozenset()).negated
        return frozenset(), tuple(dict.fromkeys(n.index for n in negated if n.simple))


def _ranked(
    fixed: frozenset[int], free: tuple[int, ...], attempt: Callable[[frozenset[int]], float]
) -> list[frozenset[int]]:
    """Sets of negations on top, cheapest first: every one, or, if there are too many, none, all,
    and from the better of both what single changes improve."""
    costs: dict[frozenset[int], float] = {}

    def cost(top: frozenset[int]) -> float:
        if top not in costs:
            costs[top] = attempt(fixed | top)
        return costs[top]

    sizes = range(len(free) + 1) if len(free) <= MOST_NEGATIONS else (0, len(free))
    best = min((frozenset(c) for n in sizes for c in combinations(free, n)), key=cost)
    if len(free) > MOST_NEGATIONS:
        for index in free:
            best = min(best, best ^ {index}, key=cost)
    return [fixed | top for top in sorted(costs, key=cost)]


# ── names ──


def _styled(alternative: Alternative, style: str) -> Shape:
    return shape_of(alternative.pattern, style) if core(alternative.pattern) else style


def _name(found: Sequence[Alternative], choices: Sequence[Choice]) -> str:
    """As a person would call it: by its style, by its tree, and by what is unusual."""
    names = {_shape_name(a, c.shape) for a, c in zip(found, choices, strict=True)}
    name = names.pop() if len(names) == 1 else "each branch its own tree"
    if any(choice.top for choice in choices):
        name += ", negation on top"
    moves = {choice.propagation for choice in choices} - {"lazy"}
    return ", ".join([name, *sorted(moves)])


def _shape_name(alternative: Alternative, shape: Shape) -> str:
    for style in (LEFT_DEEP, RIGHT_DEEP):
        if shape in (style, _styled(alternative, style)):
            return style
    return _shape_text(shape)


def _shape_text(shape: Shape) -> str:
    match shape:
        case str():
            return shape if re.fullmatch(r"\w+", shape) else f"`{shape}`"
        case Branch():
            return f"({_shape_text(shape.left)} {_shape_text(shape.right)})"
        case _:
            assert_never(shape)
