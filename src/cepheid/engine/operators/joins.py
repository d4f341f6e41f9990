"""SEQ and CONJ: two inputs joined (ZStream 4.4.1, 4.4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cepheid import kernels
from cepheid.algebra.expressions import Expr
from cepheid.engine.lowering import Inputs, KernelLowering
from cepheid.engine.operators.base import Context, Cursor, Operator
from cepheid.engine.operators.negation import NseqAfter, NseqBefore, require_distinct
from cepheid.engine.operators.search import (
    NO_HEADS,
    Passing,
    Searching,
    as_predicates,
    extend_chain,
    hash_of,
    hash_source,
    places,
)
from cepheid.kernels import KernelState, Pieces
from cepheid.plan.nodes import Conj, Seq


def joined_slots(left: Operator, right: Operator) -> tuple[dict[str, int], int]:
    """The slots of the left record, then those of the right; NSEQ bounds are left out."""
    offset = len(left.copied)
    slots = {v: left.copied.index(s) for v, s in left.slots.items()}
    slots |= {v: offset + right.copied.index(s) for v, s in right.slots.items()}
    return slots, offset + len(right.copied)


class SeqOperator(Searching):
    """SEQ: the right input is the outer one, so that output is in the order of ends."""

    node: Seq

    def __init__(self, context: Context, node: Seq, left: Operator, right: Operator) -> None:
        super().__init__(context, *joined_slots(left, right), left, right)
        self.node = node
        self.outer, self.inner = right, left
        self.cursor = Cursor(right)
        self.cursors = (self.cursor,)
        pair = None if node.scan else hash_of(node.equalities)
        self.inner_key, self.outer_key = pair if pair else (None, None)
        self.link()
        self.state[KernelState.FRESH] = 1

    def source(self, inputs: Inputs) -> str:
        scope = places(self.inner, inputs, "i_slots", "i", outer=False)
        scope |= places(self.outer, inputs, "o_slots", "o", outer=True)
        lower = KernelLowering(inputs, scope)
        hashed = self.hash(lower)
        lower.require([*as_predicates(self.node.equalities), *self.node.predicates])
        results = self.result_values(lower)
        pieces = Pieces(inputs.unpack(0), lower.outer, lower.inner, lower.depth, hashed, results)
        pieces.demand = self.demand is not None
        floor = self.outer.bound if isinstance(self.outer, NseqBefore) else None
        ceiling = self.inner.bound if isinstance(self.inner, NseqAfter) else None
        return kernels.seq(pieces, self.outer.copied, self.inner.copied, floor, ceiling)

    def step(self) -> bool:
        state, right = self.state, self.outer.out
        if state[KernelState.FRESH]:
            state[KernelState.OUTER] = self.cursor.begin
        state[KernelState.OUTER_END] = right.visible
        if state[KernelState.OUTER] >= right.visible and not self.context.warming:
            return True
        heads = self.prepare()
        done = self.call(right.records, self.inner_records(), heads) == 1
        self.cursor.advance(int(state[KernelState.OUTER]))
        return done

    def skip(self) -> None:
        self.cursor.advance(self.outer.out.visible)


class AcceptedLeaf(Passing):
    """The events of a leaf that one of the records at hand accepts: those of the right input that
    are new to the SEQ whose predicates are passed down. That SEQ always has a demand."""

    node: Seq

    def __init__(
        self, context: Context, node: Seq, passed: Sequence[Expr], leaf: Operator, right: Operator
    ) -> None:
        super().__init__(context, leaf, right)
        self.node = node
        self.passed = passed
        self.inner = right

    @property
    def made(self) -> int:
        return 0  # the records of its leaf, which has counted them

    def searched(self) -> Iterable[Operator]:
        return ()

    def source(self, inputs: Inputs) -> str:
        scope = places(self.outer, inputs, "o_slots", "o", outer=True)
        scope |= places(self.inner, inputs, "i_slots", "i", outer=False)
        lower = KernelLowering(inputs, scope)
        lower.require(self.passed)
        pieces = Pieces(inputs.unpack(0), lower.outer, lower.inner, lower.depth, demand=True)
        return kernels.accepted(pieces)

    def step(self) -> bool:
        assert self.renewal is not None
        state = self.state
        if state[KernelState.FRESH]:
            state[KernelState.INNER] = self.renewal.cursor.begin
        state[KernelState.INNER_END] = self.inner.out.visible
        return self.pass_on(self.outer.out.visible, self.inner.out.records, NO_HEADS) == 1


class ConjOperator(Operator):
    """CONJ: both inputs drive, in the order of their ends."""

    node: Conj

    def __init__(self, context: Context, node: Conj, left: Operator, right: Operator) -> None:
        super().__init__(context, *joined_slots(left, right), left, right)
        self.node = node
        self.left, self.right = left, right
        self.cursors = Cursor(left), Cursor(right)
        self.keys = hash_of(node.equalities)
        if self.keys:
            left.out.chain(self.keys[0], context.jit)
            right.out.chain(self.keys[1], context.jit)
        self.state[KernelState.FRESH] = 1

    def searched(self) -> Iterable[Operator]:
        return (self.left, self.right)

    def _side(self, inputs: Inputs, left_at_hand: bool) -> Pieces:
        scope = places(self.left, inputs, "o_slots", "o", outer=left_at_hand)
        scope |= places(self.right, inputs, "i_slots", "i", outer=not left_at_hand)
        lower = KernelLowering(inputs, scope, "l" if left_at_hand else "r")
        hashed = None
        if self.keys:
            hashed = hash_source(lower, self.keys[0 if left_at_hand else 1])
        require_distinct(lower, self.node.distinct)
        lower.require([*as_predicates(self.node.equalities), *self.node.predicates])
        results = self.result_values(lower)
        return Pieces([], lower.outer, lower.inner, lower.depth, hashed, results)

    def source(self, inputs: Inputs) -> str:
        left, right = self._side(inputs, True), self._side(inputs, False)
        left.unpack = inputs.unpack(0)
        return kernels.conj(left, right, self.left.copied, self.right.copied)

    def step(self) -> bool:
        state, left, right = self.state, self.left.out, self.right.out
        if state[KernelState.FRESH]:
            state[KernelState.OUTER] = self.cursors[0].begin
            state[KernelState.INNER] = self.cursors[1].begin
        state[KernelState.OUTER_END] = left.visible
        state[KernelState.INNER_END] = right.visible
        read = state[KernelState.OUTER] >= left.visible, state[KernelState.INNER] >= right.visible
        if all(read) and not self.context.warming:
            return True
        state[KernelState.OUTER_BASE] = left.base
        state[KernelState.INNER_BASE] = right.base
        heads = (NO_HEADS, NO_HEADS)
        outer, inner = left.records, right.records
        if self.keys:
            heads = (
                extend_chain(self.left, self.keys[0]),
                extend_chain(self.right, self.keys[1]),
            )
            outer, inner = left.linked(self.keys[0]), right.linked(self.keys[1])
        done = self.call(outer, inner, heads) == 1
        self.cursors[0].advance(int(state[KernelState.OUTER]))
        self.cursors[1].advance(int(state[KernelState.INNER]))
        return done

    def skip(self) -> None:
        self.cursors[0].advance(self.left.out.visible)
        self.cursors[1].advance(self.right.out.visible)
