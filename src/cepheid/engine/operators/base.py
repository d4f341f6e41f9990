"""What all operators have: an output buffer, slots, a kernel for the NULLs seen so far.

An operator reads the records of its inputs that are new since its last run and appends to its
own buffer. The outer input drives a kernel's loop; the inner one is searched.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import thread_time
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Call, Constant
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import (
    Column,
    Hash,
    KernelColumn,
    Stored,
    TextBytes,
    TextConstant,
    TextPlaces,
)
from cepheid.engine.arrays.vector import ROWWISE, evaluate
from cepheid.engine.lowering import Inputs, KernelLowering, NotLowered
from cepheid.engine.operators.demand import EVERYTHING, NOTHING, Demand, Demanded
from cepheid.engine.rows.buffers import Buffer, Pool
from cepheid.engine.rows.store import EventStore
from cepheid.kernels import KernelState, load
from cepheid.kernels.compile import is_cold
from cepheid.kernels.patience import is_patient, note_plain
from cepheid.options import Limit
from cepheid.plan.nodes import LeafNode, Node

FOREVER = 1 << 62


@dataclass(frozen=True)
class Horizon:
    """A position before which every event is known, and the same as a time. Where events are
    counted, `clock` is that of the next one to come, if all are known that have come."""

    position: int
    time: int
    clock: int | None = None


@dataclass
class Context:
    """What all operators of an engine share. `in_time`: the clock is time. `tie` orders events of
    the same time, `limit` bounds what is held. From `compile_at` rows on, kernels that this machine
    hasn't compiled don't run as plain Python any more. `frontier` is the clock that has been
    reached: every event before it is known, and so is every one before the horizon. `eat` is the
    clock at or before which nothing counts any more. `floor` is where events were forgotten up to,
    because there were more than the limit allows. `prompt`: events of the last position, of which
    more may come, are matched with the others where that is possible; states of 0.1 have not done
    so.
    `warming`: kernels are called although there is nothing to do, so that they are compiled."""

    store: EventStore
    window: int
    jit: bool
    in_time: bool = True
    tie: Attribute | None = None
    limit: Limit | None = None
    compile_at: int = 0
    frontier: int = -FOREVER
    horizon: Horizon = Horizon(-FOREVER, -FOREVER)
    eat: int = -FOREVER
    floor: Horizon | None = None
    prompt: bool = True
    warming: bool = False


@dataclass(frozen=True, eq=False)
class KernelCall:
    """A kernel of this source, and its arguments. `provisional`: it runs as plain Python until
    compiling it is worth the time."""

    source: str
    kernel: Any
    columns: tuple[KernelColumn, ...]
    params: tuple[Any, ...]
    pools: tuple[str, ...]
    objects: bool
    provisional: bool


class Operator(ABC):
    """Base of the operators: the output buffer, its slots, the kernel for the NULLs seen so far."""

    node: Node
    in_full = True  # it has no single input to wait for, so all of its records are always demanded

    def __init__(
        self, context: Context, slots: dict[str, int], width: int, *inputs: Operator
    ) -> None:
        self.context = context
        self.window = context.window
        self.inputs = inputs
        self.groups: dict[str, Pool] = {}  # closure variable → where its elements are
        for source in inputs:
            self.groups |= source.groups
        self.slots = slots  # variable → its first slot
        self.width = width
        self.bound: int | None = None  # slot of an NSEQ bound, which a parent doesn't copy
        self.times: tuple[int, int] | None = None  # slots of the times of start and end
        self.optional: tuple[str, ...] = ()  # variables that a record may not bind
        self.out = Buffer(width)
        self.state: NDArray[np.int64] = np.zeros(KernelState.SIZE, np.int64)
        self.cursors: tuple[Cursor, ...] = ()
        self.demand: Demand | None = None  # what its consumer demands; all, if there is none
        self.renewal: Demand | None = None  # whenever this demands something, it starts anew
        self.demanded: Demanded = NOTHING
        self.returned: tuple[Attribute, ...] | None = None  # a root may write RETURN's columns
        self.whole = False  # whether all events are matched at once, without the inputs' records
        self.skips = False  # whether the consumer keeps what SKIP PAST LAST EVENT does, and no more
        self.results: tuple[Any, ...] = ()
        self.kernels = 0  # how many have been made so far
        self.plain_seconds = 0.0  # in kernels that ran as plain Python, to be compiled later
        self._compiled: dict[tuple[int, bool, bool], KernelCall] = {}
        self._seen: tuple[int, KernelCall] | None = None
        self._columns: list[Any] = []

    @property
    def copied(self) -> list[int]:
        return [s for s in range(self.width) if s != self.bound]

    # ── compiling ──

    @abstractmethod
    def source(self, inputs: Inputs) -> str:
        """The source of the operator's kernel."""

    def compiled(self) -> KernelCall:
        """The kernel for the columns in which NULLs have been seen. Compiling takes seconds, so a
        kernel that this machine has never compiled runs as plain Python for a while."""
        store = self.context.store
        # `nullable` only ever grows.
        shape = (len(store.nullable), self.returned is None, self.whole)
        many = store.base + store.n >= self.context.compile_at
        known = self._compiled.get(shape)
        worth = known is not None and (many or not is_patient(known.source))
        if known is None or (known.provisional and worth):
            known = self._compiled[shape] = self._compile(store.nullable, many)
            self.kernels += 1
        return known

    @contextmanager
    def running(self, call: KernelCall) -> Iterator[None]:
        """Note how long the kernel takes, if it runs as plain Python for now."""
        if not call.provisional:
            yield
            return
        began = thread_time()
        yield
        took = thread_time() - began
        self.plain_seconds += took
        note_plain(call.source, took)

    def _arrays(self, compiled: KernelCall) -> list[Any]:
        """The store's columns that the kernel reads; looked up again only when rows have come."""
        store = self.context.store
        if self._seen != (store.version, compiled):
            self._seen = (store.version, compiled)
            self._columns = store.kernel_columns(compiled.columns, compiled.objects)
        return self._columns

    def _compile(self, nullable: frozenset[Column], many: bool) -> KernelCall:
        inputs = Inputs(nullable, objects=False)
        try:
            source = self.source(inputs)
        except NotLowered:
            inputs = Inputs(nullable, objects=True)
            source = self.source(inputs)
        jit = self.context.jit and not inputs.objects
        provisional = jit and not many and is_patient(source) and is_cold(source)
        kernel = load(source, jit and not provisional)
        params = tuple(self._param(p, inputs.objects) for p in inputs.params)
        return KernelCall(
            source,
            kernel,
            tuple(inputs.columns),
            params,
            tuple(inputs.pools),
            inputs.objects,
            provisional,
        )

    def _param(self, constant: Constant | Call, objects: bool) -> Any:
        if isinstance(constant, Call):
            return _RowFunction(constant)
        if objects and isinstance(constant.value, str | bytes):
            return constant.value
        return parameter(constant, self.context.store)

    def columns(self) -> Iterable[Column]:
        """Columns that the kernel reads, known before any event is."""
        for column in self._compile(frozenset(), many=False).columns:
            match column:
                case Hash():
                    yield from column.columns
                case Column():
                    yield column
                case TextPlaces():
                    yield column.column
                case Stored() | TextConstant() | TextBytes():
                    pass

    def result_values(self, lower: KernelLowering) -> list[str] | None:
        """Source of RETURN's values, if the kernel writes them."""
        if self.returned is None:
            return None
        return [lower.read(a.variable, Stored(a.name)).value for a in self.returned]

    # ── running ──

    def call(self, outer: Any, inner: Any, heads: Any, fixed: Sequence[Any] = ()) -> int:
        """Run the kernel once; 1 if it finished, 0 if the output is full, 2 if the pool is."""
        compiled = self.compiled()
        context, state = self.context, self.state
        arrays = self._arrays(compiled)
        pools = [self.groups[name] for name in compiled.pools]
        state[KernelState.BASE] = context.store.base
        state[KernelState.WINDOW] = self.window
        state[KernelState.EAT] = context.eat
        state[KernelState.COUNT] = self.out.n
        state[KernelState.ROOM] = len(self.results[0]) if self.results else self.out.capacity
        demanded = self.demanded if self.demand else ()
        with self.running(compiled):
            compiled.kernel(
                outer,
                inner,
                heads,
                (*fixed, *arrays, *(p.rows for p in pools), *demanded),
                (*compiled.params, *(p.base for p in pools)),
                self.out.records,
                self.results,
                state,
            )
        self.out.n = self.out.visible = int(state[KernelState.COUNT])
        return int(state[KernelState.DONE])

    @property
    def made(self) -> int:
        """The number of records made so far."""
        return self.out.base + self.out.n

    def positions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the store's rows begin and end, as the records' own edges say it."""
        return self.context.store.begin, self.context.store.position

    @abstractmethod
    def step(self) -> bool:
        """Process what is new; False if the output got full before the end."""

    def run(self) -> None:
        """Process everything that is new and demanded, growing the output as needed."""
        for demand in (self.renewal, self.demand):  # in this order: renewing moves cursors
            if demand is not None:
                self.demanded = demand.demanded()
                if not len(self.demanded.until):
                    return
        self.out.reserve(1)
        while not self.step():
            self.out.reserve(self.out.capacity)

    def warm(self) -> None:
        """Have the kernel compiled, by a call in which there is nothing to do."""
        if self.demand is not None:
            self.demanded = EVERYTHING
        self.out.reserve(1)
        self.step()

    def renew(self, clock: int) -> None:
        """Start over, with the inputs' records that end after this clock."""
        self.out.drop(self.out.n)
        for cursor in self.cursors:
            cursor.rewind(clock)

    @abstractmethod
    def skip(self) -> None:
        """Mark all records of the inputs as read: everything was made of them."""

    def searched(self) -> Iterable[Operator]:
        """The inputs whose records must stay after a round that has read them."""
        return ()

    def undecided(self) -> int:
        """The earliest possible end of a record that waits here or below; FOREVER if none does."""
        return FOREVER

    def trim(self, retained: bool) -> None:
        """After a round, drop records that are past every window; all of them, if nobody searches
        here."""
        if retained:
            self.out.expire(self.context.eat, self.out.n)
        else:
            self.out.drop(self.out.n)

    # ── where matches are looked for from their starts ──

    def place(self, horizon: Horizon) -> int:
        """The horizon as a position of records."""
        return horizon.position

    @property
    def back(self) -> int:
        """How long before the first event of a match others may matter, whatever the window."""
        return 0

    @property
    def looks_ahead(self) -> bool:
        """Whether events may be needed although their window has passed."""
        return False

    @property
    def begins_with_start(self) -> bool:
        """Whether a match's first event is the one that it was found from."""
        return False

    def starts(self) -> Iterator[tuple[int, str, NDArray[np.int64]]]:
        """The ways in which a match can start: for each its number, the variable and the rows (in
        the store) that are alive."""
        return iter(())

    def free(self, entry: int, rows: NDArray[np.int64]) -> None:
        """Free these rows as starts: no match that starts with them counts any more."""
        raise AssertionError("there are no starts to free")

    def held(self) -> tuple[tuple[int, int], NDArray[np.bool_]] | None:
        """How many events matches may still need, altogether and of one key, and which rows of the
        store these are; None if the window alone tells."""
        return None

    def needed(self) -> NDArray[np.bool_] | None:
        """Which rows of the store may still matter; None if all may."""
        return None

    def renumber(self, kept: NDArray[np.int64], base: int) -> bool:
        """Renumber: of the store, only the rows of these numbers are left, and now begin with
        `base`. False if records hold old numbers."""
        return False

    def arrange(self, part: tuple[int, int]) -> bool:
        """All events are in the store, and every class takes every one of them: prepare to match
        at once those of this of so many parts of the keys, without the records of the inputs.
        False if the operator can't."""
        return False

    def warm_at_once(self) -> None:
        """Have the kernel compiled that matches all events at once."""
        raise AssertionError("there is no such kernel")

    def settle(self) -> None:
        """Release the groups of records that were taken."""
        return


