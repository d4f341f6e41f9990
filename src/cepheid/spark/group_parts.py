"""Parts of groups on their way to where they are merged: a task, or a bucket of a stream.

Each task folds its matches, and only what they come to is shuffled: partial aggregates, packed as
Arrow by a hash of their groups. So parts of a group meet, whatever types its values have.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from cepheid.algebra.answer_shape import Answers
from cepheid.answers import AnswerFold
from cepheid.answers.group_ids import GroupIds
from cepheid.answers.partial_rows import PartialRows
from cepheid.language.group_clause import WindowKind
from cepheid.spark.partitions.salts import salts
from cepheid.spark.streaming.stateful.packed_rows import BUCKET, DATA, FIRST
from cepheid.streaming.cells import arrow_bytes

MOST = 1 << 17
"""Parts that a task holds before it sends them."""

PACKED = f"{BUCKET} int, {DATA} binary"
_SCHEMA = pa.schema({BUCKET: pa.int32(), DATA: pa.binary()})


@dataclass(frozen=True)
class GroupParts:
    """The parts of one query's groups. `matches` is the schema of its matches, `count` the number
    of places where parts are merged. `counted`: tasks begin with parts, as matches are counted."""

    shape: Answers
    matches: pa.Schema
    count: int
    counted: bool = False

    @staticmethod
    def of(shape: Answers, matches: pa.Schema, most: int, *, counted: bool) -> GroupParts:
        """Parts are merged in one place if there is nothing to group by, or if LIMIT counts."""
        count = most if shape.groups and shape.most is None else 1
        return GroupParts(shape, matches, count, counted)

    @property
    def answers(self) -> pa.Schema:
        """The columns of the answers."""
        return AnswerFold(self.shape, self.matches).schema

    def packed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What these matches come to, or these parts, as rows of a bucket and bytes."""
        shape = replace(self.shape, most=None)
        fold = AnswerFold(shape, self.matches)
        for batch in batches:
            if self.counted:
                fold.merge(pa.Table.from_batches([batch]))
            else:
                fold.push(batch.cast(self.matches))
            if fold.held > MOST:
                yield self._sent(fold)
                fold = AnswerFold(shape, self.matches)
        if fold.held:
            yield self._sent(fold)

    def _sent(self, fold: AnswerFold) -> pa.RecordBatch:
        """The first bucket has one, too: in its state stands what query that belongs to."""
        rows = fold.parts()
        parts = {FIRST: rows.slice(0, 0), **dict(self._by_bucket(rows))}
        data = [arrow_bytes(part.combine_chunks()) for part in parts.values()]
        columns = [pa.array(list(parts), pa.int32()), pa.array(data, pa.binary())]
        return pa.record_batch(columns, _SCHEMA)

    def _by_bucket(self, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        if self.count == 1:
            yield FIRST, rows
            return
        keys = PartialRows(self.shape, self.matches).keys(rows)
        ids = GroupIds([key.type for key in keys])
        groups = ids.of(keys, rows.num_rows)
        values = (key.to_pylist() for key in ids.columns(np.arange(len(ids))))
        # Python's own hash of a text differs from process to process.
        hashes = [zlib.crc32(repr(key).encode()) for key in zip(*values, strict=True)]
        buckets = np.array(salts(self.count))[np.array(hashes, np.int64) % self.count][groups]
        for bucket in np.unique(buckets):
            yield int(bucket), rows.filter(pa.array(buckets == bucket))


def shuffled_text(shape: Answers, count: int, places: str) -> str:
    """What is shuffled, for `explain`."""
    match shape.window:
        case None:
            each = "group"
        case window if window.kind is WindowKind.SESSION:
            each = "group and session"
        case window if window.kind is WindowKind.RANGE:
            each = "group and time at which matches end, since RANGE asks at every such time"
        case _:
            each = "group and slice of time"
    values = [
        f"{'the different' if aggregate.distinct else 'all'} values of {aggregate.function}"
        for aggregate in shape.aggregates
        if aggregate.distinct or aggregate.function == "collect"
    ]
    kept = f", with {' and '.join(dict.fromkeys(values))}" if values else ""
    where = f"{count} {places}s by a hash of the group" if count > 1 else f"one {places}"
    return f"partial aggregates, a row for each {each}{kept}; merged in {where}"
