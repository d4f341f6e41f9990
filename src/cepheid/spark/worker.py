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

from cepheid.engine.match_schema import MATCH_END
from cepheid.engine.rows.classes import narrowed
from cepheid.engine.rows.clock import times
from cepheid.engine.run import Engine
from cepheid.plan.nodes import LeafNode
from cepheid.planner import Prepared
from cepheid.spark.batch_sizes import gather

SECTION_COLUMN = "__section"
"""Which section of its partition a row belongs to."""

COPY_COLUMN = "__copy"
"""Of a row that goes to several sections, which copy this is, from 0 on."""

PROFILE_COLUMN = "profile"

Range = tuple[int, int]


@dataclass(frozen=True)
class Task:
    """What a worker must know. `left` are the classes, by bit, whose masks may have too many
    rows, with the predicates that Spark couldn't check. `owned` gives, for each time slice, the
    ends of the matches that are its own: first, and first of the next."""

    prepared: Prepared
    jit: bool = True
    left: tuple[tuple[int, LeafNode], ...] = ()
    sections: bool = False
    owned: Mapping[int, Range] | None = None


def run(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches among the rows of a partition."""
    gathered = (narrowed(batch, task.left) for batch in gather(batches))
    if not task.sections:
        yield from _matches(task, gathered)
        return
    for section, part in sections(gathered):
        found = _matches(task, part)
        yield from found if task.owned is None else owned(found, task.owned[section])


def discard(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Instead of `run`, an engine that does nothing: the floor that matching is measured from."""
    for _ in batches:
        pass
    return iter(())


def profile(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Instead of the matches, what happened in each section: a pickled `Profile` a row."""
    gathered = (narrowed(batch, task.left) for batch in gather(batches))
    parts = sections(gathered) if task.sections else iter([(0, gathered)])
    for _, part in parts:
        engine, found = _run(task, part)
        for _ in found:
            pass
        if engine is not None:
            yield pa.record_batch({PROFILE_COLUMN: [pickle.dumps(engine.profile())]})


def _matches(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return _run(task, batches)[1]


def _run(
    task: Task, batches: Iterator[pa.RecordBatch]
) -> tuple[Engine | None, Iterator[pa.RecordBatch]]:
    """An engine, and what it finds; none where there are no rows."""
    first = next(batches, None)
    if first is None:
        return None, iter(())
    engine = task.prepared.engine(first.schema, task.jit)
    pushed = chain.from_iterable(map(engine.push, chain((first,), batches)))
    return engine, chain(pushed, engine.finish())


def sections(
    batches: Iterator[pa.RecordBatch],
) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Cut a stream that is sorted by section. Each part must be read to its end before the
    next one is asked for."""
    for section, pieces in groupby(_pieces(batches), key=itemgetter(0)):
        yield section, map(itemgetter(1), pieces)


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in batches:
        values = batch.column(SECTION_COLUMN).to_numpy(zero_copy_only=False)
        cuts = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
        for begin, end in pairwise(cuts):
            yield int(values[begin]), batch.slice(begin, end - begin)


def owned(batches: Iterator[pa.RecordBatch], range_: Range) -> Iterator[pa.RecordBatch]:
    """The matches that end in the slice; the others are another slice's."""
    for batch in batches:
        end = times(batch.column(MATCH_END))
        own = (range_[0] <= end) & (end < range_[1])
        yield batch if own.all() else batch.filter(pa.array(own))
