"""Keys with more rows than a task should have: their rows go to slices of time.

    look       counts the rows by a hash of their key, and of heavy hashes by time, too
    slices     stretches of time of a heavy hash, with about as many rows each
    balanced   which partition gets which slice, and which of the other hashes

A hash with few rows stays whole; a partition has all of its in one section. A slice is a section of
its own. No section gets more than half of a partition's fair share of the rows, unless it is no
longer than the window, so no partition gets more than 1.5 times that share.

The counts decide where matches are found, never which: the rows may have changed since they were
counted, and a hash or a time that wasn't seen then has its place, too.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cepheid.engine.rows.clock import check_times
from cepheid.plan.nodes import Plan, lookback, waits
from cepheid.spark.columns.column_names import named
from cepheid.spark.partitions.salts import salted
from cepheid.spark.partitions.worker import SECTION_COLUMN, Range

HASHES = 1 << 12
WORTH = 1 << 18
"""A section of fewer rows is done so soon that it isn't cut."""
SMALL = 1 << 20
"""Rows of fewer bytes aren't worth a look."""

_CELLS, _MOST_CELLS = 1 << 10, 1 << 16
_HASH, _CLOCK, _CELL, _PLACE = "__hash", "__clock", "__cell", "__place"
_BEFORE, _AFTER = -(1 << 63), (1 << 63) - 1

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Reach:
    """How far in time a match depends on events: `before` its end and, if it is known only later,
    `after` it."""

    before: int
    after: int = 0

    @staticmethod
    def of(plan: Plan) -> Reach:
        """Of a query whose data can be cut in time (`planner.bounds.uncut`)."""
        assert plan.window is not None
        time = plan.window.size + lookback(plan)
        return Reach(time, time if any(map(waits, plan.alternatives)) else 0)

    def __or__(self, other: Reach) -> Reach:
        return Reach(max(self.before, other.before), max(self.after, other.after))


