"""Statistics of Spark DataFrames, from a bounded number of their rows.

Small jobs find out how many rows there are, at which times the stretches begin and end
(percentiles are enough for that, and need no sort), and how many rows lie in them. A last one
collects those rows, or a random part of them, of the query's columns alone; what they say is
found out in process. If all rows are few enough, they are counted and collected. Keyed
queries are sampled by time, too, so that rates and the frequencies of keys are the stream's.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cepheid.engine.sampling import Targets, targets
from cepheid.engine.sampling.stretches import SEED, in_ranges, places, ranges
from cepheid.options import Options
from cepheid.planner import analyzed
from cepheid.runtime import Bindable
from cepheid.spark.batch import bind
from cepheid.spark.columns.column_names import as_given, named, types_of
from cepheid.spark.columns.entrance import entered
from cepheid.spark.columns.extraction import with_paths
from cepheid.spark.columns.predicates import microseconds
from cepheid.statistics import Statistics
from cepheid.statistics.samples import Interval, Sample

ACCURACY = 100_000
"""The accuracy of percentiles: an error of at most one in this many rows."""


def analyze(query: Bindable, data: Any, options: Options, rows: int) -> Statistics:
    """The statistics of the data, from a sample of about `rows` rows."""
    events, _, bound = bind(query, entered(data), options)
    wanted = targets(analyzed(bound))
    time = wanted.plan.schema.time
    events = with_paths(events, wanted.plan.required)
    events = events.select(*(named(n) for n in wanted.plan.required))
    events = events.filter(named(time).isNotNull())
    clock = microseconds(named(time), types_of(events)[time])
    return _sample(wanted, events, clock, rows).statistics(wanted.ticks)


def _sample(wanted: Targets, events: DataFrame, clock: Column, rows: int) -> Sample:
    row = events.agg(F.count(F.lit(1)), F.min(clock), F.max(clock)).first()
    if row is None or row[0] == 0:
        return Sample()
    count, first, last = row
    if count <= rows:
        return in_ranges(wanted, _collected(events), ((first, last + 1),))
    stretches = _stretches(wanted, events, clock, (count, last), rows)
    inside = events.filter(reduce(or_, (_within(clock, interval) for interval in stretches)))
    count = inside.count()
    if count > rows:
        inside = inside.sample(rows / count, SEED)
    return in_ranges(wanted, _collected(inside), stretches, count)


def _stretches(
    wanted: Targets, events: DataFrame, clock: Column, known: tuple[int, int], rows: int
) -> tuple[Interval, ...]:
    count, last = known
    # Stretches that percentiles can't tell apart are made longer, and thinned out.
    shares = places(count, max(rows, 16 * count // ACCURACY))
    row = events.agg(F.percentile_approx(clock, shares, ACCURACY)).first()
    assert row is not None
    return ranges(row[0], last, wanted)


def _within(clock: Column, interval: Interval) -> Column:
    begin, end = interval
    return (clock >= F.lit(begin).cast("long")) & (clock < F.lit(end).cast("long"))


def _collected(events: DataFrame) -> pa.Table:
    table: pa.Table = as_given(events.toArrow())
    return table
