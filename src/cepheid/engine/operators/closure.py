"""KSEQ: groups of events between their neighbours (ZStream 4.4.5)."""

from __future__ import annotations

import numpy as np

from cepheid import kernels
from cepheid.engine.buffers import Pool
from cepheid.engine.lowering import Event, GroupPlace, Inputs, Lowering, Place
from cepheid.engine.operators.base import Context, Operator, Passing, as_predicates, places
from cepheid.engine.operators.negation import edges
from cepheid.kernels import Pieces, State
from cepheid.kernels.templates import Group
from cepheid.language.ast import Between, Exactly, Optional
from cepheid.plan.nodes import Kseq


class KseqOperator(Passing):
    """KSEQ: groups between their neighbours, kept in a pool."""

    def __init__(self, context: Context, node: Kseq, source: Operator, element: Operator) -> None:
        super().__init__(context, source, element, extra=2)
        self.slots[node.element.variable] = self.width - 2
        self.pool = self.groups[node.element.variable] = Pool()
        self.node = node
        self.gap = node.gap
        self.search(element, node.equalities)

    def source(self, inputs: Inputs) -> str:
        node = self.node
        variable = node.element.variable
        low, high, clock = edges(self.outer, inputs, node.gap)
        scope = places(self.outer, inputs, "o_slots", "o", outer=True)
        element: Place = Event("i_slots[0, i] - base", False)
        lower = Lowering(inputs, {**scope, variable: element})
        hashed = self.hash(lower)
        lower.require([*as_predicates(node.equalities), *node.predicates])
        taken = GroupPlace("taken", "0", "m")
        running = Lowering(
            inputs, {**scope, variable: Event("found[f] - base", False), f"{variable}…": taken}, "u"
        )
        running.outer = lower.outer
        if node.running:
            holds = running.let("True")
            with running.block("if m > 0:"):
                for condition in node.running:
                    running.line(f"{holds} = {holds} and {running.true(condition)}")
            running.require_source(holds)
        checks = Lowering(inputs, {**scope, variable: taken}, "k")
        checks.require(node.checks)
        outer = [*lower.outer, *checks.outer]
        least, most, exact = _sizes(node)
        group = Group(
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
            leading=node.gap.open_before,
            trailing=node.gap.open_after,
        )
        pieces = Pieces(inputs.unpack(5), outer, lower.inner, lower.depth, hashed)
        return kernels.kseq(pieces, self.outer.copied, group)

    def step(self) -> bool:
        heads = self.prepare()
        until = self.decided()
        size = self.inner.out.visible + 1
        found, taken = np.zeros(size, np.int64), np.zeros(size, np.int64)
        pool, store, state = self.pool, self.context.store, self.state
        pool.reserve(size)
        done = 2
        while done == 2:
            state[State.POOL_COUNT] = pool.n
            state[State.POOL_BASE] = pool.base
            fixed = (found, taken, pool.rows, store.clock, store.position)
            done = self.pass_on(until, self.inner_records(), heads, fixed)
            pool.n = int(state[State.POOL_COUNT])
            if done == 2:
                pool.reserve(len(pool.rows))
        pool.mark(self.context.frontier)
        return done == 1

    def trim(self, retained: bool) -> None:
        super().trim(retained)
        # A record lives for a window, and may wait for another one.
        self.pool.expire(self.context.eat - self.context.window)


def _sizes(node: Kseq) -> tuple[int, int | None, int | None]:
    match node.quantifier:
        case Between(low=low, high=high):
            return low, high, None
        case Exactly(count=count):
            return count, count, count
        case Optional():
            return 0, 1, None