@dataclass(frozen=True)
class Grid:
    """Cells of time. The first and last are unbounded."""

    first: int
    width: int
    count: int

    @staticmethod
    def over(span: Range, hashes: int) -> Grid:
        first, last = span
        count = max(1, min(_CELLS, _MOST_CELLS // hashes, last - first + 1))
        return Grid(first, -(-(last - first + 1) // count), count)

    def cells(self, time: int) -> int:
        """How many cells hold so long a time, wherever it begins."""
        return 0 if time == 0 else min(self.count, (time - 1) // self.width + 1)

    def range(self, begin: int, end: int) -> Range:
        """The time of the cells from begin to before end."""
        return (
            _BEFORE if begin == 0 else self.first + begin * self.width,
            _AFTER if end == self.count else self.first + end * self.width,
        )

    def column(self) -> Column:
        """The cell of a row's clock."""
        cell = F.expr(f"({_CLOCK} - {self.first}L) div {self.width}L")
        return F.greatest(F.lit(0).cast("long"), F.least(F.lit(self.count - 1).cast("long"), cell))


@dataclass(frozen=True)
class Slice:
    """The cells from `begin` to before `end` of a hash, in which the slice's matches end, and those
    from `low` to before `high`, whose rows it needs: `load` of them."""

    hash: int
    begin: int
    end: int
    low: int
    high: int
    load: int


@dataclass(frozen=True)
class HotKeys:
    """Where rows go. `places` are the sections of each hash, or of each hash and cell of time if
    the hash is cut; `owned` is the range of match ends of each section."""

    grid: Grid
    cut: tuple[int, ...]
    places: pa.Table
    owned: Mapping[int, Range]

    def rows(self, rows: DataFrame, hash_: Column, clock: Column) -> DataFrame:
        """Copy each row to every section that needs it."""
        rows = _hashed(rows, hash_, clock).drop(SECTION_COLUMN)
        cell = F.when(named(_HASH).isin(*self.cut), self.grid.column()).otherwise(F.lit(0))
        rows = rows.withColumn(_PLACE, named(_HASH) * self.grid.count + cell)
        places = rows.sparkSession.createDataFrame(self.places)
        return rows.join(F.broadcast(places), _PLACE).drop(_PLACE, _HASH, _CLOCK)


def look(
    rows: DataFrame, hash_: Column, clock: Column, time: str, reach: Reach, partitions: int
) -> HotKeys | None:
    """Where rows go, if there are so many of a key that they should be cut. This runs a job, and a
    second one if there is such a key. `time` is the name of the clock's column."""
    if partitions < 2 or _small(rows):
        return None
    rows = _hashed(rows, hash_, clock)
    found = rows.groupBy(_HASH).agg(F.count("*"), F.min(_CLOCK), F.max(_CLOCK)).toArrow()
    hashes, number, first, last = (column.to_numpy() for column in found.columns)
    counts = np.zeros(HASHES, np.int64)
    counts[hashes] = number
    most = max(int(counts.sum()) // (2 * partitions), WORTH)
    heavy = (number > most) & (last - first >= 2 * (reach.before + reach.after))
    if not heavy.any():
        return None
    span = int(first[heavy].min()), int(last[heavy].max())
    check_times(time, *span)
    grid = Grid.over(span, int(heavy.sum()))
    cut: list[Slice] = []
    for hash_number, cells in _by_cell(rows, hashes[heavy].tolist(), grid):
        parts = list(slices(hash_number, cells, grid, reach, most))
        cut += parts if len(parts) > 1 else []
    return _places(counts, cut, grid, partitions) if cut else None


def slices(hash_: int, cells: Counts, grid: Grid, reach: Reach, most: int) -> Iterator[Slice]:
    """Slices of at most so many rows, copies included, but not shorter than what they depend on: so
    at most about twice as many rows again are copied. `cells` are the counts by cell."""
    before, after = grid.cells(reach.before), grid.cells(reach.after)
    least = max(1, before, after)
    sums = np.concatenate([[0], np.cumsum(cells)])
    begin = 0
    while begin < grid.count:
        low = max(0, begin - before)
        # The last cell whose rows still fit, if those after the end fit, too.
        fitting = int(np.searchsorted(sums, sums[low] + most, side="right")) - 1 - after
        end = min(max(fitting, begin + least), grid.count)
        if grid.count - end < least:
            end = grid.count
        high = min(end + after, grid.count)
        yield Slice(hash_, begin, end, low, high, int(sums[high] - sums[low]))
        begin = end


def balanced(loads: Sequence[int], partitions: int) -> list[int]:
    """A partition for each load, the largest first to the one that has least.

    >>> balanced([5, 1, 3, 2], 2)
    [0, 0, 1, 1]
    """
    chosen = [0] * len(loads)
    filled = [(0, partition) for partition in range(partitions)]
    for n in sorted(range(len(loads)), key=lambda n: -loads[n]):
        load, partition = filled[0]
        chosen[n] = partition
        heapq.heapreplace(filled, (load + loads[n], partition))
    return chosen


def _places(counts: Counts, cut: Sequence[Slice], grid: Grid, partitions: int) -> HotKeys:
    hot = tuple(dict.fromkeys(part.hash for part in cut))
    whole = [n for n in range(HASHES) if n not in hot]
    chosen = balanced([*(part.load for part in cut), *counts[whole].tolist()], partitions)
    # A section for the hashes that a partition has whole, and one for each slice.
    numbers = salted([*range(partitions), *chosen[: len(cut)]], partitions)
    together, apart = numbers[:partitions], numbers[partitions:]
    places = [np.array(whole, np.int64) * grid.count]
    sections = [np.array([together[p] for p in chosen[len(cut) :]], np.int32)]
    for part, number in zip(cut, apart, strict=True):
        places.append(part.hash * grid.count + np.arange(part.low, part.high, dtype=np.int64))
        sections.append(np.full(part.high - part.low, number, np.int32))
    owned = dict.fromkeys(together, (_BEFORE, _AFTER))
    owned |= {n: grid.range(part.begin, part.end) for part, n in zip(cut, apart, strict=True)}
    table = {_PLACE: np.concatenate(places), SECTION_COLUMN: np.concatenate(sections)}
    return HotKeys(grid, hot, pa.table(table), owned)


def _hashed(rows: DataFrame, hash_: Column, clock: Column) -> DataFrame:
    return rows.withColumns({_HASH: F.pmod(hash_, F.lit(HASHES).cast("long")), _CLOCK: clock})


def _by_cell(rows: DataFrame, heavy: list[int], grid: Grid) -> Iterator[tuple[int, Counts]]:
    """The counts of the heavy hashes by cell. This runs a job."""
    of_heavy = rows.filter(named(_HASH).isin(*heavy)).withColumn(_CELL, grid.column())
    found = of_heavy.groupBy(_HASH, _CELL).count().toArrow()
    hashes, cells, number = (column.to_numpy() for column in found.columns)
    for hash_ in heavy:
        counts = np.zeros(grid.count, np.int64)
        of_hash = hashes == hash_
        counts[cells[of_hash]] = number[of_hash]
        yield hash_, counts


def _small(rows: DataFrame) -> bool:
    """Whether Spark knows that a look isn't worth its job. A Connect session doesn't tell."""
    session: object = rows.sparkSession
    if not isinstance(session, SparkSession):
        return False
    plan = rows._jdf.queryExecution().optimizedPlan()
    return int(str(plan.stats().sizeInBytes())) < SMALL
