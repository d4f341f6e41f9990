"""Runs queries on Spark and names their matches by the events that they bind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from tests.corpus.reader import Case, bound, table
from tests.oracle.events import Event
from tests.oracle.match import matches

ROW = "row"
"""A column with each event's place in the input, by which matches are compared."""

HOW = "how"

Rows = Counter[tuple[Any, ...]]


def frame(spark: SparkSession, events: pa.Table, partitions: int = 3) -> DataFrame:
    """A table as a DataFrame whose rows lie in several partitions, out of order."""
    return spark.createDataFrame(events).repartition(partitions)


def event_table(case: Case, events: Sequence[Event]) -> pa.Table:
    return table(case.schema, events).append_column(ROW, pa.array([e.index for e in events]))


def again(events: Sequence[Event], times: int) -> tuple[Event, ...]:
    """The stream several times, one after the other, so that there is something to cut."""
    known = [time for e in events if (time := e.values["ts"]) is not None]
    begins = [e.start for e in events if e.start is not None]
    step = max(known) - min(known + begins) + 1
    return tuple(
        _moved(e, n * len(events) + e.index, n * step) for n in range(times) for e in events
    )


def _moved(event: Event, index: int, by: int) -> Event:
    def later(time: int | None) -> int | None:
        return None if time is None else time + by

    time, start = later(event.values["ts"]), later(event.start)
    lasting = {} if "begin" not in event.values else {"begin": start}
    values = {**event.values, **lasting, "ts": time}
    return Event(index, time or 0, values, start)


def expected(case: Case, events: Sequence[Event]) -> Rows:
    """The oracle's matches."""
    query = bound(case)
    return Counter(
        (*((v, _places(b)) for v, b in sorted(m.bindings.items())), m.start, m.end)
        for m in matches(query, events)
    )


def _places(binding: Any) -> Any:
    match binding:
        case None | ():
            return ()
        case tuple():
            return binding
        case _:
            return (binding,)


def found(rows: Iterable[dict[str, Any]]) -> Rows:
    """Matches that were returned whole, as the oracle names them."""
    return Counter(_match(row) for row in rows)


def _match(row: dict[str, Any]) -> tuple[Any, ...]:
    start, end = row.pop("match_start"), row.pop("match_end")
    return (*((v, _rows(value)) for v, value in sorted(row.items())), start, end)


def _rows(value: Any) -> tuple[int, ...]:
    match value:
        case None:
            return ()
        case list():
            return tuple(element[ROW] for element in value)
        case _:
            return (value[ROW],)


def on_spark(
    data: Any, query: str, partitionings: Sequence[str] = ("auto",), **options: Any
) -> dict[str, Rows]:
    """The matches under each partitioning, found in one job."""
    results = [
        cep.match(data, query, jit=False, partitioning=p, **options).withColumn(HOW, F.lit(p))
        for p in partitionings
    ]
    rows: dict[str, list[dict[str, Any]]] = {p: [] for p in partitionings}
    for row in reduce(DataFrame.unionByName, results).collect():
        values = row.asDict(True)
        rows[values.pop(HOW)].append(values)
    return {p: found(own) for p, own in rows.items()}


def in_process(data: Any, query: str, **options: Any) -> Rows:
    return found(cep.match(data, query, **options).to_pylist())
