"""Where a bucket's state is kept: a header, and numbered segments.

Both are bytes that begin alike: what they are, the version of the format, and a checksum, so that
a foreign or a damaged one is noticed before it is read.
"""

from __future__ import annotations

import struct
import zlib
from typing import Protocol

import pyarrow as pa

from cepheid.errors import StateError

FORMAT = 2
"""The version of the format. Whoever changes it keeps a saved state of each version among the
tests, and keeps reading the ones before if that is safe. 1 is not: there the classes of a row were
numbered by the plan, and a bucket may have changed its plan."""

_MAGIC = b"CEPH"
_FRAME = struct.Struct("<4sBI")


class Cells(Protocol):
    """The state of one bucket in some store."""

    def header(self) -> bytes | None: ...

    def set_header(self, data: bytes) -> None: ...

    def remove_header(self) -> None: ...

    def segment(self, number: int) -> bytes | None: ...

    def set_segment(self, number: int, data: bytes) -> None: ...

    def remove_segment(self, number: int) -> None: ...


class Region:
    """The cells of a part of a bucket, within the bucket's cells."""

    def __init__(self, cells: Cells, number: int) -> None:
        self._cells, self._first = cells, (number + 1) << 32

    def header(self) -> bytes | None:
        return self._cells.segment(self._first)

    def set_header(self, data: bytes) -> None:
        self._cells.set_segment(self._first, data)

    def remove_header(self) -> None:
        self._cells.remove_segment(self._first)

    def segment(self, number: int) -> bytes | None:
        return self._cells.segment(self._first + 1 + number)

    def set_segment(self, number: int, data: bytes) -> None:
        self._cells.set_segment(self._first + 1 + number, data)

    def remove_segment(self, number: int) -> None:
        self._cells.remove_segment(self._first + 1 + number)


def framed(data: bytes) -> bytes:
    return _FRAME.pack(_MAGIC, FORMAT, zlib.crc32(data)) + data


def unframed(data: bytes, what: str) -> memoryview:
    """The data, after its checksum is verified."""
    if len(data) < _FRAME.size or data[:4] != _MAGIC:
        raise StateError(f"{what} is not one of Cepheid's: the checkpoint belongs to another query")
    _, version, checksum = _FRAME.unpack_from(data)
    if version != FORMAT:
        raise StateError(
            f"{what} has format {version}, and this version of Cepheid reads format {FORMAT}: "
            "use the version that wrote it, or start with a new checkpoint"
        )
    rest = memoryview(data)[_FRAME.size :]
    if zlib.crc32(rest) != checksum:
        raise StateError(f"{what} is damaged: its checksum is wrong. Restore the checkpoint")
    return rest


def arrow_bytes(rows: pa.Table | pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def table_of(data: pa.Buffer | bytes | memoryview) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
