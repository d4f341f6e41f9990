"""One query of a session: an engine in a bucket, as on a stream, whose cells are in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.nested_columns import read_fields, roots, with_extracted
from cepheid.algebra.types import STREAM_COLUMN
from cepheid.engine.arrays.columns import with_clean_dictionaries
from cepheid.engine.end_of_data import last_moment
from cepheid.engine.match_schema import MATCH_END, output_schema
from cepheid.engine.rows.classes import classify
from cepheid.engine.rows.clock import times
from cepheid.engine.rows.order import key_by_key, sorted_by
from cepheid.errors import UnsupportedError
from cepheid.inprocess.disorder import NEVER, WaitingRows
from cepheid.inprocess.execution import named_streams
from cepheid.options import Options
from cepheid.plan.reads import final_leaves, kept_columns
from cepheid.planner import Prepared
from cepheid.sessions.held_cells import HeldCells, nested, within
from cepheid.sessions.key_buckets import KeyBuckets
from cepheid.streaming.buckets.bucket import Bucket, Job, open_bucket
from cepheid.streaming.buckets.folded_bucket import FoldedJob
from cepheid.streaming.cells import arrow_bytes, table_of
from cepheid.streaming.chained_query import ChainedQuery, merge_inputs
from cepheid.streaming.counted_keys import CountedKeys, keys_share
from cepheid.streaming.signature import answers_signature, signature

NOTED = 512
"""Batches after which the rows that came are written: so many small ones are as fast as one."""

FEW = 16
"""Rows of a push that is looked at for events which could end a match."""
MOST_DEFERRED = 256
"""Rows that may wait for an event that could end a match."""


class QueryRun:
    """The state of a query in memory."""

    def __init__(self, part: ChainedQuery, options: Options) -> None:
        self.part = part
        prepared, plan = part.prepared, part.prepared.plan
        self._job = _job_of(prepared, read_fields(part.columns, plan.required), options)
        self._until = last_moment(options.until, plan)
        self._cells = HeldCells()
        self._by_key = key_by_key(plan) and not keys_share(prepared)
        self._bucket: Bucket | KeyBuckets = (
            KeyBuckets(self._job, plan) if self._by_key else self._job.new_bucket()
        )
        schema, order = self._job.schema, plan.schema.order
        self._waiting = WaitingRows(schema, order) if part.lag else None
        self._matches = 0
        self._shed_before = 0  # before the session was resumed
        self._deferred: list[pa.Table] = []
        self._reached = NEVER
        self.schema = self._bucket.match_schema
        # Where every match is known with its last event, no other event needs to be matched before
        # one comes that could be the last, or an answer is due: few at once cost as much as one.
        defers = prepared.settled and plan.limit is None and not part.labels and not part.lag
        finals = frozenset(leaf for root in plan.alternatives for leaf in final_leaves(root))
        self._finals = tuple(finals) if defers else ()

    # ── rows ──

    def step(self, rows: pa.Table, others: Mapping[str, pa.Table], reached: int) -> pa.Table:
        """What is known with these rows and matches of others, when time has come so far."""
        if self.part.prepared.query.nothing is not None:
            return self.schema.empty_table()
        events = self._read(rows, others)
        reached -= self.part.lag
        if self._waiting is not None:
            self._waiting.add(events)
            events = self._waiting.release(reached)
        self._reached = reached
        few = self._finals and 0 < events.num_rows <= FEW
        if few and reached < self._bucket.due and not self._may_end(events):
            self._deferred.append(events)
            if sum(table.num_rows for table in self._deferred) < MOST_DEFERRED:
                return self.schema.empty_table()
            events = events.slice(0, 0)
        matches = self._result(self._bucket.match(self._with_deferred(events), reached - 1))
        if self._bucket.noted >= NOTED:
            self._bucket.write_rows(self._cells)
        return matches

    def _may_end(self, events: pa.Table) -> bool:
        """Whether one of the events may be the last of a match."""
        plan = self.part.prepared.plan
        for batch in events.combine_chunks().to_batches():
            batch = with_clean_dictionaries(batch)
            classified = classify(batch, self._finals, plan.variables, plan.schema.type, plan.key)
            if len(classified.rows):
                return True
        return False

    def _with_deferred(self, events: pa.Table) -> pa.Table:
        """The events in the order in which they are matched, with those that were deferred."""
        if self._deferred:
            events = pa.concat_tables([*self._deferred, events])
            self._deferred = []
        return (
            self._job.prepared.in_order(events) if key_by_key(self.part.prepared.plan) else events
        )

    def _match_deferred(self) -> None:
        """Hand deferred rows to the engine: none of them ends a match."""
        if self._deferred:
            nothing = self._job.schema.empty_table()
            matches = self._result(
                self._bucket.match(self._with_deferred(nothing), self._reached - 1)
            )
            assert not matches.num_rows

    def finish(self, rows: pa.Table, others: Mapping[str, pa.Table]) -> pa.Table:
        """The end of the data, with the last rows and matches of others."""
        if self.part.prepared.query.nothing is not None:
            return self.schema.empty_table()
        events = self._read(rows, others)
        if self._waiting is not None:
            self._waiting.add(events)
            events = self._waiting.release()
        return self._result(self._last(self._with_deferred(events)))

    def _last(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from self._bucket.match(rows, NEVER)
        yield from self._bucket.finish(self._until)

    def _read(self, rows: pa.Table, others: Mapping[str, pa.Table]) -> pa.Table:
        """What the query reads of rows and matches, in order."""
        part, names = self.part, self._job.schema.names
        if not part.labels:
            return with_extracted(named_streams(part.prepared.plan, rows), names)
        named = STREAM_COLUMN in rows.column_names
        base = {
            name: rows.filter(pc.equal(rows[STREAM_COLUMN], name)) if named else rows
            for name in part.base
        }
        streams = {**base, **{label: others[label] for label in part.labels}}
        every = merge_inputs(streams, part.inputs, part.columns)
        order = part.prepared.plan.schema.order
        return sorted_by(with_extracted(every, names), order)

    def _result(self, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        """The matches of a step, in the order of their ends."""
        table = pa.Table.from_batches(batches, self.schema)
        self._matches += table.num_rows
        if table.num_rows < 2:
            return table
        ends = times(table[MATCH_END].combine_chunks())
        if (ends[1:] >= ends[:-1]).all():
            return table
        return table.take(pa.array(np.argsort(ends, kind="stable")))

    # ── figures ──

    @property
    def waits(self) -> bool:
        """Whether time alone may bring matches."""
        held = self._waiting is not None and self._waiting.rows.num_rows > 0
        return held or self._bucket.waits

    suppressed = 0
    """Alerts of rules are throttled, matches of queries aren't."""

    @property
    def matches(self) -> int:
        return self._matches

    @property
    def held(self) -> int:
        self._match_deferred()
        waiting = 0 if self._waiting is None else self._waiting.rows.num_rows
        return waiting + self._bucket.total("rows")

    @property
    def shed(self) -> int:
        return self._shed_before + self._bucket.total("shed")

    @property
    def undecided(self) -> int:
        return self._bucket.total("undecided")

    @property
    def replans(self) -> int:
        return self._bucket.total("replans")

    # ── saving ──

    def save(self) -> dict[str, bytes]:
        self._match_deferred()
        if isinstance(self._bucket, KeyBuckets):
            cells = self._bucket.parts()
        else:
            self._bucket.save(self._cells)
            cells = self._cells.parts()
        figures = pa.table({"matches": [self._matches], "shed": [self.shed]})
        waiting = {}
        if self._waiting is not None:
            waiting["waiting"] = arrow_bytes(self._waiting.rows)
        return {"figures": arrow_bytes(figures), **waiting, **nested("cells", cells)}

    def resume(self, saved: Mapping[str, bytes]) -> None:
        cells = within("cells", saved)
        if isinstance(self._bucket, KeyBuckets):
            self._bucket.resume(cells)
        else:
            self._cells = HeldCells.of(cells)
            self._bucket = open_bucket(self._job, self._cells)
        if self._waiting is not None:
            self._waiting.add(table_of(saved["waiting"]))
        (figures,) = table_of(saved["figures"]).to_pylist()
        self._matches = figures["matches"]
        self._shed_before = figures["shed"]


def _job_of(prepared: Prepared, schema: pa.Schema, options: Options) -> Job:
    plan, shape = prepared.plan, prepared.query.answers
    kept, jit = tuple(kept_columns(plan)), options.jit
    shared = keys_share(prepared)
    if shape is None:
        runnable = CountedKeys(plan) if shared else prepared
        return Job(runnable, schema, signature(prepared), jit=jit, kept=kept)
    if key_by_key(plan) and not shared:
        raise UnsupportedError(
            "the events of each key are counted (WITHIN n EVENTS), and a match may wait for more "
            "of them, so no window of answers is ever over: give the query a window of time, end "
            "its pattern with an event after `;`, or match whole tables"
        )
    same = answers_signature(prepared, output_schema(plan, schema))
    counting = CountedKeys(plan) if shared else prepared.counted(prompt=True)
    return FoldedJob(
        counting or prepared, schema, same, jit=jit, kept=kept, shape=shape, limit=options.limit
    )


def columns_read(parts: Iterable[ChainedQuery], columns: pa.Schema) -> list[str]:
    """The columns of the events that some query reads."""
    names = [n for p in parts for n in roots(columns, p.prepared.plan.required)]
    return [name for name in dict.fromkeys(names) if name in columns.names]
