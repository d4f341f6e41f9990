"""NEXT's cost model, its rewriting for cost, and its placement of work on nodes (NEXT 4.2-4.4)."""

from benchmarks.next.deploy import Deployment, Feed, Item, Policy, deploy, empty
from benchmarks.next.items import item_of
from benchmarks.next.ordering import rewrite
from benchmarks.next.rates import cost, cpu, figures

__all__ = [
    "Deployment",
    "Feed",
    "Item",
    "Policy",
    "cost",
    "cpu",
    "deploy",
    "empty",
    "figures",
    "item_of",
    "rewrite",
]
