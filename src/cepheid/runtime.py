"""What every runtime does: in process, for Spark DataFrames, and for streams of those.

`query.runtimes` chooses one, by the data. Nothing else checks what kind of data it has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import pyarrow as pa

from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import Input
from cepheid.language import ast
from cepheid.language.diagnostics import Source
from cepheid.options import Options
from cepheid.plan.profile import Profile
from cepheid.planner import Prepared
from cepheid.statistics import Statistics

Place: TypeAlias = Literal["process", "batch", "stream"]
Columns: TypeAlias = Any  # a schema, or a dict of schemas; pyarrow has no types


class Bindable(Protocol):
    """A query, as a runtime needs it: the runtime knows the columns that it is bound to."""

    @property
    def syntax(self) -> ast.Query: ...

    @property
    def source(self) -> Source | None: ...

    def bind(self, schema: Columns, options: Options) -> BoundQuery: ...

    def require_bounds(self, bound: BoundQuery, options: Options) -> None: ...


@dataclass(frozen=True)
class Explained:
    """How a query is run; by name, how the work is distributed; what happened, if it ran; where it
    is distributed; and whether answers are wanted as time passes, where that is known."""

    prepared: Prepared
    distribution: tuple[tuple[str, str], ...] = ()
    profile: Profile | None = None
    where: str = "on Spark"
    prompt: bool | None = None


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The columns that number kept events, and that have their times in ticks."""

    row: str
    moment: str

    @staticmethod
    def beside(columns: Collection[str]) -> KeptRows:
        """Names that no column has, in whatever case."""
        taken = {column.lower() for column in columns}

        def free(name: str) -> str:
            return name if name not in taken else free(f"{name}_")

        return KeptRows(free("row"), free("moment"))


@dataclass(frozen=True, slots=True)
class Example:
    """A match: its start and end in ticks, and the numbers of the events of each variable."""

    start: int
    end: int
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Alike:
    """First events, or matches, that the same queries have: the places of these queries, how many
    there are, and the value by which they are told apart. One of them is `first`, if
    they are events, with its match of each query. `spans` are the times that the shortest and the
    longest match take, of queries where that was asked for."""

    queries: frozenset[int]
    count: int
    value: object
    first: int
    examples: Mapping[int, Example]
    spans: Mapping[int, tuple[int, int]] = field(default_factory=dict)


class KeptEvents(Protocol):
    """Events that stay where they are, numbered so that many queries can be compared. `count` of
    `total` are kept, between the moments `first` and `last`; `sample` says which, if not all.

    The queries return the numbers of the events of variable n as `v{n}`, and their times as
    `m{n}`; there are `width` variables in all. `steps` are the variables of each step: the first
    event of a match is the earliest of the first step that binds one.
    """

    @property
    def columns(self) -> Columns: ...

    @property
    def rows(self) -> KeptRows: ...

    @property
    def options(self) -> Options: ...

    @property
    def count(self) -> int: ...

    @property
    def total(self) -> int: ...

    @property
    def first(self) -> int: ...

    @property
    def last(self) -> int: ...

    @property
    def sample(self) -> str | None: ...

    def counts(self, queries: Sequence[tuple[Bindable, bool]]) -> list[int]:
        """How many matches each query has; with True, it returns that itself, as `n`."""
        ...

    def alike(
        self,
        queries: Sequence[Bindable],
        steps: Sequence[Sequence[int]] | None,
        width: int,
        by: str | int | None = None,
        shortest: Collection[int] = (),
    ) -> list[Alike]:
        """The first events of the queries' matches, or without steps the matches, by the queries
        that have them and by `by` at the first event: the value of a column, or the start of the
        window of that size. Of the queries at the places `shortest` the shortest match of a first
        event is taken, of the others the earliest-ending."""
        ...

    def step_times(
        self,
        queries: Sequence[Bindable],
        steps: Sequence[Sequence[int]],
        width: int,
        between: Sequence[tuple[Sequence[int], Sequence[int]]],
        by: str | int | None = None,
    ) -> list[tuple[int, object, int, int]]:
        """Query, value of `by`, median and 90th percentile of the time between the last events of
        two groups of variables, over the earliest-ending match of each first event."""
        ...

    def fetch(self, rows: Collection[int]) -> list[Mapping[str, Any]]:
        """These events."""
        ...

    def values(self, column: str, most: int) -> pa.Array | None:
        """The different values of a column, None if there are more than so many."""
        ...


class Runtime(Protocol):
    """Runs queries over one kind of data. `data` is one frame, or a dict of streams by their names.
    Results are frames of the same kind."""

    @property
    def place(self) -> Place: ...

    def columns(self, data: Any) -> Columns:
        """The columns of the data, to which queries are bound. Nothing is read."""
        ...

    def match(self, query: Bindable, data: Any, options: Options) -> Any:
        """The matches of the query."""
        ...

    def explain(self, query: Bindable, data: Any, options: Options) -> Explained:
        """How `match` would run the query."""
        ...

    def profile(self, query: Bindable, data: Any, options: Options) -> Explained:
        """Run the query, drop its matches, and tell what happened."""
        ...

    def rejected(self, data: Any, time: str, start: str | None) -> Any:
        """The rows that no query can place in time."""
        ...

    def analyze(self, query: Bindable, data: Any, options: Options, rows: int) -> Statistics:
        """What the planner needs to know of the data, from about so many of their rows."""
        ...

    # ── for functions that run several queries over the same data ────────────

    def repeatable(self, data: Any, reader: str) -> Any:
        """The data in a form that several queries can read. `reader` says in an error why that is
        needed."""
        ...

    def match_inputs(
        self,
        bound: BoundQuery,
        streams: Mapping[str, Any],
        inputs: Mapping[str, Input],
        merged: pa.Schema,
        options: Options,
    ) -> Any:
        """The matches of a query in repeatable streams of events and of matches."""
        ...

    def union(self, matches: Sequence[Any], counts: Sequence[str]) -> Any:
        """The matches of several queries over repeatable data as one frame. `counts` are columns of
        small numbers."""
        ...

    def like(self, data: Any, matches: Any) -> Any:
        """Matches in repeatable data as the kind of frame that the data were."""
        ...

    def collected(self, data: Any) -> Any:
        """The rows in this process."""
        ...

    def first_events(self, data: Any, time: str, rows: int | None) -> tuple[Any, int]:
        """Repeatable data as Arrow tables in this process, and how many events they are. Where
        events are far away only the first ones by time come, that many; all with None."""
        ...

    def keep_events(
        self,
        data: Any,
        options: Options,
        columns: Collection[str],
        key: str | None,
        rows: int | None,
        small: int,
    ) -> KeptEvents | None:
        """Repeatable data with these columns, in lower case, where they are, for many queries: at
        most about so many events, of whole values of the key if there is one. None if they are in
        this process, or no more than `small`, so that they may as well be."""
        ...

    def near(
        self,
        data: Any,
        time: str,
        key: tuple[str, Collection[Any]] | None,
        span: tuple[int, int],
        rows: int | None,
    ) -> tuple[Any, int]:
        """Those of repeatable data that have such a key, or without one lie in a span of time, as
        Arrow tables in this process: the first ones by time, at most so many. And how many events
        the data have."""
        ...
