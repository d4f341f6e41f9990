"""Text files on Spark, read by the code that reads them without it (`cepheid.files`).

Spark brings the lines as they are in the files, and its workers make rows of them. So columns, bad
rows and times are the same as in a local run, and Spark never decides what a cell is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from cepheid.files.csv_lines import take_header
from cepheid.files.line_blocks import LineCutter, open_text, read_block
from cepheid.files.text_rows import REJECTED, EventRows, LineBlock, RowFormat, with_line_ends
from cepheid.spark.columns.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HEADER = 1 << 16
"""How many bytes of a file are searched for its header."""


def lines_of(texts: DataFrame) -> DataFrame:
    """Lines from Spark's text reader, with their files and the offset of their piece: a large file
    is read in pieces."""
    return texts.select(
        F.col("value").cast("binary").alias("line"),
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.file_block_start").alias("start"),
    )


def read_text_events(lines: DataFrame, form: RowFormat, header: tuple[str, ...]) -> DataFrame:
    """The events. A rejected line becomes a row of NULLs. `header` is the header of most CSV files:
    a piece from the middle of a file may be read where the file's beginning can't.

    `header` is that of most CSV files: a piece of one that isn't its beginning may be read where
    its beginning can't.
    """
    return lines.mapInArrow(EventReader(form, header), spark_schema(form.columns))


def read_text_rejected(lines: DataFrame, form: RowFormat, header: tuple[str, ...]) -> DataFrame:
    """The rejected lines (see `cepheid.files.text_rows.REJECTED`)."""
    return lines.mapInArrow(RejectedReader(form, header), spark_schema(REJECTED))


@dataclass(frozen=True)
class LineReader:
    """Parses lines into rows on a worker."""

    form: RowFormat
    header: tuple[str, ...]

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[EventRows]:
        for block in self._blocks(batches):
            yield read_block(self.form, block)

    def _blocks(self, batches: Iterator[pa.RecordBatch]) -> Iterator[LineBlock]:
        """The lines of each piece; they arrive in order, piece by piece."""
        piece, cutter = None, None
        for batch in batches:
            for begin, end in _stretches(batch):
                file, start = batch["file"][begin].as_py(), batch["start"][begin].as_py()
                if cutter is None or piece != (file, start):
                    if cutter is not None:
                        yield from cutter.end()
                    piece, cutter = (file, start), self._cutter(file, start)
                lines = batch["line"].slice(begin, end - begin).to_pylist()
                yield from cutter.add(b"\n".join((*lines, b"")))
        if cutter is not None:
            yield from cutter.end()

    def _cutter(self, file: str, start: int) -> LineCutter:
        path = local_path(file)
        if start == 0:
            return LineCutter(path, self.form, 1)
        return LineCutter(path, self.form, None, self._header_of(Path(path)))

    def _header_of(self, path: Path) -> tuple[str, ...]:
        if self.form.format.delimiter is None:
            return ()
        try:
            with open_text(path) as stream:
                begin = with_line_ends(stream.read(_HEADER))
                return take_header(begin, self.form)[0] or self.header
        except OSError:
            return self.header


class EventReader(LineReader):
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in self.rows(batches):
            yield from with_rejected(rows)


class RejectedReader(LineReader):
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in self.rows(batches):
            yield from rows.rejected.to_batches()


def with_rejected(rows: EventRows) -> Iterator[pa.RecordBatch]:
    """The rows, plus a row of NULLs for each rejected line, so that it is counted."""
    yield from rows.table.to_batches()
    if count := rows.rejected.num_rows:
        schema = rows.table.schema
        yield pa.RecordBatch.from_arrays([pa.nulls(count, f.type) for f in schema], schema=schema)


def _stretches(batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """The bounds of each piece's rows."""
    files = batch["file"].dictionary_encode().indices.to_numpy()
    starts = batch["start"].to_numpy()
    changes = (np.diff(files) != 0) | (np.diff(starts) != 0)
    edges = [0, *(np.flatnonzero(changes) + 1).tolist(), batch.num_rows]
    return pairwise(edges) if batch.num_rows else iter(())


def local_path(uri: str) -> str:
    """The local path of a file; its URI if it isn't local.

    >>> local_path("file:///in/a%20b.csv"), local_path("s3a://bank/cards/1.csv")
    ('/in/a b.csv', 's3a://bank/cards/1.csv')
    """
    parts = urlparse(uri)
    return unquote(parts.path) if parts.scheme in ("", "file") else uri
