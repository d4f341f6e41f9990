"""From an alternative and a shape to a tree of operators.

Bottom up: whatever becomes evaluable at a node is attached to it, and only there. Equalities
become hash keys, negations NSEQ where their predicates allow it (ZStream 4.4.2), and what needs
the whole match (edges of the window, `duration()`, HAVING) goes on top.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

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
    Negation,
    Pattern,
    Sequence,
    leaves,
    positive,
    walk,
)
from cepheid.algebra.patterns import (
    Leaf as LeafPattern,
)
from cepheid.algebra.query import BoundQuery, Conjunct, Kind, Role
from cepheid.algebra.types import Type
from cepheid.errors import PlanError
from cepheid.language.ast import Exactly, Quantifier
from cepheid.plan.nodes import (
    Conj,
    Equality,
    Filter,
    Gap,
    Kseq,
    Leaf,
    Neg,
    Node,
    Nseq,
    Run,
    Seq,
    bound,
)
from cepheid.planner.alternatives import Alternative, applies, negated_branches, without_absent
from cepheid.planner.choice import Choice
from cepheid.planner.gaps import Placed, between, core
from cepheid.planner.shapes import LEFT_DEEP, RIGHT_DEEP, Shape, fold, names, restrict


def build(query: BoundQuery, alternative: Alternative, choice: Choice) -> Node:
    """The tree of one alternative, without what propagation adds to it."""
    return _Builder(query, alternative, choice.top).build(choice.shape)


def shape_of(pattern: Pattern, style: str) -> Shape:
    """The style's tree over the variables that every match binds."""
    match pattern:
        case LeafPattern():
            return pattern.variable
        case Sequence() | Conjunction():
            return fold([shape_of(i, style) for i in pattern.items if core(i)], style)
        case _:
            raise AssertionError(f"no tree plan for {type(pattern).__name__}")


@dataclass(frozen=True)
class _Negated:
    """A forbidden pattern that waits for the node that can check it. `inner` are conditions on
    the pattern itself, `predicates` those that read the match, too. `mingled` are variables whose
    events may lie in the gap: an event that they bind is not a forbidden one. `top`: it is to be
    checked on the complete match."""

    pattern: Pattern
    gap: Gap
    inner: tuple[Expr, ...]
    predicates: tuple[Expr, ...]
    mingled: frozenset[str]
    top: bool

    @property
    def outer(self) -> frozenset[str]:
        """What the predicates read of the match."""
        read = frozenset().union(*(variables(p) for p in self.predicates))
        return read - frozenset(leaves(self.pattern))

    @property
    def needs(self) -> frozenset[str]:
        return self.outer | self.mingled | {*self.gap.before, *self.gap.after}


@dataclass(frozen=True)
class _Group:
    """A closure that waits for the node that has its neighbors."""

    name: str
    quantifier: Quantifier
    gap: Gap
    filters: tuple[Expr, ...]
    running: tuple[Expr, ...]

    @property
    def needs(self) -> frozenset[str]:
        read = frozenset().union(*(variables(e) for e in (*self.filters, *self.running)))
        return (read - {self.name}) | {*self.gap.before, *self.gap.after}


