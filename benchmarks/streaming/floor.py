"""The floor that matching is measured from: the same stateful pipeline, storing without matching.

Reading, filtering, packing, shuffling and the state store are as for a query: rows are written as
one segment for each batch and bucket, of a long batch only those that the window hasn't passed,
and dropped when it has passed them. `Forwarding`
also hands every row on, as what has the place of an engine in an endless stream does; `Storing`
returns nothing, and is the least that any stateful operator can cost.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import asdict
from typing import Any
from unittest.mock import patch

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

import cepheid as cep
from cepheid.plan.nodes import Plan
from cepheid.plan.reads import columns_of
from cepheid.planner import Prepared
from cepheid.spark.streaming import pipeline
from cepheid.spark.streaming.stateful.bucket_work import BucketWork
from cepheid.spark.streaming.stateful.packed_rows import DATA
from cepheid.spark.streaming.status.reports import COUNTS, NO_REPORT, report_row
from cepheid.streaming.buckets.bucket import Job
from cepheid.streaming.cells import Cells, arrow_bytes, framed, table_of, unframed
from cepheid.streaming.log import Log, Segment
from cepheid.streaming.report import Report


class Storing(BucketWork):
    """Writes the rows of a window."""

    def step(
        self, number: object, cells: Cells, frames: Iterator[pd.DataFrame], reached: int
    ) -> Generator[pd.DataFrame, None, bool]:
        packed = (table_of(data).cast(self.schema) for frame in frames for data in frame[DATA])
        table = pa.concat_tables([self.schema.empty_table(), *packed])
        log = _log(cells)
        if table.num_rows:
            yield from self._passed_on(table)
            assert self._plan.window is not None
            at = pc.cast(table[self._plan.schema.time], pa.int64())
            last, size = pc.max(at).as_py(), self._plan.window.size
            log.drop(cells, last - size)
            # Of a batch that is longer than the window, no engine has to keep all.
            log.append(cells, table.filter(pc.greater(at, last - size)), 0, last, 0)
        header = {"next": log.next_number, "rows": [asdict(s) for s in log.segments]}
        cells.set_header(framed(json.dumps(header).encode()))
        held = sum(segment.rows for segment in log.segments)
        nothing = dict.fromkeys(COUNTS, 0)
        report = Report(**nothing | {"events": table.num_rows, "rows": held, "size": log.size})
        yield report_row(number, report)
        return False

    @property
    def _plan(self) -> Plan:
        assert isinstance(self.job, Job)
        assert isinstance(self.job.prepared, Prepared)
        return self.job.prepared.plan

    def _passed_on(self, table: pa.Table) -> Iterator[pd.DataFrame]:
        return iter(())


class Forwarding(Storing):
    """Also hands them on."""

    def _passed_on(self, table: pa.Table) -> Iterator[pd.DataFrame]:
        rows = table.select(_returned(self._plan))
        for batch in rows.combine_chunks().to_batches():
            yield pd.DataFrame({DATA: [arrow_bytes(batch)], **NO_REPORT})


def _log(cells: Cells) -> Log:
    header = cells.header()
    if header is None:
        return Log()
    saved = json.loads(bytes(unframed(header, "the header")))
    return Log([Segment(**segment) for segment in saved["rows"]], saved["next"])


def stored(work: type[BucketWork], events: Any, query: str, **options: Any) -> Any:
    """In place of a query's matches, what such work makes of its events."""
    with patch.multiple(pipeline, BucketWork=work, output_schema=_rows):
        return cep.match(events, query, **options)


def _rows(plan: Plan, schema: pa.Schema) -> pa.Schema:
    return pa.schema([schema.field(name) for name in _returned(plan)])


def _returned(plan: Plan) -> list[str]:
    """The columns that matches are made of."""
    return sorted(columns_of(*(output.expression for output in plan.outputs)))
