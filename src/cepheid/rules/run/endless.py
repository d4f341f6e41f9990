"""Rules over data that come bit by bit: sessions, and iterators of record batches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cepheid.errors import DataError
from cepheid.options import Options, refuse_dead_letters
from cepheid.query.several_endless import SharedRun, endless_events
from cepheid.rules.load.readers import reading
from cepheid.rules.run.chains.in_sessions import ChainedRuns
from cepheid.rules.run.rule_session import RuleRuns
from cepheid.rules.run.runtimes import Templates
from cepheid.runtime import Columns
from cepheid.sessions.session import Session
from cepheid.sessions.session_events import EventColumns


def rule_runs(
    templates: Templates, given: Columns, columns: EventColumns, options: Options
) -> RuleRuns | ChainedRuns:
    """What runs for the rules. The types of events aren't known here, so that labels alone are
    read."""
    if not templates:
        raise DataError("there are no rules: open a session with some")
    reads = reading(templates, None, False)
    if reads:
        return ChainedRuns(templates, reads, given, columns, options)
    return RuleRuns(templates, given, columns, options)


def open_session(templates: Templates, given: Columns, options: Options) -> Session:
    refuse_dead_letters(options)
    columns = EventColumns.of(given, options)
    return Session(rule_runs(templates, given, columns, options), columns, options)


ALERTS = "alerts"


class _NamedRuns:
    """Rules among the runs over an iterator: their alerts have a name."""

    def __init__(self, runs: RuleRuns | ChainedRuns) -> None:
        self._runs = runs
        self.schema = {ALERTS: runs.schema}

    def step(self, rows: pa.Table, reached: int) -> dict[str, pa.Table]:
        return {ALERTS: self._runs.step(rows, reached)}

    def finish(self, rows: pa.Table) -> dict[str, pa.Table]:
        return {ALERTS: self._runs.finish(rows)}


def alerts_of_endless(templates: Templates, data: Any, options: Options) -> pa.RecordBatchReader:
    """The alerts as they are known, over data that can be read once."""
    given, source, columns = endless_events(data, options)
    runs = rule_runs(templates, given, columns, options)
    shared = SharedRun(_NamedRuns(runs), {ALERTS: None}, source, columns, options)
    return pa.RecordBatchReader.from_batches(runs.schema, shared.matches(ALERTS))
