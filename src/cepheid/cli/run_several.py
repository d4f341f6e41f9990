"""`cepheid run` with several query files: each may read what others find."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Sequence
from pathlib import Path

from cepheid.cli.arguments import Input
from cepheid.cli.inputs import EventFile
from cepheid.cli.run_local import write_rejected
from cepheid.cli.show import Figures
from cepheid.cli.target import Result, Target, refuse_nested
from cepheid.errors import DataError
from cepheid.files.output import write_batches
from cepheid.options import Options
from cepheid.query import Query
from cepheid.streams import match_all


def run_several(
    queries: Sequence[Query], sources: tuple[Input, ...], options: Options, target: Target
) -> dict[str, Result]:
    """The matches of each query, by labels and names of files; the output is a folder of files
    that are called so."""
    begin = clock.perf_counter()
    files = {source.name or "": EventFile(source, options.time) for source in sources}
    tables = {name: file.read(file.schema.names) for name, file in files.items()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*have no time")  # the figures tell it
        found = match_all(tables if all(tables) else tables[""], queries, options)
    short = {name: name if name in _labels(queries) else Path(name).stem for name in found}
    if len(set(short.values())) < len(short):
        raise DataError("two outputs would have the same name: label the queries with INTO")
    for name, matches in found.items():
        refuse_nested(matches.schema, target)
        if target.output is not None:
            path = target.output / f"{short[name]}.{target.format.value}"
            write_batches(matches.to_batches(), matches.schema, path, target.format)
    if target.rejected is not None:
        write_rejected(files, target.rejected)
    seconds = clock.perf_counter() - begin
    events = sum(table.num_rows for table in tables.values())
    rejected = sum(table[options.time].null_count for table in tables.values())
    return {
        short[name]: Result(
            matches.column_names,
            matches.slice(0, target.limit).to_pylist(),
            Figures(events, matches.num_rows, seconds, rejected),
        )
        for name, matches in found.items()
    }


def _labels(queries: Sequence[Query]) -> set[str | None]:
    return {query.syntax.into for query in queries}
