"""Applies the rules in order, again and again, until none has anything left to do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from cepheid.algebra.binding.findings import did_you_mean
from cepheid.algebra.binding.outputs import required
from cepheid.algebra.patterns import leaves
from cepheid.algebra.query import BoundQuery
from cepheid.errors import OptionError
from cepheid.rewrites.catalog import REWRITES
from cepheid.rewrites.changes import changed_part
from cepheid.rewrites.condition_roles import roles_hold
from cepheid.rewrites.law import Applied, Facts, Rewrite, Rewritten
from cepheid.statistics import Statistics

MOST_CONDITIONS = 200
"""A query with more is run as it is written: rules compare every two of them after each step."""

MOST_STEPS = 500
"""Every rule moves a query in one direction, so this is never reached; it bounds a mistake."""


def rewrite(
    query: BoundQuery,
    statistics: Statistics = Statistics(),
    without: Collection[str] = (),
    cost: Callable[[BoundQuery], float] | None = None,
) -> Rewritten:
    """A query with the same matches that is cheaper to run. `without` are rules to leave out."""
    return rewrite_by(_chosen(without), query, Facts(statistics, cost))


def rewrite_by(rules: tuple[Rewrite, ...], query: BoundQuery, facts: Facts) -> Rewritten:
    """The fixpoint of these rules: each is applied as long as it changes something, then the
    next, and all of them again as long as one has."""
    if len(query.where) + len(query.having) > MOST_CONDITIONS:
        return Rewritten(query)
    applied: list[Applied] = []
    before = -1
    while before < len(applied):
        before = len(applied)
        for rule in rules:
            while query.nothing is None and len(applied) < MOST_STEPS:
                changed = rule.apply(query, facts)
                if changed is None:
                    break
                _verify(changed, rule)
                applied.append(Applied(rule.name, *changed_part(query, changed)))
                query = changed
    if not applied:
        return Rewritten(query)
    read = required(
        query.schema, query.pattern, query.where, query.having, query.key, query.outputs
    )
    return Rewritten(replace(query, required=read), tuple(applied), query.warnings)


def _chosen(without: Collection[str]) -> tuple[Rewrite, ...]:
    names = [rule.name for rule in REWRITES]
    for name in without:
        if name not in names:
            hint = did_you_mean(name, names, f"rules are {', '.join(names)}")
            raise OptionError(f"there is no rewrite rule {name!r}; {hint}")
    return tuple(rule for rule in REWRITES if rule.name not in without)


def _verify(query: BoundQuery, rule: Rewrite) -> None:
    """No condition reads what the pattern doesn't have, and every one is still looked at where
    its role says."""
    present = set(leaves(query.pattern))
    lost = {v for c in query.where for v in c.variables} - present
    if lost or not roles_hold(query):
        raise AssertionError(f"rewrite rule {rule.name} left a condition without its variables")
