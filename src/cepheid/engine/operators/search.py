"""Operators that search an input: by binary search, or along hash chains (ZStream 5.2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cepheid.algebra.expressions import Attribute, Call, Expr
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import Column, Hash
from cepheid.engine.lowering import Event, GroupPlace, Inputs, KernelLowering, Place
from cepheid.engine.operators.base import FOREVER, Context, Cursor, Operator
from cepheid.engine.rows.buffers import HALF, Key
from cepheid.kernels import KernelState
from cepheid.plan.nodes import Equality, Gap


def places(
    operator: Operator, inputs: Inputs, records: str, index: str, outer: bool
) -> dict[str, Place]:
    """Where the variables of an input's record are, in the source of a kernel."""
    scope: dict[str, Place] = {}
    for variable, slot in operator.slots.items():
        if variable in operator.groups:
            n = inputs.pool(variable)
            start = f"({records}[{slot}, u({index})] - gb{n})"
            count = f"{records}[{slot + 1}, u({index})]"
            scope[variable] = GroupPlace(f"g{n}", start, count, outer)
        else:
            scope[variable] = Event(f"{records}[{slot}, u({index})] - base", outer)
    return scope


def hash_of(equalities: Sequence[Equality]) -> tuple[Key, Key] | None:
    """The keys of both inputs: one part for each pair of events."""
    if not equalities:
        return None
    pairs: dict[tuple[str, str], list[Equality]] = {}
    for e in equalities:
        pairs.setdefault((e.left.variable, e.right.variable), []).append(e)
    left = tuple(
        (v, Hash(tuple(_column(e.left) for e in same_pair))) for (v, _), same_pair in pairs.items()
    )
    right = tuple(
        (v, Hash(tuple(_column(e.right) for e in same_pair))) for (_, v), same_pair in pairs.items()
    )
    return left, right


def hash_source(lower: KernelLowering, key: Key) -> str:
    """The hash of the record at hand, as chains have it."""
    first, *others = (lower.read(*part).value for part in key)
    for other in others:
        turned = f"((({first} & {(1 << HALF) - 1}) << {HALF}) | ({first} >> {HALF}))"
        mixed = lower.name()
        lower.outer.append(f"{mixed} = {turned} ^ {other} if {first} >= 0 <= {other} else -1")
        first = mixed
    return first


def _column(attribute: Attribute) -> Column:
    return Column(Attribute("", attribute.name, attribute.type))


def as_predicates(equalities: Iterable[Equality]) -> list[Expr]:
    return [Call("=", (e.left, e.right), Type.BOOLEAN) for e in equalities]


NO_HEADS = np.full(1, -1, np.int64)


class Searching(Operator):
    """An operator with an outer input that drives and an inner one that is searched."""

    outer: Operator
    inner: Operator
    inner_key: Key | None
    outer_key: Key | None
    in_full = False

    def prepare(self) -> Any:
        """Update the inner input's hash chain; return its heads."""
        self.state[KernelState.INNER_BASE] = self.inner.out.base
        self.state[KernelState.INNER_END] = self.inner.out.visible
        if self.inner_key is None:
            return NO_HEADS
        return extend_chain(self.inner, self.inner_key)

    def searched(self) -> Iterable[Operator]:
        yield self.inner
        yield from self.deferred()

    def deferred(self) -> Iterable[Operator]:
        """The outer input, if its records may have to wait for a demand. One that is
        itself restricted makes no others."""
        if self.demand is not None and self.outer.demand is None:
            yield self.outer

    def inner_records(self) -> Any:
        return self.inner.out.linked(self.inner_key)

    def link(self) -> None:
        if self.inner_key is not None:
            self.inner.out.chain(self.inner_key, self.context.jit)

    def hash(self, lower: KernelLowering) -> str | None:
        return hash_source(lower, self.outer_key) if self.outer_key else None


def extend_chain(operator: Operator, key: Key) -> Any:
    store = operator.context.store
    chain = operator.out.chains[key]
    parts = [(operator.slots[variable], store.hash(columns)) for variable, columns in key]
    chain.extend(operator.out, parts, store.base)
    return chain.heads


def same_slots(source: Operator) -> tuple[dict[str, int], int]:
    """The slots of an operator that passes on its input's records."""
    return {v: source.copied.index(s) for v, s in source.slots.items()}, len(source.copied)


class Passing(Searching):
    """An operator that takes the records of its outer input one by one, in order."""

    gap = Gap((), ())

    def __init__(
        self, context: Context, source: Operator, *inputs: Operator, extra: int = 0
    ) -> None:
        slots, width = same_slots(source)
        super().__init__(context, slots, width + extra, source, *inputs)
        self.outer = self.inner = source
        self.cursor = Cursor(source)
        self.cursors = (self.cursor,)
        self.inner_key = self.outer_key = None
        self.state[KernelState.FRESH] = 1

    def search(self, inner: Operator, equalities: Sequence[Equality]) -> None:
        """Search this input for each record."""
        self.inner = inner
        pair = hash_of(equalities)
        if pair:
            self.outer_key, self.inner_key = pair
        self.link()

    def searched(self) -> Iterable[Operator]:
        yield from super().searched()
        if self.gap.open_after:  # what waits for its window is read only then
            yield self.outer

    def pass_on(self, until: int, inner: Any, heads: Any, fixed: Sequence[Any] = ()) -> int:
        """Run the kernel up to the outer record `until`."""
        state = self.state
        state[KernelState.OUTER] = self.cursor.begin
        state[KernelState.OUTER_END] = until
        if state[KernelState.OUTER] >= until and not self.context.warming:
            return 1
        done = self.call(self.outer.out.records, inner, heads, fixed)
        self.cursor.advance(int(state[KernelState.OUTER]))
        return done

    def skip(self) -> None:
        self.cursor.advance(self.decided())

    def decided(self) -> int:
        """How many outer records can be processed: if the gap is open at the end, those that end
        before the first whose window has not passed. Which ones these are must not depend on the
        order of simultaneous ones, since that differs between plans."""
        source = self.outer.out
        if not self.gap.open_after:
            return source.visible
        begin = self.cursor.begin
        ends = source.records.start[begin : source.visible] + self.context.window
        waiting = np.flatnonzero(ends > self.context.frontier)
        if not len(waiting):
            return source.visible
        last = source.records.last[begin : source.visible]
        return int(begin + np.searchsorted(last, last[waiting[0]], "left"))

    def undecided(self) -> int:
        source = self.outer.out
        rest = source.records.last[self.cursor.begin : source.visible]
        return min(int(rest.min()) if len(rest) else FOREVER, self.outer.undecided())
