"""From a DataFrame of events to partitions of ordered rows that a worker can match.

Rows are filtered and pruned first, then shuffled as the layout says, then sorted by time alone:
the engine keeps the keys of a partition apart itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import and_
from typing import assert_never

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.algebra.expressions import Attribute
from cepheid.algebra.types import STREAM_COLUMN, Schema, Type
from cepheid.engine.rows.classes import CLASS_COLUMN, MOST_CLASSES
from cepheid.engine.rows.clock import CLOCK_COLUMN, check_times
from cepheid.plan.nodes import LeafNode, Plan
from cepheid.plan.reads import joined_columns, kept_columns, uniform_key
from cepheid.planner import Prepared
from cepheid.spark.columns.class_filters import Class, left_columns, mask, relevant
from cepheid.spark.columns.column_names import named
from cepheid.spark.columns.predicates import Translator, combine, microseconds
from cepheid.spark.partitions.hot_keys import Reach, look
from cepheid.spark.partitions.layout import (
    ByKey,
    ByPartialKey,
    Layout,
    Rows,
    Single,
    Slices,
    in_events,
)
from cepheid.spark.partitions.salts import salts
from cepheid.spark.partitions.worker import COPY_COLUMN, SECTION_COLUMN, Range, Task

_INPUT_ORDER = "__input"
_SLICE = "__slice"
_BEFORE, _AFTER = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class EventSource:
    """The events and what is known of them. With `partitions` None, Spark shuffles into as many
    partitions as the session says, or fewer if they would be small. With `keeps`, rows go to
    Python with all columns that the query reads: they are saved, and RETURN may read more of
    them later. Some rows may be `results` of other queries, by the names of their streams, which
    then go to Python, too. Where results meet the rows only in Python, those aren't `classed`
    before."""

    events: DataFrame
    prepared: Prepared
    types: dict[str, t.DataType]
    classes: tuple[Class, ...]
    partitions: int | None
    shuffled: int
    keeps: bool = False
    results: tuple[str, ...] = ()
    classed: bool = True

    @property
    def plan(self) -> Plan:
        return self.prepared.plan

    @property
    def masked(self) -> bool:
        return self.classed and len(self.classes) <= MOST_CLASSES

    @property
    def position(self) -> list[str]:
        """The columns that make an event's position."""
        return list(self.plan.schema.order)

    @property
    def order(self) -> list[str]:
        """The sort order of a partition's (or section's) rows: by key first where events are
        counted per key."""
        if in_events(self.plan):
            return [*uniform_key(self.plan), CLOCK_COLUMN]
        return self.position

    def key(self, columns: Sequence[str]) -> list[Column]:
        """Columns as values that are equal where the engine takes them as equal."""
        return key_columns(self.types, self.plan.schema, columns)

    def spread(self, frame: DataFrame, *columns: Column) -> DataFrame:
        if self.partitions is None:
            return frame.repartition(*columns)
        return frame.repartition(self.partitions, *columns)


def key_columns(
    types: Mapping[str, t.DataType], schema: Schema, columns: Sequence[str]
) -> list[Column]:
    """Columns as values that are equal where the engine takes them as equal."""
    translator = Translator(types)
    keys: list[Column] = []
    for name in columns:
        kind = schema.columns[name]
        column = translator.column(Attribute("", name, kind))
        if column is None:
            column = named(name).cast("double") if kind is Type.DECIMAL else named(name)
        keys.append(column)
    return keys


def arrange(
    source: EventSource, layout: Layout, spare: Layout | None, task: Task
) -> tuple[DataFrame, Task]:
    """The partitioned rows, and the workers' task. For slices this runs a small job that finds the
    time range; if it is too short to cut, the layout `spare` is used. For keys that may be cut it
    runs one that looks for hot keys."""
    rows = relevant_rows(source, layout)
    match layout:
        case Rows():
            order = [
                *(uniform_key(source.plan) if in_events(source.plan) else ()),
                *source.position,
            ]
            return rows.sortWithinPartitions(*(named(n) for n in order)), task
        case ByKey():
            return _by_key(source, rows, layout, task)
        case ByPartialKey():
            rows = copied(source, rows, layout, salts(source.shuffled))
            return _in_sections(source, rows), _sectioned(task)
        case Slices():
            cut = _cut(source, rows)
            if cut is None or cut.count < 2:
                return arrange(source, spare or Single(), None, task)
            time = source.plan.schema.time
            sections = _in_sections(source, cut.rows(rows, time, source.types[time]))
            return sections, replace(_sectioned(task), owned=cut.owned)
        case Single():
            return _sorted(source, rows.repartition(1)), task
        case _:
            assert_never(layout)


