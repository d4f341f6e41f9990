"""Negation: NSEQ on either side, and NEG on top (ZStream 4.4.2); gaps and their edges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from cepheid import kernels
from cepheid.engine.lowering import Event, GroupPlace, Inputs, KernelLowering, Place
from cepheid.engine.operators.base import FOREVER, Context, Cursor, Operator
from cepheid.engine.operators.demand import covered_by, wanted
from cepheid.engine.operators.search import NO_HEADS, Passing, as_predicates, places
from cepheid.kernels import KernelState, Pieces
from cepheid.plan.nodes import Gap, Neg, Nseq


class NseqBefore(Passing):
    """NSEQ with the negation on the left: a floor for the left neighbor's end."""

    node: Nseq

    def __init__(self, context: Context, node: Nseq, source: Operator, negated: Operator) -> None:
        super().__init__(context, source, negated, extra=1)
        self.bound = self.width - 1
        self.node = node
        self.search(negated, node.equalities)

    def source(self, inputs: Inputs) -> str:
        lower = KernelLowering(inputs, searched(self, inputs))
        hashed = self.hash(lower)
        lower.require([*as_predicates(self.node.equalities), *self.node.predicates])
        pieces = Pieces(inputs.unpack(0), lower.outer, lower.inner, lower.depth, hashed)
        pieces.demand = self.demand is not None
        floor = self.outer.bound if isinstance(self.outer, NseqBefore) else None
        return kernels.nseq_before(pieces, self.outer.copied, floor)

    def step(self) -> bool:
        heads = self.prepare()
        return self.pass_on(self.outer.out.visible, self.inner_records(), heads) == 1


def searched(operator: Passing, inputs: Inputs) -> dict[str, Place]:
    """The variables of the outer record and of the events searched for it."""
    scope = places(operator.outer, inputs, "o_slots", "o", outer=True)
    return scope | places(operator.inner, inputs, "i_slots", "i", outer=False)


class NseqAfter(Passing):
    """NSEQ with the negation on the right: a ceiling for the right neighbor's start.

    The negated event may come rounds after the record, so bounds that are still open are looked
    at again whenever negated events have come.
    """

    node: Nseq

    def __init__(self, context: Context, node: Nseq, source: Operator, negated: Operator) -> None:
        super().__init__(context, source, negated, extra=1)
        self.bound = self.width - 1
        self.node = node
        self.search(negated, ())
        self.seen = Cursor(negated)

    def source(self, inputs: Inputs) -> str:
        scope = places(self, inputs, "o_slots", "o", outer=True)
        lower = KernelLowering(
            inputs, scope | places(self.inner, inputs, "i_slots", "i", outer=False)
        )
        lower.require([*as_predicates(self.node.equalities), *self.node.predicates])
        pieces = Pieces(inputs.unpack(0), lower.outer, lower.inner, lower.depth)
        return kernels.nseq_after(pieces, self.width - 1)

    def step(self) -> bool:
        known = self.out.n
        self._take()
        self._look(known, self.out.n, 0)
        self._look(0, known, self.seen.begin)
        self.seen.advance(self.inner.out.visible)
        return True

    def _take(self) -> None:
        """Copy the new demanded records, with open bounds."""
        source, copies = self.outer.out, self.out
        begin, end = self.cursor.begin, source.visible
        new = np.arange(begin, end)
        if self.demand is not None:
            start, last = source.records.start[begin:end], source.records.last[begin:end]
            new = begin + wanted(self.demanded, start, last)[0]
            end = begin + covered_by(self.demanded, last)
        copies.reserve(len(new))
        target = slice(copies.n, copies.n + len(new))
        for name in ("start", "end", "first", "last"):
            getattr(copies.records, name)[target] = getattr(source.records, name)[new]
        copies.records.slots[:-1, target] = source.records.slots[:, new][self.outer.copied]
        copies.records.slots[-1, target] = FOREVER
        copies.n = copies.visible = copies.n + len(new)
        self.cursor.advance(end)

    def _look(self, begin: int, end: int, inner: int) -> None:
        """Look for negated events from index `inner` on, for the records from begin to end."""
        if (begin >= end or inner >= self.inner.out.visible) and not self.context.warming:
            return
        state, kept = self.state, self.out.n
        state[KernelState.OUTER], state[KernelState.OUTER_END] = begin, end
        state[KernelState.INNER], state[KernelState.INNER_END] = inner, self.inner.out.visible
        self.call(self.out.records, self.inner.out.records, NO_HEADS)
        self.out.n = self.out.visible = kept


