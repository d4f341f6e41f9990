"""The public functions `match` and `rejected`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from cepheid.options import GivenOptions, Options, takes_options
from cepheid.query.chains import match_streams
from cepheid.query.option_arguments import options_of
from cepheid.query.parsed_query import Query, query_of
from cepheid.query.runtimes import runtime_of
from cepheid.query.several import match_all
from cepheid.query.several_endless import is_endless, match_endless

if TYPE_CHECKING:
    from cepheid.rules import RuleSet

Data = TypeVar("Data")


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

    >>> import cepheid as cep, pyarrow as pa
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
    >>> results = cep.match(trades, [both, fall, rise], time="ts", type="name")
    >>> {name: matches.num_rows for name, matches in results.items()}
    {'query 1': 0, 'Fall': 1, 'Rise': 0}

    A `RuleSet` finds the matches of all its rules, as `RuleSet.match` does.
    """
    given: Any = query
    if isinstance(given, Mapping) and hasattr(given, "match"):  # a set of rules
        matches: Data = given.match(data, options, **named)
        return matches
    if not isinstance(given, Sequence) or isinstance(given, str):
        return query_of(given, data).match(data, options, **named)
    several = [each if isinstance(each, str) else query_of(each, data) for each in given]
    chosen = options_of(options, named)
    if is_endless(data):
        return cast(dict[str, Data], match_endless(data, several, chosen))
    if runtime_of(data).place == "stream":
        return match_streams(data, several, chosen)
    return match_all(data, several, chosen)


def rejected(data: Data, time: str, start: str | None = None) -> Data:
    """The dead letters of the data: rows that no query can place, since their time is NULL; or,
    if events have a duration, since their start is, or is after their end.

    >>> import pyarrow as pa
    >>> rejected(pa.table({"ts": [1, None], "x": [5, 6]}), time="ts").to_pydict()
    {'ts': [None], 'x': [6]}

    Of several streams, a dict of those of each.
    """
    dead_letters: Data = runtime_of(data).rejected(data, time, start)
    return dead_letters
