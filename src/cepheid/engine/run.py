"""The engine: Arrow batches in time order in, Arrow batches of matches out.

A batch is classified and stored whole, then matched in rounds (ZStream 4.3): a round makes some
rows visible, and, unless no final class has a new event (an idle round), runs the operators from
the leaves up. What no future event can reach any more is dropped in bulk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.engine.classes import classify
from cepheid.engine.clock import Ticker
from cepheid.engine.columns import Interner, without_dictionary_nulls
from cepheid.engine.operators import FOREVER, Context, LeafOperator, Operator, build_operators
from cepheid.engine.output import Projection, output_schema, returned_columns
from cepheid.engine.store import EventStore
from cepheid.plan.nodes import (
    Conj,
    Filter,
    Kseq,
    Leaf,
    Neg,
    Node,
    Nseq,
    Plan,
    Run,
    Seq,
    waits,
    walk,
)
from cepheid.plan.reading import leaves

ROUND = 4096
"""Rows of a round: small enough for intermediate results to stay in the processor's caches,
large enough for a round's fixed cost not to count."""

CAPACITY = 1 << 17
"""Matches that the roots collect, all together, before they are projected."""


@dataclass
class Counts:
    """What the engine has seen and made."""

    events: int = 0
    rejected: int = 0
    matches: int = 0
    rounds: int = 0
    idle: int = 0


