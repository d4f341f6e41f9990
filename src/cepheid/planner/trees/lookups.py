"""Where equalities are looked up through hash chains (ZStream 5.2.2), and where not.

A chain leads only to records with the same hash, but also to those that end too late, and each
step goes anywhere in the buffer. If a column has few values, to look at all records of the range
that binary search finds, one after the other, is faster. That there are few must be known.
"""

from __future__ import annotations

from dataclasses import replace

from cepheid.plan.nodes import Equivalence, Node, Plan, Seq, Stacks
from cepheid.planner.cost.plan_cost import Costing
from cepheid.planner.trees.propagation import mapped


def with_lookups(plan: Plan, costing: Costing) -> Plan:
    """The plan with each SEQ finding its candidates in the cheaper way."""
    roots = tuple(cheapest_lookups(root, costing) for root in plan.alternatives)
    return replace(plan, alternatives=roots)


def cheapest_lookups(node: Node, costing: Costing) -> Node:
    """The same for one tree."""
    node = mapped(node, lambda child: cheapest_lookups(child, costing))
    if isinstance(node, Stacks):
        return _partitioned(node, costing)
    if not isinstance(node, Seq) or not node.equalities or not costing.figures.scans:
        return node
    scan = replace(node, scan=True)
    return scan if costing.estimate(scan).cost < costing.estimate(node).cost else node


def _partitioned(node: Stacks, costing: Costing) -> Stacks:
    """Stacks partitioned by the attribute with the most values. Of several equivalences (SASE
    4.2.2) all are chained, or the others are tested, with or without a filter before: whatever
    costs less."""
    values = costing.figures.values
    ordered = sorted(
        node.equivalences, key=lambda part: -sum(values(a.variable, a.name) for a in part)
    )
    node = replace(node, equivalences=tuple(ordered))
    if len(ordered) < 2:
        return node
    ways = [replace(node, strategy=strategy) for strategy in Equivalence]
    return min(ways, key=lambda way: costing.estimate(way).cost)
