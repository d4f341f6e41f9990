"""The public interface: `match`, `Query`, `rejected`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, overload

import pyarrow as pa

from cepheid import local
from cepheid.algebra import bind
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.text import query_text
from cepheid.errors import DataError
from cepheid.explain import Explanation
from cepheid.inprocess.frames import Batches, as_table, like, may_be_endless, to_arrow
from cepheid.inprocess.frames import Source as Events
from cepheid.inprocess.merge import merge, streams_of
from cepheid.language import ast, parse_source, render
from cepheid.language.diagnostics import Source
from cepheid.options import Options
from cepheid.plan.profile import Profile
from cepheid.planner import Prepared, prepare
from cepheid.planner.bounds import require_bounds
from cepheid.schemas import assumed, bind_schema, bind_streams

Data = TypeVar("Data")


@dataclass(frozen=True)
class Query:
    """A parsed query: immutable, picklable, reusable on any data. `name`, `line` and `column` are
    where its text begins, as messages tell it. A text that is `known` to be a query is parsed when
    it is looked at.

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
    known: bool = field(default=False, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        if not self.known:
            self.__dict__["syntax"] = parse_source(self.source)

    @cached_property
    def syntax(self) -> ast.Query:
        """What the text says."""
        return parse_source(self.source)

    def __str__(self) -> str:
        return render(self.syntax)

    @property
    def source(self) -> Source:
        """The text and its place, for messages."""
        return Source(self.text, self.name, self.line, self.column)

    def match(self, data: Data, options: Options | None = None, **named: Any) -> Data:
        """The matches of this query in the data, as the same kind of data; see `match`.

        >>> table = pa.table({"ts": [1, 2], "name": ["A", "B"]})
        >>> Query("PATTERN A ; B WITHIN 5").match(table, time="ts", type="name").num_rows
        1
        """
        chosen = options_of(options, named)
        if is_spark(data):
            from cepheid.spark.batch import match as match_on_spark

            on_spark: Data = match_on_spark(self, data, chosen)
            return on_spark
        prepared, source = self._prepared(data, chosen)
        prepared.warn()
        matched, batches = local.run(prepared, source, chosen)
        found: Data = like(data, matched, batches)
        return found

    def explain(
        self,
        data: Any = None,
        options: Options | None = None,
        *,
        analyze: bool = False,
        **named: Any,
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
            return _explanation(prepare(self.bind(assumed(self.syntax, chosen), chosen), chosen))
        chosen = options_of(options, named)
        if is_spark(data):
            from cepheid.spark import batch

            prepared, distribution = batch.explain(self, data, chosen)
            profile = batch.profile(self, data, chosen) if analyze else None
            return _explanation(prepared, distribution, profile)
        prepared, source = self._prepared(data, chosen)
        if not analyze:
            return _explanation(prepared)
        profile, planned = local.profile(prepared, source, chosen)
        return _explanation(replace(prepared, planned=planned), profile=profile)

    def bind(
        self,
        schema: pa.Schema | Mapping[str, pa.Schema],
        options: Options | None = None,
        **named: Any,
    ) -> BoundQuery:
        """The query bound to the columns of one stream, or of several.

        >>> columns = pa.schema({"ts": pa.int64(), "name": pa.string(), "id": pa.int64()})
        >>> bound = Query("PATTERN A ; B WHERE [id] WITHIN 9").bind(columns, time="ts", type="name")
        >>> [dict(part.columns) for part in bound.key]
        [{'A': 'id', 'B': 'id'}]
        """
        chosen = options_of(options, named)
        if isinstance(schema, pa.Schema):
            bound = bind_schema(schema, chosen)
        else:
            bound = bind_streams(schema, chosen)[1]
        return bind(self.syntax, bound, chosen.params, self.source)

    def require_bounds(self, bound: BoundQuery, options: Options) -> None:
        """Refuse to run on data that may never end, if ever more of it might have to be held."""
        require_bounds(bound, options.limit, self.syntax.pattern.span, self.source)

    def _prepared(self, data: Any, options: Options) -> tuple[Prepared, Events]:
        """The query, ready for in-process data, and that data as Arrow."""
        if not isinstance(data, Mapping):
            source = to_arrow(data)
            bound = self.bind(source.schema, options)
            if may_be_endless(source):
                self.require_bounds(bound, options)
            return prepare(bound, options), source
        streams = streams_of(data)
        schemas = {name: part.schema for name, part in streams.items()}
        merged, _ = bind_streams(schemas, options)
        bound = self.bind(schemas, options)
        chosen = {n: part for n, part in streams.items() if n in (bound.schema.streams or ())}
        if may_be_endless(chosen):
            self.require_bounds(bound, options)
        return prepare(bound, options), merge(chosen, merged, options)


@overload
def match(data: Data, query: str | Query, options: Options | None = None, **named: Any) -> Data: ...


@overload
def match(
    data: Data, query: Sequence[str | Query], options: Options | None = None, **named: Any
) -> dict[str, Data]: ...


def match(
    data: Data,
    query: str | Query | Sequence[str | Query],
    options: Options | None = None,
    **named: Any,
) -> Data | dict[str, Data]:
    """Find the query's matches in the data.

    `data` is a Spark DataFrame, a pyarrow Table or an iterator of record batches, a pandas or a
    polars frame, or a dict of those for several streams; the result is of the same kind, one row
    per match: the RETURN columns, `match_start` and `match_end`. The options are those of
    `Options`, by name or as one object.

    >>> import cepheid as cep
    >>> trades = pa.table({
    ...     "ts": [1, 2, 3, 4], "name": ["IBM", "Sun", "IBM", "Sun"], "price": [9.0, 7.0, 8.0, 8.5],
    ... })
    >>> query = "PATTERN IBM ; Sun WHERE IBM.price > Sun.price WITHIN 3 RETURN IBM.price AS ibm"
    >>> cep.match(trades, query, time="ts", type="name").to_pydict()
    {'ibm': [9.0], 'match_start': [1], 'match_end': [2]}

    Of several queries, some may read what others find, under its label; the result is a dict, by
    labels, and by `query 1`, `query 2` and so on for those without.

    >>> rise = "INTO Rise PATTERN IBM a ; IBM b WHERE a.price < b.price WITHIN 9 RETURN b.price"
    >>> fall = "INTO Fall PATTERN IBM a ; IBM b WHERE a.price > b.price WITHIN 9 RETURN b.price"
    >>> both = "PATTERN Fall f & Rise r WITHIN 9 RETURN f.price AS low, r.price AS high"
    >>> found = cep.match(trades, [both, fall, rise], time="ts", type="name")
    >>> {name: matches.num_rows for name, matches in found.items()}
    {'query 1': 0, 'Fall': 1, 'Rise': 0}
    """
    if not isinstance(query, str | Query):
        from cepheid.streams import match_all

        return match_all(data, query, options_of(options, named))
    parsed = query if isinstance(query, Query) else Query(query)
    return parsed.match(data, options, **named)


def rejected(data: Data, time: str, start: str | None = None) -> Data:
    """The dead letters of the data: rows that no query can place, since their time is NULL; or,
    if events have a duration, since their start is, or is after their end.

    >>> rejected(pa.table({"ts": [1, None], "x": [5, 6]}), time="ts").to_pydict()
    {'ts': [None], 'x': [6]}
    """
    if is_spark(data):
        from cepheid.spark.batch import rejected as rejected_on_spark

        on_spark: Data = rejected_on_spark(data, time, start)
        return on_spark
    source = to_arrow(data)
    if isinstance(source, Batches):
        raise DataError("rejected() needs a table or a frame: an iterator could be read only once")
    for name, part in ((time, "time"), (start, "start")):
        if name is not None and name not in source.schema.names:
            raise DataError(f"there is no column `{name}` ({part}=)")
    dead = local.rejected(as_table(source), time, start)
    letters: Data = like(data, dead.schema, iter(dead.to_batches()))
    return letters


def _explanation(
    prepared: Prepared,
    distribution: tuple[tuple[str, str], ...] = (),
    profile: Profile | None = None,
) -> Explanation:
    query = prepared.query
    return Explanation(
        query_text(query),
        prepared.planned,
        prepared.rewritten.applied,
        query.warnings,
        distribution,
        profile,
    )


def options_of(options: Options | None, named: Mapping[str, Any]) -> Options:
    if options is not None:
        return replace(options, **named)
    if "time" not in named:
        raise DataError("say which column holds the event time: time='ts'")
    return Options(**named)


def is_spark(data: Any) -> bool:
    """Whether the data is a Spark DataFrame (classic or Connect), or streams of them."""
    if isinstance(data, Mapping):
        return any(is_spark(part) for part in data.values())
    return any(base.__module__.startswith("pyspark.sql") for base in type(data).__mro__)
