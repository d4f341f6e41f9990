"""Where users open sessions: `open` and `resume`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, Unpack

from cepheid.options import GivenOptions, Options, refuse_dead_letters, takes_options
from cepheid.query.chains import chained_queries, one_prepared
from cepheid.query.option_arguments import options_of
from cepheid.query.parsed_query import Query, query_of
from cepheid.query.several import name_of, numbered
from cepheid.runtime import Columns
from cepheid.sessions.query_runs import QueryRuns
from cepheid.sessions.session import Session, resumed
from cepheid.sessions.session_events import EventColumns
from cepheid.streaming.chained_query import ChainedQuery

if TYPE_CHECKING:
    from cepheid.rules import RuleSet


@takes_options
def open(
    query: str | Query | RuleSet | Sequence[str | Query],
    schema: Columns,
    options: Options | None = None,
    **named: Unpack[GivenOptions],
) -> Session:
    """A session, into which events are pushed one by one or in batches, and which returns matches
    as they are known: of a query, of several, or of a `RuleSet`.

    `schema` has the columns of the events, as a `pyarrow.schema`; of several streams, a dict of
    those. The options are those of `match`. Of several queries, some may read what others find,
    under its label, and results are dicts.

    >>> import cepheid as cep, pyarrow as pa
    >>> schema = pa.schema({"ts": pa.int64(), "name": pa.string(), "price": pa.float64()})
    >>> query = "PATTERN IBM ; Sun WHERE IBM.price > Sun.price WITHIN 3 RETURN IBM.price AS ibm"
    >>> session = cep.open(query, schema, time="ts", type="name")
    >>> session.push({"ts": 1, "name": "IBM", "price": 9.0}).num_rows
    0
    >>> session.push({"ts": 2, "name": "Sun", "price": 7.0}).to_pylist()
    [{'ibm': 9.0, 'match_start': 1, 'match_end': 2}]
    """
    if _is_rules(query):
        session: Session = query.open(schema, options, **named)
        return session
    return _opened(query, schema, options_of(options, named))


@takes_options
def resume(
    query: str | Query | RuleSet | Sequence[str | Query],
    schema: Columns,
    saved: bytes,
    options: Options | None = None,
    **named: Unpack[GivenOptions],
) -> Session:
    """The session of which `saved` are the bytes that `session.save` gave, in this or in another
    process. Query, schema and options are those that it was opened with: as when a stream resumes,
    only RETURN and the plan may change, and the rules of a set.

    >>> import cepheid as cep, pyarrow as pa
    >>> schema = pa.schema({"ts": pa.int64(), "name": pa.string()})
    >>> query, options = "PATTERN A a ; B b WITHIN 9", cep.Options(time="ts", type="name")
    >>> session = cep.open(query, schema, options)
    >>> found = session.push({"ts": 1, "name": "A"})
    >>> again = cep.resume(query, schema, session.save(), options)
    >>> again.push({"ts": 2, "name": "B"}).num_rows
    1
    """
    if _is_rules(query):
        session: Session = query.resume(schema, saved, options, **named)
        return session
    return resumed(_opened(query, schema, options_of(options, named)), saved)


def _is_rules(given: Any) -> TypeGuard[RuleSet]:
    return isinstance(given, Mapping) and hasattr(given, "match")


def _opened(given: Any, schema: Columns, options: Options) -> Session:
    refuse_dead_letters(options)
    columns = EventColumns.of(schema, options)
    if isinstance(given, Sequence) and not isinstance(given, str):
        several = [each if isinstance(each, str) else query_of(each) for each in given]
        parts = chained_queries(numbered(several), schema, columns, options)
        for part in parts:
            part.prepared.warn()
        names = [name_of(query) for query in numbered(several)]
        return Session(QueryRuns(parts, names, options, alone=False), columns, options)
    query = query_of(given)
    part = ChainedQuery(query.name, one_prepared(query, schema, options), columns.plain)
    part.prepared.warn()
    return Session(QueryRuns([part], [part.name], options, alone=True), columns, options)
