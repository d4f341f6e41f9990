"""From an alternative and a shape to a tree of operators.

Bottom up: whatever becomes evaluable at a node is attached to it, and only there. Equalities
become hash keys, negations NSEQ where their predicates allow it (ZStream 4.4.2), and what needs
the whole match (edges of the window, `duration()`, HAVING) goes on top.
"""

from __future__ import annotations

from collections.abc import Collection

from cepheid.algebra.expressions import Attribute, Expr, variables
from cepheid.algebra.patterns import (
    Conjunction,
    Leaf,
    Pattern,
    Sequence,
)
from cepheid.errors import PlanError
from cepheid.language.ast import Exactly
from cepheid.plan.nodes import (
    Conj,
    Equality,
    Filter,
    Kseq,
    LeafNode,
    Neg,
    Node,
    Nseq,
    Run,
    Seq,
    bound,
)
from cepheid.planner.automata.chains import chain, stacks_of
from cepheid.planner.choice import Choice
from cepheid.planner.trees.gaps import core, is_segment
from cepheid.planner.trees.parts import Negated, Parts, PendingClosure
from cepheid.planner.trees.shapes import LEFT_DEEP, RIGHT_DEEP, Shape, fold, names, restrict


def build(parts: Parts, choice: Choice) -> Node:
    """The tree of one alternative, without what propagation adds to it."""
    builder = _TreeBuilder(parts)
    return builder.stacks() if choice.stacks else builder.build(choice.shape)


def negated_node(parts: Parts, negated: Negated) -> Node:
    """A forbidden pattern as a plan of its own."""
    return _TreeBuilder(parts).forbidden(negated)


def shape_of(pattern: Pattern, style: str) -> Shape:
    """The style's tree over the variables that every match binds."""
    match pattern:
        case Leaf():
            return pattern.variable
        case Sequence() if is_segment(pattern):
            return fold(list(core(pattern)), LEFT_DEEP)
        case Sequence() | Conjunction():
            return fold([shape_of(i, style) for i in pattern.items if core(i)], style)
        case _:
            raise AssertionError(f"no tree plan for {type(pattern).__name__}")


