"""The operators of a plan, one for each distinct node, and the demands between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, assert_never

from cepheid.algebra.expressions import Expr, variables
from cepheid.engine.automaton.operator import AutomatonOperator
from cepheid.engine.operators.base import Context, LeafOperator, Operator
from cepheid.engine.operators.closure import KseqOperator, RunOperator
from cepheid.engine.operators.demand import Demand
from cepheid.engine.operators.filter import FilterOperator
from cepheid.engine.operators.joins import AcceptedLeaf, ConjOperator, SeqOperator
from cepheid.engine.operators.negation import NegOperator, NseqAfter, NseqBefore
from cepheid.engine.operators.search import Searching
from cepheid.engine.operators.stacks import StacksOperator
from cepheid.plan.nodes import (
    Automaton,
    Conj,
    Filter,
    Kseq,
    LeafNode,
    Neg,
    Node,
    Nseq,
    Run,
    Seq,
    Stacks,
)


@dataclass(frozen=True)
class PassedDown:
    """Inside the left input of a SEQ, `node`, that passes predicates down: operators in here are
    its own. `right` makes the records that the events are tested with."""

    node: Seq
    right: Operator

    def passed(self, leaf: LeafNode) -> tuple[Expr, ...]:
        return tuple(p for p in self.node.passed if leaf.variable in variables(p))


class Build(Protocol):
    def __call__(
        self, node: Node, widened: bool = False, scope: PassedDown | None = None
    ) -> Operator: ...


def build_operators(
    context: Context, roots: Sequence[Node], leaves: Mapping[LeafNode, LeafOperator]
) -> tuple[list[Operator], list[Operator]]:
    """Make one operator per distinct node, inputs first; return them and the roots' operators."""
    known: dict[tuple[Node, bool, PassedDown | None], Operator] = {
        (node, False, None): leaf for node, leaf in leaves.items()
    }

    def build(node: Node, widened: bool = False, scope: PassedDown | None = None) -> Operator:
        """A negated pattern whose gap is open on both sides can span two windows."""
        if isinstance(node, LeafNode) and not (scope and scope.passed(node)):
            return known[node, False, None]
        key = (node, widened, scope)
        if key not in known:
            below = partial(build, widened=widened, scope=scope)
            operator = _operator(context, node, below, scope)
            operator.window *= 2 if widened else 1
            known[key] = operator
        return known[key]

    tops = [build(root) for root in roots]
    operators = list(known.values())
    inside: dict[PassedDown, list[Operator]] = {}
    for (_, _, scope), operator in known.items():
        if scope is not None:
            inside.setdefault(scope, []).append(operator)
    _connect(operators, tops, inside)
    return operators, tops


def _operator(context: Context, node: Node, build: Build, scope: PassedDown | None) -> Operator:
    match node:
        case LeafNode():
            assert scope is not None
            leaf = build(node, scope=None)
            return AcceptedLeaf(context, scope.node, scope.passed(node), leaf, scope.right)
        case Seq():
            # The right input comes first: it may have to say what is wanted of the left one.
            right = build(node.right)
            below = PassedDown(node, right) if node.passed and scope is None else scope
            return SeqOperator(context, node, build(node.left, scope=below), right)
        case Conj():
            return ConjOperator(context, node, build(node.left), build(node.right))
        case Nseq(before=True):
            return NseqBefore(context, node, build(node.input), build(node.negated, scope=None))
        case Nseq():
            return NseqAfter(context, node, build(node.input), build(node.negated, scope=None))
        case Neg(gap=gap):
            widened = gap.open_before and gap.open_after
            negated = build(node.negated, widened=widened, scope=None)
            return NegOperator(context, node, build(node.input), negated)
        case Kseq():
            element = build(node.element, scope=None)
            return KseqOperator(context, node, build(node.input), element)
        case Run():
            return RunOperator(context, node, build(node.element, scope=None))
        case Filter():
            return FilterOperator(context, node, build(node.input))
        case Stacks():
            classes = [build(leaf, scope=None) for leaf in node.classes]
            return StacksOperator(context, node, *classes)
        case Automaton():
            classes = [build(leaf, scope=None) for leaf in node.leaves]
            return AutomatonOperator(context, node, *classes)
        case _:
            assert_never(node)


def _connect(
    operators: Sequence[Operator],
    roots: Sequence[Operator],
    inside: Mapping[PassedDown, list[Operator]],
) -> None:
    """Give the demand of every SEQ that pulls to its left input, and to what that takes its records
    from.

    An operator with several consumers isn't restricted by any of them; nor are CONJ, RUN, stacks
    and automata, which have no single input to wait for. What is below such an operator is
    evaluated in full.
    """
    readers = Counter(source for operator in operators for source in operator.inputs)
    readers.update(roots)

    def restrict(operator: Operator, demand: Demand) -> None:
        if readers[operator] > 1 or operator.in_full:
            return
        operator.demand = demand
        assert isinstance(operator, Searching)
        restrict(operator.outer, demand)

    for operator in operators:
        if isinstance(operator, SeqOperator) and (operator.node.pull or operator.node.passed):
            renewed = inside.get(PassedDown(operator.node, operator.outer), [])
            demand = Demand(operator, operator.outer, operator.cursor, renewed)
            for member in renewed:
                member.renewal = demand
                if isinstance(member, AcceptedLeaf) and member.demand is None:
                    member.demand = demand
            restrict(operator.inner, demand)
