"""The merged automaton at work: Cayuga's state machine manager (4.3).

A batch's rows are classified by the predicates that they satisfy; those that satisfy none are of no
further interest. For all others, the edges of those predicates are tried: the instances that wait
at their beginning and agree with the row are found by a hash, and become new instances, or, at
the end of a rule, as matches. So a row costs what it meets, not what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Expr
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import kernel_values, with_clean_dictionaries
from cepheid.engine.arrays.interner import Interner
from cepheid.engine.arrays.ordered_codes import ordered
from cepheid.engine.arrays.vector import evaluate
from cepheid.engine.arrays.window_columns import Growing
from cepheid.engine.attribution.parameters import as_read
from cepheid.engine.match_schema import columns_read, output_schema
from cepheid.engine.match_values import View
from cepheid.engine.merged.merge import Merged, TemplateRules
from cepheid.engine.rows.clock import Ticker, Ticks, unplaced
from cepheid.engine.rows.store import FORGET_AT, EventStore, evaluated
from cepheid.engine.state import LoadedRows
from cepheid.kernels import load
from cepheid.kernels.templates.merged import ADVANCED, COMPACTED, Advance

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

CHUNK = 1 << 16
"""How many rows are matched at once: their matches are held in memory."""
TEXTS = (Type.STRING, Type.BINARY)
NOTHING = -(1 << 63)
"""The time up to which rows are dropped, before any are."""
FIRST = 1 << 10
"""The initial capacity for instances."""
ROOM = 4
"""The capacity is this multiple of the instances: an edge may double them, and expired ones are
collected only after they have doubled."""


@dataclass(frozen=True)
class BranchMatches:
    """Matches of rules of one branch: the rules' numbers in the branch, and RETURN's rows."""

    branch: int
    rules: Ints
    matches: pa.RecordBatch


class Machine:
    """Runs merged rules. Feed it with `push`, in time order; `BranchMatches` comes out.

    `since` has, for each rule, the number of the first row that it may take: rules that come while
    others run don't see the past. With a `journal`, which the caller empties, the rows that are
    held are noted there, so that another machine can `replay` them.
    """

    def __init__(
        self,
        rules: Merged,
        schema: pa.Schema,
        *,
        jit: bool = True,
        since: Ints | None = None,
        journal: list[LoadedRows] | None = None,
    ) -> None:
        self.rules = rules
        self.jit = jit
        self._since, self._journal = since, journal
        self.events = self.rejected = 0
        self._input = schema
        self._query = rules.branches[0].path.query
        self._ticker = Ticker(self._query.schema, None, ())
        self._store = EventStore(_returned(rules), Interner())
        self._interner = rules.interner.copy()
        self._constants = self._interner.codes
        self._forget_at = FORGET_AT
        self._schemas = [output_schema(b.path.query, schema) for b in rules.branches]
        width = len(rules.columns)
        self._cells = Growing(np.zeros((0, width), np.int64))
        self._known = Growing(np.zeros((0, width), np.bool_))
        graph = rules.graph
        self._pool = np.zeros((FIRST, 8), np.int64)
        self._count, self._after = 0, 0
        self._heads = np.full(FIRST, -1, np.int64)
        self._active = np.zeros(graph.nodes, np.int64)
        self._ender_heads = np.full(len(graph.ender_links), -1, np.int64)
        entries = graph.enders
        self._entry_nodes = np.repeat(np.arange(graph.nodes), np.diff(entries.begins))
        self._entry_next = np.full(len(entries.values), -1, np.int64)
        self._entry_on = np.zeros(len(entries.values), np.int64)
        self._steps = int(graph.depth.max()) + 1

    @property
    def instances(self) -> int:
        """The number of instances, including expired ones."""
        return self._count

    @property
    def rows(self) -> int:
        """How many events are held."""
        return self._store.n

    @property
    def base(self) -> int:
        """The number of the first of them."""
        return self._store.base

    def push(self, batch: pa.RecordBatch) -> Iterator[BranchMatches]:
        """Match the next batch of events, which is not earlier than those before."""
        batch = self._with_times(with_clean_dictionaries(batch))
        for begin in range(0, batch.num_rows, CHUNK):
            chunk = batch.slice(begin, CHUNK)
            yield from self.match(chunk, self._ticker.read(chunk, np.arange(chunk.num_rows)))

    def match(self, batch: pa.RecordBatch, ticks: Ticks) -> Iterator[BranchMatches]:
        """Match rows with their ticks; not too many at once."""
        cells, known = self._encoded(batch)
        begins, predicates = self.rules.index.satisfied(cells, known, self.jit)
        rows = np.flatnonzero(np.diff(begins))
        if not len(rows):
            return
        taken, taken_ticks = batch.take(pa.array(rows)), ticks.of(rows)
        if self._journal is not None:
            self._journal.append(LoadedRows(taken, taken_ticks, [np.ones(len(rows), np.bool_)]))
        satisfied = np.append(begins[rows], len(predicates))
        yield from self._branch_matches(
            *self._take(taken, taken_ticks, cells[rows], known[rows], satisfied, predicates)
        )

    def begin(self, base: int) -> None:
        """Set the number of the next row, if no row was matched yet."""
        if not self._store.n:
            self._store.base = base

    def replay(self, loaded: LoadedRows) -> None:
        """Replay rows that another machine has held; their matches are already known."""
        for begin in range(0, loaded.batch.num_rows, CHUNK):
            chunk = loaded.batch.slice(begin, CHUNK)
            cells, known = self._encoded(chunk)
            begins, predicates = self.rules.index.satisfied(cells, known, self.jit)
            ticks = loaded.ticks.of(np.arange(begin, begin + chunk.num_rows))
            self._take(chunk, ticks, cells, known, begins, predicates)

    def expire(self, time: int) -> None:
        """Drop the rows that no event at this time or later can need."""
        before = self._store.base
        self._store.expire(time - self.rules.reach)
        self._cells.drop(self._store.base - before)
        self._known.drop(self._store.base - before)

    def _with_times(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.events += batch.num_rows
        rejected = unplaced(batch, self._query.schema.time, None)
        if rejected is None:
            return batch
        self.rejected += rejected.true_count
        return batch.filter(pc.invert(rejected))

    def _take(
        self,
        batch: pa.RecordBatch,
        ticks: Ticks,
        cells: Ints,
        known: Mask,
        satisfied: Ints,
        predicates: Ints,
    ) -> tuple[Ints, Ints]:
        """Store these rows and extend instances with them: returns the path ends that were reached,
        and the rows on those paths. `satisfied[i]` is where the predicates of row i begin."""
        self.expire(int(ticks.time[0]))
        store = self._store
        store.append(batch, ticks, NOTHING)
        self._cells.append(cells)
        self._known.append(known)
        first = store.base + store.n - batch.num_rows
        ends = self._advance(ticks.position, ticks.time, satisfied, predicates, first)
        self._tidy(int(ticks.position[-1]), int(ticks.time[-1]))
        return ends

    def _encoded(self, batch: pa.RecordBatch) -> tuple[Ints, Mask]:
        """The rows as integers, and the mask of values that aren't NULL."""
        columns = self.rules.columns
        cells = np.empty((batch.num_rows, len(columns)), np.int64)
        known = np.ones((batch.num_rows, len(columns)), np.bool_)
        for n, column in enumerate(columns):
            values, valid = kernel_values(evaluated(column, batch), column.type, self._interner)
            cells[:, n] = ordered(values)
            if valid is not None:
                known[:, n] = valid
        return cells, known

    def _advance(
        self, position: Ints, time: Ints, satisfied: Ints, predicates: Ints, first: int
    ) -> tuple[Ints, Ints]:
        """Process rows one by one, until there may be no room for another instance or end; then
        make room."""
        kernel: Callable[..., Any] = load(ADVANCED, self.jit)
        state = np.array([0, 0, 0, self._count, 0], np.int64)
        ends: list[tuple[Ints, Ints]] = []
        while True:
            room = len(self._heads)
            nodes, bound = np.empty(room, np.int64), np.empty((room, self._steps), np.int64)
            kernel(
                *self._arguments(position, time, satisfied, predicates, first, nodes, bound, state)
            )
            event, _, _, self._count, count = state.tolist()
            ends.append((nodes[:count], bound[:count]))
            if event == len(position):
                break
            self._compact(int(position[event]), int(time[event]))
            state[3] = self._count
        return np.concatenate([n for n, _ in ends]), np.concatenate([b for _, b in ends])

    def _arguments(
        self,
        position: Ints,
        time: Ints,
        satisfied: Ints,
        predicates: Ints,
        first: int,
        nodes: Ints,
        bound: Ints,
        state: Ints,
    ) -> Advance:
        graph, store = self.rules.graph, self._store
        return Advance(
            position=position,
            time=time,
            satisfied=satisfied,
            predicates=predicates,
            cells=self._cells.array,
            known=self._known.array,
            base=store.base,
            first=first,
            parent=graph.parent,
            depth=graph.depth,
            node_links=graph.links,
            node_probe=graph.probe,
            node_key=graph.key,
            strict=graph.strict,
            reach=graph.reach,
            restless=graph.restless,
            rules=graph.rules.begins,
            edges=graph.edges.begins,
            edge_nodes=graph.edges.values,
            endings=graph.endings.begins,
            ending_enders=graph.endings.values,
            enders=graph.enders.begins,
            ender_list=graph.enders.values,
            ender_links=graph.ender_links,
            ender_probe=graph.ender_probe,
            link_sets=graph.link_sets.begins,
            links=graph.link_sets.values,
            keys=graph.keys.begins,
            key_places=graph.keys.values,
            probes=graph.probes.begins,
            probe_columns=graph.probes.values,
            pool=self._pool,
            heads=self._heads,
            active=self._active,
            ender_heads=self._ender_heads,
            entry_nodes=self._entry_nodes,
            entry_next=self._entry_next,
            entry_on=self._entry_on,
            out_nodes=nodes,
            out_rows=bound,
            state=state,
        )

    def _tidy(self, position: int, time: int) -> None:
        """Drop expired instances once they may be the majority, and texts that no row has."""
        if self._count >= 2 * self._after + FIRST:
            self._compact(position, time)
        if len(self._interner) > self._forget_at:
            texts = [n for n, c in enumerate(self.rules.columns) if c.type in TEXTS]
            held = self._cells.array[:, texts].ravel()
            self._interner.forget(np.append(self._constants, held))
            self._forget_at = max(FORGET_AT, 2 * len(self._interner))

    def _compact(self, position: int, time: int) -> None:
        """Drop expired instances, and make room for as many as are left."""
        graph = self.rules.graph
        kernel: Callable[..., Any] = load(COMPACTED, self.jit)
        kept = np.zeros(self._count, np.int64)
        heads = np.full(max(FIRST, 2 * ROOM * self._count), -1, np.int64)
        self._count, size = kernel(
            self._pool,
            self._count,
            position,
            time,
            graph.reach,
            graph.restless,
            self._active,
            kept,
            heads,
            FIRST,
            ROOM,
        )
        self._heads, self._after = heads[:size], self._count
        if len(self._pool) < size:
            pool = np.empty((size, self._pool.shape[1]), np.int64)
            pool[: self._count] = self._pool[: self._count]
            self._pool = pool

    # ── matches ──

    def _branch_matches(self, nodes: Ints, bound: Ints) -> Iterator[BranchMatches]:
        """The matches of the rules that end at these path ends."""
        if not len(nodes):
            return
        ends = self.rules.graph.rules
        count = ends.begins[nodes + 1] - ends.begins[nodes]
        again = np.repeat(np.arange(len(nodes)), count)
        within = np.arange(len(again)) - np.repeat(np.cumsum(count) - count, count)
        rules = ends.values[ends.begins[nodes[again]] + within]
        branches = np.searchsorted(self.rules.begins, rules, "right") - 1
        for n in np.unique(branches).tolist():
            places = np.flatnonzero(branches == n)
            reached = rules[places] - self.rules.begins[n]
            yield from self._of_branch(n, reached, bound[again[places]])

    def _of_branch(self, n: int, rules: Ints, bound: Ints) -> Iterator[BranchMatches]:
        branch = self.rules.branches[n]
        path = branch.path
        rules, records = self._leveled(n, rules, bound[:, : len(path.steps)])
        if self.rules.doubtful[n]:
            both = np.unique(np.column_stack((rules, records)), axis=0)
            rules, records = both[:, 0], both[:, 1:]
        if self._since is not None:
            seen = np.flatnonzero(records[:, 0] >= self._since[self.rules.begins[n] + rules])
            rules, records = rules[seen], records[seen]
        if len(path.steps) > 1:
            time = self._store.time
            span = time[records[:, -1] - self._store.base] - time[records[:, 0] - self._store.base]
            short = np.flatnonzero(span < branch.window[rules])
            rules, records = rules[short], records[short]
        view = self._view(branch, rules, records)
        for condition in path.rest:
            holds = pc.fill_null(view.holds(as_read(condition)), False)
            kept = np.flatnonzero(holds.to_numpy(zero_copy_only=False))
            if len(kept) < len(rules):
                rules, records = rules[kept], records[kept]
                view = self._view(branch, rules, records)
        if len(rules):
            outputs = [as_read(o.expression) for o in path.query.outputs]
            yield BranchMatches(n, rules, view.rows_of(outputs, self._schemas[n]))

    def _leveled(self, n: int, rules: Ints, records: Ints) -> tuple[Ints, Ints]:
        """Keep the matches that satisfy the limits of their rules."""
        for step, level in enumerate(self.rules.levels[n]):
            if level is not None:
                column = self.rules.columns.index(level.column)
                values = self._cells.array[records[:, step] - self._store.base, column]
                kept = np.flatnonzero(level.holds(values, rules))
                rules, records = rules[kept], records[kept]
        return rules, records

    def _view(self, branch: TemplateRules, rules: Ints, records: Ints) -> _RuleView:
        columns = np.ascontiguousarray(records.T)
        slots = branch.path.slots
        query = branch.path.query
        return _RuleView(branch, rules, query, self._store, self._input, slots, columns, {}, None)


class _RuleView(View):
    """A view of the matches of several rules: attributes without a variable are parameters of the
    match's rule."""

    def __init__(self, branch: TemplateRules, rules: Ints, *others: Any) -> None:
        super().__init__(*others)
        self._branch, self._rules = branch, rules

    def holds(self, condition: Expr) -> pa.Array:
        return evaluate(condition, self._read, self.n, self._special)

    def output(self, expr: Expr, type_: pa.DataType) -> pa.Array:
        match expr:
            case Attribute(variable=""):
                return self._read(expr).cast(type_)
            case _:
                return super().output(expr, type_)

    def _read(self, attribute: Attribute) -> pa.Array:
        if attribute.variable:
            return super()._read(attribute)
        return self._branch.rows.parameters[attribute.name].take(pa.array(self._rules))


def _returned(rules: Merged) -> tuple[str, ...]:
    """The columns that RETURN and the remaining conditions of WHERE read."""
    return columns_read(
        expression
        for branch in rules.branches
        for expression in (
            *branch.path.rest,
            *(output.expression for output in branch.path.query.outputs),
        )
    )
