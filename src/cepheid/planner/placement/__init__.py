"""NEXT's cost model, its rewriting for cost, and its placement of work on nodes (NEXT 4.2-4.4)."""

from cepheid.planner.placement.deploy import Deployment, Feed, Item, Policy, cheapest, deploy, empty
from cepheid.planner.placement.figures import cost, cpu, figures
from cepheid.planner.placement.items import item_of
from cepheid.planner.placement.ordering import rewrite

__all__ = [
    "Deployment",
    "Feed",
    "Item",
    "Policy",
    "cheapest",
    "cost",
    "cpu",
    "deploy",
    "empty",
    "figures",
    "item_of",
    "rewrite",
]
