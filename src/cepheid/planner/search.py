"""From a bound query and statistics to the plan that is expected to be cheapest.

For each alternative: which negations are filters on top (ZStream 4.4.2), the tree
(`cheapest_tree`), and how results move. Whatever the caller has chosen is kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final, Literal, assert_never

from cepheid.algebra.expressions import Expr
from cepheid.algebra.patterns import Negation, leaves, walk
from cepheid.algebra.query import BoundQuery
from cepheid.errors import PlanError
from cepheid.options import EngineChoice, Limit
from cepheid.plan.nodes import LeafNode, Node, Plan, Seq, waits
from cepheid.plan.nodes import walk as walk_plan
from cepheid.planner.alternatives import (
    MOST_ALTERNATIVES,
    Alternative,
    alternatives,
    count_alternatives,
)
from cepheid.planner.automata.automaton_needs import needs_automaton
from cepheid.planner.automata.automaton_plans import automaton_plan, plan_of
from cepheid.planner.automata.chains import chain
from cepheid.planner.automata.segments import mixed
from cepheid.planner.choice import Choice, Propagation
from cepheid.planner.cost.cube import Spans
from cepheid.planner.cost.demand_cost import pulled_share, triggers
from cepheid.planner.cost.figures import figures_of
from cepheid.planner.cost.flows import power
from cepheid.planner.cost.plan_cost import Costing, cost_of, estimate
from cepheid.planner.cost.weights import calibrated
from cepheid.planner.plan import require_trees
from cepheid.planner.planned import Candidate, Planned
from cepheid.planner.trees.build import build, shape_of
from cepheid.planner.trees.cheapest_tree import cheapest
from cepheid.planner.trees.gaps import core
from cepheid.planner.trees.lookups import cheapest_lookups, with_lookups
from cepheid.planner.trees.parts import Parts
from cepheid.planner.trees.propagation import choose, eligible, propagated
from cepheid.planner.trees.shapes import LEFT_DEEP, RIGHT_DEEP, Shape, ShapePair, parse_shape
from cepheid.statistics import Statistics

AUTO: Final = "auto"
STACKS = "stacks"
AUTOMATON = "automaton"

MOST_LOSERS = 5

OTHER_TREES = MOST_LOSERS - 2
"""The two deep trees are always among the losers."""

MOST_SUBSETS = 6400
"""Every subset of m negations among n variables is tried on top if 2^m n² is at most this: four of
them in a pattern of twenty."""

MOST_JOINED = 40
"""With more events than this, no tree is searched for, since that takes more than a second: the
tree is left-deep, and lazy."""

MOST_BRANCHES = 8
"""With more alternatives than this, all are lazy: shared operators aren't pulled from anyway."""

MOST_MOVED = 3
"""For this many of the cheapest trees, the search tries how results may move; also for the
left-deep tree, from which most can be pulled."""

WORTH_PULLING = 0.9
"""Pull must lower the cost to this share, and pass-down that of pull: the model can't be trusted
with smaller gains, such as that pass-down starts anew in every round."""


def search(
    query: BoundQuery,
    statistics: Statistics,
    *,
    engine: EngineChoice = AUTO,
    plan: str = AUTO,
    negation: str = AUTO,
    propagation: Propagation | Literal["auto"] = AUTO,
    limit: Limit | None = None,
    brief: bool = False,
) -> Planned:
    """The cheapest plan, or the one that the caller has chosen, and some that lost. With `brief`,
    plans that nobody expects to win aren't costed: a run searches while events wait.

    Trees and stacks run what they can; what they can't, or only in too many alternatives,
    automata run, alone or below trees.
    """
    forced = (engine, plan, negation, propagation) != (AUTO, AUTO, AUTO, AUTO)
    if plan != AUTO and engine == "nfa":
        raise PlanError(f"plan={plan!r} is a tree of joins, but engine='nfa' asks for automata")
    if plan != AUTO or engine == "tree":
        require_trees(query)
    first = costing = None
    if needs_automaton(query.pattern) is not None:
        ranked = _with_automata(query, statistics, negation, mix=engine == AUTO)
        forced = False
    elif plan == AUTO and engine != "tree" and count_alternatives(query) > MOST_ALTERNATIVES:
        ranked, forced = [_automaton(query, statistics)], False
    else:
        searching = _Search(
            query, statistics, negation, propagation, engine, alternatives(query), brief
        )
        costing = searching.costing
        shape = None if plan == AUTO else searching.forced(plan)
        ranked = searching.candidates(shape)
        if not ranked:
            ranked = [_automaton(query, statistics)]
        first = None if shape is None else ranked[0]
    ranked = sorted(ranked, key=lambda c: c[0].cost)
    winner, made = first or ranked[0]
    losers = [loser for loser, _ in ranked if loser is not winner]
    # Everybody knows the deep trees: they are always among what the winner is compared with.
    losers.sort(key=lambda c: not c.name.startswith((LEFT_DEEP, RIGHT_DEEP, STACKS)))
    made = replace(made, limit=limit)
    estimates = estimate(made, statistics) if costing is None else costing.estimated(made)
    return Planned(
        made,
        winner,
        estimates,
        tuple(sorted(losers[:MOST_LOSERS], key=lambda c: c.cost)),
        statistics,
        forced,
    )


