"""Answers about the matches of a streaming DataFrame: a second stateful operator, behind the one
that finds the matches.

The partial aggregates of a batch go to the bucket of their group. Both operators have the same
watermark, and the first one has done its batch when the second begins. So all matches are there
that the watermark decides, but for those that are open at their end: for these it waits (`lag`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cepheid.algebra.answer_shape import Answers
from cepheid.errors import OptionError, UnsupportedError
from cepheid.options import Options
from cepheid.planner import Prepared
from cepheid.planner.bounds import known_after
from cepheid.spark.group_parts import GroupParts
from cepheid.spark.streaming.clock.time import Watermark
from cepheid.spark.streaming.stateful.bucket_work import Wakes
from cepheid.spark.streaming.stateful.buckets import DEFAULT
from cepheid.spark.streaming.stateful.packed_rows import (
    BUCKET,
    DATA,
    FIRST,
    LETTERS,
    Mapped,
    kind_of,
)
from cepheid.spark.streaming.stateful.processor import Processor
from cepheid.spark.streaming.status.reports import NO_REPORT, RESULT, observe_results, report_row
from cepheid.streaming.buckets.answer_bucket import AnswersJob, open_answers
from cepheid.streaming.cells import Cells, arrow_bytes, table_of
from cepheid.streaming.signature import answers_signature

UNKNOWN = (
    "no time bounds when a match of this query is known, so its groups are never complete on a "
    "stream: give it a window of time, or end its pattern with an event"
)
SILENT = (
    "heartbeat= advances the time of each bucket, and answers wait for the watermark, which only "
    "events move: leave it out, or return matches"
)


@dataclass(frozen=True)
class AnswerWork:
    """What the second operator does with a bucket: open it, merge parts, save it."""

    job: AnswersJob
    watermark: Watermark

    def step(
        self, number: object, cells: Cells, frames: Iterator[pd.DataFrame], reached: int
    ) -> Generator[pd.DataFrame, None, Wakes]:
        tables = [table_of(data) for frame in frames for data in frame[DATA]]
        for letters in (t for t in tables if kind_of(t) == LETTERS):
            yield pd.DataFrame({DATA: [arrow_bytes(letters.combine_chunks())], **NO_REPORT})
        bucket = open_answers(self.job, cells)
        parts = (table for table in tables if kind_of(table) is None)
        for answers in bucket.step(parts, self.watermark.ticks(reached)):
            yield pd.DataFrame({DATA: [arrow_bytes(answers)], **NO_REPORT})
        bucket.save(cells)
        yield report_row(f"answers {number}", bucket.report())
        return None if bucket.wakes is None else self.watermark.milliseconds(bucket.wakes)


def answer_parts(
    prepared: Prepared, shape: Answers, matches: pa.Schema, options: Options
) -> GroupParts:
    """How the groups of the query are spread over buckets; refuses what has no end."""
    _lag(prepared)
    if options.heartbeat is not None:
        raise OptionError(SILENT)
    counted = prepared.counted(prompt=True) is not None
    return GroupParts.of(shape, matches, options.buckets or DEFAULT, counted=counted)


def _lag(prepared: Prepared) -> int:
    """How far time has to pass the end of a match until it is known."""
    lag = known_after(prepared.query)
    if lag is None:
        raise UnsupportedError(UNKNOWN)
    return lag


def folding(parts: GroupParts) -> Mapped:
    """From packed matches, or parts, to the packed parts of all. Dead letters pass on, through the
    first bucket: if the stream were read a second time for them, it would be matched twice."""

    def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        letters: list[bytes] = []

        def matches() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for data in batch.column(DATA).to_pylist():
                    rows = table_of(data)
                    if kind_of(rows) == LETTERS:
                        letters.append(data)
                    else:
                        yield from rows.to_batches()

        yield from parts.packed(matches())
        if letters:
            places = pa.array([FIRST] * len(letters), pa.int32())
            yield pa.record_batch({BUCKET: places, DATA: pa.array(letters, pa.binary())})

    return fold


def answer_stream(
    packed: DataFrame,
    parts: GroupParts,
    prepared: Prepared,
    options: Options,
    watermark: Watermark,
    run: str,
    after: int = 0,
) -> DataFrame:
    """The answers and dead letters, packed, as a streaming DataFrame."""
    signature = answers_signature(prepared, parts.matches)
    lag = _lag(prepared) + after
    job = AnswersJob(parts.shape, parts.matches, signature, parts.count, lag, options.limit)
    answers = packed.groupBy(BUCKET).transformWithStateInPandas(
        Processor(AnswerWork(job, watermark)),
        outputStructType=RESULT,
        outputMode="Append",
        timeMode="EventTime",
    )
    return observe_results(answers, f"{run} answers").filter(F.col(DATA).isNotNull())
