"""What runs in Spark's Python workers: the engine over the rows of a partition.

Rows come in the order of the stream; where partitions are made of sections (time slices, copies
of what has no key), section by section, each of which has an engine of its own, which adapts to
its own part of the data. Nothing here reaches the parser.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from operator import itemgetter

import numpy as np
import pyarrow as pa

from cepheid.answers.counted.counting_engine import EVER, CountedQuery
from cepheid.engine.end_of_data import end
from cepheid.engine.match_schema import MATCH_END
from cepheid.engine.rows.classes import narrowed
from cepheid.engine.rows.clock import times
from cepheid.engine.run import Engine
from cepheid.plan.nodes import LeafNode
from cepheid.planner import Prepared
from cepheid.spark.partitions.batch_sizes import gather

SECTION_COLUMN = "__section"
"""The column with a row's section of its partition."""

COPY_COLUMN = "__copy"
"""The column that numbers the copies of a row that goes to several sections, from 0."""

PROFILE_COLUMN = "profile"

Range = tuple[int, int]


@dataclass(frozen=True)
class Task:
    """A worker's task. `left` are the classes, by bit, that Spark couldn't filter exactly, with the
    predicates left to check. `owned` gives the range of match ends that each time slice owns.
    `until` is how far time passes at the end of the data; None is to infinity. With `counted`,
    parts of groups come instead of matches."""

    prepared: Prepared
    jit: bool = True
    left: tuple[tuple[int, LeafNode], ...] = ()
    sections: bool = False
    owned: Mapping[int, Range] | None = None
    until: int | None = None
    counted: CountedQuery | None = None


def run(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches among the rows of a partition."""
    gathered = (narrowed(batch, task.left) for batch in gather(batches))
    if not task.sections:
        yield from _matches(task, gathered)
        return
    for section, part in sections(gathered):
        range_ = EVER if task.owned is None else task.owned[section]
        yield from _matches(task, part, range_)


def discard(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Replaces `run` with an engine that does nothing: the floor of measurements."""
    for _ in batches:
        pass
    return iter(())


def profile(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Replaces `run`: returns the profile of each section instead of the matches, as a pickled
    `Profile` per row."""
    gathered = (narrowed(batch, task.left) for batch in gather(batches))
    parts = sections(gathered) if task.sections else iter([(0, gathered)])
    for _, part in parts:
        engine, matches = _run(task, part)
        for _ in matches:
            pass
        if engine is not None:
            yield pa.record_batch({PROFILE_COLUMN: [pickle.dumps(engine.profile())]})


def _matches(
    task: Task, batches: Iterator[pa.RecordBatch], range_: Range = EVER
) -> Iterator[pa.RecordBatch]:
    """Those that end in the range, or what they come to."""
    if task.counted is not None:
        return _counted(task.counted, task.jit, batches, range_)
    matches = _run(task, batches)[1]
    return matches if range_ == EVER else owned(matches, range_)


def _counted(
    query: CountedQuery, jit: bool, batches: Iterator[pa.RecordBatch], range_: Range
) -> Iterator[pa.RecordBatch]:
    first = next(batches, None)
    if first is None:
        return
    engine = query.engine(first.schema, jit, owned=range_)
    for batch in chain((first,), batches):
        yield from engine.push(batch)
    yield from engine.finish()


def _run(
    task: Task, batches: Iterator[pa.RecordBatch]
) -> tuple[Engine | None, Iterator[pa.RecordBatch]]:
    """An engine and its matches; no engine if there are no rows."""
    first = next(batches, None)
    if first is None:
        return None, iter(())
    engine = task.prepared.engine(first.schema, task.jit)
    pushed = chain.from_iterable(map(engine.push, chain((first,), batches)))
    return engine, chain(pushed, end(engine, task.until))


def sections(
    batches: Iterator[pa.RecordBatch],
) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Cut a stream that is sorted by section. Each part must be consumed before the next one is
    requested."""
    for section, pieces in groupby(_pieces(batches), key=itemgetter(0)):
        yield section, map(itemgetter(1), pieces)


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in batches:
        values = batch.column(SECTION_COLUMN).to_numpy(zero_copy_only=False)
        cuts = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
        for begin, after in pairwise(cuts):
            yield int(values[begin]), batch.slice(begin, after - begin)


def owned(batches: Iterator[pa.RecordBatch], range_: Range) -> Iterator[pa.RecordBatch]:
    """The matches that end in the slice; other slices own the rest."""
    for batch in batches:
        ends = times(batch.column(MATCH_END))
        inside = (range_[0] <= ends) & (ends < range_[1])
        yield batch if inside.all() else batch.filter(pa.array(inside))
