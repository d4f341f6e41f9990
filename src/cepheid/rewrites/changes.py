"""What a rewrite changed, as text: the smallest part of the pattern, or the conditions."""

from __future__ import annotations

from collections.abc import Sequence as Items

from cepheid.algebra.patterns import Pattern, items
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.text import condition_text, conjunct_text, pattern_text

EMPTY = "TRUE"
"""Conditions that are gone."""


def changed_part(before: BoundQuery, after: BoundQuery) -> tuple[str, str]:
    """The part of the first query that the second doesn't have, and what it has instead."""
    if after.nothing is not None:
        return _all_conditions(before), f"nothing: {after.nothing}"
    if before.pattern != after.pattern:
        old, new = _smallest(before.pattern, after.pattern)
        return pattern_text(old, before.variables), pattern_text(new, after.variables)
    return _difference(_conditions(before), _conditions(after))


def _smallest(old: Pattern, new: Pattern) -> tuple[Pattern, Pattern]:
    """Go down as long as the two differ in one item alone."""
    if type(old) is type(new) and len(items(old)) == len(items(new)) > 0:
        pairs = [p for p in zip(items(old), items(new), strict=True) if p[0] != p[1]]
        if len(pairs) == 1:
            return _smallest(*pairs[0])
    return old, new


def _conditions(query: BoundQuery) -> list[str]:
    return [
        *(conjunct_text(c) for c in query.where),
        *(f"HAVING {condition_text(h)}" for h in query.having),
    ]


def _all_conditions(query: BoundQuery) -> str:
    return " AND ".join(_conditions(query)) or EMPTY


def _difference(old: Items[str], new: Items[str]) -> tuple[str, str]:
    gone, come = list(old), list(new)
    for text in old:
        if text in come:
            come.remove(text)
            gone.remove(text)
    return " AND ".join(gone) or EMPTY, " AND ".join(come) or EMPTY
