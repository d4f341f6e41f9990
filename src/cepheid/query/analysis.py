"""`analyze`: what a planner should know of the data, from a sample of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import pyarrow as pa

from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import bind_streams
from cepheid.engine.sampling import targets
from cepheid.engine.sampling.stretches import check_rows, of_table
from cepheid.errors import DataError
from cepheid.inprocess.frames import EventTable, Source, to_arrow
from cepheid.inprocess.merge import merge, streams_of
from cepheid.options import GivenOptions, Options, takes_options
from cepheid.planner import analyzed
from cepheid.query import Query, is_spark, options_of, query_of
from cepheid.statistics import Statistics

ROWS = 200_000


@takes_options
def analyze(
    data: Any,
    query: str | Query,
    options: Options | None = None,
    *,
    rows: int = ROWS,
    **named: Unpack[GivenOptions],
) -> Statistics:
    """Find out what the planner needs to know: how often the pattern's events come, how selective
    its conditions are, how many keys there are and which are hot.

    `data` and the options are as for `match`. About `rows` rows are looked at, in a few stretches
    of time; the same data always give the same answer. Pass the result on as `stats`.

    >>> trades = pa.table({"ts": range(100), "name": ["IBM", "Sun"] * 50, "price": range(100)})
    >>> query = "PATTERN IBM a ; Sun b WHERE a.price < b.price WITHIN 10"
    >>> found = analyze(trades, query, time="ts", type="name")
    >>> found.rates["a"], found.selectivities["a.price < b.price"]
    (0.5, 1.0)
    """
    parsed = query_of(query, data)
    chosen, most = options_of(options, named), check_rows(rows)
    if is_spark(data):
        from cepheid.spark.analyze import analyze as analyze_on_spark

        return analyze_on_spark(parsed, data, chosen, most)
    bound, table = _events(parsed, data, chosen)
    wanted = targets(analyzed(bound))
    return of_table(wanted, table, most).statistics(wanted.ticks)


def _events(query: Query, data: Any, options: Options) -> tuple[BoundQuery, pa.Table]:
    """The query bound to the data, and what it reads of them."""
    if not isinstance(data, Mapping):
        source = _whole(to_arrow(data))
        bound = query.bind(source.schema, options)
        return bound, source.read(bound.required)
    streams = {name: _whole(part) for name, part in streams_of(data).items()}
    schemas = {name: part.schema for name, part in streams.items()}
    bound = query.bind(schemas, options)
    merged, _ = bind_streams(schemas, options)
    named = {n: part for n, part in streams.items() if n in (bound.schema.streams or ())}
    return bound, _whole(merge(named, merged, options)).read(bound.required)


def _whole(source: Source) -> EventTable:
    if isinstance(source, EventTable):
        return source
    raise DataError("analyze() needs a table or a frame: an iterator could be read only once")