def parameter(constant: Constant, store: EventStore) -> Any:
    """A constant as kernels see it."""
    if isinstance(constant.value, str | bytes):
        code = store.interner.code(constant.value)
        store.pin(code)
        return code
    if constant.type in (Type.FLOAT, Type.DECIMAL) and constant.value is not None:
        return float(constant.value)
    return constant.value


class _RowFunction:
    """A function without a kernel form, for operators that run as plain Python."""

    def __init__(self, call: Call) -> None:
        self.call = call

    def __call__(self, *values: Any) -> Any:
        if self.call.operator in ROWWISE:
            return ROWWISE[self.call.operator][0](*values)
        arguments = tuple(
            Constant(v, a.type) for v, a in zip(values, self.call.arguments, strict=True)
        )
        return evaluate(Call(self.call.operator, arguments, self.call.type), _no_rows, 1)[0].as_py()


def _no_rows(attribute: Attribute) -> pa.Array:
    raise AssertionError(attribute)


class LeafOperator(Operator):
    """Events of a class; the engine loads its buffer."""

    node: LeafNode

    def __init__(self, context: Context, node: LeafNode) -> None:
        super().__init__(context, {node.variable: 0}, 1)
        self.node = node

    def show(self, limit: int) -> bool:
        """Make the events before this row visible; whether there are new ones."""
        before = self.out.visible
        rows = self.out.records.slots[0, : self.out.n]
        self.out.visible = int(np.searchsorted(rows, limit))
        return self.out.visible > before

    def source(self, inputs: Inputs) -> str:
        raise AssertionError("a leaf has no kernel")

    def columns(self) -> Iterable[Column]:
        return ()

    def step(self) -> bool:
        return True

    def skip(self) -> None:
        raise AssertionError("a leaf has no inputs")

    def trim(self, retained: bool) -> None:
        self.out.expire(self.context.eat, self.out.visible)


class Cursor:
    """How far an operator has read an input: an absolute number."""

    def __init__(self, source: Operator) -> None:
        self.source = source
        self.done = 0

    @property
    def begin(self) -> int:
        return max(0, self.done - self.source.out.base)

    def advance(self, index: int) -> None:
        self.done = self.source.out.base + index

    def rewind(self, clock: int) -> None:
        """Move back to the first record that ends after this clock."""
        out = self.source.out
        self.advance(int(np.searchsorted(out.records.end[: out.visible], clock, "right")))
