"""Arrow batches written as Parquet, CSV or lines of JSON, to a file or to standard output."""

from __future__ import annotations

import bz2
import gzip
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol, assert_never, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cepheid.algebra.kinds import attribute_type
from cepheid.algebra.types import Type
from cepheid.engine.attribution.json_rows import finite, json_values, plain
from cepheid.errors import DataError, OptionError
from cepheid.files.formats import STANDARD, Format, output_format
from cepheid.files.guard import Guard


class Writer(Protocol):
    """A writer: takes batches; its context closes the file."""

    def write_batch(self, batch: pa.RecordBatch) -> None: ...


def check_output(path: Path, chosen: Format | None, guard: Guard, option: str) -> Format:
    """The format to write. Raises OptionError, before any work, if it can't be written."""
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
    """Open a file for writing; its ending decides on compression."""
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
            columns = _plain_columns(schema.empty_table()).schema
            return closing(CsvWriter(pa.csv.CSVWriter(sink, columns, write_options=divided)))
        case Format.JSON:
            return closing(JsonLinesWriter(sink))
        case _:
            assert_never(format)


class CsvWriter:
    """One row a line; durations are microseconds and bytes Base64, as in JSON."""

    def __init__(self, writer: pa.csv.CSVWriter) -> None:
        self._writer = writer

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._writer.write_table(_plain_columns(pa.Table.from_batches([batch])))

    def close(self) -> None:
        self._writer.close()


def _plain_columns(table: pa.Table) -> pa.Table:
    columns = [_plain_column(column) for column in table.columns]
    return pa.Table.from_arrays(columns, table.column_names)


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_duration(column.type):
        return _microseconds(column)
    if attribute_type(column.type) is Type.BINARY:
        texts = [None if value is None else plain(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    return column


def _microseconds(spans: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return spans.cast(pa.duration("us"), safe=False).cast(pa.int64())


class JsonLinesWriter:
    """One JSON object a line, with the values that matches of rules have."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink

    def write_batch(self, batch: pa.RecordBatch) -> None:
        refuse_same_names(batch.schema)
        columns = [_json_column(column) for column in batch.columns]
        rows = json_values(
            pa.RecordBatch.from_arrays(columns, batch.schema.names).to_struct_array()
        )
        self._sink.writelines(f"{json_line(row)}\n".encode() for row in rows)

    def close(self) -> None:
        self._sink.flush()


def refuse_same_names(schema: pa.Schema) -> None:
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise DataError(
                f"two columns are called `{name}`: JSON needs a name of its own for each"
            )


def _json_column(column: pa.Array) -> pa.Array:
    """Numbers of 32 bits with their own digits, 0.1 and not 0.10000000149011612; durations as in
    CSV."""
    if pa.types.is_float32(column.type):
        return column.cast(pa.string()).cast(pa.float64())
    return _microseconds(column) if pa.types.is_duration(column.type) else column


_ENCODER = json.JSONEncoder(
    default=plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def json_line(row: Mapping[str, Any]) -> str:
    """A row as a line of JSON.

    >>> json_line({"x": 1.5, "name": "naïve", "y": None})
    '{"x":1.5,"name":"naïve","y":null}'
    """
    try:
        return _ENCODER.encode(row)
    except ValueError:
        return _ENCODER.encode(finite(row))