def _by_key(
    source: EventSource, rows: DataFrame, layout: ByKey, task: Task
) -> tuple[DataFrame, Task]:
    if layout.uniform:
        key = source.key(layout.columns[0])
        # NULL equals nothing, and may be the most frequent of all.
        rows = rows.filter(combine(and_, [k.isNotNull() for k in key]))
        hash_ = F.xxhash64(*key)
    else:
        rows, key = by_keys(source, rows, layout), [named(SECTION_COLUMN)]
        hash_ = named(SECTION_COLUMN)
    time = source.plan.schema.time
    clock = microseconds(named(time), source.types[time])
    if layout.cut:
        hot = look(rows, hash_, clock, time, Reach.of(source.plan), source.shuffled)
        if hot is not None:
            sections = _in_sections(source, hot.rows(rows, hash_, clock))
            return sections, replace(_sectioned(task), owned=hot.owned)
    if not (layout.uniform and in_events(source.plan)):  # else they are together already
        rows = source.spread(rows, *key)
    return _sorted(source, rows.drop(SECTION_COLUMN)), task


def _sorted(source: EventSource, rows: DataFrame) -> DataFrame:
    return rows.sortWithinPartitions(*(named(n) for n in source.order))


def _in_sections(source: EventSource, rows: DataFrame) -> DataFrame:
    rows = source.spread(rows, named(SECTION_COLUMN))
    return rows.sortWithinPartitions(*(named(n) for n in (SECTION_COLUMN, *source.order)))


def _sectioned(task: Task) -> Task:
    return replace(task, sections=True)


# ── rows ─────────────────────────────────────────────────────────────────────


def task_of(source: EventSource, jit: bool) -> Task:
    left = tuple(
        (n, LeafNode(c.leaf.variable, c.left)) for n, c in enumerate(source.classes) if c.left
    )
    return Task(source.prepared, jit, left if source.masked else ())


def shipped(source: EventSource) -> list[str]:
    """Columns that go to Python."""
    plan, names = source.plan, set(source.plan.required)
    if source.masked:
        names = {*plan.schema.order, *joined_columns(plan), *left_columns(source.classes)}
        names |= {*uniform_key(plan)} if in_events(plan) else set()
        # Answers are counted key by key, also of single events.
        if source.prepared.query.answers is not None:
            names |= {part.uniform for part in source.prepared.query.key if part.uniform}
        names |= {*kept_columns(plan)} if source.keeps else set()
    streams = (STREAM_COLUMN,) if source.results else ()
    names.update(streams)
    return [n for n in dict.fromkeys((*plan.required, *streams)) if n in names]


def relevant_rows(source: EventSource, layout: Layout, numbered: bool = True) -> DataFrame:
    """The rows of any class, with their class masks, and with ordinals where events are counted;
    all rows, if the receiver counts."""
    plan = source.plan
    rows = source.events.select(*(named(n) for n in plan.required))
    rows = rows.filter(placed(plan.schema.time, plan.schema.start))
    extra: list[Column] = []
    counting = in_events(plan) and not isinstance(layout, Rows)
    if counting and numbered:
        rows = _numbered(source, rows)
        extra.append(named(CLOCK_COLUMN))
    condition = relevant(source.classes)
    if condition is not None and (numbered or not counting):
        rows = rows.filter(condition)
    if not source.masked:
        return rows
    # Keys and masks of single classes may still be needed to shuffle by.
    match layout:
        case ByKey() if not layout.uniform:
            return rows
        case ByPartialKey():
            return rows
        case ByKey():
            extra += [named(n) for n in layout.columns[0] if n not in shipped(source)]
        case _:
            pass
    return rows.select(
        *(named(n) for n in shipped(source)), *extra, mask(source.classes).alias(CLASS_COLUMN)
    )


