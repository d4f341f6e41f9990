"""Statistics of data in this process, from a bounded number of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import bind_streams
from cepheid.engine.sampling import targets
from cepheid.engine.sampling.stretches import of_table
from cepheid.errors import DataError
from cepheid.inprocess.frames import EventTable, Source, to_arrow
from cepheid.inprocess.merged_streams import merge, streams_of
from cepheid.options import Options
from cepheid.planner import analyzed
from cepheid.runtime import Bindable
from cepheid.statistics import Statistics


def analyze(query: Bindable, data: Any, options: Options, rows: int) -> Statistics:
    """The statistics of the data, from a sample of about `rows` rows."""
    bound, table = _events(query, data, options)
    wanted = targets(analyzed(bound))
    return of_table(wanted, table, rows).statistics(wanted.ticks)


def _events(query: Bindable, data: Any, options: Options) -> tuple[BoundQuery, pa.Table]:
    """The query bound to the data, and the columns that it reads, as a table."""
    if not isinstance(data, Mapping):
        source = _whole(to_arrow(data))
        bound = query.bind(source.schema, options)
        return bound, source.read(bound.required)
    streams = {name: _whole(part) for name, part in streams_of(data).items()}
    schemas = {name: part.schema for name, part in streams.items()}
    bound = query.bind(schemas, options)
    merged, every = bind_streams(schemas, options)
    named = {n: part for n, part in streams.items() if n in (bound.schema.streams or ())}
    return bound, _whole(merge(named, merged, every)).read(bound.required)


def _whole(source: Source) -> EventTable:
    if isinstance(source, EventTable):
        return source
    raise DataError("analyze() needs a table or a frame: an iterator could be read only once")
