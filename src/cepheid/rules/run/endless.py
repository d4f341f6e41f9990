"""Rules over data that come bit by bit: sessions, and iterators of record batches."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa

from cepheid.engine.match_schema import MATCH_END
from cepheid.errors import DataError
from cepheid.options import Options, refuse_dead_letters
from cepheid.query.several_endless import SharedRun, endless_events
from cepheid.rules.load.readers import reading
from cepheid.rules.run.chains.in_sessions import ChainedRuns
from cepheid.rules.run.passes import with_rules
from cepheid.rules.run.rule_session import RuleRuns
from cepheid.rules.run.runtimes import Templates, Throttle
from cepheid.rules.run.throttle import throttle_ticks
from cepheid.rules.run.throttled_runs import ThrottledRuns
from cepheid.runtime import Columns
from cepheid.sessions.session import Session
from cepheid.sessions.session_events import EventColumns

Runs: TypeAlias = RuleRuns | ChainedRuns | ThrottledRuns


def rule_runs(
    templates: Templates,
    given: Columns,
    columns: EventColumns,
    options: Options,
    throttle: Throttle = None,
) -> Runs:
    """What runs for the rules. The types of events aren't known here, so that labels alone are
    read."""
    templates = with_rules(templates)
    if not templates:
        raise DataError("there are no rules: open a session with some")
    reads = reading(templates, None, False)
    runs: RuleRuns | ChainedRuns = (
        ChainedRuns(templates, reads, given, columns, options)
        if reads
        else RuleRuns(templates, given, columns, options)
    )
    if throttle is None:
        return runs
    pause = throttle_ticks(throttle, runs.schema.field(MATCH_END).type, options)
    return ThrottledRuns(runs, runs.throttle(pause))


def open_session(
    templates: Templates, given: Columns, options: Options, throttle: Throttle = None
) -> Session:
    refuse_dead_letters(options)
    columns = EventColumns.of(given, options)
    return Session(rule_runs(templates, given, columns, options, throttle), columns, options)


ALERTS = "alerts"


class _NamedRuns:
    """Rules among the runs over an iterator: their alerts have a name."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.schema = {ALERTS: runs.schema}

    def step(self, rows: pa.Table, reached: int) -> dict[str, pa.Table]:
        return {ALERTS: self._runs.step(rows, reached)}

    def finish(self, rows: pa.Table) -> dict[str, pa.Table]:
        return {ALERTS: self._runs.finish(rows)}


def alerts_of_endless(
    templates: Templates, data: Any, options: Options, throttle: Throttle = None
) -> pa.RecordBatchReader:
    """The alerts as they are known, over data that can be read once."""
    given, source, columns = endless_events(data, options)
    runs = rule_runs(templates, given, columns, options, throttle)
    shared = SharedRun(_NamedRuns(runs), {ALERTS: None}, source, columns, options)
    return pa.RecordBatchReader.from_batches(runs.schema, shared.matches(ALERTS))
