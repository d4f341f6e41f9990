"""What every runtime does: in process, for Spark DataFrames, and for streams of those.

`query.runtimes` chooses one, by the data. Nothing else checks what kind of data it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
