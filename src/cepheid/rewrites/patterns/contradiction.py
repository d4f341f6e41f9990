"""What no event can satisfy is taken out of the pattern, or is the end of the query.

WHERE a.x > 5 AND a.x < 3: no event can be a. Then
  a pattern that needs a matches nothing, and the query is known to match nothing;
  P | Q = Q, if P needs a;
  !P and `\\ P` go away, if P needs a;
  a closure that needs an element matches nothing, while one that may be empty is left as it is.

The conditions must be checked together (same role, variables, closure, negation) and apply in every
match that binds the event. With `->`, a branch goes only if its own events fail, with what is
bound before them: were a later event to fail, the arrow would still have chosen the branch.

It stands first, so that a warning can quote the conditions as they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cepheid.algebra.expressions import Expr, reads_before, variables
from cepheid.algebra.patterns import Closure, Disjunction, Leaf, Pattern, leaves
from cepheid.algebra.patterns import walk as parts
from cepheid.algebra.query import BoundQuery, Conjunct, Kind, Role
from cepheid.algebra.structure import Structure, structure
from cepheid.algebra.text import condition_text, leaf_text
from cepheid.rewrites.condition_roles import branches_read, has_next, reads, roles_hold, within
from cepheid.rewrites.conditions.claims import claim_of, contradiction
from cepheid.rewrites.conditions.folding import FALSE, decisive, fold
from cepheid.rewrites.law import Facts, Rewrite
from cepheid.rewrites.surgery import surviving


@dataclass(frozen=True)
class Clash:
    """Conditions that can't all be true; `conjunct` is one of them, HAVING's is as a CHECK."""

    conjunct: Conjunct
    reason: str


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    known = structure(query.pattern)
    for clash in _clashes(query):
        conjunct = clash.conjunct
        if conjunct.role is Role.RUNNING or _running(conjunct):
            continue  # it may not be checked on the first element
        if _always_applies(conjunct, known, query):
            return _nothing(query, clash.reason)
        dead = _dead(conjunct, known, query)
        changed = None if dead is None else _without(query, *dead, clash.reason, known)
        if changed is not None:
            return changed
    return None


# ── what can't be true ──


def _clashes(query: BoundQuery) -> Iterator[Clash]:
    groups: dict[object, list[Conjunct]] = {}
    for c in query.where:
        place = (c.role, frozenset(c.variables), c.target, c.negation)
        groups.setdefault(place, []).append(c)
    for h in query.having:
        read = tuple(sorted(variables(h)))
        groups.setdefault(("having", read), []).append(Conjunct(h, Role.CHECK, read))
    for together in groups.values():
        reason = _reason([c.expression for c in together])
        if reason is not None:
            yield Clash(together[0], reason)


def _reason(conditions: Sequence[Expr]) -> str | None:
    """Why the conditions can't all be true, in words."""
    simple = [decisive(fold(c)) for c in conditions]
    for condition, folded in zip(conditions, simple, strict=True):
        if folded == FALSE:
            return f"`{condition_text(condition)}` is never true"
    claims = [claim_of(c) for c in simple]
    for terms in dict.fromkeys(c.terms for c in claims if c is not None):
        about = [n for n, c in enumerate(claims) if c is not None and c.terms == terms]
        tests = [c.test for n in about if (c := claims[n]) is not None]
        clash = contradiction(tests, terms[0].type)
        if clash is not None:
            return _clashing([condition_text(conditions[about[n]]) for n in clash])
    return None


def _clashing(texts: Sequence[str]) -> str:
    if len(texts) == 1:
        return f"`{texts[0]}` is never true"
    both = "both" if len(texts) == 2 else "all"
    listed = ", ".join(f"`{t}`" for t in texts[:-1])
    return f"{listed} and `{texts[-1]}` can't {both} be true"


def _running(conjunct: Conjunct) -> bool:
    """In a negated pattern a running condition has the negation's role."""
    return conjunct.target is not None and reads_before(conjunct.expression)


# ── what follows ──


