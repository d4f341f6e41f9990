"""The public interface: `match`, `Query`, `rejected`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

import pyarrow as pa

from cepheid.algebra import bind
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import assumed, bind_schema, bind_streams, part_field
from cepheid.algebra.text import query_text
from cepheid.engine.clock import unplaced
from cepheid.errors import DataError
from cepheid.explain import Explanation
from cepheid.extras import require
from cepheid.inprocess import execution
from cepheid.inprocess.frames import Batches, EventTable, filtered, like, may_be_endless, to_arrow
from cepheid.inprocess.frames import Source as Events
from cepheid.inprocess.merge import merge, streams_of
from cepheid.inprocess.text_comparisons import as_texts, compared_by_order, looks_numeric
from cepheid.language import ast, parse_source, render
from cepheid.language.diagnostics import Source, nearest
from cepheid.options import GivenOptions, Options, refuse_dead_letters, takes_options
from cepheid.plan.profile import Profile
from cepheid.planner import Prepared, prepare
from cepheid.planner.bounds import require_bounds

if TYPE_CHECKING:
    from cepheid.rules import RuleSet

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
        """What the text says; see `deferred_query`."""
        return parse_source(self.source)

    def __str__(self) -> str:
        return render(self.syntax)

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
        chosen = options_of(options, named)
        if is_spark(data):
            from cepheid.spark.batch import match as match_on_spark

            on_spark: Data = match_on_spark(self, data, chosen)
            return on_spark
        refuse_dead_letters(chosen)
        prepared, source = self._prepared(data, chosen)
        prepared.warn()
        self._warn_of_texts(source)
        matched, batches = execution.run(prepared, source, chosen)
        found: Data = like(data, matched, batches)
        return found

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
        profile, planned = execution.profile(prepared, source, chosen)
        return _explanation(replace(prepared, planned=planned), profile=profile)

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
        if isinstance(schema, pa.Schema):
            bound = bind_schema(schema, chosen)
        else:
            bound = bind_streams(schema, chosen)[1]
        return bind(self.syntax, bound, chosen.params, self.source)

    def require_bounds(self, bound: BoundQuery, options: Options) -> None:
        """Refuse to run on data that may never end, if ever more of it might have to be held."""
        require_bounds(bound, options.limit, self.syntax.pattern.span, self.source)

    def _warn_of_texts(self, source: Events) -> None:
        """Tell of comparisons of columns that are text, but hold numbers as far as one sees."""
        if not isinstance(source, EventTable):
            return
        columns = {f.name.lower(): f.name for f in source.schema if pa.types.is_string(f.type)}
        for text, names in compared_by_order(self.syntax).items():
            if all(name.lower() in columns for name in names):
                table = source.read([columns[name.lower()] for name in sorted(names)])
                if all(map(looks_numeric, table.columns)):
                    warnings.warn(as_texts(text, "cast the columns to numbers"), stacklevel=4)

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


def deferred_query(source: Source) -> Query:
    """The query of a text that is certain to be one, since another with the same outline was
    parsed. It is parsed when its syntax is first read."""
    query = object.__new__(Query)
    place = {"name": source.name, "line": source.line, "column": source.column}
    query.__dict__.update(text=source.text, **place)
    return query


@overload
def match(  # type: ignore[overload-overlap]  # a text is a sequence of texts, too
    data: Data,
    query: str | Query | RuleSet,
    options: Options | None = None,
    **named: Unpack[GivenOptions],
) -> Data: ...


@overload
def match(
    data: Data,
    query: Sequence[str | Query],
    options: Options | None = None,
    **named: Unpack[GivenOptions],
) -> dict[str, Data]: ...


@takes_options
def match(
    data: Data,
    query: str | Query | RuleSet | Sequence[str | Query],
    options: Options | None = None,
    **named: Unpack[GivenOptions],
) -> Data | dict[str, Data]:
    """Find the query's matches in the data.

    `data` is a Spark DataFrame, a pandas or a polars frame, a pyarrow Table or whatever else gives
    Arrow data, an iterator of record batches, or a dict of those for several streams. The result
    is of the same kind, one row per match: the RETURN columns, `match_start` and `match_end`. The
    options are those of `Options`, by name or as one object.

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

    A `RuleSet` finds the matches of all its rules, as `RuleSet.match` does.
    """
    given: Any = query
    if isinstance(given, Mapping) and hasattr(given, "match"):  # a set of rules
        found: Data = given.match(data, options, **named)
        return found
    if not isinstance(given, Sequence) or isinstance(given, str):
        return query_of(given, data).match(data, options, **named)
    from cepheid.query.several import match_all

    several = [one if isinstance(one, str) else query_of(one, data) for one in given]
    return match_all(data, several, options_of(options, named))


def query_of(query: object, data: object = None) -> Query:
    """The query that was passed, beside the data."""
    if isinstance(data, str | Query) and not isinstance(query, str | Query):
        raise DataError("pass the data before the query: match(data, query)")
    if isinstance(query, Query):
        return query
    if isinstance(query, str):
        return Query(query)
    raise DataError(f"expected a query, not {of_kind(query)}{_how_to_read(query)}")


def of_kind(value: object) -> str:
    name = type(value).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def _how_to_read(value: object) -> str:
    """What to do with something that isn't a query, but may hold some."""
    match value:
        case PurePath():
            return ": read it first, with `path.read_text()`, or load rules with `RuleSet.load`"
        case Mapping() if hasattr(value, "match"):
            return ": use `rules.match(data, ...)`"
        case Mapping():
            return ": make a set of rules from it, with `RuleSet.of`"
        case _:
            return ""