def placed(time: str, start: str | None) -> Column:
    """Whether a row can be placed in time."""
    if start is None:
        return named(time).isNotNull()
    # Unknown, and so not satisfied, if one of them is NULL.
    return named(start) <= named(time)


def _numbered(source: EventSource, rows: DataFrame) -> DataFrame:
    """Each row with its ordinal in the stream, or in the part of the stream with its key.

    Without a key of one name everything goes through one partition here.
    """
    plan = source.plan
    rows = rows.withColumn(_INPUT_ORDER, F.monotonically_increasing_id())
    order = [named(n) for n in (*source.position, _INPUT_ORDER)]
    names = uniform_key(plan)
    if names:
        key = source.key(names)
        rows = source.spread(rows.filter(combine(and_, [k.isNotNull() for k in key])), *key)
        window = Window.partitionBy(*key).orderBy(*order)
    else:
        window = Window.orderBy(*order)
    ordinal = (F.row_number().over(window) - 1).cast("long")
    return rows.withColumn(CLOCK_COLUMN, ordinal).drop(_INPUT_ORDER)


# ── copies ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ShippedRows:
    """Keeps rows that go to no section: which rows are sent to one, and the columns kept of all of
    them."""

    condition: Column
    columns: tuple[str, ...]


def _ship(
    source: EventSource,
    rows: DataFrame,
    classes: Column,
    section: Column,
    taken: ShippedRows | None,
) -> DataFrame:
    more = [CLOCK_COLUMN] if CLOCK_COLUMN in rows.columns else []
    more += [] if taken is None else [*taken.columns, COPY_COLUMN]
    return rows.select(
        *(named(n) for n in shipped(source)),
        *(named(n) for n in more),
        classes.alias(CLASS_COLUMN),
        section.alias(SECTION_COLUMN),
    )


def _sent(rows: DataFrame, sections: Column, taken: ShippedRows | None) -> DataFrame:
    """Copy each row to every section that it belongs to."""
    if taken is None:
        return rows.withColumn(SECTION_COLUMN, F.explode(sections))
    copies = F.posexplode_outer(F.when(taken.condition, sections))
    return rows.select("*", copies.alias(COPY_COLUMN, SECTION_COLUMN))


def _groups(source: EventSource, columns: Sequence[object]) -> dict[object, Column]:
    """The classes' masks, by the columns that they are shuffled by."""
    return {
        group: mask(source.classes, [c == group for c in columns])
        for group in dict.fromkeys(columns)
    }


def _joined(masks: Sequence[Column]) -> Column:
    return combine(Column.bitwiseOR, masks)


def _where(condition: Column, bits: Column) -> Column:
    return F.when(condition, bits).otherwise(F.lit(0).cast("long"))


def by_keys(
    source: EventSource, rows: DataFrame, layout: ByKey, taken: ShippedRows | None = None
) -> DataFrame:
    """`a.user = b.customer`: a row goes to the section of each of its keys, with only the classes
    that have that key. So all rows of a key are together, and a match, which has one key, is found
    there alone. Copies that meet in a partition have different keys, so no match can hold two of
    them.

    All rows of a key are so together, and a match, which has one key, is found there alone.
    Copies that meet in a partition have different keys, so no match can hold two of them.
    """
    masks = {group: f"__mask{n}" for n, group in enumerate(dict.fromkeys(layout.columns))}
    places = {group: f"__place{n}" for n, group in enumerate(masks)}
    for group, bits in _groups(source, layout.columns).items():
        assert isinstance(group, tuple)
        rows = rows.withColumn(masks[group], bits)
        place = F.when(named(masks[group]) != 0, F.xxhash64(*source.key(group)))
        rows = rows.withColumn(places[group], place)
    distinct = F.array_distinct(F.array(*(named(p) for p in places.values())))
    rows = _sent(rows, F.array_compact(distinct), taken)
    section = named(SECTION_COLUMN)
    classes = _joined([_where(named(places[g]) == section, named(masks[g])) for g in masks])
    return _ship(source, rows, classes, section, taken)


