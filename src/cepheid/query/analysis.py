"""`analyze`: statistics of the data for the planner, from a sample."""

from __future__ import annotations

from typing import Any, Unpack

from cepheid.engine.sampling.stretches import check_rows
from cepheid.options import GivenOptions, Options, takes_options
from cepheid.query.option_arguments import options_of
from cepheid.query.parsed_query import Query, query_of
from cepheid.query.runtimes import runtime_of
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

    >>> import pyarrow as pa
    >>> trades = pa.table({"ts": range(100), "name": ["IBM", "Sun"] * 50, "price": range(100)})
    >>> query = "PATTERN IBM a ; Sun b WHERE a.price < b.price WITHIN 10"
    >>> found = analyze(trades, query, time="ts", type="name")
    >>> found.rates["a"], found.selectivities["a.price < b.price"]
    (0.5, 1.0)
    """
    parsed = query_of(query, data)
    chosen, most = options_of(options, named), check_rows(rows)
    return runtime_of(data, parsed.syntax.streams).analyze(parsed, data, chosen, most)
