"""The operator that runs an automaton: rounds, horizons, what is kept.

Between rounds there is only which starts are alive; partial matches are found again from their
starts. A start is freed as soon as no event to come can complete it: its window has passed, what
it waits for was found, or a strict step was broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute
from cepheid.algebra.patterns import Absence, Disjunction, moves_end, positive, walk
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import Column
from cepheid.engine.automaton.at_once import Arranged, arranged, no_events, restore, sort_by_end
from cepheid.engine.automaton.forbidden import next_negations
from cepheid.engine.automaton.knowledge import grouped
from cepheid.engine.automaton.remembered import Remembered
from cepheid.engine.automaton.rows_by_key import Key, Listed, lay_out
from cepheid.engine.automaton.settings import Settings
from cepheid.engine.automaton.source.kernel import KernelSource, write_kernel
from cepheid.engine.automaton.source.numbered import can_be_numbered
from cepheid.engine.lowering import Inputs
from cepheid.engine.operators.base import FOREVER, Context, Horizon, KernelCall, Operator
from cepheid.engine.rows.buffers import Pool
from cepheid.engine.rows.order import ascending
from cepheid.errors import DataError
from cepheid.kernels import AutomatonState, load
from cepheid.kernels.templates.automaton import FLOOR, NEED
from cepheid.plan.nodes import Automaton

Ints = NDArray[np.int64]

POOLED = 1 << 20
"""Elements of groups that are collected before the matches so far are taken."""


@dataclass(frozen=True)
class Round:
    """The rows of a round, as the kernel reads them."""

    lists: tuple[Listed, ...]
    keys: int
    rows: tuple[Ints, ...]  # where each row begins and ends, on each clock
    scratch: Ints
    sums: NDArray[np.float64]
    compiled: KernelCall
    horizon: int
    seen: int  # the absolute number of the first row that isn't there


_kernels: Remembered[Automaton, tuple[KernelSource, Inputs]] = Remembered()
"""The engines of a query's shares, and of its later runs, have the same node."""


