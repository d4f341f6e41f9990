"""What a rewrite changed, as text: the smallest part of the pattern, or conditions and window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence as Items

from cepheid.algebra.expressions import Expr
from cepheid.algebra.patterns import Pattern, items
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.text import condition_text, pattern_text, window_text

EMPTY = "TRUE"
"""Conditions that were removed."""


def changed_part(before: BoundQuery, after: BoundQuery) -> tuple[str, str]:
    """The part of the first query that the second doesn't have, and what it has instead."""
    if after.nothing is not None:
        return _all_conditions(before), f"nothing: {after.nothing}"
    if before.pattern != after.pattern:
        old, new = _smallest(before.pattern, after.pattern)
        return pattern_text(old, before.variables), pattern_text(new, after.variables)
    return _gone(before, after), _gone(after, before)


def _smallest(old: Pattern, new: Pattern) -> tuple[Pattern, Pattern]:
    """Go down as long as the two differ in one item alone."""
    if type(old) is type(new) and len(items(old)) == len(items(new)) > 0:
        pairs = [p for p in zip(items(old), items(new), strict=True) if p[0] != p[1]]
        if len(pairs) == 1:
            return _smallest(*pairs[0])
    return old, new


def _all_conditions(query: BoundQuery) -> str:
    return _text([c.expression for c in query.where], query.having)


def _gone(query: BoundQuery, other: BoundQuery) -> str:
    """The conditions, and the window, of the one that the other doesn't have."""
    where = _without([c.expression for c in query.where], [c.expression for c in other.where])
    having = _without(query.having, other.having)
    if query.window is None or query.window == other.window:
        return _text(where, having)
    within = f"WITHIN {window_text(query.window, query.schema)}"
    return f"{_text(where, having)} {within}" if where or having else within


def _without(some: Items[Expr], others: Items[Expr]) -> list[Expr]:
    """A condition that stands there twice, and once among the others, is left once: its last. A
    rule hands on the objects that it doesn't change, so most need no comparison."""
    same = {id(condition) for condition in some} & {id(condition) for condition in others}
    counts = Counter(c for c in others if id(c) not in same)
    left: list[Expr] = []
    for condition in some:
        if id(condition) in same:
            continue
        if counts[condition]:
            counts[condition] -= 1
        else:
            left.append(condition)
    return left


def _text(where: Items[Expr], having: Items[Expr]) -> str:
    parts = [*map(condition_text, where), *(f"HAVING {condition_text(h)}" for h in having)]
    return " AND ".join(parts) or EMPTY
