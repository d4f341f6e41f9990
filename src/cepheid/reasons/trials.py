"""Running variations of a query over the same events, with the rows that each match binds.

Every figure of this room comes from here, so it comes from the engine: `local_trials` run
over events in this process, `far_trials` where the events are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from cepheid.algebra import bind
from cepheid.algebra.query import BoundQuery, Clock, Window
from cepheid.algebra.schemas import columns_schema
from cepheid.answers.counted.countable import ways
from cepheid.answers.counted.counting_automaton import NotCounted
from cepheid.errors import DataError
from cepheid.language import ast
from cepheid.language.diagnostics import nearest
from cepheid.options import Options
from cepheid.reasons.first_groups import Groups

MOST = 10_000
"""Matches of a variation that are counted. One condition less may give billions."""


@dataclass(frozen=True)
class Variation:
    """A query as written, without a text: what a runtime needs of one."""

    syntax: ast.Query

    @property
    def source(self) -> None:
        """There is no text."""

    def bind(self, schema: Any, options: Options) -> BoundQuery:
        return bind(self.syntax, columns_schema(schema, options), options.params)

    def require_bounds(self, bound: BoundQuery, options: Options) -> None:
        """The events are all there."""


Identity = tuple[tuple[str, tuple[int, ...]], ...]
"""The variables that a match binds, with their rows."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A match: the rows of each variable in order, none if it is absent; its start and end in ticks
    of time. `like` is how many it stands for: itself, or all to which the same happens; `spans` the
    time that the shortest and the longest of these take, where they were asked for."""

    rows: Mapping[str, tuple[int, ...]]
    start: int
    end: int
    like: int = 1
    spans: tuple[int, int] | None = None

    @property
    def lasting(self) -> tuple[int, int]:
        """The shortest and the longest time."""
        return self.spans or (self.end - self.start, self.end - self.start)

    @property
    def identity(self) -> Identity:
        return tuple(sorted((v, rows) for v, rows in self.rows.items() if rows))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The matches of a variation, in the order of their ends; only the first if there are more than
    `MOST`. `refused` says why it can't be run."""

    matches: tuple[Binding, ...] = ()
    complete: bool = True
    refused: str | None = None

    @property
    def number(self) -> int:
        return sum(match.like for match in self.matches)


@dataclass(frozen=True, slots=True)
class MatchCount:
    """How many matches a variation has, or at least, if it isn't `complete`. `refused` says why it
    can't be run."""

    value: int = 0
    complete: bool = True
    refused: str | None = None


Steps = tuple[tuple[str, ...], ...]
"""The variables of each step."""

Starts = Mapping[int, Binding]
"""The earliest-ending partial match of each first event, or the shortest, by that event's row. The
first event is the earliest of the first step that binds one."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """How long first events took from one step to the next: the median and the 90th percentile.
    Both are times that occur, none between two of them."""

    median: int | None = None
    p90: int | None = None


class Trials(Protocol):
    """The events that variations are run over, and what reports need of their matches. `total` is
    how many the data have, if these are a sample, and `sample` says which. Without `numbered` the
    rows of events say nothing to the caller."""

    @property
    def options(self) -> Options: ...

    @property
    def count(self) -> int: ...

    @property
    def total(self) -> int: ...

    @property
    def sample(self) -> str | None: ...

    @property
    def numbered(self) -> bool: ...

    @property
    def streams(self) -> bool:
        """Whether the events are of several streams."""
        ...

    def longest(self, window: Window | None) -> int:
        """A window that all events are in."""
        ...

    def bound(self, query: ast.Query) -> BoundQuery: ...

    def expect(
        self, steps: Steps, queries: Iterable[ast.Query], shortest: Collection[ast.Query]
    ) -> None:
        """Announce queries whose first events are compared, so that they can be run at once; and
        those of them of which the shortest matches will be wanted."""
        ...

    def starts(
        self, steps: Steps, query: ast.Query, shortest: bool = False
    ) -> tuple[Starts, str | None]:
        """The first events of a query's matches, with the earliest-ending or the shortest match of
        each; or why it can't be run."""
        ...

    def first(self, match: Binding, steps: Steps) -> int:
        """The row of its first event."""
        ...

    def step_times(
        self, steps: Steps, queries: Sequence[ast.Query], by: Groups | None
    ) -> list[Mapping[str | None, StepTime]]:
        """For each query of at least two steps, and group of first events: the time between its
        last two steps."""
        ...

    def number(self, query: ast.Query, most: int | None) -> MatchCount:
        """How many matches a query has; if counting them needs each one, at most so many."""
        ...

    def numbers(self, queries: Sequence[ast.Query], most: int | None) -> list[MatchCount]:
        """As `number`, at once."""
        ...

    def fresh(self, base: ast.Query, queries: Sequence[ast.Query]) -> list[Outcome]:
        """For each query, matches that the first one doesn't have; those among the first that it
        has if there are very many, which makes it incomplete."""
        ...

    def check_column(self, name: str) -> None:
        """Refuse a column that no stream has."""
        ...

    def group(self, row: int, by: Groups) -> str:
        """The name of the group that a first event is in."""
        ...

    def cell(self, row: int, column: str) -> Any:
        """A value of an event; None also if there is no such column."""
        ...

    def types(self, column: str) -> set[str] | None:
        """The types that events have, None if there are too many."""
        ...

    def texts(self, column: str) -> set[str]:
        """The different texts in a column, none if there are too many or it has none."""
        ...


VALUES = 10_000
"""Different texts of a column that are compared with a misspelled one."""


def check_name(name: str, known: Sequence[str]) -> None:
    if name not in known and name.lower() not in map(str.lower, known):
        close = nearest(name, known)
        hint = f"; did you mean `{close}`?" if close else ""
        raise DataError(f"there is no column `{name}`{hint}")


COUNT = "n"

_FIRST = ast.AfterMatch(ast.Skip.TO_NEXT_EVENT)


def first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def plain(query: ast.Query) -> ast.Query:
    return replace(query, into=None, returns=())


def earliest(query: ast.Query) -> tuple[ast.Query, bool]:
    """A query that has the earliest-ending match of each first event. In a sequence AFTER MATCH
    SKIP TO NEXT EVENT leaves out the others; a conjunction may start with another event than that
    of its first step, so there may be very many (True)."""
    if query.after_match is not None or query.limit is not None:
        return plain(query), False  # the query's own choice
    pattern = query.pattern
    while isinstance(pattern, ast.Unless):
        pattern = pattern.item
    if isinstance(pattern, ast.Conjunction):
        return plain(query), True
    return replace(plain(query), after_match=_FIRST), False


def limited(query: ast.Query, bound: BoundQuery, most: int) -> ast.Query:
    """One more than so many of its matches, if it doesn't choose some itself. Windows of events in
    each key have no order of all matches, so that they can't be limited."""
    keyed = bound.window is not None and bound.window.clock is Clock.EVENTS and bound.key
    if query.limit is not None or keyed:
        return query
    return replace(query, limit=ast.MatchLimit(ast.EventCount(most + 1)))


def counted(query: ast.Query, trials: Trials) -> ast.Query | None:
    """The query that returns how many matches there are, as `COUNT`, without finding them; None if
    that isn't possible."""
    if query.after_match is not None or query.limit is not None:
        return None
    call = ast.Call("count", (ast.Star(),))
    answering = replace(plain(query), returns=(ast.ReturnItem(call, COUNT),))
    try:
        ways(trials.bound(answering))
    except NotCounted:
        return None
    return answering
