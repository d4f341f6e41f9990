"""`Query`: a text that has been parsed, and can be run on any data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any, TypeVar, Unpack, overload

import pyarrow as pa

from cepheid.algebra import bind
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import assumed, columns_schema
from cepheid.algebra.text import query_text
from cepheid.errors import CepheidError, DataError
from cepheid.explain import Explanation
from cepheid.explain.page import query_markup
from cepheid.language import ast, parse_source, render
from cepheid.language.diagnostics import Source
from cepheid.language.render import render_returns
from cepheid.options import GivenOptions, Options, takes_options
from cepheid.planner import prepare
from cepheid.planner.bounds import require_bounds
from cepheid.query.option_arguments import of_kind, options_of
from cepheid.query.runtimes import runtime_of
from cepheid.reasons.first_groups import groups_of
from cepheid.reasons.funnel import Funnel, funnel_of
from cepheid.reasons.local_trials import LocalTrials
from cepheid.reasons.looked_at import Amount, looked_at, looked_near, trials_of
from cepheid.reasons.timeline import Timeline, timeline_of
from cepheid.reasons.trials import Trials
from cepheid.reasons.why.given_events import Given, given_rows, named_events, why_not
from cepheid.reasons.why.investigation import MISSES, investigate
from cepheid.reasons.why.report import Why
from cepheid.reasons.why.why_not import WhyNot
from cepheid.runtime import Explained, Runtime

Data = TypeVar("Data")


@dataclass(frozen=True)
class Query:
    """A parsed query: immutable, picklable, reusable on any data. `name`, `line` and `column` are
    where its text begins, as messages tell it.

    >>> query = Query("PATTERN A a ; B b WHERE a.id = b.id WITHIN 10 RETURN a.id")
    >>> print(query)
    PATTERN A a ; B b
    WHERE a.id = b.id
    WITHIN 10 units
    RETURN a.id
    """

    text: str
    name: str = "query"
    line: int = field(default=1, repr=False, compare=False, kw_only=True)
    column: int = field(default=1, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        text: object = self.text
        if not isinstance(text, str):
            raise DataError(f"a query is a text, not {of_kind(text)}{_how_to_read(text)}")
        self.__dict__["syntax"] = parse_source(self.source)

    @cached_property
    def syntax(self) -> ast.Query:
        """The syntax tree; see `deferred_query`."""
        return parse_source(self.source)

    def __str__(self) -> str:
        return render(self.syntax)

    def _repr_html_(self) -> str:
        """For notebooks: its text and plan, or what is wrong with it."""
        try:
            return self.explain()._repr_html_()
        except CepheidError as error:
            return query_markup(str(self), str(error))

    @property
    def source(self) -> Source:
        """The text and its place, for messages."""
        return Source(self.text, self.name, self.line, self.column)

    @takes_options
    def match(
        self, data: Data, options: Options | None = None, **named: Unpack[GivenOptions]
    ) -> Data:
        """The matches of this query in the data, as the same kind of data; see `match`.

        >>> table = pa.table({"ts": [1, 2], "name": ["A", "B"]})
        >>> Query("PATTERN A ; B WITHIN 5").match(table, time="ts", type="name").num_rows
        1
        """
        matches: Data = self._runtime(data).match(self, data, options_of(options, named))
        return matches

    @takes_options
    def explain(
        self,
        data: Any = None,
        options: Options | None = None,
        *,
        analyze: bool = False,
        **named: Unpack[GivenOptions],
    ) -> Explanation:
        """How the query is run and why: print it, or save it as JSON, a drawing or a page.

        Without data every attribute is taken to exist and to be a number. With `analyze` the
        query is run, and what happened stands beside what was expected.

        >>> table = pa.table({"ts": [1], "name": ["A"], "x": [0.5]})
        >>> query = Query("PATTERN A a ; B b WHERE a.x < b.x WITHIN 5")
        >>> print(query.explain(table, time="ts", type="name"))
        PATTERN A a ; B b
        ...
        SEQ  a.x < b.x  ...
        ├── A a  ...
        └── B b  ...
        """
        if data is None:
            if analyze:
                raise DataError("analyze=True runs the query: it needs data")
            chosen = options_of(
                options, named if options else {"time": "ts", "type": "type", **named}
            )
            prepared = prepare(self.bind(assumed(self.syntax, chosen), chosen), chosen)
            return _explanation(Explained(prepared), self.syntax)
        runtime, chosen = self._runtime(data), options_of(options, named)
        run = runtime.profile if analyze else runtime.explain
        return _explanation(run(self, data, chosen), self.syntax)

    @overload
    def why(
        self,
        data: Any,
        options: Options | None = None,
        *,
        events: None = None,
        rows: Amount = None,
        misses: int = MISSES,
        **named: Unpack[GivenOptions],
    ) -> Why: ...

    @overload
    def why(
        self,
        data: Any,
        options: Options | None = None,
        *,
        events: Given,
        rows: Amount = None,
        misses: int = MISSES,
        **named: Unpack[GivenOptions],
    ) -> WhyNot: ...

    @takes_options
    def why(
        self,
        data: Any,
        options: Options | None = None,
        *,
        events: Given | None = None,
        rows: Amount = None,
        misses: int = MISSES,
        **named: Unpack[GivenOptions],
    ) -> Why | WhyNot:
        """Why the query matched or didn't; see `cepheid.why`.

        >>> table = pa.table({"ts": [1, 2], "name": ["A", "B"], "x": [1, 4]})
        >>> query = Query("PATTERN A a ; B b WHERE b.x < 3 WITHIN 5")
        >>> query.why(table, time="ts", type="name").steps[1].lost
        (Lost(kind='condition', text='b.x < 3', count=1),)
        """
        chosen = options_of(options, named)
        if misses < 0:
            raise DataError(f"misses= is a number of nearest misses, at least 0, not {misses}")
        if events is None:
            return investigate(self.syntax, self._trials(data, chosen, rows), misses)
        numbers = given_rows(events)
        if self._runtime(data).place != "process":
            if numbers:
                raise DataError(
                    "rows of a DataFrame of Spark have no numbers: name events by a condition, as "
                    "in events={'a': 'a.id = 17'}"
                )
            runtime, source = self._repeatable(data, chosen)
            bound = self.bind(runtime.columns(source), chosen)
            wanted = named_events(self.syntax, bound, events)
            trials = looked_near(self, source, chosen, runtime, rows, wanted)
            return why_not(self.syntax, trials, events)
        return why_not(self.syntax, self._here(data, chosen, rows, numbers), events)

    @takes_options
    def funnel(
        self,
        data: Any,
        options: Options | None = None,
        *,
        by: str | None = None,
        rows: Amount = None,
        **named: Unpack[GivenOptions],
    ) -> Funnel:
        """How many got to each step of the pattern; see `cepheid.funnel`."""
        chosen = options_of(options, named)
        runtime, source = self._repeatable(data, chosen)
        groups = groups_of(by, self.bind(runtime.columns(source), chosen))
        trials = trials_of(self, source, chosen, runtime, rows, groups)
        if isinstance(groups, str):
            trials.check_column(groups)
        return funnel_of(self.syntax, trials, groups)

    @takes_options
    def timeline(
        self,
        data: Any,
        options: Options | None = None,
        *,
        lanes: str | None = None,
        rows: Amount = None,
        **named: Unpack[GivenOptions],
    ) -> Timeline:
        """The events and matches on a time axis; see `cepheid.timeline`."""
        trials = self._here(data, options_of(options, named), rows)
        return timeline_of(self.syntax, trials, lanes)

    def _trials(self, data: Any, options: Options, rows: Amount) -> Trials:
        runtime, source = self._repeatable(data, options)
        return trials_of(self, source, options, runtime, rows)

    def _here(
        self, data: Any, options: Options, rows: Amount, around: Sequence[int] = ()
    ) -> LocalTrials:
        runtime, source = self._repeatable(data, options)
        return looked_at(self, source, options, runtime, rows, around)

    def _repeatable(self, data: Any, options: Options) -> tuple[Runtime, Any]:
        runtime = self._runtime(data)
        source = runtime.repeatable(data, "why() runs variations of the query over the events")
        self.bind(runtime.columns(source), options)  # raises what is wrong with the query
        return runtime, source

    @takes_options
    def bind(
        self,
        schema: pa.Schema | Mapping[str, pa.Schema],
        options: Options | None = None,
        **named: Unpack[GivenOptions],
    ) -> BoundQuery:
        """The query bound to the columns of one stream, or of several.

        >>> columns = pa.schema({"ts": pa.int64(), "name": pa.string(), "id": pa.int64()})
        >>> bound = Query("PATTERN A ; B WHERE [id] WITHIN 9").bind(columns, time="ts", type="name")
        >>> [dict(part.columns) for part in bound.key]
        [{'A': 'id', 'B': 'id'}]
        """
        chosen = options_of(options, named)
        return bind(self.syntax, columns_schema(schema, chosen), chosen.params, self.source)

    def require_bounds(self, bound: BoundQuery, options: Options) -> None:
        """Refuse to run on data that may never end, if the query could need unbounded memory."""
        require_bounds(bound, options.limit, self.syntax.pattern.span, self.source)

    def _runtime(self, data: Any) -> Runtime:
        return runtime_of(data, self.syntax.streams)


def deferred_query(source: Source) -> Query:
    """The query of a text that is known to be valid, since another with the same outline was
    parsed. It is parsed when its syntax is first read."""
    query = object.__new__(Query)
    place = {"name": source.name, "line": source.line, "column": source.column}
    query.__dict__.update(text=source.text, **place)
    return query


def query_of(query: object, data: object = None) -> Query:
    """The query argument as a `Query`; `data` is for the error message."""
    if isinstance(data, str | Query) and not isinstance(query, str | Query):
        raise DataError("pass the data before the query: match(data, query)")
    if isinstance(query, Query):
        return query
    if isinstance(query, str):
        return Query(query)
    raise DataError(f"expected a query, not {of_kind(query)}{_how_to_read(query)}")


def _how_to_read(value: object) -> str:
    """The hint for an argument that isn't a query, but may hold some."""
    match value:
        case PurePath():
            return ": read it first, with `path.read_text()`, or load rules with `RuleSet.load`"
        case Mapping() if hasattr(value, "match"):
            return ": use `rules.match(data, ...)`"
        case Mapping():
            return ": make a set of rules from it, with `RuleSet.of`"
        case _:
            return ""


def _explanation(explained: Explained, written: ast.Query) -> Explanation:
    prepared = explained.prepared
    return Explanation(
        query_text(prepared.query),
        prepared.planned,
        prepared.rewritten.applied,
        prepared.query.warnings,
        explained.distribution,
        explained.profile,
        explained.where,
        prepared.answers_text(explained.prompt),
        render_returns(written),
    )
