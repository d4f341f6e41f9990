"""Text files cut into blocks of whole lines, and the rows of a block."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from cepheid.errors import DataError
from cepheid.files.csv_lines import read_csv, take_header
from cepheid.files.formats import COMPRESSED, Format
from cepheid.files.json_lines import read_json
from cepheid.files.text_rows import EventRows, LineBlock, RowFormat, with_line_ends

_BYTES = 1 << 23
"""How many bytes of a file are read at once."""

_LONGEST = 1 << 24
"""The most bytes of a multiline cell: a longer one is a quote that is never closed."""


def read_block(form: RowFormat, block: LineBlock) -> EventRows:
    return read_json(form, block) if form.format is Format.JSON else read_csv(form, block)


def blocks_of(path: Path, form: RowFormat) -> Iterator[LineBlock]:
    """The lines of a file, without the header of CSV."""
    cutter = LineCutter(str(path), form, 1)
    with cut_off_named(path), open_text(path) as stream:
        while piece := stream.read(_BYTES):
            yield from cutter.add(piece)
    yield from cutter.end()


@contextmanager
def cut_off_named(path: Path) -> Iterator[None]:
    """DataError that names the file if it can't be read in the block."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"{path}: it can't be read to its end: {reason}") from None


def open_text(path: Path) -> AbstractContextManager[BinaryIO]:
    """A file, unpacked if its name says that it is compressed."""
    if path.suffix.lower() in COMPRESSED:
        unpacked: AbstractContextManager[BinaryIO] = pa.input_stream(str(path))
        return unpacked
    return path.open("rb")


class LineCutter:
    """Cuts the text of a file, as it comes, where lines end. `number` is that of the first line, if
    it is known; the header is taken from the text if it isn't given."""

    def __init__(
        self, file: str, form: RowFormat, number: int | None, header: tuple[str, ...] = ()
    ) -> None:
        self._file, self._form, self._number, self._header = file, form, number, header
        self._headed = form.format.delimiter is None or bool(header)
        self._rest = b""

    def add(self, text: bytes) -> Iterator[LineBlock]:
        text = self._rest + text
        if self._number == 1:
            text = text.removeprefix(codecs.BOM_UTF8)
        # A carriage return may be half of a line end.
        half = b"\r" if text.endswith(b"\r") else b""
        text = with_line_ends(text.removesuffix(half))
        end = last_line_end(text, self._form.multiline)
        if not end and len(text) > _LONGEST:
            end = last_line_end(text, multiline=False)
        self._rest = text[end:] + half
        yield from self._block(text[:end])

    def end(self) -> Iterator[LineBlock]:
        """The rest at the end of the file."""
        whole, self._rest = self._rest, b""
        yield from self._block(with_line_ends(whole))

    def _block(self, text: bytes) -> Iterator[LineBlock]:
        if not self._headed:
            self._header, text, taken = take_header(text, self._form)
            self._headed = bool(self._header)
            self._count(taken)
        if text:
            yield LineBlock(self._file, text, self._number, self._header)
            self._count(int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n"))))

    def _count(self, lines: int) -> None:
        self._number = None if self._number is None else self._number + lines


def last_line_end(text: bytes, multiline: bool) -> int:
    """Where the last whole line ends. A line end between quotes is part of a cell."""
    end = len(text)
    quotes = text.count(b'"') if multiline else 0
    while (at := text.rfind(b"\n", 0, end)) >= 0:
        quotes -= text.count(b'"', at, end) if multiline else 0
        if quotes % 2 == 0:
            break
        end = at
    return at + 1
