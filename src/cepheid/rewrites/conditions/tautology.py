"""A value compared with itself, and alternatives that leave nothing out.

x = x → x IS NOT NULL, x < x → FALSE
x < y OR x = y → x <= y, x < y OR x >= y → x IS NOT NULL AND y IS NOT NULL
x IS NULL OR x IS NOT NULL → TRUE

None but the last is a tautology: of NULL nothing is true. They hold where a condition decides,
since unknown and false are the same there; a NaN equals itself.
"""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.expressions import TRUE, Call, Constant, Expr, conjuncts
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.types import Type
from cepheid.rewrites.condition_roles import classify, may_replace, may_replace_having
from cepheid.rewrites.conditions.claims import Claim, Compared, Null, Related, claim_of
from cepheid.rewrites.conditions.constant_values import COMPARISONS, NAMES
from cepheid.rewrites.conditions.folding import FALSE, decisive
from cepheid.rewrites.law import Facts, Rewrite

_ALL = frozenset((-1, 0, 1))


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    for place, conjunct in enumerate(query.where):
        simple = decisive(_simplify(conjunct.expression))
        if simple == conjunct.expression:
            continue
        parts = tuple(classify(p, query) for p in conjuncts(simple) if p not in (TRUE, FALSE))
        if simple == FALSE:
            parts = (replace(conjunct, expression=FALSE),)
        if may_replace(conjunct, parts, query):
            where = (*query.where[:place], *parts, *query.where[place + 1 :])
            return replace(query, where=where)
    for place, condition in enumerate(query.having):
        simple = decisive(_simplify(condition))
        kept = tuple(p for p in conjuncts(simple) if p != TRUE)
        if kept != (condition,) and may_replace_having(condition, kept, query):
            having = (*query.having[:place], *kept, *query.having[place + 1 :])
            return replace(query, having=having)
    return None


def _simplify(expr: Expr) -> Expr:
    """Of a condition that must be true: only AND and OR are looked into."""
    match expr:
        case Call("and", arguments):
            return replace(expr, arguments=tuple(map(_simplify, arguments)))
        case Call("or", arguments):
            return _united(tuple(map(_simplify, arguments)))
        case Call(operator, (left, right)) if operator in COMPARISONS and left == right:
            if isinstance(left, Constant):
                return expr
            return _known(left) if 0 in COMPARISONS[operator] else FALSE
        case _:
            return expr


def _united(arguments: tuple[Expr, ...]) -> Expr:
    """Alternatives that say something of the same values become one."""
    united: dict[object, tuple[Claim, Expr]] = {}
    for place, argument in enumerate(arguments):
        claim = claim_of(argument)
        match None if claim is None else claim.test:
            case Compared(_, value):
                assert claim is not None
                key: object = (claim.terms, "=", type(value), value)
            case Related() | Null():
                assert claim is not None
                key = (claim.terms, type(claim.test))
            case _:
                united[place] = (Claim((), Null(False)), argument)
                continue
        united[key] = _both(*united[key], claim, argument) if key in united else (claim, argument)
    parts = [expr for _, expr in united.values()]
    return parts[0] if len(parts) == 1 else Call("or", tuple(parts), Type.BOOLEAN)


def _both(mine: Claim, first: Expr, other: Claim, second: Expr) -> tuple[Claim, Expr]:
    match mine.test, other.test:
        case (Compared(a), Compared(b)) | (Related(a), Related(b)):
            outcomes = a | b
            if outcomes == a:
                return mine, first
            return _claimed(mine, outcomes), _expression(mine, outcomes)
        case _:
            return (mine, first) if mine == other else (mine, TRUE)


def _claimed(claim: Claim, outcomes: frozenset[int]) -> Claim:
    test = claim.test
    if isinstance(test, Compared):
        return Claim(claim.terms, Compared(outcomes, test.value))
    return Claim(claim.terms, Related(outcomes))


def _expression(claim: Claim, outcomes: frozenset[int]) -> Expr:
    if outcomes == _ALL:
        known = tuple(map(_known, claim.terms))
        return known[0] if len(known) == 1 else Call("and", known, Type.BOOLEAN)
    test = claim.test
    sides: tuple[Expr, ...] = claim.terms
    if isinstance(test, Compared):
        sides = (claim.terms[0], Constant(test.value, claim.terms[0].type))
    return Call(NAMES[outcomes], sides, Type.BOOLEAN)


def _known(term: Expr) -> Expr:
    return Call("not", (Call("is_null", (term,), Type.BOOLEAN),), Type.BOOLEAN)


REWRITE = Rewrite("tautology", "x = x → x IS NOT NULL, x < y OR x = y → x <= y", apply)