class Engine:
    """Runs a plan. Feed it with `push`, in time order, and `finish` it; both yield matches."""

    def __init__(
        self, plan: Plan, schema: pa.Schema, *, jit: bool = True, round_size: int = ROUND
    ) -> None:
        self.plan = plan
        self.counts = Counts()
        self.schema = output_schema(plan, schema)
        self.waits = any(waits(root) for root in plan.alternatives)
        self._round_size = round_size
        self._ticker = Ticker(plan)
        store = EventStore(returned_columns(plan), Interner())
        self.context = Context(store, _reach(plan), jit)
        self._operators, self._roots = build_operators(self.context, _standalone(plan.alternatives))
        for operator in self._operators:
            store.require(operator.columns())
        by_node = {o.node: o for o in self._operators if isinstance(o, LeafOperator)}
        self._leaves = [by_node[leaf] for leaf in leaves(plan)]
        self._inner = [
            o for o in self._operators if o not in self._roots and not isinstance(o, LeafOperator)
        ]
        self._pools = {id(p): p for o in self._operators for p in o.groups.values()}.values()
        self._capacity = max(1, CAPACITY // len(self._roots))
        self._retained = {id(o) for o in _searched(self._operators)}
        self._finals = _finals(self._leaves, plan.alternatives) if not self.waits else None
        self._sink = Sink(self._roots, plan, schema, hold=self.waits or len(self._roots) > 1)

    # ── in and out ──

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Match the next batch of events, which is not earlier than those before."""
        batch = self._with_times(without_dictionary_nulls(batch))
        if batch.num_rows:
            self._load(batch)
            yield from self._rounds()
        yield from self._flush()
        # Only now: matches of this batch may have been waiting with their groups. A record lives
        # for a window, and may wait for another one.
        for pool in self._pools:
            pool.expire(self.context.eat - self.context.window)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Time passes to infinity: what waited for it is released."""
        self.context.frontier = FOREVER
        if self.waits and self.context.store.n:
            yield from self._assemble()
        yield from self._flush()

    def _with_times(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Without the rows whose time is NULL: they are counted."""
        self.counts.events += batch.num_rows
        column = batch.column(self.plan.schema.time)
        if column.null_count == 0:
            return batch
        self.counts.rejected += column.null_count
        return batch.filter(pc.is_valid(column))

    def _load(self, batch: pa.RecordBatch) -> None:
        """Store the rows that belong to a class, and fill the leaf buffers with them."""
        plan, context, store = self.plan, self.context, self.context.store
        leaves = [leaf.node for leaf in self._leaves]
        found = classify(batch, leaves, plan.variables, plan.schema.type, plan.key)
        ticks = self._ticker.read(batch, found.rows)
        self._reached = ticks.reached
        store.append(found.batch, ticks.time, ticks.position, ticks.clock, context.eat)
        self._sink.fuse(self._capacity)
        first = store.base + store.n - len(found.rows)
        for leaf, mask in zip(self._leaves, found.masks, strict=True):
            own = np.flatnonzero(mask)
            leaf.out.append(ticks.clock[own], ticks.position[own], own + first)
        self._row = first

    def _rounds(self) -> Iterator[pa.RecordBatch]:
        context, store = self.context, self.context.store
        end = store.base + store.n
        while True:
            limit = min(end, self._row + self._round_size)
            last = limit == end
            context.frontier = self._reached if last else int(store.clock[limit - 1 - store.base])
            fresh = [leaf for leaf in self._leaves if leaf.show(limit)]
            self._row = limit
            self.counts.rounds += 1
            if self._finals is None or any(leaf in self._finals for leaf in fresh):
                yield from self._assemble()
            else:
                self.counts.idle += 1
            self._expire()
            if last:
                return

    def _assemble(self) -> Iterator[pa.RecordBatch]:
        for operator in self._inner:
            operator.run()
        for index, root in enumerate(self._roots):
            if not root.results:  # else the kernel writes to those
                root.out.reserve(self._capacity - root.out.n)
            while not root.step():
                yield from self._emit(self._sink.take(index))
        yield from self._emit(self._sink.release(self._undecided()))

    def _undecided(self) -> int:
        return min(root.undecided() for root in self._roots)

    def _expire(self) -> None:
        context = self.context
        # A record may wait for its window behind one that began a window later, and look back
        # a window from its end.
        horizon = context.window * (3 if self.waits else 1)
        context.eat = max(-FOREVER, context.frontier - horizon)
        for operator in self._operators:
            if operator not in self._roots:
                operator.trim(id(operator) in self._retained)

    def _flush(self) -> Iterator[pa.RecordBatch]:
        for index in range(len(self._roots)):
            yield from self._emit(self._sink.take(index))
        yield from self._emit(self._sink.release(self._undecided()))

    def _emit(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.counts.matches += batch.num_rows
            yield batch


class Sink:
    """Projects the roots' records; holds them back where ends would come out of order."""

    def __init__(self, roots: list[Operator], plan: Plan, schema: pa.Schema, hold: bool) -> None:
        self._roots = roots
        self._projections = [Projection(plan, root, schema) for root in roots]
        self._hold = hold
        self._held: list[tuple[NDArray[np.int64], pa.RecordBatch]] = []

    def fuse(self, capacity: int) -> None:
        """Where nothing is held back, kernels may write the result themselves."""
        if not self._hold:
            for projection in self._projections:
                projection.fuse(capacity)

    def take(self, index: int) -> Iterator[pa.RecordBatch]:
        """Project what a root has collected."""
        out = self._roots[index].out
        if out.n == 0:
            return
        batch = self._projections[index].batch()
        if self._hold:
            self._held.append((out.records.last[: out.n].copy(), batch))
        else:
            yield batch
        out.drop(out.n)

    def release(self, undecided: int) -> Iterator[pa.RecordBatch]:
        """In the order of their ends, what no record that still waits can come before."""
        if not self._hold:
            return
        for index in range(len(self._roots)):
            yield from self.take(index)
        if not self._held:
            return
        last = np.concatenate([positions for positions, _ in self._held])
        table = pa.Table.from_batches([batch for _, batch in self._held]).combine_chunks()
        order = np.argsort(last, kind="stable")
        ready = int(np.searchsorted(last[order], undecided, "left"))
        released = table.take(pa.array(order[:ready]))
        rest = table.take(pa.array(order[ready:])).combine_chunks()
        self._held = (
            [(last[order[ready:]], b) for b in rest.to_batches()] if ready < len(last) else []
        )
        yield from released.combine_chunks().to_batches()


def _reach(plan: Plan) -> int:
    """The window; matches of one event need none, and nothing is kept for them."""
    if plan.window is not None:
        return plan.window.size
    nodes = (node for root in plan.alternatives for node in walk(root))
    return 1 if all(isinstance(node, Leaf | Filter) for node in nodes) else FOREVER


def _standalone(roots: tuple[Node, ...]) -> list[Node]:
    """Roots that no other tree reads, so that their records can be handed out: a leaf, or a
    subtree of another alternative, gets a copying filter."""
    inside = {n for root in roots for n in walk(root) if n is not root}
    return [
        Filter(root, ())
        if isinstance(root, Leaf) or root in inside or roots.count(root) > 1
        else root
        for root in roots
    ]


def _searched(operators: list[Operator]) -> Iterator[Operator]:
    """Operators whose records others search in later rounds, or wait on."""
    for operator in operators:
        yield from operator.searched()


def _finals(leaves: list[LeafOperator], roots: tuple[Node, ...]) -> set[LeafOperator]:
    """Leaves one of which every match ends with."""
    names = {leaf for root in roots for leaf in _final_leaves(root)}
    return {operator for operator in leaves if operator.node in names}


def _final_leaves(node: Node) -> set[Leaf]:
    match node:
        case Leaf():
            return {node}
        case Seq():
            return _final_leaves(node.right)
        case Conj():
            return _final_leaves(node.left) | _final_leaves(node.right)
        case Run():
            return {node.element}
        case Nseq() | Neg() | Kseq() | Filter():
            return _final_leaves(node.input)
