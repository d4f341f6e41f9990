"""Sequence scan and construction for `;` chains of single events (SASE 3.2 and 4)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cepheid import kernels
from cepheid.algebra.expressions import Attribute, Call, Expr, variables
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import Column, Stored, as_integers
from cepheid.engine.lowering import Event, Inputs, KernelLowering, Place
from cepheid.engine.operators.base import FOREVER, Context, Cursor, Operator
from cepheid.kernels import KernelState, Pieces, Scan, StackLevel, load
from cepheid.kernels.templates import stacks as layout
from cepheid.plan.nodes import Equivalence, Stacks

Ints = NDArray[np.int64]

_NO_TABLE: Ints = np.full((1, 2), layout.EMPTY, np.int64)
_ALL_KNOWN: NDArray[np.bool_] = np.ones(1, np.bool_)


@dataclass(frozen=True)
class Instance:
    """An event on a stack, and the most recent one before it on the stack of the class before: by
    their rows."""

    row: int
    rip: int | None


class StacksOperator(Operator):
    """Active instance stacks of all classes but the last, whose events start the construction.

    The classes' leaves are read once, in the order of events; what is pushed has copied all that
    the construction needs, except the attributes that predicates read.
    """

    node: Stacks

    def __init__(self, context: Context, node: Stacks, *leaves: Operator) -> None:
        slots = {leaf.variable: c for c, leaf in enumerate(node.classes)}
        super().__init__(context, slots, len(slots), *leaves)
        self.node = node
        self.cursors = tuple(Cursor(leaf) for leaf in leaves)
        self._last = len(leaves) - 1
        parts = node.equivalences
        self._chained = parts if node.strategy is Equivalence.MULTIPLE else parts[:1]
        filtering = node.strategy is Equivalence.FILTERING
        self._awaited = parts[1:] if filtering else ()
        self._tested = parts[len(self._chained) :]
        looked_up = (*self._chained, *self._awaited)
        attributes = [a for part in looked_up for a in part]
        self._keys = list(dict.fromkeys(_column(a) for a in attributes))
        self._columns_of = [
            tuple(self._keys.index(_column(part[c])) for part in looked_up)
            for c in range(len(leaves))
        ]
        self._version = -1
        self._arrays_of_keys: list[Any] = []
        self._clear()

    def _clear(self) -> None:
        """Empty stacks and partitions."""
        scan = self._scan(frozenset())
        self._stacks = [_Stack(scan, self.context.jit) for _ in range(self._last)]
        self.tables = [
            *(_Table(self._last, -1, self.context.jit) for _ in self._chained),
            *(_Table(self._last, -FOREVER, self.context.jit) for _ in self._awaited),
        ]
        self._kernel_places = np.zeros(layout.CURSORS + len(layout.kept(scan)), np.int64)
        self.state[KernelState.FRESH] = 1

    # ── compiling ──

    def _scan(self, nullable: frozenset[Column]) -> Scan:
        return Scan(
            keys=self._columns_of,
            chained=len(self._chained),
            awaited=len(self._awaited),
            nullable=frozenset(n for n, column in enumerate(self._keys) if column in nullable),
            windowed=self.node.scan_window,
            lasting=self.context.store.lasting,
        )

    def source(self, inputs: Inputs) -> str:
        names = list(self.slots)
        scope: dict[str, Place] = {
            name: Event(f"r{c}", outer=c == self._last) for c, name in enumerate(names)
        }
        lower = KernelLowering(inputs, scope)
        results: list[str] | None = None
        levels: list[StackLevel] = []
        for c in reversed(range(len(names))):
            lower.require(self._predicates(c))
            if c == 0:
                results = self.result_values(lower)
            else:
                self._read_ahead(lower, names[c])
            levels.insert(0, StackLevel(*lower.code.cut()))
        fixed = 1 + 2 * len(self._keys)
        pieces = Pieces(inputs.unpack(fixed), lower.outer, results=results)
        return kernels.scan_and_construct(self._scan(inputs.nullable), pieces, levels)

    def _predicates(self, c: int) -> list[Expr]:
        """What can be tested when class c is bound, and not before: classes are bound from the
        last one back. Equivalences without chains are tested against the last class."""
        agree = [Call("=", (part[c], part[-1]), Type.BOOLEAN) for part in self._tested]
        testable = [
            p
            for p in self.node.predicates
            if min((self.slots[v] for v in variables(p)), default=self._last) == c
        ]
        return [*(agree if c < self._last else ()), *testable]

    def _read_ahead(self, lower: KernelLowering, variable: str) -> None:
        """Read what is returned of an event when it is bound, not for every match with it."""
        for attribute in self.returned or ():
            if attribute.variable == variable:
                lower.read(variable, Stored(attribute.name))

    def columns(self) -> Iterable[Column]:
        yield from super().columns()
        yield from self._keys

    # ── running ──

    def step(self) -> bool:
        if self.state[KernelState.FRESH]:
            read = all(c.begin >= c.source.out.visible for c in self.cursors)
            if read and not self.context.warming:
                return True
            self._make_room()
        return self._run_kernel(construct=True)

    def skip(self) -> None:
        """Push the unread events without construction: the sequences that they end were found
        before."""
        self._make_room()
        self._run_kernel(construct=False)

    def renew(self, clock: int) -> None:
        super().renew(clock)
        self._clear()

    def _run_kernel(self, construct: bool) -> bool:
        places = self._kernel_places
        outer: list[Ints] = []
        n = len(self.cursors)
        places[layout.CONSTRUCT] = construct
        for c, cursor in enumerate(self.cursors):
            places[layout.CURSORS + c] = cursor.begin
            places[layout.CURSORS + n + c] = cursor.source.out.visible
            records = cursor.source.out.records
            outer += (records.end, records.last, records.slots[0])
            if self.context.store.lasting:
                outer += (records.start, records.first)
        done = self.call(
            tuple(outer),
            tuple(stack.data for stack in self._stacks),
            tuple(table.entries for table in self.tables) or (_NO_TABLE,),
            (places, *self._values()),
        )
        for c, cursor in enumerate(self.cursors):
            cursor.advance(int(places[layout.CURSORS + c]))
        sizes = layout.CURSORS + 2 * n
        for c, stack in enumerate(self._stacks):
            stack.n = int(places[sizes + c])
        for t, table in enumerate(self.tables):
            table.used = int(places[sizes + 2 * self._last + t])
        return done == 1

    def _values(self) -> list[Any]:
        """For each key column, the values and the mask of those that aren't NULL."""
        store = self.context.store
        if self._version != store.version:
            self._version = store.version
            self._arrays_of_keys = []
            for column in self._keys:
                valid = store.valid[column]
                known = _ALL_KNOWN if valid is None else valid
                self._arrays_of_keys += [as_integers(store.values[column]), known]
        return self._arrays_of_keys

    def _make_room(self) -> None:
        """Pop what has expired, if that is half of it; let stacks and tables grow for the events
        that are to come."""
        new = [c.source.out.visible - c.begin for c in self.cursors]
        held = sum(stack.n for stack in self._stacks)
        eat = self.context.eat
        if held and 2 * sum(stack.half_expired(eat) for stack in self._stacks) >= held:
            self._pop(eat, new[0])
        sizes = layout.CURSORS + 2 * len(self.cursors)
        for c, stack in enumerate(self._stacks):
            stack.reserve(new[c])
            self._kernel_places[sizes + c] = stack.n
        for t, table in enumerate(self.tables):
            table.reserve(new[0])
            self._kernel_places[sizes + 2 * self._last + t] = table.used

    def _pop(self, eat: int, room: int) -> None:
        """Pop expired instances, and make room in the tables for this many values."""
        shifts = np.array([stack.expired(eat) for stack in self._stacks])
        for c, stack in enumerate(self._stacks):
            stack.pop(int(shifts[c]), int(shifts[c - 1]) if c else 0)
        for t, table in enumerate(self.tables):
            if t < len(self._chained):
                table.rehash(shifts, -1, table.used + room)
            else:
                table.rehash(np.zeros_like(shifts), eat, table.used + room)

    def instances(self) -> list[list[Instance]]:
        """The stacks, oldest instances first; the last class has none."""
        shown: list[list[Instance]] = []
        for c, stack in enumerate(self._stacks):
            below = self._stacks[c - 1].fields if c else None
            shown.append(
                [
                    Instance(row, None if below is None or rip < 0 else int(below[rip, layout.ROW]))
                    for row, rip in stack.fields[: stack.n, [layout.ROW, layout.RIP]].tolist()
                ]
            )
        return shown


