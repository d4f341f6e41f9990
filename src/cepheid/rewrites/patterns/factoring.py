"""What two branches of a disjunction begin or end with is matched once.

(A a1 ; B b) | (A a2 ; C c) = A a1 ; (B b | C c)
(A a ; C c1) | (B b ; C c2) = (A a | B b) ; C c1

Holds if the common events have the same types, the conditions on them alone are the same, and
none reads both branches; `;` must be the only operator of the branches, and no closure may come
to stand at an edge. RETURN's names keep their meaning (`BoundQuery.renamed`): a2 is the event of
a1 in matches that have c, and a1 is absent from those.

Taken where the estimated cost is lower; without an estimate, it always has fewer operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

from cepheid.algebra.expressions import Expr, variables
from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    leaves,
    positive,
    walk,
)
from cepheid.algebra.query import BoundQuery, Conjunct, Kind, Renamed
from cepheid.language.ast import SequenceOperator
from cepheid.rewrites.condition_roles import reads, roles_hold
from cepheid.rewrites.law import Facts, Rewrite
from cepheid.rewrites.measure import simpler
from cepheid.rewrites.surgery import renamed, replaced, union

Items = tuple[Pattern, ...]
T = TypeVar("T")


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    if query.selection is not None:
        return None  # which of simultaneous matches is first depends on the pattern's order
    for part in walk(query.pattern):
        if not isinstance(part, Disjunction):
            continue
        for first, second in combinations(part.items, 2):
            for cut in _cuts(first, second, query):
                changed = _factored(query, part, cut)
                if changed is not None and _pays(changed, query, facts):
                    return changed
    return None


def _pays(new: BoundQuery, old: BoundQuery, facts: Facts) -> bool:
    if facts.cost is not None:
        return facts.cost(new) < facts.cost(old)
    return simpler(new.pattern, old.pattern)


@dataclass(frozen=True)
class Cut:
    """Two branches, cut into what they have in common and the rest. `names` says which variable
    of the first one stands for each common variable of the other."""

    first: Pattern
    second: Pattern
    common: Items
    rests: tuple[Pattern, Pattern]
    names: Mapping[str, str]
    before: bool

    def pattern(self, query: BoundQuery) -> Pattern:
        branches = union(*self.rests, reads(query))
        items = (*self.common, branches) if self.before else (branches, *self.common)
        return Sequence(items, (SequenceOperator.ANY,) * (len(items) - 1))


def _cuts(first: Pattern, second: Pattern, query: BoundQuery) -> list[Cut]:
    """Every common beginning, longest first, and every common end."""
    if not isinstance(first, Sequence) or not isinstance(second, Sequence):
        return []
    if {*first.operators, *second.operators} != {SequenceOperator.ANY}:
        return []
    cuts: list[Cut] = []
    most = min(len(first.items), len(second.items)) - 1
    for before in (True, False):
        for size in range(most, 0, -1):
            cut = _cut(first, second, size, before, query)
            if cut is not None:
                cuts.append(cut)
    return cuts


def _cut(
    first: Sequence, second: Sequence, size: int, before: bool, query: BoundQuery
) -> Cut | None:
    here = slice(None, size) if before else slice(-size, None)
    there = slice(size, None) if before else slice(None, -size)
    names: dict[str, str] = {}
    for mine, theirs in zip(first.items[here], second.items[here], strict=True):
        if not isinstance(mine, Leaf) or not isinstance(theirs, Leaf):
            return None
        if not _same_class(mine.variable, theirs.variable, query):
            return None
        names[theirs.variable] = mine.variable
    rests = _rest(first.items[there]), _rest(second.items[there])
    if rests[0] is None or rests[1] is None:
        return None
    return Cut(first, second, first.items[here], (rests[0], rests[1]), names, before)


def _same_class(mine: str, theirs: str, query: BoundQuery) -> bool:
    first, second = query.variables[mine], query.variables[theirs]
    return (
        first.types == second.types
        and first.kind is second.kind is Kind.SINGLE
        and first.negation is second.negation is None
        and all(part.columns[mine] == part.columns[theirs] for part in query.key)
    )


def _rest(items: Items) -> Pattern | None:
    """A branch of its own; None if it can't be one. A negation FOR a time must keep the neighbor
    from which its time counts."""
    if any(isinstance(edge, Absence) for edge in (items[0], items[-1])):
        return None
    present = [i for i in items if not isinstance(i, Negation)]
    if not present or isinstance(present[0], Closure) or isinstance(present[-1], Closure):
        return None
    if len(items) == 1:
        return items[0]
    return Sequence(items, (SequenceOperator.ANY,) * (len(items) - 1))


def _factored(query: BoundQuery, whole: Disjunction, cut: Cut) -> BoundQuery | None:
    if _mixed(query, whole, cut):
        return None
    where = _conjuncts(query.where, cut)
    having = _having(query.having, cut)
    if where is None or having is None:
        return None
    merged = cut.pattern(query)
    items = tuple(merged if i is cut.first else i for i in whole.items if i is not cut.second)
    new = items[0] if len(items) == 1 else Disjunction(items)
    pattern = replaced(query.pattern, whole, new)
    order = {v: n for n, v in enumerate(leaves(pattern))}
    changed = replace(
        query,
        pattern=pattern,
        where=tuple(
            replace(c, variables=tuple(sorted(c.variables, key=order.__getitem__))) for c in where
        ),
        having=having,
        renamed=_names(query.renamed, cut),
    )
    return changed if roles_hold(changed) else None


def _mixed(query: BoundQuery, whole: Disjunction, cut: Cut) -> bool:
    """Whether a condition reads one of the two branches together with another one, and so sees
    NULL; or UNTIL reads a common event."""
    branches = [frozenset(leaves(i)) for i in whole.items]
    cut_ones = frozenset(leaves(cut.first)) | frozenset(leaves(cut.second))
    common = {*cut.names, *cut.names.values()}
    for read in reads(query):
        if read & cut_ones and sum(bool(read & b) for b in branches) > 1:
            return True
    until = [p.until for p in walk(query.pattern) if isinstance(p, Closure)]
    return any(variables(u) & common for u in until if u is not None)


def _conjuncts(where: tuple[Conjunct, ...], cut: Cut) -> tuple[Conjunct, ...] | None:
    return _conditions(
        where, lambda c: _renamed(c, cut.names), lambda c: frozenset(c.variables), cut
    )


def _having(having: tuple[Expr, ...], cut: Cut) -> tuple[Expr, ...] | None:
    return _conditions(having, lambda c: renamed(c, cut.names), variables, cut)


def _conditions(
    conditions: tuple[T, ...],
    renamed_condition: Callable[[T], T],
    read: Callable[[T], frozenset[str]],
    cut: Cut,
) -> tuple[T, ...] | None:
    """The conditions on the common events once, and those that read a rest as they were; None if
    the two branches have different conditions on the common events."""
    merged: list[T] = []
    first: set[T] = set()
    second: set[T] = set()
    for condition in conditions:
        new = renamed_condition(condition)
        on_common, of_rest = _sides(read(condition), cut)
        if on_common and not of_rest:
            if new != condition:
                second.add(new)
                continue
            first.add(condition)
        merged.append(new)
    return tuple(merged) if first == second else None


def _sides(read: frozenset[str], cut: Cut) -> tuple[bool, bool]:
    """Whether a condition reads common events, and events of a rest."""
    rests = {v for rest in cut.rests for v in leaves(rest)}
    return bool(read & {*cut.names, *cut.names.values()}), bool(read & rests)


def _renamed(conjunct: Conjunct, names: Mapping[str, str]) -> Conjunct:
    read = tuple(names.get(v, v) for v in conjunct.variables)
    return replace(conjunct, expression=renamed(conjunct.expression, names), variables=read)


def _names(known: tuple[Renamed, ...], cut: Cut) -> tuple[Renamed, ...]:
    """RETURN's names after the cut. What distinguished two branches must still do so."""
    entries = {(r.name, r.variable, r.within) for r in known}
    inside = [frozenset(positive(rest)) for rest in cut.rests]
    for gone, kept in cut.names.items():
        pair = {e for e in entries if e[0] in (gone, kept)}
        if not any(e[0] == gone for e in pair):
            entries.add((gone, gone, inside[1]))
        if not any(e[0] == kept for e in pair):
            entries.add((kept, kept, inside[0]))
        entries = {
            (name, kept if variable == gone else variable, _telling(within, gone, kept))
            for name, variable, within in entries
        }
    ordered = sorted(entries, key=lambda e: (e[0], e[1], sorted(e[2])))
    return tuple(Renamed(*entry) for entry in ordered)


def _telling(within: frozenset[str], gone: str, kept: str) -> frozenset[str]:
    """An event that both branches bind no longer distinguishes them."""
    if gone in within and kept in within:
        return within - {gone}
    return within - {gone, kept}


REWRITE = Rewrite("factoring", "(A a1 ; B b) | (A a2 ; C c) = A a1 ; (B b | C c)", apply)