def _automaton(query: BoundQuery, statistics: Statistics) -> tuple[Candidate, Plan]:
    plan = automaton_plan(query)
    return Candidate(AUTOMATON, (), cost_of(plan, statistics)), plan


def _with_automata(
    query: BoundQuery, statistics: Statistics, negation: str, mix: bool
) -> list[tuple[Candidate, Plan]]:
    """One automaton for all, and where parts can have one of their own, trees over those. Their
    results aren't pulled: an automaton decides by itself what it makes."""
    candidates = [_automaton(query, statistics)]
    mixed_alternative = mixed(query) if mix else None
    if mixed_alternative is not None:
        searching = _Search(query, statistics, negation, "lazy", "tree", (mixed_alternative,))
        candidates += [
            (replace(candidate, name=f"automata in trees: {candidate.name}"), plan)
            for candidate, plan in searching.candidates(None)
        ]
    return candidates


def propagation_of(
    plan: Plan, root: Node, statistics: Statistics, costing: Costing | None = None
) -> Propagation:
    """How the results of one alternative of a plan should move.

    Pull where triggers are so rare that much of what is below is never demanded. Pass-down
    where, furthermore, f >= q * d * λ (appendix A): the time between triggers against the share
    of the window's events that one of them accepts.
    """
    costing = costing or Costing(figures_of(plan, statistics), calibrated())
    if waits(root) or not any(_rarely_pulled(node, costing) for node in walk_plan(root)):
        return "lazy"

    def chance(predicate: Expr) -> float:
        return power(costing.figures.chance(predicate))

    def cost(mode: Propagation) -> float:
        moved = propagated(root, mode, plan.variables, chance)
        return costing.cost(replace(plan, alternatives=(moved,)))

    lazy, pull = cost("lazy"), cost("pull")
    least = WORTH_PULLING * lazy
    best = choose(eligible(root, plan.variables), chance)
    if best is not None:
        accepted = costing.weights.pass_down * chance(best.predicate)
        often = triggers(costing.flow(best.seq.right))
        if often * accepted <= 1 and cost("pass-down") < min(WORTH_PULLING * pull, least):
            return "pass-down"
    return "pull" if pull < least else "lazy"


def _rarely_pulled(node: Node, costing: Costing) -> bool:
    """Whether pull can avoid some of a SEQ's left records."""
    if not isinstance(node, Seq) or isinstance(node.left, LeafNode):
        return False
    return pulled_share(costing.flow(node.left), costing.flow(node.right)) < WORTH_PULLING


