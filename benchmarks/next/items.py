"""NEXT's operators as work to be placed."""

from __future__ import annotations

from benchmarks.next.deploy import Feed, Input, Item
from benchmarks.next.operators import Operator, Source, canonical, inputs
from benchmarks.next.rates import Rates, cpu, figures
from cepheid.errors import PlanError


def item_of(query: Operator, rates: Rates) -> Item:
    """Its operators with their CPU cost and their rates; sources are outside. Operators are equal
    if they are the same but for the order of unions."""
    found = _input(canonical(query), rates)
    if isinstance(found, Feed):
        raise PlanError("a source alone has no operator to place; its events are its result")
    return found


def _input(operator: Operator, rates: Rates) -> Input:
    rate = figures(operator, rates).rate
    if isinstance(operator, Source):
        return Feed(rate)
    below = tuple(_input(i, rates) for i in inputs(operator))
    return Item(operator, cpu(operator, rates), rate, below)
