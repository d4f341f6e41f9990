"""The queries of a session: each gets the events, and the matches of those whose labels it reads.

A match is an event of its end, so it may be known later than events that it belongs before: where
a negation or a group at the end waits for its window. Whoever reads such matches waits as long
(`lag`), with all that it reads. Everything else is matched in the same push.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from cepheid.errors import StateError
from cepheid.options import Options
from cepheid.sessions.held_cells import nested, within
from cepheid.sessions.query_run import QueryRun
from cepheid.streaming.chained_query import ChainedQuery


class QueryRuns:
    """Several queries, in an order in which every label is there before it is read; `names` are
    those of the result, in the order of the caller. `alone`: the result is that of the only one."""

    def __init__(
        self, parts: Sequence[ChainedQuery], names: Sequence[str], options: Options, alone: bool
    ) -> None:
        self._runs = {part.name: QueryRun(part, options) for part in parts}
        self._names, self._alone = tuple(names), alone

    @property
    def schema(self) -> Any:
        """The columns of the result."""
        return self._result({name: run.schema for name, run in self._runs.items()})

    def _result(self, matches: Mapping[str, Any]) -> Any:
        return (
            matches[self._names[0]]
            if self._alone
            else {name: matches[name] for name in self._names}
        )

    def step(self, rows: pa.Table, reached: int) -> Any:
        """What is known with these rows, when time has come so far."""
        matches: dict[str, pa.Table] = {}
        for name, run in self._runs.items():
            matches[name] = run.step(rows, matches, reached)
        return self._result(matches)

    def finish(self, rows: pa.Table) -> Any:
        """The end of the data, with the last rows."""
        matches: dict[str, pa.Table] = {}
        for name, run in self._runs.items():
            matches[name] = run.finish(rows, matches)
        return self._result(matches)

    @property
    def waits(self) -> bool:
        return any(run.waits for run in self._runs.values())

    def total(self, figure: str) -> int:
        """A figure of all queries together."""
        return sum(getattr(run, figure) for run in self._runs.values())

    def save(self) -> dict[str, bytes]:
        parts: dict[str, bytes] = {}
        for name, run in self._runs.items():
            parts |= nested(name, run.save())
        return parts

    def resume(self, saved: Mapping[str, bytes]) -> None:
        for name, run in self._runs.items():
            run_state = within(name, saved)
            if not run_state:
                raise StateError(
                    f"the session was saved without a query `{name}`: resume with the queries that "
                    "it had, or open a new session"
                )
            run.resume(run_state)