class NegOperator(Passing):
    """NEG: a filter on top, for every negation that NSEQ can't take."""

    node: Neg

    def __init__(self, context: Context, node: Neg, source: Operator, negated: Operator) -> None:
        super().__init__(context, source, negated)
        self.node = node
        self.gap = node.gap
        self.search(negated, node.equalities)

    def source(self, inputs: Inputs) -> str:
        low, high, clock = edges(self.outer, inputs, self.node.gap)
        lower = KernelLowering(inputs, searched(self, inputs))
        hashed = self.hash(lower)
        require_distinct(lower, self.node.distinct)
        lower.require([*as_predicates(self.node.equalities), *self.node.predicates])
        results = self.result_values(lower)
        unpack = ["positions = cols[0]", "begins = cols[1]", *inputs.unpack(2)]
        pieces = Pieces(unpack, lower.outer, lower.inner, lower.depth, hashed, results)
        pieces.demand = self.demand is not None
        return kernels.neg(pieces, self.outer.copied, low, high, clock)

    def step(self) -> bool:
        heads = self.prepare()
        until = self.decided()
        fixed = (self.context.store.position, self.context.store.begin)
        return self.pass_on(until, self.inner_records(), heads, fixed) == 1


def edges(source: Operator, inputs: Inputs, gap: Gap) -> tuple[str, str, str | None]:
    """Source of the positions between which the gap lies, and of the test against the window."""

    def fold(names: Sequence[str], last: bool) -> tuple[str, list[str]]:
        """The last end, or the first start, of the bound events; and tests that a side is empty."""
        values: list[str] = []
        empty: list[str] = []
        extreme, none = ("max", str(-FOREVER)) if last else ("min", str(FOREVER))
        array_of = "positions" if last else "begins"
        overlap = source.context.store.lasting and not last
        for name, place in scope.items():
            if name not in names:
                continue
            match place:
                case Event(row=row):
                    values.append(f"{array_of}[u({row})]")
                    empty.append("False")
                case GroupPlace(array=array, start=start, count=count):
                    at = f"{start} + {count} - 1" if last else start
                    value = f"{array_of}[{array}[{at}] - base]"
                    if overlap:
                        value = f"least({array_of}, {array}, {start}, {count}, base)"
                    values.append(f"({value} if {count} > 0 else {none})")
                    empty.append(f"{count} == 0")
        if not values:
            return none, []
        value = values[0]
        for other in values[1:]:
            value = f"{extreme}({value}, {other})"
        return value, empty

    scope = places(source, inputs, "o_slots", "o", outer=True)
    low, no_left = fold(gap.before, True)
    high, no_right = fold(gap.after, False)
    tests: list[str] = []
    if gap.open_before:
        tests.append(_unless_bound(no_left, "i_start[u(i)] > o_finish[u(o)] - window"))
    if gap.open_after:
        tests.append(_unless_bound(no_right, "i_finish[u(i)] < o_start[u(o)] + window"))
    return low, high, " and ".join(tests) or None


def _unless_bound(empty: Sequence[str], test: str) -> str:
    """The window's edge counts only if nothing is bound on that side."""
    return f"({test} or not ({' and '.join(empty)}))" if empty else test


def require_distinct(lower: KernelLowering, pairs: Iterable[tuple[str, str]]) -> None:
    """Require that the two variables never bind the same event."""
    for a, b in pairs:
        match lower.scope[a], lower.scope[b]:
            case Event(row=x), Event(row=y):
                lower.require_source(f"{x} != {y}")
            case Event(row=row), GroupPlace() as group:
                lower.require_source(f"not {_member(lower, row, group)}")
            case GroupPlace() as group, Event(row=row):
                lower.require_source(f"not {_member(lower, row, group)}")
            case GroupPlace() as left, GroupPlace() as right:
                at = lower.name()
                shared = lower.let("False")
                head = f"for {at} in range({left.start}, {left.start} + {left.count}):"
                with lower.block(head):
                    inside = _member(lower, f"{left.array}[{at}] - base", right)
                    lower.line(f"{shared} = {shared} or {inside}")
                lower.require_source(f"not {shared}")


def _member(lower: KernelLowering, row: str, group: GroupPlace) -> str:
    at, shared = lower.name(), lower.let("False")
    with lower.block(f"for {at} in range({group.start}, {group.start} + {group.count}):"):
        lower.line(f"{shared} = {shared} or {group.array}[{at}] - base == {row}")
    return shared
