"""What is known of one attribute is known of every attribute that equals it.

a.x = b.x AND a.x = 7 = a.x = b.x AND a.x = 7 AND b.x = 7
a.x = b.x AND a.x > 5 = a.x = b.x AND a.x > 5 AND b.x > 5

The source must be on an event that is bound in every match that binds the other one. That may be
an event, an element of a closure, or a forbidden event. With `->` the source must also stand left
of it: an event that an arrow chooses must not be checked for what only a later one guarantees.
Through the partition key it holds without that: a whole key has the value or hasn't.

The new condition reads one class alone, so it is checked at the leaf, and on Spark before the
shuffle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cepheid.algebra.expressions import Attribute, Call, Expr, Varying, transform, walk
from cepheid.algebra.query import BoundQuery, Conjunct, Kind, Role
from cepheid.algebra.structure import Structure, structure
from cepheid.rewrites.condition_roles import classify, has_next, within
from cepheid.rewrites.conditions.claims import Among, Claim, Compared, claim_of, implies
from cepheid.rewrites.law import Facts, Rewrite


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    known = structure(query.pattern)
    for conjunct in query.where:
        source = _source(conjunct, query)
        if source is None:
            continue
        for target in _equal_to(source, query, known):
            if target.type is not source.type:
                continue
            copied = _about(conjunct.expression, source, target)
            if not _implied(copied, query):
                return replace(query, where=(*query.where, classify(copied, query)))
    return None


def spread(query: BoundQuery) -> BoundQuery:
    """The same for conditions with parameters that vary, of which nothing can be concluded: each
    holds for every attribute that equals it."""
    known = structure(query.pattern)
    where = list(query.where)
    for conjunct in query.where:
        read = {node for node in walk(conjunct.expression) if isinstance(node, Attribute)}
        varies = any(isinstance(node, Varying) for node in walk(conjunct.expression))
        if conjunct.role is not Role.CLASS or not varies or len(read) != 1:
            continue
        (source,) = read
        variable = query.variables[source.variable]
        if variable.kind is not Kind.SINGLE or variable.negation is not None:
            continue
        for target in _equal_to(source, query, known):
            copied = classify(_about(conjunct.expression, source, target), query)
            if target.type is source.type and copied.expression not in [
                c.expression for c in where
            ]:
                where.append(copied)
    return replace(query, where=tuple(where))


def _source(conjunct: Conjunct, query: BoundQuery) -> Attribute | None:
    """The attribute of a bound event that the conjunct alone says something of."""
    claim = claim_of(conjunct.expression)
    if conjunct.role is not Role.CLASS or claim is None:
        return None
    match claim:
        case Claim((Attribute() as attribute,), Compared() | Among()):
            variable = query.variables[attribute.variable]
            bound = variable.kind is Kind.SINGLE and variable.negation is None
            return attribute if bound else None
        case _:
            return None


def _equal_to(source: Attribute, query: BoundQuery, known: Structure) -> Iterator[Attribute]:
    for part in query.key:
        if part.columns.get(source.variable) != source.name:
            continue
        for name, column in part.columns.items():
            present = name in known.order and name != source.variable
            if present and within(source.variable, name, known):
                yield Attribute(name, column, query.schema.columns[column])
    ordered = has_next(query.pattern)
    for conjunct in query.where:
        match conjunct.expression:
            case Call("=", (Attribute() as left, Attribute() as right)) if source in (left, right):
                target = right if left == source else left
                late = known.order[source.variable] > known.order[target.variable]
                if target.variable == source.variable or (ordered and late):
                    continue
                if within(source.variable, target.variable, known):
                    yield target


def _about(condition: Expr, source: Attribute, target: Attribute) -> Expr:
    return transform(condition, lambda e: target if e == source else None)


def _implied(condition: Expr, query: BoundQuery) -> bool:
    """Whether the same, or more, is known already."""
    wanted = claim_of(condition)
    assert wanted is not None
    for conjunct in query.where:
        claim = claim_of(conjunct.expression) if conjunct.role is Role.CLASS else None
        if claim is not None and claim.terms == wanted.terms and implies(claim.test, wanted.test):
            return True
    return False


REWRITE = Rewrite("constants", "a.x = b.x AND a.x = 7 = a.x = b.x AND a.x = 7 AND b.x = 7", apply)