class _Search:
    def __init__(
        self,
        query: BoundQuery,
        statistics: Statistics,
        negation: str,
        propagation: Propagation | Literal["auto"],
        engine: EngineChoice,
        alternatives: Sequence[Alternative],
        brief: bool = False,
    ) -> None:
        self.query = query
        self.statistics = statistics
        self.negation = negation
        self.propagation = propagation
        self.engine = engine
        self.alternatives = alternatives
        self.brief = brief
        self.many = any(
            len(core(alternative.pattern)) > MOST_JOINED for alternative in alternatives
        )
        self.costing = Costing(figures_of(query, statistics), calibrated())
        self._parts: dict[tuple[int, frozenset[int]], Parts] = {}

    def parts(self, alternative: Alternative, top: frozenset[int]) -> Parts:
        """What hangs on the alternative's trees; made once, since many trees are compared."""
        place = id(alternative), top
        if place not in self._parts:
            self._parts[place] = Parts(self.query, alternative, top)
        return self._parts[place]

    def forced(self, text: str) -> Shape:
        if text in (LEFT_DEEP, RIGHT_DEEP):
            return text
        bound = dict.fromkeys(
            v for alternative in self.alternatives for v in core(alternative.pattern)
        )
        present = set(leaves(self.query.pattern))
        return parse_shape(text, tuple(bound), self.query.variables.keys() - present)

    def candidates(self, shape: Shape | None) -> list[tuple[Candidate, Plan]]:
        """Plans with their cost, without repetition; the forced one first, if there is one. None
        if only stacks are wanted and the pattern has something else."""
        if self.engine == "nfa":
            chosen = [self.stacks(alternative) for alternative in self.alternatives]
            only = [choice for choice in chosen if choice is not None]
            return [self.candidate(tuple(only))] if len(only) == len(chosen) else []
        ways = [self.ways(alternative) for alternative in self.alternatives]
        plans: list[tuple[Choice, ...]] = []
        if shape is not None:
            plans.append(tuple(self.placed(a, _styled(a, shape)) for a in self.alternatives))
        plans.append(tuple(w[0] for w in ways))
        for style in (LEFT_DEEP,) if self.brief else (LEFT_DEEP, RIGHT_DEEP):
            pairs = zip(self.alternatives, ways, strict=True)
            plans.append(tuple(Choice(_styled(a, style), w[0].top) for a, w in pairs))
        if len(ways) == 1:
            plans += [(way,) for way in ways[0][1 : 2 if self.brief else None]]
        if shape is None and self.engine == AUTO:
            plans += self.stacked([w[0] for w in ways])
        made = [self.candidate(choices) for choices in dict.fromkeys(plans)]
        if self.propagation != AUTO or len(self.alternatives) > MOST_BRANCHES or self.many:
            return made
        likely = sorted(made, key=lambda m: m[0].cost)[:MOST_MOVED]
        likely += [m for m in made if m[0].name == LEFT_DEEP]
        return [
            self.moved(*m) if m in likely or (n == 0 and shape is not None) else m
            for n, m in enumerate(made)
        ]

    def candidate(self, choices: tuple[Choice, ...]) -> tuple[Candidate, Plan]:
        """A plan and its cost, lazy if the caller doesn't say otherwise."""
        mode: Propagation = "lazy" if self.propagation == AUTO else self.propagation
        pairs = zip(self.alternatives, choices, strict=True)
        roots = (build(self.parts(a, choice.top), choice) for a, choice in pairs)
        plan = with_lookups(plan_of(self.query, tuple(roots)), self.costing)
        return self.propagated(choices, plan, [mode] * len(choices))

    def moved(self, candidate: Candidate, plan: Plan) -> tuple[Candidate, Plan]:
        """The same trees, with the best movement of results."""
        modes = [
            propagation_of(plan, root, self.statistics, self.costing) for root in plan.alternatives
        ]
        if set(modes) == {"lazy"}:
            return candidate, plan
        return self.propagated(candidate.choices, plan, modes)

    def propagated(
        self, choices: Sequence[Choice], plan: Plan, modes: Sequence[Propagation]
    ) -> tuple[Candidate, Plan]:
        figures = self.costing.figures
        roots = tuple(
            propagated(root, mode, plan.variables, lambda p: power(figures.chance(p)))
            for root, mode in zip(plan.alternatives, modes, strict=True)
        )
        plan = replace(plan, alternatives=roots, eager="push" in modes)
        pairs = zip(choices, modes, strict=True)
        choices = tuple(replace(choice, propagation=mode) for choice, mode in pairs)
        cost = self.costing.cost(plan)
        return Candidate(_name(self.alternatives, choices), choices, cost), plan

    def stacked(self, trees: Sequence[Choice]) -> list[tuple[Choice, ...]]:
        """Plans with stacks where there can be some: everywhere, and where they cost less."""
        every, cheaper = list(trees), list(trees)
        for n, (alternative, tree) in enumerate(zip(self.alternatives, trees, strict=True)):
            stacks = self.stacks(alternative)
            if stacks is None or not self.comparable(stacks):
                continue
            every[n] = stacks
            if self.cost(alternative, stacks) < self.cost(alternative, tree):
                cheaper[n] = stacks
        return [tuple(every), tuple(cheaper)]

    def comparable(self, stacks: Choice) -> bool:
        """Whether stacks respect the caller's choices: they have no inputs to pull from, and their
        negations are on top."""
        if self.propagation in ("pull", "pass-down"):
            return False
        return self.negation != "push" or not stacks.top

    # ── one alternative ──

    def stacks(self, alternative: Alternative) -> Choice | None:
        if chain(alternative.pattern) is None:
            return None
        negated = self.parts(alternative, frozenset()).negated
        top = frozenset(n.index for n in negated if n.simple)
        return Choice(LEFT_DEEP, top, stacks=True)

    def ways(self, alternative: Alternative) -> list[Choice]:
        """The cheapest choice for an alternative, then others, the cheapest of them first."""
        fixed, free = self.negations(alternative)
        few = 2 ** len(free) * len(core(alternative.pattern)) ** 2 <= MOST_SUBSETS
        sizes = range(len(free) + 1) if few else (0, len(free))
        tops = [fixed.union(some) for size in sizes for some in combinations(free, size)]
        ways = [self.trees(alternative, top) for top in tops]
        if len(ways) > 1:
            ways.sort(key=lambda way: self.cost(alternative, way[0]))
        if not few:
            flipped = self.flipped(alternative, ways[0][0], free)
            if flipped.top not in tops:
                ways.insert(0, self.trees(alternative, flipped.top))
        best, *others = ways
        return [best[0], *(way[0] for way in others[:2]), *best[1 : OTHER_TREES + 1]]

    def flipped(self, alternative: Alternative, choice: Choice, free: tuple[int, ...]) -> Choice:
        """The same tree with those negations moved that cost less elsewhere, one after another."""
        cost = self.cost(alternative, choice) if free else 0.0
        for index in free:
            other = replace(choice, top=choice.top ^ {index})
            if (lower := self.cost(alternative, other)) < cost:
                choice, cost = other, lower
        return choice

    def trees(self, alternative: Alternative, top: frozenset[int]) -> list[Choice]:
        if not core(alternative.pattern) or self.many:
            return [Choice(LEFT_DEEP, top)]
        parts = self.parts(alternative, top)
        tree = cheapest(Spans(parts, self.costing), alternative.pattern)
        return [Choice(tree.shape, top), *(Choice(shape, top) for _, shape in tree.others)]

    def placed(self, alternative: Alternative, shape: Shape) -> Choice:
        """The given tree, with its negations where they cost least."""
        fixed, free = self.negations(alternative)
        return self.flipped(alternative, Choice(shape, fixed), free)

    def cost(self, alternative: Alternative, choice: Choice) -> float:
        root = cheapest_lookups(build(self.parts(alternative, choice.top), choice), self.costing)
        self.costing.flow(root)
        return sum(self.costing.estimates[node].cost for node in set(walk_plan(root)))

    def negations(self, alternative: Alternative) -> tuple[frozenset[int], tuple[int, ...]]:
        """Those that are on top anyway, and those that might be: NSEQ is possible for them."""
        if self.negation == "push":
            return frozenset(), ()
        if self.negation == "top":
            every = (p.index for p in walk(self.query.pattern) if isinstance(p, Negation))
            return frozenset(every), ()
        negated = self.parts(alternative, frozenset()).negated
        return frozenset(), tuple(dict.fromkeys(n.index for n in negated if n.simple))


# ── names ──


def _styled(alternative: Alternative, shape: Shape) -> Shape:
    """The tree of a style, over this alternative's variables."""
    if shape not in (LEFT_DEEP, RIGHT_DEEP) or not core(alternative.pattern):
        return shape
    return shape_of(alternative.pattern, str(shape))


def _name(alternatives: Sequence[Alternative], choices: Sequence[Choice]) -> str:
    """The plan's name for a person: its style, its tree, and what is unusual."""
    pairs = zip(alternatives, choices, strict=True)
    names = {STACKS if c.stacks else _shape_name(a, c.shape) for a, c in pairs}
    name = names.pop() if len(names) == 1 else "each branch its own tree"
    if any(choice.top for choice in choices if not choice.stacks):
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
        case ShapePair():
            return f"({_shape_text(shape.left)} {_shape_text(shape.right)})"
        case _:
            assert_never(shape)