def _always_applies(conjunct: Conjunct, known: Structure, query: BoundQuery) -> bool:
    """Whether every match must satisfy it: it reads bound events or complete groups that are in
    no branch."""
    if conjunct.negation is not None or branches_read(conjunct.variables, known):
        return False
    single = all(query.variables[v].kind is Kind.SINGLE for v in conjunct.variables)
    return single or conjunct.role in (Role.CHECK, Role.MATCH)


def _dead(conjunct: Conjunct, known: Structure, query: BoundQuery) -> tuple[Pattern, str] | None:
    """The part of the pattern that can't be, and the variable that says so."""
    whole = conjunct.role in (Role.CHECK, Role.MATCH)
    if whole and has_next(query.pattern):
        return None
    name = _culprit(conjunct, known, query)
    if name is None:
        return None
    if whole:
        closures = (p for p in parts(query.pattern) if isinstance(p, Closure) and name in leaves(p))
        around = next(closures, Leaf(name))
        # In a branch of what is repeated, it may be left out of every round.
        return None if _in_branch(name, around) else (around, name)
    return Leaf(name), name


def _in_branch(name: str, pattern: Pattern) -> bool:
    return any(isinstance(p, Disjunction) and name in leaves(p) for p in parts(pattern))


def _culprit(conjunct: Conjunct, known: Structure, query: BoundQuery) -> str | None:
    """A variable in all of whose matches the condition applies, so that it can't be bound."""
    names: Iterable[str] = sorted(conjunct.variables, key=known.order.__getitem__, reverse=True)
    if conjunct.negation is not None:
        names = [v for v in names if query.variables[v].negation == conjunct.negation]
    if conjunct.target is not None:
        names = [conjunct.target]
    elif has_next(query.pattern):
        names = list(names)[:1]
    for name in names:
        if all(within(other, name, known) for other in conjunct.variables):
            return name
    return None


def _nothing(query: BoundQuery, reason: str) -> BoundQuery:
    warning = f"the query matches nothing: {reason}"
    return replace(query, nothing=reason, warnings=(*query.warnings, warning))


def _without(
    query: BoundQuery, dead: Pattern, name: str, reason: str, known: Structure
) -> BoundQuery | None:
    pattern = surviving(query.pattern, dead)
    if pattern is None:
        return _nothing(query, reason)
    gone = frozenset(leaves(query.pattern)) - frozenset(leaves(pattern))
    if not gone or not _separable(query, gone, known):
        return None
    if any(_applies_elsewhere(read - gone, known, structure(pattern)) for read in reads(query)):
        return None
    warning = f"{reason}, so `{leaf_text(query.variables[name])}` never occurs"
    changed = replace(
        query,
        pattern=pattern,
        where=tuple(c for c in query.where if not gone & set(c.variables)),
        having=tuple(h for h in query.having if not gone & variables(h)),
        warnings=(*query.warnings, warning),
    )
    return changed if roles_hold(changed) else None


def _separable(query: BoundQuery, gone: frozenset[str], known: Structure) -> bool:
    """Whether every condition that reads what is gone applied there alone: one that reads another
    branch, too, would have seen NULL for it."""
    for read in reads(query):
        lost = read & gone
        if any(known.exclusive(a, b) for a in lost for b in read if a != b):
            return False
    until = [p.until for p in parts(query.pattern) if isinstance(p, Closure)]
    if any(gone & variables(u) for u in until if u is not None):
        return False
    return query.selection is None or query.selection.variable not in gone


def _applies_elsewhere(read: frozenset[str], known: Structure, left: Structure) -> bool:
    """Whether a condition may apply in other matches than before, since what it reads is no branch
    any more: where another branch further out was taken, or in every round of a closure."""
    freed = [v for v in read if len(left.branches[v]) < len(known.branches[v])]
    both = any(known.exclusive(a, b) for a in read for b in read if a != b)
    return bool(freed) and (both or any(v in known.closure for v in freed))


REWRITE = Rewrite("contradiction", "x > 5 AND x < 3: what needs it can't match", apply)