class _TreeBuilder:
    """Holds what is still to be attached while the tree grows from its leaves."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.predicates = list(zip(parts.predicates, parts.reads, strict=True))
        self.negated = list(parts.negated)
        self.groups = list(parts.groups)

    # ── the tree ──

    def build(self, shape: Shape) -> Node:
        pattern = self.parts.pattern
        wanted = core(pattern)
        if not wanted:
            node = self._run()
        else:
            styled = shape in (LEFT_DEEP, RIGHT_DEEP)
            tree = restrict(shape_of(pattern, str(shape)) if styled else shape, wanted)
            node = self._node(pattern, tree or wanted[0])
        return self._finished(node)

    def stacks(self) -> Node:
        """A chain in one operator, and above it what stands between its events."""
        names_ = chain(self.parts.pattern)
        assert names_ is not None
        return self._finished(stacks_of(self.parts, names_, self._take(names_)))

    def _finished(self, node: Node) -> Node:
        node = self._attach(node, top=True)
        rest = (*(predicate for predicate, _ in self.predicates), *self.parts.final)
        return Filter(node, rest) if rest else node

    def _run(self) -> Node:
        """A pattern of groups alone begins with its first run, `Fail{3} f`."""
        group = self.groups.pop(0)
        assert isinstance(group.quantifier, Exactly)
        query = self.parts.query
        columns = query.schema.columns
        names_ = [part.columns[group.name] for part in query.key]
        key = tuple(Attribute(group.name, n, columns[n]) for n in names_)
        checks = self._take((group.name,))
        # Its filters read the element alone: what else they named is in a branch not taken.
        leaf = self.parts.leaf(group.name, group.filters)
        return Run(leaf, group.quantifier.count, key, group.running, checks)

    def _node(self, pattern: Pattern, shape: Shape) -> Node:
        match pattern:
            case Leaf():
                return self.parts.leaf(pattern.variable)
            case Sequence() if is_segment(pattern):
                return self.parts.segments[pattern]
            case Sequence():
                return self._sequence([i for i in pattern.items if core(i)], shape)
            case Conjunction():
                return self._conjunction([i for i in pattern.items if core(i)], shape)
            case _:
                raise AssertionError(f"no tree plan for {type(pattern).__name__}")

    def _sequence(self, items: list[Pattern], shape: Shape) -> Node:
        if len(items) == 1:
            return self._node(items[0], shape)
        if isinstance(shape, str):
            raise PlanError(f"the plan joins `{shape}` with nothing")
        left, before = set(names(shape.left)), set[str]()
        for k in range(1, len(items)):
            before.update(core(items[k - 1]))
            if len(before) >= len(left):
                break
        if before != left:
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
        distinct = self.parts.overlapping(bound(first), bound(second))
        return self._attach(Conj(first, second, equalities, predicates, distinct))

    # ── what hangs on it ──

    def _take(self, available: Collection[str]) -> tuple[Expr, ...]:
        """Remove and return the predicates that these variables can evaluate."""
        names_ = frozenset(available)
        left: list[tuple[Expr, frozenset[str]]] = []
        taken: list[tuple[Expr, frozenset[str]]] = []
        for waiting in self.predicates:
            read = waiting[1]
            (taken if read and read <= names_ else left).append(waiting)
        self.predicates = left
        return tuple(predicate for predicate, _ in taken)

    def _join(self, left: Node, right: Node) -> tuple[tuple[Equality, ...], tuple[Expr, ...]]:
        sides = bound(left), bound(right)
        predicates = self._take((*sides[0], *sides[1]))
        return self.parts.split(sides[0], sides[1], predicates)

    def _push_negations(
        self, left: Node, right: Node, last: tuple[str, ...], first: tuple[str, ...]
    ) -> tuple[Node, Node]:
        """NSEQ for the primitive negations between two neighbors whose predicates read one side
        only; correct because the nearest forbidden event on that side is then the same for every
        record of the other."""
        for negated in list(self.negated):
            if negated.top or not negated.simple or not negated.stands_between(last, first):
                continue
            leaf = self._negated_leaf(negated)
            if negated.outer <= set(bound(right)):
                keys, rest = self.parts.split(bound(right), (leaf.variable,), negated.predicates)
                right = Nseq(right, leaf, True, keys, rest)
            elif negated.outer <= set(bound(left)) and not isinstance(left, Nseq):
                keys, rest = self.parts.split(bound(left), (leaf.variable,), negated.predicates)
                left = Nseq(left, leaf, False, keys, rest)
            else:
                continue
            self.negated.remove(negated)
        return left, right

    def _negated_leaf(self, negated: Negated) -> LeafNode:
        assert isinstance(negated.pattern, Leaf)
        return self.parts.leaf(negated.pattern.variable, negated.inner)

    def forbidden(self, negated: Negated) -> Node:
        """The forbidden pattern as a plan of its own."""
        if isinstance(negated.pattern, Leaf):
            return self._negated_leaf(negated)
        kept = self.predicates, self.negated, self.groups
        self.predicates, self.negated, self.groups = [], [], []
        self.predicates = [(predicate, variables(predicate)) for predicate in negated.inner]
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
                if group.needs <= set(bound(node)) and (top or not group.late):
                    self.groups.remove(group)
                    node = self._kseq(node, group)
                    progress = True
                    break
        for negated in list(self.negated):
            if negated.needs <= set(bound(node)) and (top or not negated.late):
                self.negated.remove(negated)
                inner = self.forbidden(negated)
                keys, rest = self.parts.split(bound(node), bound(inner), negated.predicates)
                # Outside conjunctions no bound event can lie in the gap.
                distinct = (
                    self.parts.overlapping(bound(node), bound(inner))
                    if self.parts.conjunctive
                    else ()
                )
                node = Neg(node, inner, negated.gap, keys, rest, distinct)
        return node

    def _kseq(self, node: Node, group: PendingClosure) -> Node:
        element = self.parts.leaf(group.name)
        keys, filters = self.parts.split(bound(node), (group.name,), group.filters)
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