def rejected(data: Data, time: str, start: str | None = None) -> Data:
    """The dead letters of the data: rows that no query can place, since their time is NULL; or,
    if events have a duration, since their start is, or is after their end.

    >>> rejected(pa.table({"ts": [1, None], "x": [5, 6]}), time="ts").to_pydict()
    {'ts': [None], 'x': [6]}

    Of several streams, a dict of those of each.
    """
    if is_spark(data):
        from cepheid.spark.batch import rejected as rejected_on_spark

        on_spark: Data = rejected_on_spark(data, time, start)
        return on_spark
    if isinstance(data, Mapping):
        of_each: Any = {name: rejected(part, time, start) for name, part in data.items()}
        streams: Data = of_each
        return streams
    source = to_arrow(data)
    if isinstance(source, Batches):
        raise DataError("rejected() needs a table or a frame: an iterator could be read only once")
    parts = [(time, "time")] if start is None else [(time, "time"), (start, "start")]
    for name, part in parts:
        part_field(source.schema, name, part)
    dead = unplaced(source.read(list(dict(parts))), time, start)
    letters: Data = filtered(data, dead)
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


def options_of(options: object, named: Mapping[str, Any]) -> Options:
    """The options, as an object, by name, or some by name beside an object."""
    if options is not None and not isinstance(options, Options):
        hint = f": name it, as in time={options!r}" if isinstance(options, str) else ""
        raise DataError(f"expected Options, not {of_kind(options)}{hint}")
    known = [option.name for option in fields(Options)]
    for name in named:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean `{close}`?" if close else f"there are {', '.join(known)}"
            raise DataError(f"there is no option `{name}`; {hint}")
    if isinstance(options, Options):
        return replace(options, **named)
    if "time" not in named:
        raise DataError("say which column holds the event time: time='ts'")
    return Options(**named)


def is_spark(data: Any) -> bool:
    """Whether the data is a Spark DataFrame (classic or Connect), or streams of them. If it is, the
    extra `spark` has to be complete: pyspark can be there without pandas."""
    if isinstance(data, Mapping):
        return any(is_spark(part) for part in data.values())
    found = any(base.__module__.startswith("pyspark.sql") for base in type(data).__mro__)
    if found:
        require("spark")
    return found
