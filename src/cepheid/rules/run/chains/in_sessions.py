"""Rules of a session or an iterator of which some read the matches of others.

Those that read events run together, as ever. Each of the others is a query that gets the events,
and the matches that it reads as soon as they are known: like the queries of a session that read
each other's labels (`sessions.query_runs`), it waits until all of a moment are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from cepheid.engine.attribution.json_rows import alert_rows, alert_schema
from cepheid.engine.match_schema import MATCH_END
from cepheid.engine.rows.clock import times
from cepheid.options import Options
from cepheid.rules.compile.alert_values import rule_columns
from cepheid.rules.load.readers import Reads
from cepheid.rules.run.alert_columns import filled
from cepheid.rules.run.chains.followers import following
from cepheid.rules.run.rule_session import RuleRuns
from cepheid.rules.run.runtimes import Templates
from cepheid.runtime import Columns
from cepheid.sessions.held_cells import nested, within
from cepheid.sessions.query_run import QueryRun
from cepheid.sessions.session_events import EventColumns
from cepheid.streaming.throttle import Throttle


class ChainedRuns:
    """The state of such rules in memory (see `sessions.session.SessionRuns`)."""

    def __init__(
        self,
        templates: Templates,
        reads: Mapping[int, Reads],
        given: Columns,
        columns: EventColumns,
        options: Options,
    ) -> None:
        first = tuple(t for n, t in enumerate(templates) if n not in reads)
        self._first = RuleRuns(first, given, columns, options)
        self._rules = rule_columns(templates)
        self._templates = templates
        self.schema = alert_schema(self._rules, self._first.schema.field(MATCH_END).type)
        self._following = following(templates, reads, given, columns, options)
        self._followers = [(f, QueryRun(f.query, options)) for f in self._following.followers]
        self.stayed = frozenset[str]()

    # ── rows ──

    def step(self, rows: pa.Table, reached: int) -> pa.Table:
        """What is known with these rows, when time has come so far."""
        alerts = self._first.step(rows, reached)
        return self._followed(alerts, lambda run, others: run.step(rows, others, reached))

    def finish(self, rows: pa.Table) -> pa.Table:
        """The end of the data, with the last rows."""
        alerts = self._first.finish(rows)
        return self._followed(alerts, lambda run, others: run.finish(rows, others))

    def _followed(
        self, alerts: pa.Table, step: Callable[[QueryRun, Mapping[str, pa.Table]], pa.Table]
    ) -> pa.Table:
        sources = self._following.sources
        tables = {n: source.matches(alerts) for n, source in sources.items()}
        found = [filled(alerts, self.schema)]
        for follower, run in self._followers:
            others = {n: self._following.read(p, tables) for n, p in follower.reads.items()}
            matches = step(run, others)
            for batch in matches.to_batches():
                numbers = np.full(batch.num_rows, follower.number)
                more = alert_rows(self._rules, numbers, batch, self.schema)
                found.append(pa.Table.from_batches([more]))
            own = follower.returned(matches)
            before = tables.get(follower.place)
            tables[follower.place] = own if before is None else pa.concat_tables([before, own])
        table = pa.concat_tables(found)
        if table.num_rows < 2:
            return table
        order = np.argsort(times(table[MATCH_END].combine_chunks()), kind="stable")
        return table.take(pa.array(order))

    # ── figures ──

    def throttle(self, pause: int) -> Throttle:
        return self._following.throttled(self._first.throttle(pause))

    @property
    def waits(self) -> bool:
        return self._first.waits or any(run.waits for _, run in self._followers)

    def total(self, figure: str) -> int:
        more: int = sum(getattr(run, figure) for _, run in self._followers)
        return self._first.total(figure) + more

    # ── saving ──

    def save(self) -> dict[str, bytes]:
        parts = nested("first", self._first.save())
        for follower, run in self._followers:
            parts |= nested(follower.identity, run.save())
        return parts

    def resume(self, saved: Mapping[str, bytes]) -> None:
        """Rules that are the same continue, new ones see events from now on."""
        self._first.resume(within("first", saved) or saved)
        self.stayed = self._first.stayed
        for follower, run in self._followers:
            state = within(follower.identity, saved)
            if state:
                run.resume(state)
                self.stayed |= {follower.name}
