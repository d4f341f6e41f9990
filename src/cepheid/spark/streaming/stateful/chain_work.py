"""What the stateful operator does with a bucket of queries that read each other's matches."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace

import pandas as pd
import pyarrow as pa

from cepheid.spark.streaming.clock.time import Watermark
from cepheid.spark.streaming.letters import late_among
from cepheid.spark.streaming.stateful.bucket_work import Wakes, keep, kept_bucket
from cepheid.spark.streaming.stateful.packed_rows import DATA, UNREAD, kind_of, query_of
from cepheid.spark.streaming.status.reports import NO_REPORT, report_row
from cepheid.streaming.buckets.chain_bucket import ChainJob, open_chain
from cepheid.streaming.cells import Cells, arrow_bytes, table_of


@dataclass(frozen=True)
class ChainWork:
    """Rows come for each query that reads events, with its name; `schemas` are theirs. `run` names
    the run, whose buckets are kept in memory."""

    job: ChainJob
    schemas: Mapping[str, pa.Schema]
    watermark: Watermark
    run: str

    def step(
        self, number: object, cells: Cells, frames: Iterator[pd.DataFrame], reached: int
    ) -> Generator[pd.DataFrame, None, Wakes]:
        """Yield a bucket's matches and report; return when it wakes."""
        tables = [table_of(data) for frame in frames for data in frame[DATA]]
        rows: dict[str, list[pa.RecordBatch]] = {query.name: [] for query, _ in self.job.parts}
        unread: list[pa.Table] = []
        for table in tables:
            name = query_of(table)
            if kind_of(table) != UNREAD:
                rows[name] += table.cast(self.schemas[name]).to_batches()
            elif name == self.job.counting:
                unread.append(table)
        place, ticks = (self.run, number), self.watermark.ticks(reached)
        bucket = open_chain(self.job, cells, kept_bucket(place))
        for matches in bucket.step(rows, ticks):
            yield pd.DataFrame({DATA: [arrow_bytes(matches)], **NO_REPORT})
        bucket.save(cells)
        keep(place, bucket)
        report = bucket.report()
        yield report_row(number, replace(report, late=report.late + late_among(unread, ticks)))
        return reached + 1 if bucket.waits else None