class _Stack:
    """Instances of a class; `fields[i]` is one of them."""

    def __init__(self, scan: Scan, jit: bool) -> None:
        self.n = 0
        self._pop = load(layout.POP, jit)
        self._scan = scan
        self._allocate(256)

    def _allocate(self, capacity: int) -> None:
        """Chains jump, so an instance lies in one place; otherwise each field does."""
        jumps, width = self._scan.chained > 0, self._scan.width
        self.data: Ints = np.zeros((capacity, width) if jumps else (width, capacity), np.int64)
        self.fields: Ints = self.data if jumps else self.data.T

    def reserve(self, room: int) -> None:
        if self.n + room > len(self.fields):
            old = self.fields
            self._allocate(max(2 * len(old), self.n + room))
            self.fields[: self.n] = old[: self.n]

    def half_expired(self, eat: int) -> int:
        """How many instances there are, if half of them have expired."""
        return self.n if self.n and self.fields[self.n // 2, layout.CLOCK] <= eat else 0

    def expired(self, eat: int) -> int:
        return bisect_right(self.fields[: self.n, layout.CLOCK], eat)

    def pop(self, count: int, below: int) -> None:
        """Drop the oldest instances; `below` instances of the previous stack were dropped, too."""
        self._pop(self.fields, self.n, count, below, self._scan.chained)
        self.n -= count


class _Table:
    """Values of an attribute, and for each class the newest instance with the value (or its
    clock); `none` where there is none."""

    def __init__(self, classes: int, none: int, jit: bool) -> None:
        self.used = 0
        self._none = none
        self._rehash: Callable[..., Any] = load(layout.REHASH, jit)
        self.entries = _entries(64, classes)

    def reserve(self, room: int) -> None:
        """A table is never more than half full."""
        if 2 * (self.used + room) > len(self.entries):
            unchanged = np.zeros(self.entries.shape[1] - 1, np.int64)
            self.rehash(unchanged, layout.EMPTY, 2 * (self.used + room))

    def rehash(self, shifts: Ints, least: int, values: int) -> None:
        """With room for so many values, and without those of which nothing is left: what there
        is, less `shifts`, is at most `least`."""
        old = self.entries
        self.entries = _entries(1 << (2 * max(32, values) - 1).bit_length(), old.shape[1] - 1)
        self.used = int(self._rehash(old, self.entries, shifts, least, self._none))


def _entries(size: int, classes: int) -> Ints:
    return np.full((size, 1 + classes), layout.EMPTY, np.int64)


def _column(attribute: Attribute) -> Column:
    return Column(Attribute("", attribute.name, attribute.type))
