"""KSEQ: groups of events between their neighbors (ZStream 4.4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np

from cepheid import kernels
from cepheid.algebra.expressions import Expr, holds_first
from cepheid.engine.lowering import Event, GroupPlace, Inputs, KernelLowering, Place
from cepheid.engine.operators.base import Context, Operator
from cepheid.engine.operators.carried import CarriedAggregates, carry
from cepheid.engine.operators.negation import edges
from cepheid.engine.operators.search import Passing, as_predicates, places
from cepheid.engine.rows.buffers import Buffer, Pool
from cepheid.kernels import KernelState, Pieces
from cepheid.kernels.templates import ClosureParts
from cepheid.language.ast import Between, Exactly, Optional, Quantifier
from cepheid.plan.nodes import Equality, Kseq, Run


class Grouping(Passing):
    """An operator that adds groups of `element` events, kept in a pool."""

    def __init__(
        self, context: Context, source: Operator, element: Operator, variable: str
    ) -> None:
        super().__init__(context, source, element, extra=2)
        self.slots[variable] = self.width - 2
        self.pool = self.groups[variable] = Pool()
        self.variable = variable
        self.carried = CarriedAggregates()

    def conditions(
        self,
        inputs: Inputs,
        scope: dict[str, Place],
        running: Sequence[Expr],
        checks: Sequence[Expr],
    ) -> tuple[KernelLowering, KernelLowering]:
        """The running conditions on a candidate `found[f]`, given `taken[:m]`; and the checks on
        the complete group."""
        taken = GroupPlace("taken", "0", "m")
        candidate: dict[str, Place] = {
            self.variable: Event("found[u(f)] - base", False),
            f"{self.variable}…": taken,
        }
        test = KernelLowering(inputs, {**scope, **candidate}, "u")
        self.carried = carry(inputs, running, self.variable)
        test.carried = self.carried.parts
        later = [condition for condition in running if holds_first(condition)]
        if later:
            holds = test.let("True")
            with test.block("if m > 0:"):
                for condition in later:
                    test.line(f"{holds} = {holds} and {test.true(condition)}")
            test.require_source(holds)
        test.require([condition for condition in running if not holds_first(condition)])
        complete = KernelLowering(inputs, {**scope, self.variable: taken}, "k")
        complete.require(checks)
        return test, complete

    def step(self) -> bool:
        heads = self.prepare()
        until = self.decided()
        size = self.inner.out.visible + 1
        ends_found, taken = np.zeros(size, np.int64), np.zeros(size, np.int64)
        pool, store, state = self.pool, self.context.store, self.state
        pool.reserve(size)
        done = 2
        while done == 2:
            state[KernelState.POOL_COUNT] = pool.n
            state[KernelState.POOL_BASE] = pool.base
            ends, starts = (store.clock, store.position), (store.opened, store.begin)
            fixed = (ends_found, taken, pool.rows, *ends, *starts)
            done = self.pass_on(until, self.inner_records(), heads, fixed)
            pool.n = int(state[KernelState.POOL_COUNT])
            if done == 2:
                pool.reserve(len(pool.rows))
        pool.mark(self.context.frontier)
        return done == 1


class KseqOperator(Grouping):
    """KSEQ: groups between their neighbors."""

    node: Kseq

    def __init__(self, context: Context, node: Kseq, source: Operator, element: Operator) -> None:
        super().__init__(context, source, element, node.element.variable)
        self.node = node
        self.gap = node.gap
        self.search(element, node.equalities)

    def source(self, inputs: Inputs) -> str:
        node = self.node
        low, high, clock = edges(self.outer, inputs, node.gap)
        scope = places(self.outer, inputs, "o_slots", "o", outer=True)
        lower = KernelLowering(
            inputs, {**scope, self.variable: Event("i_slots[0, u(i)] - base", False)}
        )
        hashed = self.hash(lower)
        lower.require([*as_predicates(node.equalities), *node.predicates])
        running, checks = self.conditions(inputs, scope, node.running, node.checks)
        results = self.result_values(lower)
        least, most, exact = _sizes(node.quantifier)
        group = ClosureParts(
            low=low,
            high=high,
            clock=clock,
            least=least,
            most=most,
            exact=exact,
            optional=isinstance(node.quantifier, Optional),
            running=running.inner,
            running_depth=running.depth,
            checks=checks.inner,
            checks_depth=checks.depth,
            opening=self.carried.opening,
            reset=self.carried.reset,
            pushing=self.carried.pushing,
            leading=node.gap.open_before,
            trailing=node.gap.open_after,
            lasting=self.context.store.lasting,
        )
        outer = [*lower.outer, *running.outer, *checks.outer]
        pieces = Pieces(inputs.unpack(7), outer, lower.inner, lower.depth, hashed, results)
        pieces.demand = self.demand is not None
        return kernels.kseq(pieces, self.outer.copied, group)


class RunOperator(Grouping):
    """Runs of events alone: each event ends the run of those before it."""

    node: Run
    in_full = True

    def __init__(self, context: Context, node: Run, element: Operator) -> None:
        super().__init__(context, element, element, node.element.variable)
        self.slots = {self.variable: 0}
        self.width = 2
        self.out = Buffer(self.width)
        self.node = node
        self.equalities = [Equality(replace(k, variable=_LAST), k) for k in node.key]
        self.search(element, self.equalities)

    def source(self, inputs: Inputs) -> str:
        node = self.node
        last: Place = Event("o_slots[0, u(o)] - base", True)
        element: Place = Event("i_slots[0, u(i)] - base", False)
        lower = KernelLowering(inputs, {_LAST: last, self.variable: element})
        hashed = self.hash(lower)
        lower.require(as_predicates(self.equalities))
        running, checks = self.conditions(inputs, {}, node.running, node.checks)
        lasting = self.context.store.lasting
        if lasting:
            # Its elements end inside the window, but any of them may start before it.
            started = "least(opens, taken, 0, m, base)"
            checks.require_source(f"o_finish[u(o)] - {started} < window")
        group = ClosureParts(
            low="0",
            high="0",
            clock=None,
            least=node.count,
            most=node.count,
            exact=node.count,
            optional=False,
            running=running.inner,
            running_depth=running.depth,
            checks=checks.inner,
            checks_depth=checks.depth,
            opening=self.carried.opening,
            reset=self.carried.reset,
            pushing=self.carried.pushing,
            leading=True,
            trailing=False,
            run=True,
            lasting=lasting,
        )
        pieces = Pieces(inputs.unpack(7), lower.outer, lower.inner, lower.depth, hashed)
        return kernels.kseq(pieces, [], group)


_LAST = "…last"  # stands for the event that ends a run; no variable is called so


def _sizes(quantifier: Quantifier) -> tuple[int, int | None, int | None]:
    """Least and most elements, and the exact number if it is a run."""
    match quantifier:
        case Between(low=low, high=high):
            return low, high, None
        case Exactly(count=count):
            return count, count, count
        case Optional():
            return 0, 1, None
        case _:
            assert_never(quantifier)
