"""From a bound query to the plan that an engine runs."""

from __future__ import annotations

from collections.abc import Sequence as Items

from cepheid.algebra.patterns import Negation, walk
from cepheid.algebra.query import BoundQuery
from cepheid.errors import PlanError
from cepheid.plan.nodes import Plan
from cepheid.planner.alternatives import Alternative, alternatives
from cepheid.planner.automata.automaton_needs import needs_automaton
from cepheid.planner.automata.automaton_plans import plan_of
from cepheid.planner.choice import Choice
from cepheid.planner.trees.build import build
from cepheid.planner.trees.gaps import core
from cepheid.planner.trees.parts import Parts
from cepheid.planner.trees.shapes import LEFT_DEEP, RIGHT_DEEP, parse_shape


def make_plan(query: BoundQuery, shape: str = LEFT_DEEP, push_negation: bool = True) -> Plan:
    """The plan of the given shape: `left-deep`, `right-deep`, or a tree such as `((a b) c)`."""
    require_trees(query)
    branches = alternatives(query)
    if shape not in (LEFT_DEEP, RIGHT_DEEP):
        bound = dict.fromkeys(v for alternative in branches for v in core(alternative.pattern))
        tree = parse_shape(shape, tuple(bound))
    else:
        tree = shape
    negations = (p.index for p in walk(query.pattern) if isinstance(p, Negation))
    top = frozenset() if push_negation else frozenset(negations)
    return assemble(query, branches, [Choice(tree, top)] * len(branches))


def assemble(query: BoundQuery, branches: Items[Alternative], choices: Items[Choice]) -> Plan:
    """The plan in which each alternative is evaluated as chosen for it."""
    pairs = zip(branches, choices, strict=True)
    trees = (build(Parts(query, branch, choice.top), choice) for branch, choice in pairs)
    return plan_of(query, tuple(trees))


def require_trees(query: BoundQuery) -> None:
    """Refuse, by name, what trees of joins can't run."""
    missing = needs_automaton(query.pattern)
    if missing is not None:
        raise PlanError(
            f"{missing} needs an automaton, so neither engine='tree' nor a tree as plan= can run "
            "this query; leave them out"
        )
