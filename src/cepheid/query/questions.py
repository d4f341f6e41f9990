"""`why`, `funnel` and `timeline`: what a query did with the events."""

from __future__ import annotations

from typing import Any, Unpack, overload

from cepheid.options import GivenOptions, Options, takes_options
from cepheid.query.parsed_query import Query, query_of
from cepheid.reasons.funnel import Funnel
from cepheid.reasons.looked_at import Amount
from cepheid.reasons.timeline import Timeline
from cepheid.reasons.why.given_events import Given
from cepheid.reasons.why.investigation import MISSES
from cepheid.reasons.why.report import Why
from cepheid.reasons.why.why_not import WhyNot


@overload
def why(
    data: Any,
    query: str | Query,
    options: Options | None = None,
    *,
    events: None = None,
    rows: Amount = None,
    misses: int = MISSES,
    **named: Unpack[GivenOptions],
) -> Why: ...


@overload
def why(
    data: Any,
    query: str | Query,
    options: Options | None = None,
    *,
    events: Given,
    rows: Amount = None,
    misses: int = MISSES,
    **named: Unpack[GivenOptions],
) -> WhyNot: ...


@takes_options
def why(
    data: Any,
    query: str | Query,
    options: Options | None = None,
    *,
    events: Given | None = None,
    rows: Amount = None,
    misses: int = MISSES,
    **named: Unpack[GivenOptions],
) -> Why | WhyNot:
    """Find out why a query matched or didn't: how many got to each step of the pattern, what
    stopped the others, and how many matches there would be without each part of the query.

    `data` and the options are as for `match`. Variations of the query are run over at most about
    `rows` events, with "all" over all of them. By default these are 20,000, on Spark a million,
    which are counted there. The report says which events it looked at. It has at most `misses` of
    the nearest misses.

    >>> import cepheid as cep, pyarrow as pa
    >>> events = pa.table({"ts": [1, 2, 3, 9], "name": ["A", "B", "A", "B"], "x": [5, 4, 3, 2]})
    >>> query = "PATTERN A a ; B b WHERE b.x > 4 WITHIN 5"
    >>> report = cep.why(events, query, time="ts", type="name")
    >>> report.matches, [(part.text, part.more) for part in report.without]
    (0, [('b.x > 4', 1)])

    With `events`, the report is about these: every condition with the values that it saw, and the
    smallest change with which they match. By variable, they are rows, counted from 0, or a
    condition such as `"b.x > 5"`.

    >>> verdict = cep.why(events, query, events={"a": 0, "b": 1}, time="ts", type="name")
    >>> verdict.matches, verdict.change
    (False, 'b.x >= 4 instead of b.x > 4')
    """
    parsed = query_of(query, data)
    if events is None:
        return parsed.why(data, options, rows=rows, misses=misses, **named)
    return parsed.why(data, options, events=events, rows=rows, misses=misses, **named)


@takes_options
def funnel(
    data: Any,
    query: str | Query,
    options: Options | None = None,
    *,
    by: str | None = None,
    rows: Amount = None,
    **named: Unpack[GivenOptions],
) -> Funnel:
    """Count how many events of the first step got to each step of a pattern, how long that took,
    and what stopped the others.

    `data` and the options are as for `match`, `rows` is as for `why`. With `by` there is a funnel
    for each value of this column at the first event; of a query that groups its matches by
    TUMBLE, `by="window_start"` makes one for each window that first events are in.

    >>> import cepheid as cep, pyarrow as pa
    >>> events = pa.table({"ts": [1, 2, 3, 9], "name": ["A", "B", "A", "A"]})
    >>> found = cep.funnel(events, "PATTERN A a ; B b WITHIN 5", time="ts", type="name")
    >>> [(step.text, step.reached) for step in found.steps]
    [('A a', 3), ('B b', 1), ('match', 1)]
    """
    parsed = query_of(query, data)
    return parsed.funnel(data, options, by=by, rows=rows, **named)


@takes_options
def timeline(
    data: Any,
    query: str | Query,
    options: Options | None = None,
    *,
    lanes: str | None = None,
    rows: Amount = None,
    **named: Unpack[GivenOptions],
) -> Timeline:
    """Draw the events of a query on a time axis, with its matches.

    `data` and the options are as for `match`, `rows` is as for `why`. There is a lane for each
    variable of the pattern, or with `lanes` for each value of this column.

    >>> import cepheid as cep, pyarrow as pa
    >>> events = pa.table({"ts": [1, 2, 3, 9], "name": ["A", "B", "A", "A"]})
    >>> cep.timeline(events, "PATTERN A a ; B b WITHIN 5", time="ts", type="name")
    Timeline(1 match, in 4 events)
    """
    return query_of(query, data).timeline(data, options, lanes=lanes, rows=rows, **named)