class AutomatonOperator(Operator):
    """Finds the matches of a pattern, or of a part of one."""

    node: Automaton

    def __init__(self, context: Context, node: Automaton, *classes: Operator) -> None:
        names = positive(node.pattern)
        groups = grouped(node.pattern)
        slots: dict[str, int] = {}
        width = 0
        for name in names:
            slots[name] = width
            width += 2 if name in groups else 1
        # Behind the variables: the times of start and end, which a delay moves.
        super().__init__(context, slots, width + 2, *classes)
        self.times = (width, width + 1)
        self.optional = tuple(
            dict.fromkeys(
                name
                for pattern in walk(node.pattern)
                if isinstance(pattern, Disjunction)
                for name in positive(pattern)
                if name in slots
            )
        )
        self.node = node
        self.pools = {name: Pool() for name in names if name in groups}
        self.groups = dict(self.pools)
        self.state = np.zeros(AutomatonState.POOLS + 2 * len(self.pools), np.int64)
        self._settings = Settings(context.window < FOREVER, context.in_time, context.store.lasting)
        self.program = self._settings.program(node)
        self._starts = tuple(self.program.classes.index(v) for v in self.program.starts)
        self._source = KernelSource("", 0, 0)
        self._round: Round | None = None  # the one that is under way
        self._arranged: Arranged | None = None
        self._restored = [0] * len(self.pools)  # elements of groups that have the store's numbers
        self._alive = np.ones((max(1, len(self._starts)), 0), np.uint8)
        self._alive_from = 0  # absolute number of the row that the first of them is
        self._delayed = moves_end(node.pattern)
        # How long the negations last that have a time of their own.
        self._lapses = sum(p.duration for p in walk(node.pattern) if isinstance(p, Absence))
        self._known = Horizon(-FOREVER, -FOREVER)
        self._matched = 0  # absolute number of the first row that has not been matched
        self._frontier = self._reached = -FOREVER
        self._whole = frozenset(
            n for n in range(len(classes)) if any(part[n] is None for part in node.key)
        )
        self._undecided = FOREVER
        self._needed: NDArray[np.bool_] | None = None  # of the rows that `_alive` is about
        self._held: tuple[tuple[int, int], NDArray[np.bool_]] = (0, 0), np.zeros(0, np.bool_)

    def source(self, inputs: Inputs) -> str:
        def write() -> tuple[KernelSource, Inputs]:
            fresh = Inputs(inputs.nullable, inputs.objects)
            chooses = self.whole and self.skips
            return write_kernel(self.program, fresh, self.whole, chooses), fresh

        use = (self._settings, inputs.nullable, inputs.objects, self.whole, self.skips)
        self._source, read = _kernels.get(self.node, use, write)
        inputs.columns += read.columns
        inputs.params += read.params
        inputs.pools += read.pools
        return self._source.text

    def columns(self) -> Iterable[Column]:
        yield from super().columns()
        for part in self._key():
            yield from (column for column in part if column is not None)
        if self._delayed and self.context.tie is not None:
            yield _column(self.context.tie)

    def _key(self) -> list[Key]:
        return [tuple(None if a is None else _column(a) for a in part) for part in self.node.key]

    # ── rounds ──

    def step(self) -> bool:
        """Run one round, or the rest of it after the output was full."""
        if self._round is None:
            whole = self._arranged
            self._round = self._begin() if whole is None else self._begin_at_once(whole)
        done = self._go_on(self._round)
        if self._arranged is not None:
            self._restore(self._arranged)
        if not done:
            return False
        if self._round.horizon < FOREVER:
            self._forget(self._round)
        waiting = self.program.waits and self._round.horizon < FOREVER
        self._undecided = self._earliest(self._round) if waiting else FOREVER
        self._matched = self._round.seen
        self._round = None
        self._known = self.context.horizon
        self._reached = self._frontier
        for pool in self.pools.values():
            pool.mark(min(self.context.frontier, FOREVER - 1))
        return True

    def run(self) -> None:
        """As an input of other operators: produce a whole round at once, in the order of the
        ends."""
        begin = self.out.n
        self.out.reserve(1)
        while not self.step():  # nobody takes anything meanwhile, so what is full has to grow
            if int(self.state[AutomatonState.DONE]) == 0:
                self.out.reserve(self.out.capacity)
                continue
            for pool in self.pools.values():
                pool.reserve(len(pool.rows) - pool.n + 1)
        new = slice(begin, self.out.n)
        order = ascending(self.out.records.last[new])
        for name in ("start", "end", "first", "last"):
            values = getattr(self.out.records, name)[new]
            values[:] = values[order]
        self.out.records.slots[:, new] = self.out.records.slots[:, new][:, order]

    def _begin(self) -> Round:
        """Lay out the rows that are known by now."""
        context, store, state = self.context, self.context.store, self.state
        compiled = self.compiled()
        begin, position = self.positions()
        horizon = self.place(context.horizon)
        known = self._visible(position, horizon)
        classes: list[Ints] = []
        for leaf in self.inputs:
            rows = leaf.out.records.slots[0, : leaf.out.visible]
            held = slice(*np.searchsorted(rows, (store.base, known)))
            classes.append(rows[held] - store.base)
        for pool in self.pools.values():
            if len(pool.rows) < store.n:  # a start mostly has few elements of its own
                pool.reserve(min(store.n, POOLED) - pool.n)
        lists, keys = lay_out(store, position, classes, self._key(), context.jit)
        self._revive()
        state[AutomatonState.KEY] = state[AutomatonState.AT] = 0
        state[AutomatonState.ENTRY] = -1
        state[AutomatonState.BASE] = store.base
        state[AutomatonState.WINDOW] = self.window
        state[AutomatonState.FRONTIER] = self._frontier = self._clock(position, horizon)
        state[AutomatonState.HORIZON] = horizon
        state[AutomatonState.KNOWN] = self.place(self._known)
        state[AutomatonState.REACHED] = self._reached
        state[AutomatonState.SCALE] = self._unit()
        state[AutomatonState.ORIGIN] = self._origin()
        state[AutomatonState.SEEN] = self._matched - store.base
        state[AutomatonState.KEYS] = keys
        scratch = np.empty((max(1, self._source.scratches), store.n + 2), np.int64)
        sums = np.empty((max(1, self._source.sums), store.n + 2), np.float64)
        clocks = (store.opened, store.clock, store.start, store.time)
        rows = (begin, position, *clocks)
        return Round(tuple(lists), keys, rows, scratch, sums, compiled, horizon, known)

    # ── all at once ──

    def arrange(self, part: tuple[int, int]) -> bool:
        context, store = self.context, self.context.store
        if not store.n or self._lapses or not can_be_numbered(self.program):
            return False
        self._arranged = arranged(store, self._key(), part, context.jit)
        self.whole = self._arranged is not None
        if self.whole:
            context.compile_at = 0  # there is no later round for a compiled kernel
        return self.whole

    def warm_at_once(self) -> None:
        self._arranged = no_events(len(self.node.key) > 0, self.context.jit)
        self._round = None
        self.step()

    def _begin_at_once(self, events: Arranged) -> Round:
        store, state = self.context.store, self.state
        compiled = self.compiled()
        if self.skips:  # what is kept doesn't overlap
            self.out.reserve(store.n)
        for pool in self.pools.values():
            pool.reserve(store.n)
        state[:] = 0
        state[AutomatonState.ENTRY] = -1
        state[AutomatonState.WINDOW] = self.window
        state[AutomatonState.FRONTIER] = state[AutomatonState.HORIZON] = FOREVER
        state[AutomatonState.KNOWN] = state[AutomatonState.REACHED] = -FOREVER
        state[AutomatonState.SCALE] = 1
        state[AutomatonState.KEYS] = len(events.begins)
        state[AutomatonState.BOUND] = state[AutomatonState.LATEST] = -1
        self._alive = np.ones((1, store.n), np.uint8)
        scratch = np.empty((max(1, self._source.scratches), store.n + 2), np.int64)
        sums = np.empty((max(1, self._source.sums), store.n + 2), np.float64)
        listed = Listed(NOTHING, NOTHING, events.begins, events.ends)
        time = events.taken(store.time) if self.program.reads_times else NOTHING
        rows = (NOTHING, NOTHING, time, time, time, time)
        self._columns = store.kernel_columns(compiled.columns, compiled.objects, events.order)
        self._seen = (store.version, compiled)
        lists = (listed,) * len(self.inputs)
        return Round(lists, len(events.begins), rows, scratch, sums, compiled, FOREVER, store.n)

    def _restore(self, events: Arranged) -> None:
        """The records as others know them."""
        store, out, records = self.context.store, self.out, self.out.records
        assert self.times is not None
        singles = [slot for name, slot in self.slots.items() if name not in self.pools]
        pools = list(zip(self.pools.values(), self._restored, strict=True))
        restore(out, singles, pools, events)
        if self.skips:
            sort_by_end(out, self.times, store, events)
        else:
            places = [(records.first, store.position), (records.last, store.position)]
            if not self.program.reads_times:
                places += [(records.slots[slot], store.time) for slot in self.times]
            for values, known in places:
                values[: out.n] = np.take(known, events.rows(values[: out.n]))
        self._restored = [pool.n for pool, _ in pools]

    def _visible(self, position: Ints, horizon: int) -> int:
        """The absolute number of the first row that can't be matched yet: at the last position more
        may come, which a prompt program lets come."""
        store = self.context.store
        if not (self.program.prompt and self.context.prompt):
            return store.base + int(np.searchsorted(position, horizon))
        return self._reached_row()

    def _clock(self, position: Ints, horizon: int) -> int:
        """The clock that has been reached before the horizon: a clock of events also tells
        simultaneous ones apart."""
        context, store = self.context, self.context.store
        if context.in_time or horizon >= FOREVER:
            return context.frontier
        known = int(np.searchsorted(position, horizon))
        passed = int(store.clock[known - 1]) if known else -FOREVER
        return max(self._reached, passed, context.horizon.clock or -FOREVER)

    def _go_on(self, round_: Round) -> bool:
        """Run the kernel until it is done, or until the output is full of what others may take."""
        state, pools = self.state, list(self.pools.values())
        while True:
            state[AutomatonState.COUNT] = self.out.n
            state[AutomatonState.ROOM] = self.out.capacity
            for n, pool in enumerate(pools):
                state[AutomatonState.POOLS + n] = pool.n
                state[AutomatonState.POOLS + len(pools) + n] = pool.base
            with self.running(round_.compiled):
                round_.compiled.kernel(
                    tuple(listed.arrays for listed in round_.lists),
                    round_.rows,
                    self._alive,
                    round_.scratch,
                    round_.sums,
                    (*self._arrays(round_.compiled), NOTHING),
                    (*round_.compiled.params, 0),
                    self.out.records,
                    (*(pool.rows for pool in pools), NOTHING),
                    state,
                )
            self.out.n = self.out.visible = int(state[AutomatonState.COUNT])
            for n, pool in enumerate(pools):
                pool.n = int(state[AutomatonState.POOLS + n])
            done = int(state[AutomatonState.DONE])
            if done > 0:
                return True
            full = done == 0 or max(len(pool.rows) for pool in pools) >= POOLED
            if self.out.n and full and not (self.whole and self.skips):
                return False
            # Too small for the matches of one start, or for those that can be taken together.
            if done == 0:
                self.out.reserve(2 * self.out.capacity)
            for pool in pools if done < 0 else ():
                pool.reserve(len(pool.rows) - pool.n + 1)

    # ── what is alive ──

    def _revive(self) -> None:
        """Mark new rows as live; drop rows that have left the store."""
        store = self.context.store
        alive = np.ones((len(self._alive), store.n), np.uint8)
        kept = self._alive_from + self._alive.shape[1] - store.base
        if kept > 0:
            alive[:, :kept] = self._alive[:, self._alive.shape[1] - kept :]
        self._alive, self._alive_from = alive, store.base

    def _forget(self, round_: Round) -> None:
        """Find the rows that future matches may need: those of a key from its first live start
        on."""
        context, store = self.context, self.context.store
        back = self.program.looks_back
        if context.limit is None and back:
            return
        floors = np.full(round_.keys, FOREVER)
        floor = load(FLOOR, context.jit)
        need: Callable[..., Any] = load(NEED, context.jit)
        for entry, n in enumerate(self._starts):
            floor(*round_.lists[n].arrays, self._alive[entry], floors)
        if self.back:
            floors = self._moved_back(floors, round_)
        needed = np.zeros(store.n, np.bool_)
        most = 0
        for n, listed in enumerate(round_.lists):
            if n not in self._whole:
                most = max(most, need(*listed.arrays, floors, needed))
        position = round_.rows[1]
        if self._whole and len(floors):
            needed[np.searchsorted(position, floors.min()) :] = True
        needed[np.searchsorted(position, round_.horizon) :] = True
        self._needed = None if back else needed
        held = needed.copy()  # of the rows that have been looked at
        held[self._reached_row() - store.base :] = False
        self._held = (int(held.sum()), most), held

    def _reached_row(self) -> int:
        """The absolute number of the first row that no class has shown yet."""
        ends = (leaf.out.records.slots[0, : leaf.out.visible][-1:] for leaf in self.inputs)
        return max((int(end[0]) + 1 for end in ends if len(end)), default=self.context.store.base)

    def _moved_back(self, floors: Ints, round_: Round) -> Ints:
        """Move the floors back to what starts, also future ones, may look back at."""
        store, position = self.context.store, round_.rows[1]
        if store.n == 0:
            return floors
        reached = min(self.context.horizon.time, int(store.time[-1]))
        rows = np.minimum(np.searchsorted(position, floors), store.n - 1)
        times = np.minimum(np.where(floors < FOREVER, store.start[rows], reached), reached)
        places = np.searchsorted(store.time, times - self.back, "right")
        moved: Ints = np.where(places < store.n, position[np.minimum(places, store.n - 1)], FOREVER)
        return moved

    def _earliest(self, round_: Round) -> int:
        """The position of the first start that may still lead to a match."""
        begin = round_.rows[0]
        starts = [FOREVER]
        for entry, n in enumerate(self._starts):
            rows = round_.lists[n].rows
            alive = rows[self._alive[entry, rows] != 0]
            if len(alive):
                starts.append(int(begin[alive].min()))
        return min(starts)

    def undecided(self) -> int:
        return self._undecided

    def starts(self) -> Iterator[tuple[int, str, Ints]]:
        base = self.context.store.base
        for entry, n in enumerate(self._starts):
            leaf = self.inputs[n]
            rows = leaf.out.records.slots[0, : leaf.out.visible] - base
            rows = rows[(rows >= 0) & (rows < self._alive.shape[1])]
            yield entry, self.node.leaves[n].variable, rows[self._alive[entry, rows] != 0]

    @property
    def back(self) -> int:
        return self.program.back

    @property
    def begins_with_start(self) -> bool:
        return not self.program.looks_back and not self.context.store.lasting

    @property
    def looks_ahead(self) -> bool:
        """`P => !Q` may wait for the next event beyond its window; what is needed tells then what
        can be dropped."""
        return next_negations(self.node.pattern) and not self.program.looks_back

    def free(self, entry: int, rows: Ints) -> None:
        self._alive[entry, rows] = 0

    def settle(self) -> None:
        if self.out.n == 0:
            for pool in self.pools.values():
                pool.clear()

    def held(self) -> tuple[tuple[int, int], NDArray[np.bool_]]:
        return self._held

    def needed(self) -> NDArray[np.bool_] | None:
        if self._needed is None:
            return None
        store = self.context.store
        needed = np.ones(store.n, np.bool_)  # also the rows since then
        known = self._needed[store.base - self._alive_from :]  # without those that have expired
        needed[: len(known)] = known
        return needed

    def renumber(self, kept: Ints, base: int) -> bool:
        known = kept[: np.searchsorted(kept, self._alive_from + self._alive.shape[1])]
        self._alive = self._alive[:, known - self._alive_from]
        self._alive_from = base
        self._needed = None
        return True

    # ── positions ──

    def positions(self) -> tuple[Ints, Ints]:
        """Where events start and end. Where ends are moved in time, positions must be such that
        they can be moved: times, refined by the rank of the tie-break (of all there is: these
        positions can't be compared with those of another round). Where a time can be over, there is
        a position for that before those of its events."""
        store, tie = self.context.store, self.context.tie
        if not self._delayed:
            return store.begin, store.position
        if tie is None or store.n == 0:
            return self._instants()
        unit, rank = self._ranks(tie)
        origin = self._origin()
        if (int(store.time[-1]) - origin + self._lapses) * unit >= FOREVER:
            raise DataError("times lie too far apart to be delayed and ordered by a tie-break")
        moved = (store.time - origin) * unit + rank
        return moved, moved

    def _instants(self) -> tuple[Ints, Ints]:
        store = self.context.store
        if not self._lapses:
            return store.start, store.time
        if (
            store.n
            and 2 * (max(-int(store.start.min()), int(store.time[-1])) + self._lapses) >= FOREVER
        ):
            raise DataError("times lie too far away to be compared with the end of a time (FOR)")
        end = 2 * store.time + 1
        return (end if store.start is store.time else 2 * store.start + 1), end

    def _origin(self) -> int:
        store = self.context.store
        return int(store.time[0]) if self._tied and store.n else 0

    @property
    def _tied(self) -> bool:
        return self._delayed and self.context.tie is not None

    def _ranks(self, tie: Attribute) -> tuple[int, Ints]:
        """How many ranks there are, and that of each row; NULL comes first."""
        store, column = self.context.store, _column(tie)
        values: Any = store.values[column]
        if column.type in (Type.STRING, Type.BINARY):
            values = store.interner.decode(values, None)[0]
        valid = store.valid[column]
        known, ranks = np.unique(values if valid is None else values[valid], return_inverse=True)
        rank = np.zeros(store.n, np.int64)
        rank[slice(None) if valid is None else valid] = ranks + 1
        below = 1 if self._lapses else 0
        return len(known) + 1 + below, rank + below

    def _unit(self) -> int:
        """The length of a tick in positions, where ends are moved."""
        if self._tied and self.context.tie and self.context.store.n:
            return self._ranks(self.context.tie)[0]
        return 2 if self._lapses else 1

    def place(self, horizon: Horizon) -> int:
        if not self._delayed:
            return horizon.position
        endless = abs(horizon.time) >= FOREVER
        return horizon.time if endless or not self._lapses or self._tied else 2 * horizon.time + 1

    # ── as an operator ──

    def skip(self) -> None:
        """Skip to the horizon: all matches before it were made. Every start counts as live: one
        that isn't finds nothing new and is freed again."""
        context = self.context
        horizon = self.place(context.horizon)
        self._known = context.horizon
        self._matched = self._visible(self.positions()[1], horizon)
        self._reached = self._frontier = self._clock(self.positions()[1], horizon)
        self._undecided = -FOREVER  # until a round has looked
        self._needed = None


NOTHING: Ints = np.zeros(0, np.int64)


def _column(attribute: Attribute) -> Column:
    return Column(Attribute("", attribute.name, attribute.type))
