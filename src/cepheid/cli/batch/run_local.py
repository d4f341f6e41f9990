"""`cepheid run --runtime local`: the run in this process."""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.cli.arguments import InputSource
from cepheid.cli.inputs import open_inputs
from cepheid.cli.output.progress import bar
from cepheid.cli.output.show import REJECTED_SHOWN, RunSummary
from cepheid.cli.target import Result, Target, refuse_nested
from cepheid.files.guard import Guard
from cepheid.files.output import check_output, open_writer, write_batches
from cepheid.inprocess import execution
from cepheid.inprocess.frames import EventTable, as_table
from cepheid.inprocess.merged_streams import merged
from cepheid.options import Options
from cepheid.planner import prepare
from cepheid.query import Query


def run_here(
    query: Query, sources: tuple[InputSource, ...], options: Options, target: Target
) -> Result:
    """Match in this process."""
    begin = clock.perf_counter()
    inputs = open_inputs(sources, [query.syntax], options)
    prepared = prepare(query.bind(inputs.columns, options), options)
    prepared.warn()
    read = inputs.read(prepared.plan.schema.held(prepared.plan.required))
    table = as_table(merged(read.tables, options))
    with bar() as progress:
        task = progress.add_task("matching", total=table.num_rows, unit="events")
        schema, batches = execution.run(
            prepared, EventTable.of(table), options, lambda rows: progress.advance(task, rows)
        )
        refuse_nested(schema, target.written)
        kept = Kept(target.limit)
        write_results(kept.watch(batches), schema, read.rejected, target)
    seconds = clock.perf_counter() - begin
    figures = RunSummary(read.events, kept.matches, seconds, read.rejected.num_rows)
    return Result(schema.names, kept.rows, figures, first_rejected(read.rejected))


class Kept:
    """Counts the matches that pass, and keeps the first of them."""

    def __init__(self, limit: int) -> None:
        self.matches = 0
        self.rows: list[dict[str, Any]] = []
        self._limit = limit

    def watch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            missing = self._limit - len(self.rows)
            if missing > 0:
                self.rows += batch.slice(0, missing).to_pylist()
            self.matches += batch.num_rows
            yield batch


def write_results(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    rejected: pa.Table,
    target: Target,
) -> None:
    """Write the matches and the dead letters: both files, or none."""
    with ExitStack() as stack:
        writer = None
        if target.output is not None:
            path = Path(target.output)
            writer = stack.enter_context(open_writer(path, schema, target.format, target.guard))
        for batch in batches:
            if writer is not None:
                writer.write_batch(batch)
        if target.rejected is not None:
            write_rejected(rejected, Path(target.rejected), target.guard)


def first_rejected(rejected: pa.Table) -> list[dict[str, Any]]:
    """The rejected rows that are shown."""
    shown: list[dict[str, Any]] = rejected.slice(0, REJECTED_SHOWN).to_pylist()
    return shown


def write_rejected(table: pa.Table, path: Path, guard: Guard) -> None:
    option = "--rejected"
    format = check_output(path, None, guard, option)
    write_batches(table.to_batches(), table.schema, path, format, guard, option)
