"""What hangs on the tree of an alternative: conditions, negations and closures, before any tree
is chosen. `build` attaches them to nodes; the plan search foresees where that will be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from cepheid.algebra.absence import applies, without_absent
from cepheid.algebra.expressions import (
    Attribute,
    Call,
    Expr,
    MatchDuration,
    TimeSpan,
    transform,
    variables,
)
from cepheid.algebra.patterns import (
    Closure,
    Conjunction,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    leaves,
    positive,
    walk,
)
from cepheid.algebra.query import BoundQuery, Kind, Role
from cepheid.algebra.types import Type
from cepheid.language.ast import Exactly, Quantifier
from cepheid.plan.nodes import Equality, Gap, LeafNode
from cepheid.planner.alternatives import Alternative, negated_branches
from cepheid.planner.trees.gaps import GapItem, between


@dataclass(frozen=True)
class Negated:
    """A forbidden pattern that waits for the node that can check it. `inner` are conditions on
    the pattern itself, `predicates` those that read the match, too. `mingled` are variables whose
    events may lie in the gap: an event that they bind is not a forbidden one. `top`: it is to be
    checked on the complete match."""

    pattern: Pattern
    index: int
    gap: Gap
    inner: tuple[Expr, ...]
    predicates: tuple[Expr, ...]
    mingled: frozenset[str]
    top: bool

    @cached_property
    def outer(self) -> frozenset[str]:
        """What the predicates read of the match."""
        read = frozenset().union(*(variables(p) for p in self.predicates))
        return read - frozenset(leaves(self.pattern))

    @cached_property
    def needs(self) -> frozenset[str]:
        return self.outer | self.mingled | {*self.gap.before, *self.gap.after}

    @property
    def late(self) -> bool:
        """Whether only the complete match can be checked."""
        return self.gap.open_before or self.gap.open_after or self.top

    @property
    def simple(self) -> bool:
        """Whether it can become NSEQ where its neighbors are joined: it is a primitive one
        between two bound parts, and nothing else can lie in its gap."""
        within = not self.gap.open_before and not self.gap.open_after
        return isinstance(self.pattern, Leaf) and within and not self.mingled

    def stands_between(self, last: Collection[str], first: Collection[str]) -> bool:
        return set(self.gap.before) == set(last) and set(self.gap.after) == set(first)


@dataclass(frozen=True)
class PendingClosure:
    """A closure that waits for the node that has its neighbors."""

    name: str
    quantifier: Quantifier
    gap: Gap
    filters: tuple[Expr, ...]
    running: tuple[Expr, ...]

    @cached_property
    def needs(self) -> frozenset[str]:
        read = frozenset().union(*(variables(e) for e in (*self.filters, *self.running)))
        return (read - {self.name}) | {*self.gap.before, *self.gap.after}

    @property
    def late(self) -> bool:
        return self.gap.open_before or self.gap.open_after


class Parts:
    """Of one alternative, with the negations of these indices on top. Groups and negations are in
    the order in which they are attached: runs before maximal groups, which lie between them."""

    def __init__(self, query: BoundQuery, alternative: Alternative, top: frozenset[int]) -> None:
        self.query = query
        self.pattern = alternative.pattern
        self.segments = dict(alternative.segments)
        self.conjunctive = any(isinstance(p, Conjunction) for p in walk(self.pattern))
        where = alternative.where
        self.filters = {
            v: tuple(c.expression for c in where if c.role is Role.CLASS and c.variables == (v,))
            for v in query.variables
        }
        # A conjunct on no variable at all (`WHERE 1 = 2`) is checked on the complete match.
        self.predicates = tuple(
            c.expression
            for c in where
            if c.role in (Role.EQUALITY, Role.MULTI, Role.CHECK)
            or (c.role is Role.CLASS and len(c.variables) != 1)
        )
        self.reads = tuple(map(variables, self.predicates))
        final = (c.expression for c in where if c.role is Role.MATCH)
        self.final = tuple(self._complete(e) for e in (*final, *alternative.having))
        placed = between(self.pattern)
        negated = (n for p in placed for n in self._negations(p, top))
        groups = (g for p in placed for g in self._closures(p, alternative))
        self.negated = tuple(sorted(negated, key=lambda n: n.gap.open_after))
        self.groups = tuple(sorted(groups, key=lambda g: not isinstance(g.quantifier, Exactly)))

    def _complete(self, expr: Expr) -> Expr:
        """`duration()` is the span of all that the match binds."""
        bound_ = positive(self.pattern)
        return transform(
            expr, lambda e: TimeSpan(bound_, e.type) if isinstance(e, MatchDuration) else None
        )

    def _closures(self, placed: GapItem, alternative: Alternative) -> Iterator[PendingClosure]:
        closure = placed.item
        if not isinstance(closure, Closure):
            return
        assert isinstance(closure.item, Leaf)
        name = closure.item.variable
        conditions = [c for c in alternative.where if c.target == name]
        filters = tuple(c.expression for c in conditions if c.role is Role.FILTER)
        running = tuple(c.expression for c in conditions if c.role is Role.RUNNING)
        yield PendingClosure(name, closure.quantifier, placed.gap, filters, running)

    def _negations(self, placed: GapItem, top: frozenset[int]) -> Iterator[Negated]:
        if not isinstance(placed.item, Negation):
            return
        index = placed.item.index
        forbidding = [
            c for c in self.query.where if c.negation == index and c.role is Role.NEGATION
        ]
        disjunctions = [p for p in walk(self.query.pattern) if isinstance(p, Disjunction)]
        positives = frozenset(leaves(self.pattern)) - frozenset(leaves(placed.item))
        for branch in negated_branches(placed.item):
            members = frozenset(leaves(branch))
            present = positives | members
            conditions = [
                without_absent(c.expression, present)
                for c in forbidding
                if applies(c.variables, present, disjunctions)
            ]
            inner = tuple(c for c in conditions if variables(c) <= members)
            predicates = tuple(c for c in conditions if not variables(c) <= members)
            mingled = self._mingled(branch, placed.gap)
            yield Negated(branch, index, placed.gap, inner, predicates, mingled, index in top)

    def _mingled(self, branch: Pattern, gap: Gap) -> frozenset[str]:
        """Members of a conjunction have no order, so one may bind an event in another's gap."""
        if not self.conjunctive:
            return frozenset()
        others = set(positive(self.pattern)) - {*gap.before, *gap.after}
        return frozenset(a for a, _ in self.overlapping(others, leaves(branch)))

    def leaf(self, variable: str, conditions: tuple[Expr, ...] = ()) -> LeafNode:
        return LeafNode(variable, self.filters[variable] + conditions)

    def overlapping(self, left: Iterable[str], right: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Pairs of variables that one event could be bound to twice."""

        def types(name: str) -> frozenset[str]:
            return frozenset(self.query.variables[name].types)

        return tuple(
            (a, b)
            for a in left
            for b in right
            if not types(a) or not types(b) or types(a) & types(b)
        )

    def split(
        self, left: Collection[str], right: Collection[str], predicates: Iterable[Expr]
    ) -> tuple[tuple[Equality, ...], tuple[Expr, ...]]:
        """Equalities across the two inputs, the key among them, and the other predicates."""
        equalities = list(self._key(left, right))
        others: list[Expr] = []
        for predicate in predicates:
            equality = self.equality(predicate, left, right)
            if equality is None:
                others.append(predicate)
            else:
                equalities.append(equality)
        return tuple(equalities), tuple(others)

    def _key(self, left: Collection[str], right: Collection[str]) -> Iterator[Equality]:
        columns = self.query.schema.columns
        for part in self.query.key:
            # All variables of a side agree on the key; one that is an event speaks for them.
            a, b = (
                Attribute(v, part.columns[v], columns[part.columns[v]])
                for v in (min(side, key=lambda v: not self.single(v)) for side in (left, right))
            )
            yield Equality(a, b)

    def single(self, variable: str) -> bool:
        return self.query.variables[variable].kind is Kind.SINGLE

    def equality(
        self, predicate: Expr, left: Collection[str], right: Collection[str]
    ) -> Equality | None:
        """The predicate as a hash join of the two inputs, if it can be one."""
        match predicate:
            case Call("=", (Attribute() as a, Attribute() as b)) if a.type is b.type:
                if a.type in (Type.DECIMAL, Type.OTHER):
                    return None
                if a.variable in left and b.variable in right and self.single(a.variable):
                    return Equality(a, b)
                if b.variable in left and a.variable in right and self.single(b.variable):
                    return Equality(b, a)
        return None
