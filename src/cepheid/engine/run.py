"""The engine: Arrow batches in time order in, Arrow batches of matches out.

A batch is classified and stored whole, then matched in rounds (ZStream 4.3): a round makes some
rows visible, and, unless no final class has a new event (an idle round), runs the operators from
the leaves up. What no future event can reach any more is dropped in bulk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.engine import needs
from cepheid.engine.arrays.columns import with_clean_dictionaries
from cepheid.engine.arrays.interner import Interner
from cepheid.engine.counts import Counts
from cepheid.engine.limits import HeldWindow, no_floors, within
from cepheid.engine.match_schema import output_schema, returned_columns
from cepheid.engine.operators.base import FOREVER, Context, Horizon, LeafOperator
from cepheid.engine.quota import parts
from cepheid.engine.rows.classes import MANY, classify
from cepheid.engine.rows.clock import Ticker, with_times
from cepheid.engine.rows.store import EventStore
from cepheid.engine.state import EngineState, LoadedRows, codes, recoded, recoded_floors
from cepheid.engine.tree import OperatorTree
from cepheid.plan.nodes import Automaton, LeafNode, Node, Plan
from cepheid.plan.profile import NodeProfile, Profile, Replan
from cepheid.plan.reads import leaves

COMPILE_AT = FOREVER
"""From so many rows on, no kernel runs as plain Python, even if compiling it takes longer."""

AT_ONCE = 200
"""The same if all rows are matched in one round, of which nobody knows how long it takes."""

FIRST_ROUND = 1 << 8
"""How many rows are matched first by kernels that aren't compiled; then twice as many, and so on.
So it shows in time how long the others would take."""


class Advisor(Protocol):
    """Is called at the end of every round, and before the first one that produces anything; may
    have another plan of the same query ready."""

    def advise(self, engine: Engine) -> Plan | None: ...

    @property
    def replans(self) -> tuple[Replan, ...]:
        """The decisions so far."""

    @property
    def seconds(self) -> float:
        """The time that gathering statistics and searching took."""


class Engine:
    """Runs a plan. Feed it with `push`, in time order, and `finish` it; both yield matches.

    With a `journal`, which the caller empties, an engine can be saved: what is loaded is noted
    there, and its rows keep their numbers. Its matches come as soon as they are known, also out of
    the order of their ends: what would be held back for that would have to be saved.
    """

    def __init__(
        self,
        plan: Plan,
        schema: pa.Schema,
        *,
        jit: bool = True,
        round_size: int | None = None,
        compile_at: int | None = None,
        advisor: Advisor | None = None,
        journal: list[LoadedRows] | None = None,
    ) -> None:
        self.plan = plan
        self.counts = Counts()
        self.schema = output_schema(plan, schema)
        self.advisor = advisor
        self._journal = journal
        self._seconds = 0.0  # spent in here, until the call that is under way
        self._began: float | None = None
        # Of how many parts of the keys it matches which, where it matches all events at once.
        self.part = (0, 1)
        self._ends = self._ended = False  # whether the last batch is matched, and was
        self._started = False  # whether operators have made anything yet
        self._input = schema
        self._least_round = self._round_size = round_size or needs.round_size(plan)
        self._grows = not round_size and plan.limit is None
        self._ticker = Ticker(plan.schema, plan.window, plan.key)
        self._longest = needs.longest(plan)
        # Where ends are moved among tie-breaks, positions are ranks among all there are.
        self._at_once = needs.tie(plan) is not None
        if compile_at is None:
            compile_at = min(COMPILE_AT, AT_ONCE) if self._at_once else COMPILE_AT
        store = EventStore(returned_columns(plan), Interner(), plan.schema.start is not None)
        self.context = Context(
            store,
            needs.reach(plan),
            jit,
            needs.in_time(plan),
            needs.tie(plan),
            plan.limit,
            compile_at,
        )
        # AFTER MATCH would only hold back what ends where more may come.
        self.context.prompt = plan.selection is None
        self.leaves = {leaf: LeafOperator(self.context, leaf) for leaf in leaves(plan)}
        # Types that no event has had so far.
        self.unseen = {t for leaf in self.leaves for t in plan.variables[leaf.variable].types}
        self._window = None if plan.limit is None else HeldWindow(plan, self.context, self.leaves)
        self._floors = no_floors(plan)  # of keys whose past was forgotten, while it is in the store
        self.tree = self._plant(plan)
        store.remembered = lambda: self.tree.sink.codes()
        self._past: dict[Node, NodeProfile] = {}  # of plans that were given up
        self._compiled = 0.0  # seconds, for those plans

    def _plant(self, plan: Plan) -> OperatorTree:
        in_order = self._journal is None
        tree = OperatorTree(plan, self.context, self.leaves, self._input, in_order)
        for operator in tree.operators:
            self.context.store.require(operator.columns())
        self.context.store.require(tree.sink.columns())
        if self._window is not None:
            self.context.store.require(self._window.columns())
        return tree

    # ── in and out ──

    def push(self, batch: pa.RecordBatch, last: bool = False) -> Iterator[pa.RecordBatch]:
        """Match the next batch of events, which must not be earlier than those before. If it is the
        `last` one, an automaton looks at it once, as time passes to infinity, and not twice."""
        self._ends = last and self._looks_once()
        for part in parts(self.plan, batch):
            if self.done:
                return
            yield from self._counted(self._push(part))

    def _looks_once(self) -> bool:
        plan = self.plan
        counted = plan.limit is not None or (plan.selection and plan.selection.most is not None)
        automata = all(isinstance(root, Automaton) for root in plan.alternatives)
        return automata and not counted and not self._at_once and self._journal is None

    def warm(self, sample: pa.RecordBatch) -> int:
        """Have the kernels compiled for columns that have NULLs where the sample has; returns how
        many this machine had not compiled. The engine can't be used afterwards."""
        self.context.compile_at = 0
        part = next(iter(parts(self.plan, sample)), sample)
        self._load(with_times(with_clean_dictionaries(part), self.plan.schema, self.counts))
        cold = self.tree.cold()
        self.tree.warm()
        return cold + self.tree.warm_at_once() if needs.matches_at_once(self.plan) else cold

    def _push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        batch = with_times(with_clean_dictionaries(batch), self.plan.schema, self.counts)
        if batch.num_rows:
            self._load(batch)
            yield from self._rounds()
        yield from self.tree.flush()
        if self._ended:
            return
        # Only now: matches of this batch may have been waiting with their groups. A record lives
        # for a window, and may wait for another one.
        self.tree.forget_groups(self.context.eat - self.context.window)
        if self._journal is not None:
            self.context.store.expire(self.context.eat)  # so that it isn't saved
        elif (kept := self.spare()) is not None:
            self.compact(kept)

    def _limit(self) -> Iterator[pa.RecordBatch]:
        """Enforce the caller's limit on held events. An automaton knows what it needs; all other
        operators hold the window."""
        window, limit = self._window, self.plan.limit
        if window is None or limit is None:
            return
        known = None if self._at_once else self.tree.held()
        held = window.held(self._row) if known is None else known[1]
        counts = window.counts(held) if known is None else known[0]
        if not within(limit, *counts):
            yield from self._shed(window, held)

    def _shed(self, window: HeldWindow, held: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
        """Drop the oldest events, and every match that would start at or before one of them, in its
        key or in any: so no match is found that the dropped events would have ruled out."""
        context, store = self.context, self.context.store
        cut, floors = window.excess(held)
        floors = self._floors.plus(floors).after(int(store.position[0]))
        yield from self.tree.flush()
        if cut:
            last = cut - 1
            clock = int(store.clock[last])
            context.floor = Horizon(int(store.position[last]), int(store.time[last]), clock)
            context.eat = max(context.eat, clock)
        self._floors = floors
        lost = self._forget(window)
        if len(lost):
            self.counts.shed += int(np.count_nonzero(held[lost[lost >= store.base] - store.base]))
            self._replant(self.plan)

    def _forget(self, window: HeldWindow) -> NDArray[np.int64]:
        """Remove from the leaves what lies below a floor; returns those rows."""
        floor = self.context.floor
        lost = window.drop(-FOREVER if floor is None else floor.position, self._floors)
        for leaf in self.leaves.values():
            leaf.show(self._row)
        return lost

    def spare(self) -> NDArray[np.int64] | None:
        """Places in the store of the events that may still matter, once the others are the most:
        without a window, an automaton knows, and where the past of keys was forgotten, the
        leaves."""
        needed, store = self.tree.needed(), self.context.store
        if needed is None and len(self._floors) and not self.tree.notes_rows:
            needed = np.zeros(store.n, np.bool_)
            for leaf in self.leaves.values():
                rows = leaf.out.records.slots[0, : leaf.out.n] - store.base
                needed[rows[rows >= 0]] = True
        if needed is None or not store.n:
            return None
        return None if 2 * int(np.count_nonzero(needed)) > store.n else np.flatnonzero(needed)

    def compact(self, kept: NDArray[np.int64]) -> None:
        """Drop all rows but these, which get new numbers."""
        store = self.context.store
        rows = kept + store.base
        store.keep(kept)
        for leaf in self.leaves.values():
            leaf.out.renumber(rows, store.base)
        if not self.tree.renumber(rows, store.base):
            for leaf in self.leaves.values():
                leaf.out.chains.clear()
            self._replant(self.plan)

    def advance(self, time: int) -> Iterator[pa.RecordBatch]:
        """Time passes, with or without events (a heartbeat): every event at or before this time,
        which is that of the last one or later, is known."""
        yield from self._counted(self._advance(time))

    def _advance(self, time: int) -> Iterator[pa.RecordBatch]:
        context, store = self.context, self.context.store
        self._ticker.advance(time + 1)
        if context.in_time:
            context.frontier = max(context.frontier, time + 1)
        horizon = context.horizon
        if store.n:
            position = time + 1 if store.lasting else int(store.position[-1]) + 1
            position = max(horizon.position, position)
            clock = None if context.in_time else context.frontier + 1
            context.horizon = Horizon(position, max(horizon.time, time + 1), clock)
        if self.tree.waits and store.n and self._started:
            yield from self.tree.assemble()
        yield from self.tree.flush()
        self._expire()
        store.expire(context.eat)
        self.tree.forget_groups(context.eat - context.window)

    @property
    def done(self) -> bool:
        """Whether LIMIT allows no further match, so that nothing more needs to be read."""
        return self.tree.sink.done

    @property
    def store(self) -> EventStore:
        """The events that are held."""
        return self.context.store

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.leaves)

    @property
    def last(self) -> pa.RecordBatch | None:
        """The last row, where more than its time tells where the next one belongs."""
        return self._ticker.save().last

    @property
    def waits(self) -> bool:
        """Whether passing time alone may decide a match."""
        waiting = self.tree.sink.holds or (self.tree.waits and self.context.store.n > 0)
        return waiting and not self.done

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Let time pass to infinity: release all matches that waited."""
        yield from self._counted(self._finish())

    def _finish(self) -> Iterator[pa.RecordBatch]:
        self.context.frontier = FOREVER
        self.context.horizon = Horizon(FOREVER, FOREVER)
        if self.tree.waits and self.context.store.n and not self.done and not self._ended:
            yield from self.tree.assemble()
        yield from self.tree.flush()

    def _counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches; their rows and the time that they take are counted, not what the caller
        does meanwhile."""
        while True:
            self._began = perf_counter()
            batch = next(batches, None)
            self._seconds, self._began = self.seconds, None
            if batch is None:
                return
            self.counts.matches += batch.num_rows
            yield batch

    @property
    def seconds(self) -> float:
        """The time spent in the engine so far."""
        under_way = 0.0 if self._began is None else perf_counter() - self._began
        return self._seconds + under_way

    def _load(self, batch: pa.RecordBatch) -> None:
        """Store the rows that belong to a class, and fill the leaf buffers with them."""
        plan, classes = self.plan, tuple(self.leaves)
        types = plan.schema.type
        read: set[str] | None = None
        if batch.num_rows >= MANY and self._journal is None:
            names = self.context.store.names
            read = set(names).union(name for part in plan.key for name in part.values())
        classified = classify(batch, classes, plan.variables, types, plan.key, self.unseen, read)
        self.unseen -= classified.types
        classified = self.tree.sink.narrowed(classified)
        ticks = self._ticker.read(batch, classified.rows)
        self._reached = ticks.reached
        loaded = LoadedRows(classified.batch, ticks, classified.masks)
        if self._journal is not None and len(classified.rows):
            self._journal.append(loaded)
        self._row = self._put(loaded)

    def _put(self, loaded: LoadedRows) -> int:
        """Store the rows and fill the leaf buffers; returns the number of the first row."""
        store, ticks = self.context.store, loaded.ticks
        store.append(loaded.batch, ticks, self.context.eat)
        self.tree.fuse()
        first = store.base + store.n - len(ticks.time)
        whole = self._ends and not first and store.n <= self._round_size
        if whole and self.tree.arrange(loaded.masks, self.part):
            return first
        assert self.part == (0, 1) or not store.n
        for leaf, mask in zip(self.leaves.values(), loaded.masks, strict=True):
            places = np.flatnonzero(mask)
            if self._longest is not None:
                places = places[ticks.clock[places] - ticks.opened[places] < self._longest]
            leaf.out.append(ticks, places, first)
        return first

    def _rounds(self) -> Iterator[pa.RecordBatch]:
        context, store = self.context, self.context.store
        end = store.base + store.n
        size = self._first_size()
        while True:
            begin, plain = self._row, self.tree.plain_seconds
            limit = min(end, begin + size)
            last = limit == end
            context.frontier = self._reached if last else int(store.clock[limit - 1 - store.base])
            context.horizon = self._horizon(limit)
            self._ended = last and self._ends
            if self._ended:
                context.frontier, context.horizon = FOREVER, Horizon(FOREVER, FOREVER)
            fresh = [leaf for leaf in self.leaves.values() if leaf.show(limit)]
            is_whole = limit - self._row == self._round_size
            self._row = limit
            self.counts.rounds += 1
            if not self._started:
                yield from self._adapt()  # before anything is made with a plan that is a guess
            made = self.tree.made
            if self._ended or (not self._at_once and self.tree.wakes(fresh)):
                self._started = True
                yield from self.tree.assemble()
            else:
                self.counts.idle += 1
            if self._ended:
                return
            if self._grows and is_whole:
                made = self.tree.made - made
                self._round_size = needs.next_round_size(self._round_size, self._least_round, made)
            self._expire()
            yield from self._limit()
            took = self.tree.plain_seconds - plain
            if took:  # the rest of the batch may wait for kernels to be compiled
                yield from self.tree.flush()
            size = self._next_size(size, took, limit - begin, end - limit)
            yield from self._adapt()
            if last:
                return

    def _first_size(self) -> int:
        """How many rows the first round of a batch has."""
        patient = self.context.jit and self.context.compile_at > 0 and not self._at_once
        return FIRST_ROUND if patient and self.tree.compile_seconds else self._round_size

    def _next_size(self, size: int, plain: float, rows: int, left: int) -> int:
        """How many rows the next round has. Kernels are compiled if what is left of the batch would
        take longer as plain Python: `rows` of it took `plain` seconds."""
        waiting = self.tree.compile_seconds if plain else 0.0
        if plain * left > waiting * rows:
            self.context.compile_at = 0
        return min(2 * size, self._round_size) if self.context.compile_at else self._round_size

    def _passed(self) -> int:
        """The clock that everything has been looked at with. Where events are counted, others of
        no class, or of the next key, may have moved it ahead of those that are held back."""
        context, store = self.context, self.context.store
        if context.in_time or not store.n:
            return context.frontier
        known = int(np.searchsorted(store.position, context.horizon.position))
        return int(store.clock[known - 1]) if known else -FOREVER

    def _horizon(self, limit: int) -> Horizon:
        """Simultaneous events may come with the next round or batch, so the last position is not
        complete, unless a later time has been reached."""
        context, store = self.context, self.context.store
        row = limit - 1 - store.base
        if row < 0:
            return context.horizon
        time, position = int(store.time[row]), int(store.position[row])
        if context.in_time and context.frontier > time:
            return Horizon(position + 1, context.frontier)
        held = context.horizon
        if position == held.position:  # the first row after time passed: its time has been reached
            return Horizon(position, max(held.time, time), held.clock)
        # Time may have passed the last row, and then only others came, of no class.
        return Horizon(position, time) if position > held.position else held

    def _expire(self) -> None:
        context = self.context
        # A record may wait for its window behind one that began a window later, and look back
        # a window from its end.
        if self._at_once or self.tree.looks_ahead:
            return
        horizon = context.window * (3 if self.tree.waits else 1) + self.tree.back
        context.eat = max(context.eat, self._passed() - horizon)
        self.tree.trim()

    # ── in another process ──

    def save(self) -> EngineState:
        """The state, besides the rows, to resume elsewhere; called between batches."""
        context, store = self.context, self.context.store
        choice = self.tree.sink.save()
        floors = self._floors.after(int(store.position[0]) if store.n else FOREVER)
        return EngineState(
            base=store.base,
            end=store.base + store.n,
            started=self._started,
            frontier=context.frontier,
            horizon=context.horizon,
            eat=context.eat,
            numbering=self._ticker.save(),
            choice=choice,
            strings=store.interner.strings(codes(self.plan, choice, floors)),
            floor=context.floor,
            floors=floors,
        )

    def resume(self, state: EngineState, loaded: Iterable[LoadedRows]) -> None:
        """Resume a saved engine. `loaded` are all rows that it retained, or those that this engine
        hasn't seen, if it has come part of the way itself."""
        context, store = self.context, self.context.store
        if not store.n:
            store.base = state.base
        for rows in loaded:
            self._put(rows)
        context.frontier, context.horizon, context.eat = state.frontier, state.horizon, state.eat
        context.floor = state.floor
        self._ticker.resume(state.numbering)
        self._started = state.started
        self._row = store.base + store.n
        for leaf in self.leaves.values():
            leaf.show(self._row)
        known = {code: store.interner.code(text) for code, text in state.strings.items()}
        self._floors = no_floors(self.plan).plus(recoded_floors(self.plan, state.floors, known))
        if self._window is not None and len(self._forget(self._window)):
            self.tree = self._plant(self.plan)
        if state.choice is not None:
            self.tree.sink.resume(recoded(self.plan, state.choice, known))
        if self._started and store.n:
            prompt = context.prompt
            context.prompt = prompt and state.prompt
            self.tree.catch_up()
            context.prompt = prompt

    # ── changing plans ──

    def _adapt(self) -> Iterator[pa.RecordBatch]:
        plan = self.advisor.advise(self) if self.advisor else None
        if plan is not None:
            yield from self.switch(plan)

    def switch(self, plan: Plan) -> Iterator[pa.RecordBatch]:
        """Switch to another plan of the same query; only between rounds. What the roots hold comes
        out first."""
        if set(leaves(plan)) != set(self.leaves):
            raise ValueError("a plan can be replaced only by one over the same classes")
        yield from self.tree.flush()
        self._replant(plan)

    def _replant(self, plan: Plan) -> None:
        """Rebuild the operators over the leaves' records."""
        self._past = self._profiles()
        self._compiled += self.tree.compiling
        tree = self._plant(plan)
        if self._started:
            tree.take_over(self.tree)
        tree.fuse()
        self.plan, self.tree = plan, tree

    def cold(self, plan: Plan) -> int:
        """How many kernels would have to be compiled before this plan can run."""
        tree = self._plant(plan)
        tree.fuse()
        return tree.cold()

    def _profiles(self) -> dict[Node, NodeProfile]:
        none = NodeProfile()
        now = {
            # Leaves outlive plans; of all others, what they did in earlier plans is added.
            node: done if isinstance(node, LeafNode) else self._past.get(node, none).plus(done)
            for node, done in self.tree.profile().items()
        }
        return {**self._past, **now}

    def profile(self) -> Profile:
        """The profile of the run so far."""
        counts, advisor = self.counts, self.advisor
        return Profile(
            events=counts.events,
            rejected=counts.rejected,
            matches=counts.matches,
            rounds=counts.rounds,
            idle=counts.idle,
            seconds=self.seconds,
            sampling=advisor.seconds if advisor else 0.0,
            compiling=self._compiled + self.tree.compiling,
            nodes=self._profiles(),
            replans=advisor.replans if advisor else (),
            shed=counts.shed,
        )
