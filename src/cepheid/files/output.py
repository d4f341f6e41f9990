"""Arrow batches written as Parquet, CSV or lines of JSON, to a file or to standard output."""

from __future__ import annotations

import bz2
import gzip
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import date, datetime, time
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self, assert_never, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cepheid.errors import OptionError
from cepheid.files.formats import STANDARD, Format, output_format
from cepheid.files.guard import Guard


class Writer(Protocol):
    """What the writers have in common: batches go in, and the context closes the file."""

    def write_batch(self, batch: pa.RecordBatch) -> None: ...


def check_output(path: Path, chosen: Format | None, guard: Guard, option: str) -> Format:
    """The format to write; OptionError if this can't be written, before there is anything to."""
    guard.check_file(path, option)
    if str(path) != STANDARD:
        return output_format(path, chosen)
    if chosen is Format.PARQUET:
        raise OptionError(f"{option} - writes text: --format csv, tsv or json")
    return chosen or Format.CSV


@contextmanager
def open_writer(
    path: Path, schema: pa.Schema, format: Format, guard: Guard, option: str = "--output"
) -> Iterator[Writer]:
    """A writer of a file that gets its name only if the block succeeds."""
    with open_sink(path, guard, option) as sink, _writer(sink, schema, format) as writer:
        yield writer


def write_batches(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    path: Path,
    format: Format,
    guard: Guard,
    option: str = "--output",
) -> None:
    """Write a file in one piece."""
    with open_writer(path, schema, format, guard, option) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_text(text: str, path: Path, guard: Guard, option: str = "--output") -> None:
    with open_sink(path, guard, option) as sink:
        sink.write(f"{text}\n".encode())


@contextmanager
def open_sink(path: Path, guard: Guard, option: str) -> Iterator[BinaryIO]:
    """Where the bytes of a file go. Its ending says whether they are compressed."""
    if str(path) == STANDARD:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with guard.new_file(path, option) as partial, _open(partial, path.suffix.lower()) as sink:
        yield sink


@contextmanager
def _open(path: Path, ending: str) -> Iterator[BinaryIO]:
    with path.open("wb") as file:
        match ending:
            case ".gz":
                # Without the time and the name, so that the same content is the same file.
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
                    yield cast(BinaryIO, compressed)
            case ".bz2":
                with bz2.BZ2File(file, "wb") as compressed_too:
                    yield cast(BinaryIO, compressed_too)
            case _:
                yield file


def _writer(sink: BinaryIO, schema: pa.Schema, format: Format) -> AbstractContextManager[Writer]:
    match format:
        case Format.PARQUET:
            parquet: AbstractContextManager[Writer] = pa.parquet.ParquetWriter(sink, schema)
            return parquet
        case Format.CSV | Format.TSV:
            divided = pa.csv.WriteOptions(delimiter=format.delimiter)
            csv: AbstractContextManager[Writer] = pa.csv.CSVWriter(
                sink, schema, write_options=divided
            )
            return csv
        case Format.JSON:
            return JsonLinesWriter(sink)
        case _:
            assert_never(format)


class JsonLinesWriter:
    """One JSON object a line; times as ISO 8601, NULL as null."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._sink.writelines(f"{json_line(row)}\n".encode() for row in batch.to_pylist())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._sink.flush()


def _plain(value: Any) -> str:
    """JSON has no times, decimals or bytes; their text stands for them."""
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case _:
            return str(value)


_ENCODER = json.JSONEncoder(
    default=_plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def json_line(row: Mapping[str, Any]) -> str:
    """A row as a line of JSON.

    >>> json_line({"ts": datetime(2026, 1, 31, 12), "x": None})
    '{"ts":"2026-01-31T12:00:00","x":null}'
    """
    try:
        return _ENCODER.encode(row)
    except ValueError:
        return _ENCODER.encode(_finite(row))


def _finite(value: Any) -> Any:
    """JSON has neither NaN nor infinity; as in what Spark writes, their names stand for them.

    >>> _finite({"x": [float("nan"), 1.5, float("-inf")]})
    {'x': ['NaN', 1.5, '-Infinity']}
    """
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {name: _finite(item) for name, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case _:
            return value
