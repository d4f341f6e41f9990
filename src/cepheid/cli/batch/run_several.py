"""`cepheid run` with several query files: each may read the matches of others."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from cepheid.cli.arguments import InputSource
from cepheid.cli.batch.run_local import first_rejected, write_rejected
from cepheid.cli.inputs import open_inputs
from cepheid.cli.output.show import RunSummary
from cepheid.cli.queries import output_names
from cepheid.cli.target import Result, Target, refuse_nested
from cepheid.files.output import open_writer
from cepheid.options import Options
from cepheid.query import Query
from cepheid.query.several import match_all


def run_several(
    queries: Sequence[Query], sources: tuple[InputSource, ...], options: Options, target: Target
) -> dict[str, Result]:
    """The matches of each query, by label or file name; the output is a folder of files with these
    names."""
    begin = clock.perf_counter()
    short = output_names(queries)
    for name in short.values():
        if target.output is not None:
            target.guard.check_file(_path(target, name), "--output")
    read = open_inputs(sources, [q.syntax for q in queries], options).read()
    matches_by_name = match_all(read.data, queries, options)
    _write(matches_by_name, short, read.rejected, target)
    seconds = clock.perf_counter() - begin
    return {
        short[name]: Result(
            matches.column_names,
            matches.slice(0, target.limit).to_pylist(),
            RunSummary(read.events, matches.num_rows, seconds, read.rejected.num_rows),
            first_rejected(read.rejected),
        )
        for name, matches in matches_by_name.items()
    }


def _path(target: Target, name: str) -> Path:
    return Path(target.output or "") / f"{name}.{target.format.value}"


def _write(
    matches_by_name: Mapping[str, pa.Table],
    short: Mapping[str, str],
    rejected: pa.Table,
    target: Target,
) -> None:
    """Write the matches and the dead letters: all files, or none."""
    with ExitStack() as stack:
        for name, matches in matches_by_name.items():
            refuse_nested(matches.schema, target.written)
            if target.output is None:
                continue
            path = _path(target, short[name])
            writer = stack.enter_context(
                open_writer(path, matches.schema, target.format, target.guard)
            )
            for batch in matches.to_batches():
                writer.write_batch(batch)
        if target.rejected is not None:
            write_rejected(rejected, Path(target.rejected), target.guard)
