"""One scan and one shuffle for merged rules and all queries beside them that have their key.

Queries over dealt events that have no key share slices of time, or else a single partition: each of
them would be a scan, and they are few.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from cepheid.algebra.expressions import Attribute
from cepheid.algebra.types import Schema
from cepheid.options import Options
from cepheid.plan.reads import leaves
from cepheid.planner.bounds import uncut
from cepheid.spark.columns.class_filters import classify, relevant, type_text
from cepheid.spark.columns.column_names import named
from cepheid.spark.columns.predicates import Translator, combine
from cepheid.spark.partitions.arrange import TimeSlices, cut_between, placed
from cepheid.spark.partitions.batch_sizes import gather
from cepheid.spark.partitions.hot_keys import Reach
from cepheid.spark.partitions.rule_work import PassWork, QueryWork, alerts
from cepheid.spark.partitions.salts import salts
from cepheid.spark.partitions.worker import SECTION_COLUMN, Range, owned, sections
from cepheid.spark.rule_sets import GATHERED, Frame, by_key, group_takes, mapped, tasks

MOST_FILTERED = 8
"""Of more queries than these, rows are filtered by their types alone: what Spark would have to
check for each row, and to plan, grows with the conditions."""


def is_hashable(frame: Frame, schema: Schema, column: str) -> bool:
    """Whether values that are equal for the engine are equal for Spark, too."""
    attribute = Attribute("", column, schema.columns[column])
    return Translator(frame.types).column(attribute) is not None


def match_keyed(frame: Frame, key: str, work: PassWork, options: Options) -> DataFrame:
    """The alerts of rules that keep the events of different values of the key apart."""
    schema = _schema(work)
    rows = _relevant(frame, work, key)
    rows, held = by_key(frame, rows, schema, key, _reach(work), options)
    return mapped(rows, partial(_run, pickle.dumps(work), held), work.schema)


def _run(
    packed: bytes, held: Mapping[int, Range] | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The alerts of a partition; with `held`, of each section those that end in its range."""
    work, gathered = pickle.loads(packed), gather(batches, GATHERED)
    if held is None:
        yield from alerts(work, gathered)
        return
    for section, pieces in sections(gathered):
        yield from owned(alerts(work, pieces), held[section])


def _reach(work: PassWork) -> Reach | None:
    """How far in time the alerts depend on events; None if that isn't limited."""
    reaches = [] if work.group is None else [Reach(work.group.merged.reach)]
    for query in work.queries:
        if query.variants is not None and query.reach is not None:
            reaches.append(Reach(query.reach, query.reach))
        elif query.variants is None and uncut(query.prepared.query) is None:
            reaches.append(Reach.of(query.prepared.plan))
        else:
            return None
    return reduce(or_, reaches)


def match_sliced(frame: Frame, work: PassWork, times: Range | None, options: Options) -> DataFrame:
    """The alerts of queries over dealt events without a key, in slices of time if all of them reach
    so far only."""
    schema = _schema(work)
    rows = _relevant(frame, work, None)
    reaches = [query.reach for query in work.queries]
    order = list(map(named, schema.order))
    packed = pickle.dumps(work)
    reach = max((r for r in reaches if r is not None), default=0)
    _, shuffled = tasks(frame, options)
    cut = None if times is None or None in reaches else cut_between(times, reach, shuffled, True)
    if cut is None or cut.count < 2:
        rows = rows.repartition(1).sortWithinPartitions(*order)
        return mapped(rows, partial(_run, packed, None), work.schema)
    held = _owned(cut, shuffled)
    rows = replace(cut, salts=tuple(held)).rows(rows, schema.time, frame.types[schema.time])
    rows = rows.repartition(max(shuffled, cut.count), named(SECTION_COLUMN))
    rows = rows.sortWithinPartitions(named(SECTION_COLUMN), *order)
    return mapped(rows, partial(_run, packed, held), work.schema)


def _owned(cut: TimeSlices, shuffled: int) -> dict[int, Range]:
    numbers = salts(max(shuffled, cut.count))[: cut.count]
    return {number: cut.range(n) for n, number in enumerate(numbers)}


def _schema(work: PassWork) -> Schema:
    """The roles of the columns: those of all queries are the same."""
    if work.group is not None:
        return work.group.query.schema
    return work.queries[0].prepared.plan.schema


def _relevant(frame: Frame, work: PassWork, key: str | None) -> DataFrame:
    """The columns that anything reads, of the rows that anything may take."""
    schema = _schema(work)
    read = [name for query in work.queries for name in query.required]
    grouped = () if work.group is None else work.group.required
    names = dict.fromkeys([*grouped, *read, *schema.order, *([] if key is None else [key])])
    rows = frame.events.select(*map(named, names)).filter(placed(schema.time, None))
    conditions = [_taken(frame, work.queries, schema)] if work.queries else []
    if work.group is not None:
        conditions.append(group_takes(frame, work.group))
    known = [condition for condition in conditions if condition is not None]
    return rows.filter(combine(or_, known)) if len(known) == len(conditions) else rows


def _taken(frame: Frame, queries: Sequence[QueryWork], schema: Schema) -> Column | None:
    """A condition that holds for every row that any of the queries can take; None if that may be
    every row."""
    if len(queries) <= MOST_FILTERED and all(query.variants is None for query in queries):
        each = [relevant(classify(query.prepared.plan, frame.types)) for query in queries]
        known = [condition for condition in each if condition is not None]
        return combine(or_, known) if len(known) == len(each) else None
    types: set[str] = set()
    for query in queries:
        for of_variable in _types(query):
            if not of_variable:
                return None
            types.update(of_variable)
    if schema.type is None:
        return None
    return type_text(schema.type, frame.types[schema.type]).isin(*sorted(types))


def _types(query: QueryWork) -> Iterator[Sequence[str]]:
    """The types of the events of each variable; none are all."""
    if query.variants is not None:
        for class_ in query.variants.classes:
            yield query.variants.variables[class_.leaf.variable].types
        return
    plan = query.prepared.plan
    for leaf in leaves(plan):
        yield plan.variables[leaf.variable].types
