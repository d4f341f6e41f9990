"""A query and events: what the page shows, what a link carries, what is answered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from cepheid.errors import DataError
from cepheid.inprocess.runtime import InProcess
from cepheid.lab.situations.cells import from_cells, to_cells
from cepheid.options import Options
from cepheid.query import Query
from cepheid.reasons.local_trials import LocalTrials
from cepheid.reasons.looked_at import looked_at

TIME, TYPE = "ts", "type"
"""The columns of events in the notation."""


@dataclass(frozen=True)
class Situation:
    """`options` says which columns are the time, the type and the tie, and has the parameters.
    `source` is where the events are from: how a command names them, or "" if they were written in
    the lab. `sample` says which of them these are, if they aren't all."""

    text: str
    events: pa.Table
    options: Options = field(default_factory=lambda: Options(time=TIME, type=TYPE))
    source: str = ""
    sample: str | None = None

    @cached_property
    def query(self) -> Query:
        return Query(self.text)

    @property
    def run_options(self) -> Options:
        """Kernels run as plain Python: to compile them takes longer than to match a few thousand
        events."""
        return replace(self.options, jit=False)

    def trials(self) -> LocalTrials:
        """The events for variations of the query; raises what is wrong with it."""
        self.query.bind(self.events.schema, self.options)
        return looked_at(self.query, self.events, self.run_options, InProcess(), rows="all")

    def to_dict(self) -> dict[str, Any]:
        options = self.options
        return {
            "query": self.text,
            "events": to_cells(self.events, options.time),
            "time": options.time,
            "type": options.type,
            "tie": options.tie,
            "unit": options.unit,
            "params": dict(options.params),
            "source": self.source,
            "sample": self.sample,
        }


def situation_of(given: Any) -> Situation:
    """The situation that a page sent, or a `DataError` that says what is wrong with it."""
    match given:
        case {"query": str(text), "events": events, "time": str(time)}:
            pass
        case _:
            raise DataError("a situation is an object with query, events and time")
    params = given.get("params") or {}
    if not isinstance(params, dict):
        raise DataError("params is an object")
    options = Options(
        time=time,
        type=_name(given, "type"),
        tie=_name(given, "tie"),
        unit=_name(given, "unit"),  # type: ignore[arg-type]  # Options checks it
        params=params,
    )
    return Situation(
        text,
        from_cells(events, time),
        options,
        _name(given, "source") or "",
        _name(given, "sample"),
    )


def _name(given: dict[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        raise DataError(f"{key} is a text")
    return value
