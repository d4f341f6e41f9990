"""`cepheid run --engine local`: the run in this process."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid import local
from cepheid.cli.arguments import Input
from cepheid.cli.inputs import EventFile
from cepheid.cli.progress import bar
from cepheid.cli.show import Figures
from cepheid.cli.target import Result, Target, refuse_nested
from cepheid.files.guard import Guard
from cepheid.files.output import check_output, open_writer, write_batches
from cepheid.inprocess.frames import EventTable, as_table
from cepheid.inprocess.merge import merged
from cepheid.options import Options
from cepheid.planner import prepare
from cepheid.query import Query


def run_here(query: Query, sources: tuple[Input, ...], options: Options, target: Target) -> Result:
    """Match in this process."""
    begin = clock.perf_counter()
    files = {source.name or "": EventFile(source, options.time) for source in sources}
    named = all(files)
    schemas = {name: file.schema for name, file in files.items()}
    bound = query.bind(schemas if named else schemas[""], options)
    prepared = prepare(bound, options)
    prepared.warn()
    tables = {
        name: file.read([n for n in file.schema.names if n in prepared.plan.required])
        for name, file in files.items()
    }
    table = as_table(merged(tables, options))
    with bar() as progress, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*have no time")  # the figures tell it
        task = progress.add_task("matching", total=table.num_rows, unit="events")
        schema, batches = local.run(
            prepared, EventTable.of(table), options, lambda rows: progress.advance(task, rows)
        )
        refuse_nested(schema, target.written)
        kept = Kept(target.limit)
        write_found(kept.watch(batches), schema, files, target)
    figures = Figures(
        events=table.num_rows,
        matches=kept.matches,
        seconds=clock.perf_counter() - begin,
        rejected=table[options.time].null_count,
    )
    return Result(schema.names, kept.rows, figures)


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


def write_found(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    files: dict[str, EventFile],
    target: Target,
) -> None:
    """The matches and the dead letters: both files, or none."""
    with ExitStack() as stack:
        writer = None
        if target.output is not None:
            path = Path(target.output)
            writer = stack.enter_context(open_writer(path, schema, target.format, target.guard))
        for batch in batches:
            if writer is not None:
                writer.write_batch(batch)
        if target.rejected is not None:
            write_rejected(files, Path(target.rejected), target.guard)


def write_rejected(files: dict[str, EventFile], path: Path, guard: Guard) -> None:
    """The dead letters; those of several streams with the columns of all."""
    table = pa.concat_tables([f.rejected() for f in files.values()], promote_options="permissive")
    option = "--rejected"
    format = check_output(path, None, guard, option)
    write_batches(table.to_batches(), table.schema, path, format, guard, option)
