"""What there is to find out about a query's data: rates, shares of conjuncts, values of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Call,
    Every,
    Expr,
    MatchDuration,
    Previous,
    Reduce,
    Some,
    Whole,
    walk,
)
from cepheid.algebra.patterns import Conjunction, Disjunction, Pattern, Unless, items
from cepheid.algebra.patterns import leaves as variables_of
from cepheid.algebra.query import BoundQuery, Clock, Role
from cepheid.algebra.text import expression_text
from cepheid.algebra.types import Type
from cepheid.plan.nodes import LeafNode, Plan

SECOND = 1_000_000
FOREVER = 1 << 62

Pair = tuple[str, str]


@dataclass(frozen=True)
class Condition:
    """A conjunct, by its canonical text."""

    text: str
    expression: Expr

    @property
    def equality(self) -> tuple[Attribute, Attribute] | None:
        """The two sides, if it is one that a hash join would look up."""
        match self.expression:
            case Call("=", (Attribute() as left, Attribute() as right)) if left.type is right.type:
                return left, right
            case _:
                return None


@dataclass(frozen=True)
class JointTarget:
    """Variables whose events are drawn together, in the order of the pattern, and what is tried on
    them. `before` are the pairs that the pattern puts in order; others may come in any. `key` are
    the sides of the key's equality, if it is to be looked at here."""

    variables: tuple[str, ...]
    before: frozenset[Pair]
    conditions: tuple[Condition, ...]
    key: tuple[tuple[Attribute, Attribute], ...] = ()


@dataclass(frozen=True)
class Targets:
    """Of one query. `classes` are, by variable, its single-class conjuncts; `plan` is what
    classifies and numbers rows, one leaf for each variable, without those conjuncts."""

    plan: Plan
    classes: dict[str, tuple[Condition, ...]]
    joints: tuple[JointTarget, ...]
    columns: tuple[Attribute, ...]

    @property
    def window(self) -> int:
        return FOREVER if self.plan.window is None else self.plan.window.size

    @cached_property
    def ticks(self) -> int | None:
        """What rates are per: a second, a unit of time, or (None) an event of the stream."""
        window, schema = self.plan.window, self.plan.schema
        if window is not None and window.clock is Clock.EVENTS:
            return None
        return 1 if schema.columns[schema.time] is Type.INTEGER else SECOND


def targets(query: BoundQuery) -> Targets:
    """Conjuncts that are about complete groups or matches are left out: no sample of events says
    how often those hold."""
    names = variables_of(query.pattern)
    plan = Plan(
        alternatives=tuple(LeafNode(name) for name in names),
        variables=query.variables,
        outputs=(),
        window=query.window,
        key=tuple(part.columns for part in query.key),
        schema=query.schema,
        required=query.required,
    )
    joints = tuple(_joints(query, names))
    return Targets(plan, {n: _class(query, n) for n in names}, joints, _columns(query, joints))


def _class(query: BoundQuery, name: str) -> tuple[Condition, ...]:
    return tuple(
        Condition(expression_text(c.expression), c.expression)
        for c in query.where
        if c.role is Role.CLASS and c.variables == (name,)
    )


_JOINT = (Role.EQUALITY, Role.MULTI, Role.FILTER, Role.NEGATION)
_COMPLETE = (Previous, Aggregate, Reduce, Every, Some, MatchDuration, Whole)


def _joints(query: BoundQuery, names: tuple[str, ...]) -> Iterator[JointTarget]:
    before, exclusive = _orders(query.pattern)
    conditions: dict[tuple[str, ...], list[Condition]] = {}
    for c in query.where:
        read = c.variables
        if c.role not in _JOINT or len(read) < 2:
            continue
        if any(isinstance(e, _COMPLETE) for e in walk(c.expression)):
            continue
        if any((first, second) in exclusive for first in read for second in read):
            continue
        conditions.setdefault(read, []).append(
            Condition(expression_text(c.expression), c.expression)
        )
    # Whatever is next to each other speaks for a key that all share.
    pairs = [p for p in pairwise(names) if query.key and p not in exclusive]
    for read in dict.fromkeys((*conditions, *pairs)):
        pairs_before = frozenset(p for p in before if p[0] in read and p[1] in read)
        key = tuple(_key(query, *read)) if read in pairs else ()
        yield JointTarget(read, pairs_before, tuple(conditions.get(read, ())), key)


def _key(query: BoundQuery, *read: str) -> Iterator[tuple[Attribute, Attribute]]:
    for part in query.key:
        left, right = (_attribute(query, name, part.columns[name]) for name in read)
        yield left, right


def _attribute(query: BoundQuery, variable: str, column: str) -> Attribute:
    return Attribute(variable, column, query.schema.columns[column])


def _columns(query: BoundQuery, joints: tuple[JointTarget, ...]) -> tuple[Attribute, ...]:
    """The columns that equalities and the key read."""
    sides = [s for j in joints for c in j.conditions for s in c.equality or ()]
    key = [_attribute(query, v, c) for part in query.key for v, c in part.columns.items()]
    return tuple(a for a in dict.fromkeys((*sides, *key)) if a.type is not Type.OTHER)


def _orders(pattern: Pattern) -> tuple[frozenset[Pair], frozenset[Pair]]:
    """Pairs of variables of which the first comes first, and pairs that are never both bound."""
    before: set[Pair] = set()
    exclusive: set[Pair] = set()

    def visit(node: Pattern) -> None:
        parts = items(node)
        for i, part in enumerate(parts):
            visit(part)
            for other in parts[i + 1 :]:
                pairs = {(u, v) for u in variables_of(part) for v in variables_of(other)}
                match node:
                    case Conjunction() | Unless():
                        pass
                    case Disjunction():
                        exclusive.update(pairs)
                    case _:
                        before.update(pairs)

    visit(pattern)
    return frozenset(before), frozenset(exclusive)
