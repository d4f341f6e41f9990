"""Equalities that follow from each other become a chain along the pattern.

a.x = b.x AND a.x = c.x = a.x = b.x AND b.x = c.x

Equality is transitive and symmetric, NULL satisfies neither form. Holds without `->`, for bound
events that no disjunction, or the same branch of it, holds. Under `&` operands are joined in any
order, so nothing is done there.

Whatever two neighboring parts of a sequence a plan joins, the last event of the left one that
has the value and the first of the right one stand next to each other in the chain: every join
has an equality to hash on, and never more than one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from cepheid.algebra.expressions import Attribute, Call
from cepheid.algebra.patterns import Conjunction, walk
from cepheid.algebra.query import BoundQuery, Conjunct, Kind
from cepheid.algebra.structure import Structure, structure
from cepheid.algebra.types import Type
from cepheid.rewrites.condition_roles import classify, has_next
from cepheid.rewrites.law import Facts, Rewrite

Pair = tuple[Attribute, Attribute]


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    if has_next(query.pattern) or any(isinstance(p, Conjunction) for p in walk(query.pattern)):
        return None
    known = structure(query.pattern)
    for members in classes([e for c in query.where if (e := _equality(c, query)) is not None]):
        if len(members) < 3 or len({str(known.branches[a.variable]) for a in members}) > 1:
            continue
        changed = _chained(query, _ordered(members, known))
        if changed is not None:
            return changed
    return None


def classes(pairs: list[Pair]) -> list[set[Attribute]]:
    """Attributes that the equalities connect."""
    groups: list[set[Attribute]] = []
    for pair in pairs:
        touched = [c for c in groups if c & set(pair)]
        groups = [c for c in groups if c not in touched]
        groups.append(set(pair).union(*touched))
    return groups


def _equality(conjunct: Conjunct, query: BoundQuery) -> Pair | None:
    if any(query.variables[v].kind is not Kind.SINGLE for v in conjunct.variables):
        return None
    match conjunct.expression:
        case Call("=", (Attribute() as left, Attribute() as right)) if (
            left != right and left.type is right.type and conjunct.negation is None
        ):
            return left, right
        case _:
            return None


def _ordered(members: set[Attribute], known: Structure) -> list[Attribute]:
    return sorted(members, key=lambda a: (known.order[a.variable], a.name))


def _chained(query: BoundQuery, members: list[Attribute]) -> BoundQuery | None:
    """The query with the chain in the place of the first equality of the class."""
    wanted = [Call("=", pair, Type.BOOLEAN) for pair in pairwise(members)]
    places = [
        n
        for n, c in enumerate(query.where)
        if (pair := _equality(c, query)) is not None and pair[0] in members
    ]
    if {frozenset(c.arguments) for c in wanted} == {
        frozenset(_equality(query.where[n], query) or ()) for n in places
    } and len(places) == len(wanted):
        return None
    where: list[Conjunct] = []
    for n, conjunct in enumerate(query.where):
        if n == places[0]:
            where.extend(classify(c, query) for c in wanted)
        if n not in places:
            where.append(conjunct)
    return replace(query, where=tuple(where))


REWRITE = Rewrite("equalities", "a.x = b.x AND a.x = c.x = a.x = b.x AND b.x = c.x", apply)
