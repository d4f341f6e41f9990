"""FILTER: predicates that are checked on top of another operator."""

from __future__ import annotations

from collections.abc import Iterable

from cepheid import kernels
from cepheid.engine.lowering import Inputs, KernelLowering
from cepheid.engine.operators.base import Context, LeafOperator, Operator
from cepheid.engine.operators.search import NO_HEADS, Passing, places
from cepheid.kernels import Pieces
from cepheid.plan.nodes import Filter


class FilterOperator(Passing):
    """Records that satisfy the predicates; with none, a copy of the input."""

    node: Filter

    def __init__(self, context: Context, node: Filter, source: Operator) -> None:
        super().__init__(context, source)
        self.node = node

    def searched(self) -> Iterable[Operator]:
        return self.deferred()

    def source(self, inputs: Inputs) -> str:
        lower = KernelLowering(inputs, places(self.outer, inputs, "o_slots", "o", outer=False))
        lower.require(self.node.predicates)
        results = self.result_values(lower)
        pieces = Pieces(inputs.unpack(0), lower.outer, lower.inner, lower.depth, None, results)
        pieces.demand = self.demand is not None
        return kernels.filter_(pieces, self.outer.copied, isinstance(self.outer, LeafOperator))

    def step(self) -> bool:
        source = self.outer.out
        return self.pass_on(source.visible, source.records, NO_HEADS) == 1
