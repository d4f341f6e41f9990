"""One bucket of queries that read each other's matches by the same key.

The matches of a query are events of the queries that read it, in the same step: nothing is written
or shuffled in between. Each query has its own engine and its own part of the bucket's state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from cepheid.algebra.nested_columns import with_extracted
from cepheid.errors import StateError
from cepheid.streaming.buckets.bucket import Bucket, Job, open_bucket
from cepheid.streaming.cells import Cells, Region, framed, unframed
from cepheid.streaming.chained_query import ChainedQuery, merge_inputs
from cepheid.streaming.report import Report


@dataclass(frozen=True)
class ChainJob:
    """What all buckets of a run have in common: the queries, in an order in which every label is
    there before it is read, each with its job. The matches of the last one come out, and the
    figures of events are those of the one that is `counting`."""

    parts: tuple[tuple[ChainedQuery, Job], ...]
    counting: str

    @property
    def names(self) -> bytes:
        """What the queries are called, as it is saved."""
        return "\n".join(query.name for query, _ in self.parts).encode()


class ChainBucket:
    """The state of a bucket in memory."""

    def __init__(self, job: ChainJob, buckets: Mapping[str, Bucket]) -> None:
        self._job = job
        self._buckets = buckets

    def __getitem__(self, name: str) -> Bucket:
        return self._buckets[name]

    def step(
        self, rows: Mapping[str, Iterable[pa.RecordBatch]], watermark: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the matches that are decided by these rows, given by the queries that read them,
        and by the watermark."""
        found: dict[str, pa.Table] = {}
        last, _ = self._job.parts[-1]
        for query, job in self._job.parts:
            bucket = self._buckets[query.name]
            given = (b.select(job.schema.names).cast(job.schema) for b in rows[query.name])
            matches = bucket.step(chain(given, _read(query, job, found)), watermark)
            if query is last:
                yield from matches
            else:
                found[query.name] = pa.Table.from_batches(matches, bucket.match_schema)

    @property
    def waits(self) -> bool:
        """Whether passing time alone can decide a match, without further rows."""
        return any(bucket.waits for bucket in self._buckets.values())

    def report(self) -> Report:
        reports = {name: bucket.report() for name, bucket in self._buckets.items()}
        last, _ = self._job.parts[-1]
        events, every = reports[self._job.counting], reports.values()
        return Report(
            events.events,
            events.late,
            sum(report.shed for report in every),
            reports[last.name].matches,
            rows=sum(report.rows for report in every),
            size=sum(report.size for report in every),
            replans=sum(report.replans for report in every),
            ties=events.ties,
        )

    def save(self, cells: Cells) -> None:
        """Write what has changed."""
        if cells.header() is None:
            cells.set_header(framed(self._job.names))
        for number, bucket in enumerate(self._buckets.values()):
            bucket.save(Region(cells, number))


def _read(query: ChainedQuery, job: Job, found: Mapping[str, pa.Table]) -> Iterator[pa.RecordBatch]:
    """The matches of others in the bucket, as the query reads them."""
    inputs = {label: query.inputs[label] for label in query.labels if label in found}
    if inputs:
        rows = with_extracted(merge_inputs(found, inputs, query.columns), job.schema.names)
        yield from rows.cast(job.schema).to_batches()


def open_chain(job: ChainJob, cells: Cells, warm: ChainBucket | None = None) -> ChainBucket:
    """The bucket as it was saved, or a new one; see `open_bucket`."""
    header = cells.header()
    if header is None:
        return ChainBucket(job, {query.name: part.new_bucket() for query, part in job.parts})
    saved = bytes(unframed(header, "the saved state"))
    if saved != job.names:
        before, now = (", ".join(names.decode().split("\n")) for names in (saved, job.names))
        raise StateError(
            f"the checkpoint was written by the queries {before}, and now they are {now}: resume "
            "with the same queries, or start with a new checkpoint"
        )
    buckets = {}
    for number, (query, part) in enumerate(job.parts):
        region = Region(cells, number)
        if region.header() is None:
            raise StateError("a part of the saved state is missing. Restore the checkpoint")
        buckets[query.name] = open_bucket(part, region, None if warm is None else warm[query.name])
    return ChainBucket(job, buckets)
