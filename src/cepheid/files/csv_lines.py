"""Lines of CSV as rows (see `rows`)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.csv

from cepheid.files.text_rows import (
    EventRows,
    LineBlock,
    RejectedLine,
    RowFault,
    RowFormat,
    decoded,
    finish,
    settled,
    typed,
    without_time,
)

_QUOTE = '"'
_LETTER = re.compile(rb"[^\n]")
_PIECE = 1 << 20
"""The block size of pyarrow's reader, in bytes."""


def read_csv(form: RowFormat, block: LineBlock) -> EventRows:
    """The rows of a block of CSV. Rows with more or fewer cells than the header are rejected."""
    text, lines = decoded(form, block.text)
    text, unclosed = _close_quotes(text, form)
    lines += unclosed
    if _LETTER.search(text) is None:
        return finish(form, block, form.columns.empty_table(), {}, lines)
    table = _fast(form, block.header, text)
    faults: dict[int, RowFault] = {}
    ragged: Mapping[str, RowFault] = {}
    if table is None:
        table, faults, ragged = _as_text(form, block.header, text)
    faults = without_time(form, table, faults)
    if faults or ragged:
        lines += _rejected_lines(text.decode(), form.format.delimiter or ",", faults, ragged)
    return finish(form, block, table, faults, lines)


def parse_header(line: str, delimiter: str) -> tuple[str, ...]:
    """
    >>> parse_header('ts,"a, b",c', ",")
    ('ts', 'a, b', 'c')
    """
    try:
        return tuple(next(csv.reader([line], delimiter=delimiter), ()))
    except csv.Error:  # a name of more than 131,072 letters: it isn't CSV
        return tuple(line.split(delimiter))


def take_header(text: bytes, form: RowFormat) -> tuple[tuple[str, ...], bytes, int]:
    """The header of a CSV file, the text after it, and how many lines the header took. Empty lines
    are no header."""
    taken = 0
    while text:
        line, _, text = text.partition(b"\n")
        taken += 1
        if line.strip():
            names = line.decode(form.encoding, "replace")
            return parse_header(names, form.format.delimiter or ","), text, taken
    return (), b"", taken


@dataclass
class RaggedRows:
    """Rows with too many or too few cells. Whether a row is one depends on its text alone, so the
    text is enough to find it again."""

    faults: dict[str, RowFault] = field(default_factory=dict)

    def __call__(self, row: pa.csv.InvalidRow) -> str:
        cells = "1 cell" if row.actual_columns == 1 else f"{row.actual_columns} cells"
        self.faults[row.text] = RowFault(f"it has {cells}, the header {row.expected_columns}")
        return "skip"


def _fast(form: RowFormat, header: Sequence[str], text: bytes) -> pa.Table | None:
    """The rows, if every cell fits; else None."""
    types = {c.name: _read_as(c.type) for c in form.columns if c.name in header}
    if len(types) < len(form.columns):
        return None
    ragged = RaggedRows()
    try:
        table = _parse(form, header, text, types, ragged)
    except pa.ArrowInvalid:
        return None
    return None if ragged.faults else settled(form, table)


def _read_as(type_: pa.DataType) -> pa.DataType:
    """The type that pyarrow's reader should return. It needs to know whether times have an offset,
    and it would drop digits of decimals."""
    is_ = pa.types
    plain = is_.is_integer(type_) or is_.is_floating(type_) or is_.is_date(type_)
    return type_ if plain or is_.is_boolean(type_) else pa.string()


def _as_text(
    form: RowFormat, header: Sequence[str], text: bytes
) -> tuple[pa.Table, dict[int, RowFault], dict[str, RowFault]]:
    """The rows cell by cell, their faults, and the texts of ragged rows."""
    ragged = RaggedRows()
    types = {name: pa.string() for name in form.columns.names if name in header}
    table = _parse(form, header, text, types, ragged)
    texts = {name: table[name].combine_chunks() for name in types}
    rows, faults = typed(form, texts, table.num_rows, set(form.columns.names) - set(header))
    return rows, faults, ragged.faults


