"""The operators of a plan at run time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol, assert_never

from cepheid import kernels
from cepheid.engine.lowering import Inputs, Lowering
from cepheid.engine.operators.base import (
    FOREVER,
    NO_HEADS,
    Context,
    LeafOperator,
    Operator,
    Passing,
    places,
)
from cepheid.engine.operators.closure import KseqOperator, RunOperator
from cepheid.engine.operators.joins import ConjOperator, SeqOperator
from cepheid.engine.operators.negation import NegOperator, NseqAfter, NseqBefore
from cepheid.kernels import Pieces
from cepheid.plan.nodes import Conj, Filter, Kseq, Leaf, Neg, Node, Nseq, Run, Seq

__all__ = ["FOREVER", "Context", "LeafOperator", "Operator", "build_operators"]


class FilterOperator(Passing):
    """Records that satisfy the predicates; with none, a copy of the input."""

    node: Filter

    def __init__(self, context: Context, node: Filter, source: Operator) -> None:
        super().__init__(context, source)
        self.node = node

    def searched(self) -> Iterable[Operator]:
        return ()

    def source(self, inputs: Inputs) -> str:
        lower = Lowering(inputs, places(self.outer, inputs, "o_slots", "o", outer=False))
        lower.require(self.node.predicates)
        results = self.result_values(lower)
        pieces = Pieces(inputs.unpack(0), lower.outer, lower.inner, lower.depth, None, results)
        return kernels.filter_(pieces, self.outer.copied)

    def step(self) -> bool:
        source = self.outer.out
        return self.pass_on(source.visible, source.records, NO_HEADS) == 1


class Build(Protocol):
    def __call__(self, node: Node, widened: bool = False) -> Operator: ...


def build_operators(
    context: Context, roots: Sequence[Node], leaves: Mapping[Leaf, LeafOperator]
) -> tuple[list[Operator], list[Operator]]:
    """One operator per distinct node, inputs first; and the operators of the roots."""
    known: dict[tuple[Node, bool], Operator] = {(n, False): leaf for n, leaf in leaves.items()}

    def build(node: Node, widened: bool = False) -> Operator:
        """A negated pattern whose gap is open on both sides can span two windows."""
        key = (node, widened and not isinstance(node, Leaf))
        if key not in known:
            operator = _operator(context, node, partial(build, widened=key[1]))
            operator.window *= 2 if key[1] else 1
            known[key] = operator
        return known[key]

    tops = [build(root) for root in roots]
    return list(known.values()), tops


def _operator(context: Context, node: Node, build: Build) -> Operator:
    match node:
        case Leaf():
            raise AssertionError(f"no leaf buffer for {node.variable}")
        case Seq():
            return SeqOperator(context, node, build(node.left), build(node.right))
        case Conj():
            return ConjOperator(context, node, build(node.left), build(node.right))
        case Nseq(before=True):
            return NseqBefore(context, node, build(node.input), build(node.negated))
        case Nseq():
            return NseqAfter(context, node, build(node.input), build(node.negated))
        case Neg(gap=gap):
            widened = gap.open_before and gap.open_after
            negated = build(node.negated, widened=widened)
            return NegOperator(context, node, build(node.input), negated)
        case Kseq():
            return KseqOperator(context, node, build(node.input), build(node.element))
        case Run():
            return RunOperator(context, node, build(node.element))
        case Filter():
            return FilterOperator(context, node, build(node.input))
        case _:
            assert_never(node)
