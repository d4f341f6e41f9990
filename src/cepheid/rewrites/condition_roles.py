"""When a condition may be replaced by another one.

A WHERE conjunct chooses events, so it is not enough that two conditions are true of the same
matches: they must also be checked at the same point wherever that decides something. It does with
`->` (the first event that satisfies everything checked by then), with closures (which events
qualify) and with negations (which events are forbidden).
"""

from __future__ import annotations

from collections.abc import Iterable

from cepheid.algebra.binding.conjuncts import Classifier
from cepheid.algebra.binding.findings import Findings
from cepheid.algebra.binding.scope import Scope
from cepheid.algebra.expressions import Expr, holds_first, variables
from cepheid.algebra.patterns import Pattern, Sequence, walk
from cepheid.algebra.query import BoundQuery, Conjunct, Kind, Role
from cepheid.algebra.structure import Structure, structure
from cepheid.language.ast import NOWHERE, SequenceOperator
from cepheid.language.diagnostics import Source


def has_next(pattern: Pattern) -> bool:
    """Whether `->` stands anywhere. Without it every condition on bound events is a plain filter
    on complete matches, wherever it is checked."""
    return any(
        isinstance(part, Sequence) and SequenceOperator.NEXT in part.operators
        for part in walk(pattern)
    )


def classify(expr: Expr, query: BoundQuery) -> Conjunct:
    """The conjunct that binding would make of the expression."""
    scope = Scope(query.schema, query.variables, frozenset())
    return Classifier(scope, structure(query.pattern), Findings(Source(""))).classify(expr, NOWHERE)


def branches_read(names: Iterable[str], facts: Structure) -> frozenset[tuple[int, int]]:
    """The branches of disjunctions that the variables stand in: they say to which matches a
    condition applies, so a condition may only be replaced by one that reads the same."""
    return frozenset(place for v in names for place in facts.branches[v].items())


def within(outer: str, inner: str, facts: Structure) -> bool:
    """Whether the one variable is bound in every match that binds the other, as far as
    disjunctions decide it."""
    return facts.branches[outer].items() <= facts.branches[inner].items()


def element_of(conjunct: Conjunct, query: BoundQuery) -> str | None:
    """The closure variable whose elements the conjunct tests one by one."""
    match conjunct.role:
        case Role.FILTER | Role.RUNNING | Role.NEGATION:
            return conjunct.target
        case Role.CLASS:
            variable = conjunct.variables[0]
            return None if query.variables[variable].kind is Kind.SINGLE else variable
        case _:
            return None


def may_replace(old: Conjunct, parts: Iterable[Conjunct], query: BoundQuery) -> bool:
    """Whether conjuncts that together say the same may stand for the old one."""
    facts = structure(query.pattern)
    ordered = has_next(query.pattern)
    return all(_same_place(old, part, query, facts, ordered) for part in parts)


def _same_place(
    old: Conjunct, new: Conjunct, query: BoundQuery, facts: Structure, ordered: bool
) -> bool:
    if branches_read(old.variables, facts) != branches_read(new.variables, facts):
        return False
    if new.negation != old.negation or (new.role is Role.RUNNING) != (old.role is Role.RUNNING):
        return False
    if holds_first(new.expression) != holds_first(old.expression):
        return False
    elements = (element_of(c, query) for c in (old, new))
    if len({None if v is None else facts.closure[v] for v in elements}) > 1:
        return False
    if not ordered:
        return True
    same_end = _last(old.variables, facts) == _last(new.variables, facts)
    return same_end and (new.role is Role.MATCH) == (old.role is Role.MATCH)


def _last(names: Iterable[str], facts: Structure) -> int:
    return max((facts.order[v] for v in names), default=-1)


def may_replace_having(old: Expr, parts: Iterable[Expr], query: BoundQuery) -> bool:
    """HAVING is checked on complete matches, so only the branches count."""
    facts = structure(query.pattern)
    read = branches_read(variables(old) & facts.order.keys(), facts)
    return all(branches_read(variables(p) & facts.order.keys(), facts) == read for p in parts)


def reads(query: BoundQuery) -> list[frozenset[str]]:
    """The variables that each condition of the query reads."""
    return [
        *(frozenset(c.variables) for c in query.where),
        *(variables(h) for h in query.having),
    ]


def roles_hold(query: BoundQuery) -> bool:
    """A closure's filters may read no further than its right neighbor; of a branch that excludes
    the closure they see NULL, wherever it stands."""
    facts = structure(query.pattern)
    for conjunct in query.where:
        if conjunct.target is not None and conjunct.role in (Role.FILTER, Role.RUNNING):
            reach = facts.reach[facts.closure[conjunct.target]]
            late = [v for v in conjunct.variables if facts.order[v] > reach]
            if not all(facts.exclusive(v, conjunct.target) for v in late):
                return False
    return True
