"""A session: events are pushed as they come, and what is known comes back."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa

from cepheid.algebra.types import Type
from cepheid.engine.end_of_data import moment
from cepheid.errors import SessionError, StateError
from cepheid.inprocess.disorder import NEVER, delay_ticks
from cepheid.options import Options
from cepheid.sessions.held_cells import WHAT, nested, packed, unpacked, within
from cepheid.sessions.intake import Intake
from cepheid.sessions.session_events import EventColumns
from cepheid.streaming.cells import arrow_bytes, table_of
from cepheid.streaming.signature import require_types


class SessionRuns(Protocol):
    """What a session runs: queries, or rules."""

    @property
    def schema(self) -> Any: ...

    @property
    def waits(self) -> bool: ...

    def step(self, rows: pa.Table, reached: int) -> Any: ...

    def finish(self, rows: pa.Table) -> Any: ...

    def total(self, figure: str) -> int: ...

    def save(self) -> dict[str, bytes]: ...

    def resume(self, saved: Mapping[str, bytes]) -> None: ...


@dataclass(frozen=True)
class SessionStatus:
    """The figures of a session since it was opened, also through `save` and `resume`.

    events     rows that were pushed
    matches    those of all queries
    late       rows that came too late
    unplaced   rows without a time, or that start after their end
    waiting    rows that wait for the delay
    held       events that are held because matches may still need them
    shed       events that were dropped because of the limit
    undecided  matches that were left out at the end, because of `until=`
    replans    how often a plan was replaced
    suppressed alerts of rules that `throttle=` left out
    time       how far time has come; None before the first event
    """

    events: int
    matches: int
    late: int
    unplaced: int
    waiting: int
    held: int
    shed: int
    undecided: int
    replans: int
    suppressed: int
    time: int | datetime | None


class Session:
    """Runs queries or rules over events that are pushed. Open one with `cepheid.open`, or resume
    one that was saved with `cepheid.resume`.

    >>> import cepheid as cep, pyarrow as pa
    >>> schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "cart": pa.int64()})
    >>> query = "PATTERN ADD a ; !PAY p FOR 30 WHERE [cart] RETURN a.cart"
    >>> with cep.open(query, schema, time="ts", type="type") as session:
    ...     found = session.push([{"ts": 1, "type": "ADD", "cart": 7}])
    ...     later = session.advance(31)
    ...     rest = session.close()
    >>> found.num_rows, later.to_pylist()
    (0, [{'cart': 7, 'match_start': 1, 'match_end': 31}])
    """

    def __init__(self, runs: SessionRuns, columns: EventColumns, options: Options) -> None:
        self._runs, self._columns, self._options = runs, columns, options
        self._intake = Intake(columns.bound, columns.plain, delay_ticks(options, columns.bound))
        self._lock = threading.Lock()
        self._ended: str | None = None  # why nothing can be done any more
        self._saved = True  # whether nothing has changed since

    @property
    def schema(self) -> Any:
        """The columns of the matches; of several queries, of each by its name."""
        return self._runs.schema

    def push(self, events: Any) -> Any:
        """Match the next events: a record batch, a table, a frame of pandas or polars, a dict, or a
        list of dicts. Returns a table of the matches that are now known; of several queries, a dict
        of them.

        Events that are wrong raise a `DataError`, and the session is as it was before. Those
        without a time, and those that come too late, are in `rejected`.
        """
        with self._use():
            rows = self._intake.take(self._columns.table(events))
            return self._step(lambda: self._runs.step(rows, self._intake.reached))

    def advance(self, time: Any) -> Any:
        """Time has come so far: no earlier event follows (or none that is earlier by more than the
        delay). Returns the matches that are known by that. It is no event for `=>` and `n EVENTS`,
        and time never goes back."""
        with self._use():
            rows = self._intake.advance(moment(time, self._columns.bound, "advance"))
            return self._step(lambda: self._runs.step(rows, self._intake.reached))

    def close(self) -> Any:
        """The end of the data: time passes to infinity, or as far as `until=` says. Returns the
        last matches; nothing can be pushed any more."""
        with self._use():
            rows = self._intake.rest()
            matches = self._step(lambda: self._runs.finish(rows))
            self._ended = "the session is closed"
            return matches

    def _step(self, step: Callable[[], Any]) -> Any:
        """A step that fails leaves a session of which nobody knows what it has seen."""
        self._saved = False
        try:
            return step()
        except BaseException as error:
            self._ended = (
                f"the session has failed ({type(error).__name__}): resume it from the "
                "last session.save(), with cepheid.resume"
            )
            raise

    # ── what happened ──

    @property
    def rejected(self) -> pa.Table:
        """The last 10,000 rows that were rejected, with the reason: `late`, or `no time`. `status`
        counts all of them."""
        return self._intake.rejections.rows

    @property
    def status(self) -> SessionStatus:
        """Figures since the session was opened."""
        intake, total = self._intake, self._runs.total
        return SessionStatus(
            events=intake.events,
            matches=total("matches"),
            late=intake.rejections.late,
            unplaced=intake.rejections.unplaced,
            waiting=intake.waiting,
            held=total("held"),
            shed=total("shed"),
            undecided=total("undecided"),
            replans=total("replans"),
            suppressed=total("suppressed"),
            time=self._time,
        )

    @property
    def _time(self) -> int | datetime | None:
        reached, bound = self._intake.reached, self._columns.bound
        if reached < NEVER // 2:
            return None
        if bound.columns[bound.time] is Type.INTEGER:
            return reached
        type_ = self._columns.plain.field(bound.time).type
        zone = type_.tz if pa.types.is_timestamp(type_) else None
        time: datetime = pa.scalar(reached, pa.timestamp("us", zone)).as_py()
        return time

    # ── saving ──

    def save(self) -> bytes:
        """All that `cepheid.resume` needs to continue in another process."""
        with self._use():
            parts = {
                "schema": arrow_bytes(self._columns.plain.empty_table()),
                **nested("intake", self._intake.save()),
                **nested("runs", self._runs.save()),
            }
            self._saved = True
            return packed(parts)

    def _aligned(self, rows: pa.Table) -> pa.Table:
        have = set(rows.column_names)
        columns = [
            rows[f.name] if f.name in have else pa.nulls(rows.num_rows, f.type)
            for f in self._columns.plain
        ]
        return pa.Table.from_arrays(columns, schema=self._columns.plain)

    # ── one thread at a time, and until the end ──

    @contextmanager
    def _use(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise SessionError(
                "another thread uses the session: only one may at a time; put a lock around its "
                "calls, or open a session for each thread"
            )
        try:
            if self._ended is not None:
                raise SessionError(self._ended)
            yield
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing can be pushed any more. What waits isn't decided: `close` does that, and returns
        it."""
        if self._ended is None and kind is None and not self._saved and self._runs.waits:
            warnings.warn(
                "the session ends while matches may wait for time: call close() for those that the "
                "end of the data brings, or save() to resume it later",
                stacklevel=2,
            )
        self._ended = self._ended or "the session is closed"


def resumed(session: Session, saved: bytes) -> Session:
    """A session that is new, as it was when it was saved."""
    with session_words():
        parts = unpacked(saved)
        if "schema" not in parts:
            raise StateError(f"{WHAT} is the state of something else: pass what save() returned")
        require_types(table_of(parts["schema"]).schema, session._columns.plain)
        session._intake.resume(within("intake", parts), session._aligned)
        session._runs.resume(within("runs", parts))
    return session


_WORDS = {
    "the checkpoint belongs to another query": "pass what session.save() returned",
    "start with a new checkpoint": "open a new session",
    "Restore the checkpoint": "Use another copy",
    "the checkpoint": WHAT,
}


@contextmanager
def session_words() -> Iterator[None]:
    """Errors of saved streams, in the words of sessions."""
    try:
        yield
    except StateError as error:
        text = str(error)
        for words, session_word in _WORDS.items():
            text = text.replace(words, session_word)
        raise StateError(text) from None