def _parse(
    form: RowFormat,
    header: Sequence[str],
    text: bytes,
    types: Mapping[str, pa.DataType],
    ragged: RaggedRows,
) -> pa.Table:
    """An empty cell is NULL; an empty text is written in quotes."""
    # Without a column of the header, pyarrow would still read all of them.
    wanted = list(types) or [header[0]]
    return pa.csv.read_csv(
        pa.BufferReader(text),
        read_options=pa.csv.ReadOptions(column_names=list(header), block_size=_PIECE),
        parse_options=pa.csv.ParseOptions(
            delimiter=form.format.delimiter,
            newlines_in_values=form.multiline,
            invalid_row_handler=ragged,
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types=types or {header[0]: pa.string()},
            include_columns=wanted,
            null_values=[""],
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _close_quotes(text: bytes, form: RowFormat) -> tuple[bytes, list[RejectedLine]]:
    """A quote that is never closed would swallow the lines that follow. The line in which it is
    opened is taken out, and the rest keep their numbers."""
    if b'"' not in text:
        return text, []
    delimiter = form.format.delimiter or ","
    if form.multiline:
        lines = text.decode().split("\n")
        unclosed = list(_unclosed_cells(lines, delimiter))
    else:
        odd = _odd_lines(text)
        if not odd:
            return text, []
        lines = text.decode().split("\n")
        unclosed = [number for number in odd if _inside(lines[number], delimiter, False)]
    fault = RowFault("a quote is never closed")
    wrong = [RejectedLine(number, lines[number], fault) for number in unclosed]
    for number in unclosed:
        lines[number] = ""
    return ("\n".join(lines).encode() if wrong else text), wrong


def _odd_lines(text: bytes) -> list[int]:
    """The lines with an odd number of quotes."""
    letters = np.frombuffer(text, np.uint8)
    quotes, ends = np.flatnonzero(letters == ord(_QUOTE)), np.flatnonzero(letters == ord("\n"))
    counts = np.diff(np.searchsorted(quotes, [*ends.tolist(), len(text)]), prepend=0)
    odd: list[int] = np.flatnonzero(counts % 2).tolist()
    return odd


def _unclosed_cells(lines: Sequence[str], delimiter: str) -> Iterator[int]:
    """The lines that open a cell in which all others would be. Without such a line, the next one
    may be such."""
    quoted = [number for number, line in enumerate(lines) if _QUOTE in line]
    while True:
        inside, first = False, -1
        for number in quoted:
            if not inside:
                first = number
            inside = _inside(lines[number], delimiter, inside)
        if not inside:
            return
        yield first
        quoted = [number for number in quoted if number > first]


def records(text: str, delimiter: str) -> Iterator[tuple[int, str]]:
    """The rows as text, and the number of their first line, without empty lines."""
    if _QUOTE not in text:
        yield from ((n, line) for n, line in enumerate(text.split("\n")) if line)
        return
    inside, begin, parts = False, 0, list[str]()
    for number, line in enumerate(text.split("\n")):
        if not inside and not line:
            continue
        if not inside:
            begin = number
        parts.append(line)
        inside = _inside(line, delimiter, inside)
        if not inside:
            yield begin, "\n".join(parts)
            parts = []
    if parts:
        yield begin, "\n".join(parts)


def _inside(line: str, delimiter: str, inside: bool) -> bool:
    """Whether a cell in quotes continues after this line; `inside`, if one continues into it."""
    if _QUOTE not in line:
        return inside
    at = 0
    while True:
        if inside or line.startswith(_QUOTE, at):
            at = at if inside else at + 1
            inside = False
            while True:
                at = line.find(_QUOTE, at)
                if at < 0:
                    return True
                if not line.startswith(_QUOTE, at + 1):
                    break
                at += 2
        at = line.find(delimiter, at)
        if at < 0:
            return False
        at += len(delimiter)


def _rejected_lines(
    text: str, delimiter: str, faults: Mapping[int, RowFault], ragged: Mapping[str, RowFault]
) -> Iterator[RejectedLine]:
    """The lines of rejected rows."""
    row = 0
    for number, line in records(text, delimiter):
        fault = ragged.get(line)
        if fault is None:
            fault = faults.get(row)
            row += 1
        if fault is not None:
            yield RejectedLine(number, line, fault)