class _Builder:
    """Holds what is still to be attached while the tree grows from its leaves."""

    def __init__(self, query: BoundQuery, alternative: Alternative, top: frozenset[int]) -> None:
        self.query = query
        self.pattern = alternative.pattern
        self.having = tuple(self._complete(h) for h in alternative.having)
        self.top = top
        self.conjunctive = any(isinstance(p, Conjunction) for p in walk(self.pattern))
        where = alternative.where
        self.filters = {
            v: tuple(c.expression for c in where if c.role is Role.CLASS and c.variables == (v,))
            for v in query.variables
        }
        # A conjunct on no variable at all (`WHERE 1 = 2`) is checked on the complete match.
        self.predicates = [
            c.expression
            for c in where
            if c.role in (Role.EQUALITY, Role.MULTI, Role.CHECK)
            or (c.role is Role.CLASS and len(c.variables) != 1)
        ]
        self.final = [self._complete(c.expression) for c in where if c.role is Role.MATCH]
        placed = between(self.pattern)
        self.negated = [n for p in placed for n in self._negations(p)]
        self.groups = [g for p in placed for g in self._closures(p, where)]
        self.groups.sort(key=lambda g: not isinstance(g.quantifier, Exactly))
        self.negated.sort(key=lambda n: n.gap.open_after)

    def _complete(self, expr: Expr) -> Expr:
        """`duration()` is the span of all that the match binds."""
        bound_ = positive(self.pattern)
        return transform(
            expr, lambda e: TimeSpan(bound_, e.type) if isinstance(e, MatchDuration) else None
        )

    def _closures(self, placed: Placed, where: Iterable[Conjunct]) -> Iterable[_Group]:
        closure = placed.item
        if not isinstance(closure, Closure):
            return
        assert isinstance(closure.item, LeafPattern)
        name = closure.item.variable
        own = [c for c in where if c.target == name]
        filters = tuple(c.expression for c in own if c.role is Role.FILTER)
        running = tuple(c.expression for c in own if c.role is Role.RUNNING)
        yield _Group(name, closure.quantifier, placed.gap, filters, running)

    def _negations(self, placed: Placed) -> Iterable[_Negated]:
        if not isinstance(placed.item, Negation):
            return
        index = placed.item.index
        own = [c for c in self.query.where if c.negation == index and c.role is Role.NEGATION]
        disjunctions = [p for p in walk(self.query.pattern) if isinstance(p, Disjunction)]
        positives = frozenset(leaves(self.pattern)) - frozenset(leaves(placed.item))
        for branch in negated_branches(placed.item):
            members = frozenset(leaves(branch))
            present = positives | members
            conditions = [
                without_absent(c.expression, present)
                for c in own
                if applies(c.variables, present, disjunctions)
            ]
            inner = tuple(c for c in conditions if variables(c) <= members)
            predicates = tuple(c for c in conditions if not variables(c) <= members)
            mingled = self._mingled(branch, placed.gap)
            yield _Negated(branch, placed.gap, inner, predicates, mingled, index in self.top)

    def _mingled(self, branch: Pattern, gap: Gap) -> frozenset[str]:
        """Members of a conjunction have no order, so one may bind an event in another's gap."""
        if not self.conjunctive:
            return frozenset()
        others = set(positive(self.pattern)) - {*gap.before, *gap.after}
        return frozenset(a for a, _ in self._overlapping(others, leaves(branch)))

    # ── the tree ──

    def build(self, shape: Shape) -> Node:
        wanted = core(self.pattern)
        if not wanted:
            node = self._run()
        else:
            styled = shape in (LEFT_DEEP, RIGHT_DEEP)
            tree = restrict(shape_of(self.pattern, str(shape)) if styled else shape, wanted)
            node = self._node(self.pattern, tree or wanted[0])
        node = self._attach(node, top=True)
        rest = (*self.predicates, *self.final, *self.having)
        return Filter(node, tuple(rest)) if rest else node

    def _run(self) -> Node:
        """A pattern of groups alone begins with its first run, `Fail{3} f`."""
        group = self.groups.pop(0)
        assert isinstance(group.quantifier, Exactly)
        columns = self.query.schema.columns
        names_ = [part.columns[group.name] for part in self.query.key]
        key = tuple(Attribute(group.name, n, columns[n]) for n in names_)
        checks = self._take((group.name,))
        # Its filters read the element alone: what else they named is in a branch not taken.
        leaf = self._leaf(group.name)
        leaf = replace(leaf, filters=leaf.filters + group.filters)
        return Run(leaf, group.quantifier.count, key, group.running, checks)

    def _node(self, pattern: Pattern, shape: Shape) -> Node:
        match pattern:
            case LeafPattern():
                return self._leaf(pattern.variable)
            case Sequence():
                return self._sequence([i for i in pattern.items if core(i)], shape)
            case Conjunction():
                return self._conjunction([i for i in pattern.items if core(i)], shape)
            case _:
                raise AssertionError(f"no tree plan for {type(pattern).__name__}")

    def _leaf(self, variable: str) -> Leaf:
        return Leaf(variable, self.filters[variable])

    def _sequence(self, items: list[Pattern], shape: Shape) -> Node:
        if len(items) == 1:
            return self._node(items[0], shape)
        if isinstance(shape, str):
            raise PlanError(f"the plan joins `{shape}` with nothing")
        left = set(names(shape.left))
        for k in range(1, len(items)):
            if {v for i in items[:k] for v in core(i)} == left:
                break
        else:
            raise PlanError(
                f"in a sequence only neighbors can be joined: ({' '.join(names(shape.left))}) and "
                f"({' '.join(names(shape.right))}) are not two parts of "
                f"{' ; '.join(' '.join(core(i)) for i in items)}"
            )
        first = self._sequence(items[:k], shape.left)
        second = self._sequence(items[k:], shape.right)
        first, second = self._push_negations(first, second, core(items[k - 1]), core(items[k]))
        equalities, predicates = self._join(first, second)
        return self._attach(Seq(first, second, equalities, predicates))

    def _conjunction(self, items: list[Pattern], shape: Shape) -> Node:
        if len(items) == 1:
            return self._node(items[0], shape)
        if isinstance(shape, str):
            raise PlanError(f"the plan joins `{shape}` with nothing")
        sides: list[list[Pattern]] = []
        for part in (shape.left, shape.right):
            inside = set(names(part))
            sides.append([i for i in items if set(core(i)) <= inside])
        if {v for i in sides[0] for v in core(i)} != set(names(shape.left)) or len(sides[0]) + len(
            sides[1]
        ) != len(items):
            raise PlanError(
                f"({' '.join(names(shape.left))}) is not made of whole members of "
                f"{' & '.join(' '.join(core(i)) for i in items)}"
            )
        first = self._conjunction(sides[0], shape.left)
        second = self._conjunction(sides[1], shape.right)
        equalities, predicates = self._join(first, second)
        distinct = self._overlapping(bound(first), bound(second))
        return self._attach(Conj(first, second, equalities, predicates, distinct))

    # ── what hangs on it ──

    def _take(self, available: Collection[str]) -> tuple[Expr, ...]:
        """Remove and return the predicates that these variables can evaluate."""
        names_ = frozenset(available)
        taken = [p for p in self.predicates if variables(p) and variables(p) <= names_]
        self.predicates = [p for p in self.predicates if p not in taken]
        return tuple(taken)

    def _join(self, left: Node, right: Node) -> tuple[tuple[Equality, ...], tuple[Expr, ...]]:
        sides = bound(left), bound(right)
        predicates = self._take((*sides[0], *sides[1]))
        return self._split(sides[0], sides[1], predicates)

    def _split(
        self, left: Collection[str], right: Collection[str], predicates: Iterable[Expr]
    ) -> tuple[tuple[Equality, ...], tuple[Expr, ...]]:
        """Equalities across the two inputs, the key among them, and the other predicates."""
        equalities = list(self._key(left, right))
        others: list[Expr] = []
        for predicate in predicates:
            equality = self._equality(predicate, left, right)
            if equality is None:
                others.append(predicate)
            else:
                equalities.append(equality)
        return tuple(equalities), tuple(others)

    def _key(self, left: Collection[str], right: Collection[str]) -> Iterable[Equality]:
        columns = self.query.schema.columns
        for part in self.query.key:
            # All variables of a side agree on the key; one that is an event speaks for them.
            a, b = (
                Attribute(v, part.columns[v], columns[part.columns[v]])
                for v in (min(side, key=lambda v: not self._single(v)) for side in (left, right))
            )
            yield Equality(a, b)

    def _single(self, variable: str) -> bool:
        return self.query.variables[variable].kind is Kind.SINGLE

    def _equality(
        self, predicate: Expr, left: Collection[str], right: Collection[str]
    ) -> Equality | None:
        match predicate:
            case Call("=", (Attribute() as a, Attribute() as b)) if a.type is b.type:
                if a.type in (Type.DECIMAL, Type.OTHER):
                    return None
                if a.variable in left and b.variable in right and self._single(a.variable):
                    return Equality(a, b)
                if b.variable in left and a.variable in right and self._single(b.variable):
                    return Equality(b, a)
        return None

    def _overlapping(
        self, left: Iterable[str], right: Iterable[str]
    ) -> tuple[tuple[str, str], ...]:
        """Pairs of variables that one event could be bound to twice."""

        def types(name: str) -> frozenset[str]:
            return frozenset(self.query.variables[name].types)

        return tuple(
            (a, b)
            for a in left
            for b in right
            if not types(a) or not types(b) or types(a) & types(b)
        )

    def _push_negations(
        self, left: Node, right: Node, last: tuple[str, ...], first: tuple[str, ...]
    ) -> tuple[Node, Node]:
        """NSEQ for the primitive negations between two neighbors whose predicates read one side
        only; correct because the nearest forbidden event on that side is then the same for every
        record of the other."""
        for negated in list(self.negated):
            gap = negated.gap
            if (
                negated.top
                or not isinstance(negated.pattern, LeafPattern)
                or set(gap.before) != set(last)
                or set(gap.after) != set(first)
                or gap.open_before
                or gap.open_after
                or negated.mingled
            ):
                continue
            leaf = self._negated_leaf(negated)
            if negated.outer <= set(bound(right)):
                keys, rest = self._split(bound(right), (leaf.variable,), negated.predicates)
                right = Nseq(right, leaf, True, keys, rest)
            elif negated.outer <= set(bound(left)) and not isinstance(left, Nseq):
                keys, rest = self._split(bound(left), (leaf.variable,), negated.predicates)
                left = Nseq(left, leaf, False, keys, rest)
            else:
                continue
            self.negated.remove(negated)
        return left, right

    def _negated_leaf(self, negated: _Negated) -> Leaf:
        assert isinstance(negated.pattern, LeafPattern)
        leaf = self._leaf(negated.pattern.variable)
        return replace(leaf, filters=leaf.filters + negated.inner)

    def _negated_node(self, negated: _Negated) -> Node:
        """The forbidden pattern as a plan of its own."""
        if isinstance(negated.pattern, LeafPattern):
            return self._negated_leaf(negated)
        kept = self.predicates, self.negated, self.groups
        self.predicates, self.negated, self.groups = list(negated.inner), [], []
        node = self._node(negated.pattern, shape_of(negated.pattern, "left-deep"))
        self.predicates, self.negated, self.groups = kept
        return node

    def _attach(self, node: Node, top: bool = False) -> Node:
        """Closures first (runs before maximal groups), then negations, as soon as all that they
        read is bound; those at the window's edge on top only."""
        progress = True
        while progress:
            progress = False
            for group in list(self.groups):
                edge = group.gap.open_before or group.gap.open_after
                if group.needs <= set(bound(node)) and (top or not edge):
                    self.groups.remove(group)
                    node = self._kseq(node, group)
                    progress = True
                    break
        for negated in list(self.negated):
            edge = negated.gap.open_before or negated.gap.open_after or negated.top
            if negated.needs <= set(bound(node)) and (top or not edge):
                self.negated.remove(negated)
                inner = self._negated_node(negated)
                keys, rest = self._split(bound(node), bound(inner), negated.predicates)
                # Outside conjunctions no bound event can lie in the gap.
                distinct = self._overlapping(bound(node), bound(inner)) if self.conjunctive else ()
                node = Neg(node, inner, negated.gap, keys, rest, distinct)
        return node

    def _kseq(self, node: Node, group: _Group) -> Node:
        element = self._leaf(group.name)
        keys, filters = self._split(bound(node), (group.name,), group.filters)
        checks = self._take((*bound(node), group.name))
        return Kseq(
            node,
            element,
            group.quantifier,
            group.gap,
            keys,
            filters,
            group.running,
            checks,
        )
