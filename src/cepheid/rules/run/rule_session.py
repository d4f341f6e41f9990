"""Rules in a session: a bucket of a stream that has all events, whose cells are in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from uuid import uuid4

import numpy as np
import pyarrow as pa

from cepheid.algebra.nested_columns import read_fields, with_extracted
from cepheid.answers.counted.counting_engine import CountedQuery
from cepheid.engine.attribution.json_rows import RULE, alert_schema
from cepheid.engine.end_of_data import last_moment
from cepheid.engine.match_schema import MATCH_END
from cepheid.engine.rows.clock import times
from cepheid.errors import StateError
from cepheid.inprocess.disorder import NEVER
from cepheid.options import Options
from cepheid.planner import Prepared
from cepheid.rules.compile.compiled_rules import compile_rules
from cepheid.rules.run.contradictions import warn_of_contradictions
from cepheid.rules.run.passes import needs, pass_of
from cepheid.rules.run.runtimes import Templates
from cepheid.rules.run.stream_compiler import (
    StreamCompiler,
    rules_schema,
    rules_signature,
    rules_version,
)
from cepheid.rules.run.throttle import throttle_of
from cepheid.runtime import Columns
from cepheid.sessions.held_cells import HeldCells, nested, within
from cepheid.sessions.session_events import EventColumns
from cepheid.streaming.buckets.bucket import Job
from cepheid.streaming.buckets.rule_bucket import RuleBucket, RulesJob, open_rules
from cepheid.streaming.cells import arrow_bytes, table_of
from cepheid.streaming.throttle import Throttle

NOTED = 512
"""Batches after which the rows that came are written: so many small ones are as fast as one."""


class RuleRuns:
    """The state of a set of rules in memory (see `sessions.session.SessionRuns`)."""

    def __init__(
        self, templates: Templates, given: Columns, columns: EventColumns, options: Options
    ) -> None:
        for template, need in zip(templates, needs(templates, given, options), strict=True):
            pass_of(template, (None,), need)  # raises what is wrong with a rule
        compiled = compile_rules(templates, given, options, deals=True)
        warn_of_contradictions(compiled, 4)
        for query in compiled.alone:
            last_moment(options.until, query.prepared.plan)
        self._compiled = compiled
        bound = columns.bound
        order = [name for name in bound.order if name in columns.plain.names]
        read = read_fields(columns.plain, compiled.required.union(order))
        self.schema = alert_schema(compiled.rules, read.field(bound.time).type)
        schema = rules_schema(given, options, read)
        compiler = StreamCompiler(
            uuid4().hex, given, options, None, (None,), read, schema, self.schema, delayed=False
        )
        self._version = rules_version(templates)
        self._job = RulesJob(compiler, rules_signature(schema, None), 1, self._version)
        self._names, self._options = tuple(read.names), options
        self._cells = HeldCells()
        self._bucket = RuleBucket(self._job)
        self._bucket.follow(self._cells, self._version)
        self._matches = self._shed = 0
        self.stayed = frozenset[str]()
        """The rules that continue what was resumed."""

    def step(self, rows: pa.Table, reached: int) -> pa.Table:
        """What is known with these rows, when time has come so far."""
        alerts = self._result(self._bucket.match(self._read(rows), reached - 1))
        self._shed += self._bucket.report().shed
        if max(part.noted for part in self._bucket.parts) >= NOTED:
            self._bucket.write_rows(self._cells)
        return alerts

    def finish(self, rows: pa.Table) -> pa.Table:
        """The end of the data, with the last rows."""
        events = self._read(rows)
        return self._result(
            chain(self._bucket.match(events, NEVER), self._bucket.finish(self._until))
        )

    def _until(self, job: Job) -> int | None:
        assert isinstance(job.prepared, Prepared | CountedQuery)
        return last_moment(self._options.until, job.prepared.plan)

    def _read(self, rows: pa.Table) -> pa.Table:
        return with_extracted(rows, self._names)

    def _result(self, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        """In the order of their ends."""
        table = pa.Table.from_batches(batches, self.schema)
        self._matches += table.num_rows
        if table.num_rows < 2:
            return table
        order = np.argsort(times(table[MATCH_END].combine_chunks()), kind="stable")
        return table.take(pa.array(order))

    def throttle(self, pause: int) -> Throttle:
        return throttle_of(self._compiled, pause)

    @property
    def waits(self) -> bool:
        return self._bucket.waits

    def total(self, figure: str) -> int:
        match figure:
            case "matches":
                return self._matches
            case "shed":
                return self._shed
            case "suppressed":
                return 0  # see `ThrottledRuns`
            case "held":
                return self._bucket.report().rows
            case "replans":
                return self._bucket.report().replans
            case "undecided":
                return sum(part.counts.undecided for part in self._bucket.parts)
            case _:
                raise AssertionError(figure)

    # ── saving ──

    def save(self) -> dict[str, bytes]:
        self._bucket.save(self._cells)
        figures = pa.table({"matches": [self._matches], "shed": [self._shed]})
        return {"figures": arrow_bytes(figures), **nested("cells", self._cells.parts())}

    def resume(self, saved: Mapping[str, bytes]) -> None:
        """Rules that are the same continue, new ones see events from now on."""
        saved = within("first", saved) or saved  # rules that read these may be gone
        self._cells = HeldCells.of(within("cells", saved))
        if self._cells.header() is None:
            raise StateError(
                "the session was saved without rules: resume it with its queries, or open a new one"
            )
        self._bucket = open_rules(self._job, self._cells)
        self._bucket.follow(self._cells, self._version)
        stayed = self._bucket.stayed
        names = self._compiled.rules[RULE].to_pylist()
        self.stayed = frozenset(names) if stayed is None else stayed
        (figures,) = table_of(saved["figures"]).to_pylist()
        self._matches, self._shed = figures["matches"], figures["shed"]
