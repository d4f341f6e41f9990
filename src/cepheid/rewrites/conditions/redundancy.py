"""Conditions that another one implies are not checked.

x > 5 AND x > 3 = x > 5, x = 4 AND x > 3 = x = 4, x > 5 AND x IS NOT NULL = x > 5
a.x < b.x AND a.x <= b.x = a.x < b.x
a.x = 7 AND b.x = 7 AND a.x = b.x = a.x = 7 AND b.x = 7

Holds if both are checked at the same point: they have the same role, read the same variables and
belong to the same closure or negation. The last one holds everywhere, since conditions on one
event alone are checked when it is bound. A condition of HAVING is implied by one of WHERE on the
same bound events.
"""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.expressions import Attribute, Call, Expr, Value, variables
from cepheid.algebra.query import BoundQuery, Conjunct, Kind, Role
from cepheid.algebra.structure import structure
from cepheid.rewrites.conditions.claims import Claim, claim_of, finite, implies
from cepheid.rewrites.conditions.constant_values import compare
from cepheid.rewrites.law import Facts, Rewrite


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    for place, conjunct in enumerate(query.where):
        others = (*query.where[:place], *query.where[place + 1 :])
        implied = any(_implied(conjunct, o, n < place) for n, o in enumerate(others))
        if implied or _pinned(conjunct, others, query):
            return replace(query, where=others)
    for place, condition in enumerate(query.having):
        rest = (*query.having[:place], *query.having[place + 1 :])
        implied = any(_follows(condition, e, n < place) for n, e in enumerate(rest))
        if implied or _chosen(condition, query):
            return replace(query, having=rest)
    return None


def _implied(conjunct: Conjunct, other: Conjunct, earlier: bool) -> bool:
    same_place = (
        conjunct.role is other.role
        and set(conjunct.variables) == set(other.variables)
        and conjunct.target == other.target
        and conjunct.negation == other.negation
    )
    return same_place and _follows(conjunct.expression, other.expression, earlier)


def _follows(condition: Expr, from_: Expr, earlier: bool) -> bool:
    """Of two that imply each other, the earlier one stays."""
    if condition == from_:
        return earlier
    mine, theirs = claim_of(condition), claim_of(from_)
    if mine is None or theirs is None or mine.terms != theirs.terms:
        return False
    return implies(theirs.test, mine.test) and (earlier or not implies(mine.test, theirs.test))


def _chosen(condition: Expr, query: BoundQuery) -> bool:
    """Whether WHERE has chosen only events that satisfy it."""
    read = variables(condition)
    if not read or any(query.variables[v].kind is not Kind.SINGLE for v in read):
        return False
    return any(
        set(c.variables) == read and _follows(condition, c.expression, earlier=True)
        for c in query.where
        if c.negation is None
    )


def _pinned(conjunct: Conjunct, others: tuple[Conjunct, ...], query: BoundQuery) -> bool:
    """An equality of two attributes that have the same constant value anyway. Not of branches
    that exclude each other: it is true of no match."""
    match conjunct.expression:
        case Call("=", (Attribute() as left, Attribute() as right)) if left != right:
            if structure(query.pattern).exclusive(left.variable, right.variable):
                return False
            claims = [claim_of(c.expression) for c in others if c.role is Role.CLASS]
            values = [_only_value(side, claims) for side in (left, right)]
            return values[0] != () and values[1] != () and compare(values[0][0], values[1][0]) == 0
        case _:
            return False


def _only_value(attribute: Attribute, claims: list[Claim | None]) -> tuple[Value, ...]:
    for claim in claims:
        if claim is not None and claim.terms == (attribute,):
            values = finite(claim.test)
            if values is not None and len(values) == 1:
                return values
    return ()


REWRITE = Rewrite("redundancy", "x > 5 AND x > 3 = x > 5", apply)