def copied(
    source: EventSource,
    rows: DataFrame,
    layout: ByPartialKey,
    numbers: Sequence[int],
    taken: ShippedRows | None = None,
) -> DataFrame:
    """Send rows of connected classes to the section of their value, and copy all others to every
    section."""
    everywhere = F.array(*(F.lit(n) for n in numbers))
    groups = _groups(source, layout.columns)
    copied = groups.pop(None, F.lit(0).cast("long"))
    rows = rows.withColumn("__copied", copied)
    names = {group: (f"__mask{n}", f"__place{n}") for n, group in enumerate(groups)}
    for group, bits in groups.items():
        assert isinstance(group, str)
        bits_name, place = names[group]
        (key,) = source.key([group])
        number = F.pmod(F.xxhash64(key), F.lit(len(numbers))).cast("int") + 1
        rows = rows.withColumn(bits_name, bits).withColumn(
            place,
            F.when((named(bits_name) != 0) & key.isNotNull(), F.element_at(everywhere, number)),
        )
    distinct = F.array_distinct(F.array(*(named(place) for _, place in names.values())))
    targets = F.when(named("__copied") != 0, everywhere).otherwise(F.array_compact(distinct))
    rows = _sent(rows, targets, taken)
    section = named(SECTION_COLUMN)
    parts = [
        _where(named(place) == section, named(bits_name)) for bits_name, place in names.values()
    ]
    return _ship(source, rows, _joined([named("__copied"), *parts]), section, taken)


# ── slices ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class TimeSlices:
    """`count` slices of `width`, starting at `first`; the first and last are unbounded. A slice
    needs the window before it and, if matches are decided only when their window has passed, the
    window after it.

    A slice needs the window before it, and, if matches are known only when their window has
    passed, the window behind it.
    """

    first: int
    width: int
    window: int
    waits: bool
    salts: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.salts)

    def range(self, number: int) -> Range:
        begin = self.first + number * self.width
        last = number == self.count - 1
        return _BEFORE if number == 0 else begin, _AFTER if last else begin + self.width

    @property
    def owned(self) -> dict[int, Range]:
        """For each section number, the range of match ends that the slice owns."""
        return {salt: self.range(n) for n, salt in enumerate(self.salts)}

    def rows(self, rows: DataFrame, time: str, type_: t.DataType) -> DataFrame:
        """Copy each row to every slice that needs it."""
        clock = microseconds(named(time), type_) - F.lit(self.first).cast("long")
        rows = rows.withColumn(_SLICE, clock)
        begin = self._slice(-(self.window - 1) if self.waits else 0)
        end = self._slice(self.window - 1)
        rows = rows.withColumn(_SLICE, F.explode(F.sequence(begin, end)))
        numbers = F.array(*(F.lit(n) for n in self.salts))
        section = F.element_at(numbers, named(_SLICE).cast("int") + 1)
        return rows.withColumn(SECTION_COLUMN, section).drop(_SLICE)

    def _slice(self, offset: int) -> Column:
        number = F.expr(f"({_SLICE} + {offset}L) div {self.width}L")
        return F.greatest(
            F.lit(0).cast("long"), F.least(F.lit(self.count - 1).cast("long"), number)
        )


def _cut(source: EventSource, rows: DataFrame) -> TimeSlices | None:
    time, reach = source.plan.schema.time, Reach.of(source.plan)
    type_, waiting = source.types[time], reach.after > 0
    return cut_of(rows, time, type_, reach.before, source.shuffled, waiting)


def cut_of(
    rows: DataFrame,
    time: str,
    type_: t.DataType,
    window: int,
    most: int,
    waiting: bool = False,
) -> TimeSlices | None:
    """Slices not shorter than the window, so that at most as many rows again are copied; None if
    there are no rows. This runs a job."""
    span = span_of(rows, time, type_)
    return None if span is None else cut_between(span, window, most, waiting)


def span_of(rows: DataFrame, time: str, type_: t.DataType) -> Range | None:
    """The first time and the last; None if there are no rows. This runs a job."""
    clock = microseconds(named(time), type_)
    row = rows.agg(F.min(clock), F.max(clock)).first()
    if row is None or row[0] is None:
        return None
    first, last = int(row[0]), int(row[1])
    check_times(time, first, last)
    return first, last


def cut_between(span: Range, window: int, most: int, waiting: bool = False) -> TimeSlices:
    first, last = span
    length = last - first + 1
    window = min(window, length)
    count = max(1, min(most, length // window))
    width = -(-length // count)
    return TimeSlices(first, width, window, waiting, salts(most)[:count])
