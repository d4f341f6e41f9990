"""Arrow batches written as Parquet, CSV or lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import date, datetime, time
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cepheid.files.formats import Format


class Writer(Protocol):
    """What the writers have in common: batches go in, and the context closes the file."""

    def write_batch(self, batch: pa.RecordBatch) -> None: ...


def write_batches(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    path: Path,
    format: Format,
    wrote: Callable[[int], None] = lambda rows: None,
) -> None:
    """Write a file in one piece: it has its name only once it is complete.

    `wrote` is told the number of rows after every batch.
    """
    if path.is_dir():
        raise IsADirectoryError(0, "is a folder, not a file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with _open(partial, schema, format) as writer:
            for batch in batches:
                writer.write_batch(batch)
                wrote(batch.num_rows)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _open(path: Path, schema: pa.Schema, format: Format) -> AbstractContextManager[Writer]:
    match format:
        case Format.PARQUET:
            parquet: AbstractContextManager[Writer] = pa.parquet.ParquetWriter(path, schema)
            return parquet
        case Format.CSV | Format.TSV:
            divided = pa.csv.WriteOptions(delimiter=format.delimiter)
            csv: AbstractContextManager[Writer] = pa.csv.CSVWriter(
                path, schema, write_options=divided
            )
            return csv
        case Format.JSON:
            return JsonLinesWriter(path)


class JsonLinesWriter:
    """One JSON object a line; times as ISO 8601, NULL as null."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._file.writelines(f"{json_line(row)}\n" for row in batch.to_pylist())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()


def _plain(value: Any) -> str:
    """JSON has no times, decimals or bytes; their text stands for them."""
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case _:
            return str(value)


_ENCODER = json.JSONEncoder(default=_plain, separators=(",", ":"), ensure_ascii=False)


def json_line(row: Mapping[str, Any]) -> str:
    """A row as a line of JSON.

    >>> json_line({"ts": datetime(2026, 1, 31, 12), "x": None})
    '{"ts":"2026-01-31T12:00:00","x":null}'
    """
    return _ENCODER.encode(row)
