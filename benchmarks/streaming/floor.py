"""The floor that matching is measured from: the same stateful pipeline, storing without matching.

Reading, filtering, packing, shuffling and the state store are as for a query: rows are written as
one segment for each batch and bucket, of a long batch only those that the window hasn't passed,
and dropped when it has passed them. `Forwarding`
also hands every row on, as what has the place of an engine in an endless stream does; `Storing`
returns nothing, and is the least that any stateful operator can cost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any
from unittest.mock import patch

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

import cepheid as cep
from cepheid.plan.nodes import Plan
from cepheid.plan.reading import columns_of
from cepheid.spark.streaming import pipeline
from cepheid.spark.streaming.packing import DATA
from cepheid.spark.streaming.processor import Processor
from cepheid.spark.streaming.reports import COUNTS, NO_REPORT, report_row
from cepheid.streaming import Report
from cepheid.streaming.cells import arrow_bytes, framed, unframed
from cepheid.streaming.log import Log, Segment


class Storing(Processor):
    """Writes the rows of a window."""

    def _step(
        self, number: object, batches: Iterable[pa.RecordBatch], reached: int
    ) -> Iterator[pd.DataFrame]:
        self._done.add(number)
        table = pa.Table.from_batches([b.cast(self.job.schema) for b in batches], self.job.schema)
        log = self._log()
        if table.num_rows:
            yield from self._passed_on(table)
            plan = self.job.prepared.plan
            assert plan.window is not None
            at = pc.cast(table[plan.schema.time], pa.int64())
            last, size = pc.max(at).as_py(), plan.window.size
            log.drop(self._cells, last - size)
            # Of a batch that is longer than the window, no engine has to keep all.
            log.append(self._cells, table.filter(pc.greater(at, last - size)), 0, last, 0)
        header = {"next": log.next_number, "rows": [asdict(s) for s in log.segments]}
        self._cells.set_header(framed(json.dumps(header).encode()))
        held = sum(segment.rows for segment in log.segments)
        nothing = dict.fromkeys(COUNTS, 0)
        report = Report(**nothing | {"events": table.num_rows, "rows": held, "size": log.size})
        yield report_row(number, report)

    def _log(self) -> Log:
        header = self._cells.header()
        if header is None:
            return Log()
        saved = json.loads(bytes(unframed(header, "the header")))
        return Log([Segment(**segment) for segment in saved["rows"]], saved["next"])

    def _passed_on(self, table: pa.Table) -> Iterator[pd.DataFrame]:
        return iter(())


class Forwarding(Storing):
    """Also hands them on."""

    def _passed_on(self, table: pa.Table) -> Iterator[pd.DataFrame]:
        rows = table.select(_returned(self.job.prepared.plan))
        for batch in rows.combine_chunks().to_batches():
            yield pd.DataFrame({DATA: [arrow_bytes(batch)], **NO_REPORT})


def stored(processor: type[Processor], events: Any, query: str, **options: Any) -> Any:
    """In place of a query's matches, what such a processor makes of its events."""
    with patch.multiple(pipeline, Processor=processor, output_schema=_rows):
        return cep.match(events, query, **options)


def _rows(plan: Plan, schema: pa.Schema) -> pa.Schema:
    return pa.schema([schema.field(name) for name in _returned(plan)])


def _returned(plan: Plan) -> list[str]:
    """The columns that matches are made of."""
    return sorted(columns_of(*(output.expression for output in plan.outputs)))
