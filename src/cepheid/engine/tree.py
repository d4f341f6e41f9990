"""One plan at run time: its operators over leaf buffers that outlive it.

Another plan of the same query can take its place at a round's boundary. The leaves keep all that
a window needs, so the new operators make their records anew from them (ZStream 5.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.engine.limits import looks_back
from cepheid.engine.lowering import Inputs, NotLowered
from cepheid.engine.node_operators import build_operators
from cepheid.engine.operators.base import Context, Horizon, LeafOperator, Operator
from cepheid.engine.sink import make_sink
from cepheid.kernels.compile import is_cold
from cepheid.kernels.patience import compile_seconds
from cepheid.plan.nodes import (
    Filter,
    LeafNode,
    Node,
    Plan,
    has_automaton,
    waits,
    walk,
)
from cepheid.plan.profile import NodeProfile
from cepheid.plan.reads import final_leaves

CAPACITY = 1 << 17
"""Matches that the roots collect, all together, before they are projected."""


class Meter:
    """Time that an operator took, without that of compiling or loading its kernel, and the most
    records that its buffer held."""

    def __init__(self) -> None:
        self.seconds = self.compiling = 0.0
        self.peak = 0

    @contextmanager
    def reading(self, operator: Operator) -> Iterator[None]:
        kernels, began = operator.kernels, perf_counter()
        yield
        took = perf_counter() - began
        if operator.kernels == kernels:
            self.seconds += took
        else:
            self.compiling += took
        self.peak = max(self.peak, operator.out.n)


class OperatorTree:
    """The operators of a plan. `leaves` are the engine's, by node."""

    def __init__(
        self,
        plan: Plan,
        context: Context,
        leaves: Mapping[LeafNode, LeafOperator],
        schema: pa.Schema,
        in_order: bool = True,
    ) -> None:
        self.plan = plan
        self.context = context
        # Automata hold the last position back, wherever they stand.
        self.waits = has_automaton(plan) or any(waits(root) for root in plan.alternatives)
        roots = _standalone(plan.alternatives)
        self.operators, self.roots = build_operators(context, roots, leaves)
        self._capacity = max(1, CAPACITY // len(self.roots))
        self.sink = make_sink(self.roots, plan, schema, self.waits, in_order)
        self._inner = [
            o for o in self.operators if o not in self.roots and not isinstance(o, LeafOperator)
        ]
        self._pools = {id(p): p for o in self.operators for p in o.groups.values()}.values()
        self._retained = {id(o) for operator in self.operators for o in operator.searched()}
        self._meters = {id(o): Meter() for o in self.operators}
        self._finals = None if self.waits or plan.eager else _finals(leaves, plan.alternatives)
        self._back = looks_back(plan)
        sheds = plan.limit is not None and plan.limit.policy == "drop-oldest"
        self._judges = sheds and (self._back or context.store.lasting)

    def fuse(self) -> None:
        """Look, after rows have come, whether the roots' kernels may write the result."""
        if not self._judges:
            self.sink.fuse(self._capacity)

    def arrange(self, masks: Sequence[NDArray[np.bool_]], part: tuple[int, int]) -> bool:
        """Prepare to match at once all events there are, of this of so many parts of the keys;
        `masks` say which of them the classes take. False if the leaves have to be filled."""
        return len(self.roots) == 1 and all(m.all() for m in masks) and self.roots[0].arrange(part)

    def wakes(self, fresh: list[LeafOperator]) -> bool:
        """Whether a round with new events of these leaves is not an idle one."""
        return self._finals is None or any(leaf in self._finals for leaf in fresh)

    def assemble(self) -> Iterator[pa.RecordBatch]:
        """Run the operators on what is new, from the leaves up; matches come out."""
        self._run_inner()
        for index, root in enumerate(self.roots):
            if not root.results:  # else the kernel writes to those
                root.out.reserve(self._capacity - root.out.n)
            while not self._step(root):
                yield from self.sink.take(index)
        yield from self.sink.release(self.undecided())

    def _run_inner(self) -> None:
        for operator in self._inner:
            with self._meters[id(operator)].reading(operator):
                operator.run()

    def _step(self, root: Operator) -> bool:
        with self._meters[id(root)].reading(root):
            done = root.step()
        if self._judges and self.context.floor is not None:
            self._give_up(root, self.context.floor)
        return done

    def _give_up(self, root: Operator, floor: Horizon) -> None:
        """A match whose verdict depends on shed events can't be decided, so it is dropped: one that
        began before the floor, though its events ended after it, and one whose window, counted from
        the end, reaches behind it."""
        records, n = root.out.records, root.out.n
        sure = records.first[:n] > root.place(floor)
        if self._back and floor.clock is not None:
            sure &= records.end[:n] - self.context.window >= floor.clock
        if not sure.all():
            root.out.choose(np.flatnonzero(sure))

    def flush(self) -> Iterator[pa.RecordBatch]:
        """What the roots have collected, as far as no record that waits can come before it."""
        for index in range(len(self.roots)):
            yield from self.sink.take(index)
        yield from self.sink.release(self.undecided())

    def undecided(self) -> int:
        """The earliest position at which a match may end that waits; FOREVER if none does."""
        return min(root.undecided() for root in self.roots)

    def trim(self) -> None:
        """Drop what no future event can reach any more."""
        for operator in self.operators:
            if operator not in self.roots:
                operator.trim(id(operator) in self._retained)

    def forget_groups(self, clock: int) -> None:
        """Drop the groups that were made at or before this clock."""
        for pool in self._pools:
            pool.expire(clock)
        for root in self.roots:
            root.settle()

    def held(self) -> tuple[tuple[int, int], NDArray[np.bool_]] | None:
        """How many events matches may still need, altogether and of one key, and which, if an
        automaton alone knows."""
        return self.roots[0].held() if len(self.roots) == 1 else None

    @property
    def back(self) -> int:
        """How long before the first event of a match others may matter, whatever the window."""
        return max(root.back for root in self.roots)

    @property
    def looks_ahead(self) -> bool:
        """Whether events may be needed although their window has passed."""
        return len(self.roots) == 1 and self.roots[0].looks_ahead

    def needed(self) -> NDArray[np.bool_] | None:
        """Which rows of the store may still matter, if only some do and nobody else has noted the
        numbers of rows."""
        return self.roots[0].needed() if len(self.roots) == 1 and not self.notes_rows else None

    @property
    def notes_rows(self) -> bool:
        """Whether matches that are not out yet remember the numbers of rows."""
        return self.sink.notes_rows or any(root.out.n for root in self.roots)

    def renumber(self, kept: NDArray[np.int64], base: int) -> bool:
        """Of the store, only the rows of these numbers are left, and now begin with `base`. False
        if records know the old numbers: all but an automaton has to be made anew."""
        return len(self.roots) == 1 and self.roots[0].renumber(kept, base)

    @property
    def made(self) -> int:
        """How many records the operators have made so far."""
        return sum(o.made for o in self.operators if not isinstance(o, LeafOperator))

    def take_over(self, other: OperatorTree) -> None:
        """Resume where the tree of the other plan stopped: records are made from what the leaves
        hold; matches that end with what they hold have been found, and only those."""
        self.sink.inherit(other.sink)
        self.catch_up()

    def catch_up(self) -> None:
        """Take what the leaves hold as matched: only records for what is to come are made."""
        self._run_inner()
        for root in self.roots:
            root.skip()

    def warm(self) -> None:
        """Have the kernels compiled. The operators can't be used afterwards."""
        self.context.warming = True
        for operator in self.operators:
            operator.warm()
        self.sink.warm()

    def warm_at_once(self) -> int:
        """The same of the kernel that matches all events at once; returns how many this machine had
        not compiled."""
        (root,) = self.roots
        root.whole = True
        cold = int(_is_cold(root))
        root.warm_at_once()
        return cold

    def cold(self) -> int:
        """How many kernels are not yet compiled on this machine."""
        return sum(_is_cold(o) for o in self.operators if not isinstance(o, LeafOperator))

    @property
    def plain_seconds(self) -> float:
        """Seconds in kernels that ran as plain Python because they weren't compiled yet."""
        return sum(operator.plain_seconds for operator in self.operators)

    @property
    def compile_seconds(self) -> float:
        """How long compiling the kernels would take that run so for now."""
        inner = (o for o in self.operators if not isinstance(o, LeafOperator))
        calls = (operator.compiled() for operator in inner)
        return sum(compile_seconds(call.source) for call in calls if call.provisional)

    @property
    def compiling(self) -> float:
        """Seconds in which kernels were compiled or loaded."""
        return sum(meter.compiling for meter in self._meters.values())

    def profile(self) -> dict[Node, NodeProfile]:
        """What the operators have done so far."""
        profiles: dict[Node, NodeProfile] = {}
        for operator in self.operators:
            meter = self._meters[id(operator)]
            peak = max(meter.peak, operator.out.n)
            current = NodeProfile(operator.made, meter.seconds, peak)
            profiles[operator.node] = profiles.get(operator.node, NodeProfile()).plus(current)
        return profiles


def _is_cold(operator: Operator) -> bool:
    if not operator.context.jit:
        return False
    try:
        return is_cold(operator.source(Inputs(operator.context.store.nullable, objects=False)))
    except NotLowered:  # runs as plain Python
        return False


def _standalone(roots: tuple[Node, ...]) -> list[Node]:
    """Roots that no other tree reads, so that their records can be handed out: a leaf, or a
    subtree of another alternative, gets a copying filter."""
    inside = {n for root in roots for n in walk(root) if n is not root}
    return [
        Filter(root, ())
        if isinstance(root, LeafNode) or root in inside or roots.count(root) > 1
        else root
        for root in roots
    ]


def _finals(
    leaves: Mapping[LeafNode, LeafOperator], roots: tuple[Node, ...]
) -> frozenset[LeafOperator]:
    """Leaves one of which every match ends with."""
    return frozenset(leaves[leaf] for root in roots for leaf in final_leaves(root))
