"""What pull and pass-down save (thesis 4, appendix A): they make only the records that triggering
records need."""

from __future__ import annotations

from collections.abc import Mapping

from cepheid.algebra.expressions import Expr, variables
from cepheid.plan.nodes import LeafNode, Node, Plan, Seq, bound, children, walk
from cepheid.planner.cost.figures import Figures
from cepheid.planner.cost.flows import Flow, clear, power
from cepheid.planner.cost.weights import Weights
from cepheid.planner.planned import Estimate


def demanded(
    plan: Plan,
    flows: Mapping[Node, Flow],
    estimates: Mapping[Node, Estimate],
    figures: Figures,
    weights: Weights,
) -> Mapping[Node, Estimate]:
    """The estimates of a plan without the records that its pulled parts don't make. A node with
    several consumers makes what the most demanding one needs."""
    nodes = (node for root in plan.alternatives for node in walk(root))
    if not any(isinstance(node, Seq) and node.pull for node in nodes):
        return estimates
    shares: dict[Node, float] = {}
    added: dict[Node, float] = {}
    searched: dict[Node, float] = {}

    def begins(node: Node) -> float:
        """The records that begin a search in joins, this one and those below it."""
        if node not in searched:
            here = estimates[node.right].rows if isinstance(node, Seq) else 0.0
            searched[node] = here + sum(map(begins, children(node)))
        return searched[node]

    def visit(node: Node, share: float) -> None:
        if shares.get(node, -1.0) >= share:
            return
        shares[node] = share
        if isinstance(node, Seq) and node.pull:
            visit(node.right, share)
            demanded_share = share * pulled_share(flows[node.left], flows[node.right])
            added[node] = weights.demand * begins(node.left)
            visit(node.left, demanded_share)
            for predicate in node.passed:
                pass_down(node, predicate)
        else:
            for child in children(node):
                visit(child, share)

    def pass_down(node: Seq, predicate: Expr) -> None:
        """Below, what binds the predicate's event shrinks to what some trigger accepts."""
        kept = kept_share(flows[node.right], figures, predicate)
        below = [n for n in walk(node.left) if variables(predicate) & set(bound(n))]
        for part in dict.fromkeys(below):
            if not isinstance(part, LeafNode):
                shares[part] *= kept
        events = min(flows[part].rows for part in below if isinstance(part, LeafNode))
        tried = events * min(triggers(flows[node.right]), power(-figures.chance(predicate)))
        added[node] += (weights.access + weights.test) * tried

    for root in plan.alternatives:
        visit(root, 1.0)
    return {
        node: _scaled(node, estimate, shares[node], added.get(node, 0.0))
        for node, estimate in estimates.items()
    }


def _scaled(node: Node, estimate: Estimate, share: float, added: float) -> Estimate:
    if isinstance(node, LeafNode):  # events arrive with or without demand
        return estimate
    return Estimate(estimate.rows * share, estimate.tried * share, (estimate.cost + added) * share)


def triggers(right: Flow) -> float:
    """Triggering events per window; many records may end with the same one."""
    return min(right.rows, power(right.scarcest))


def pulled_share(left: Flow, right: Flow) -> float:
    """The share of the left records after which a trigger comes while they are in the window."""
    return 1 - clear(triggers(right), left.events)


def kept_share(right: Flow, figures: Figures, predicate: Expr) -> float:
    """The share of events that some trigger in their window accepts."""
    return min(1.0, power(figures.chance(predicate)) * max(1.0, triggers(right)))
