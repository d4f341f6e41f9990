"""Lines of text files as rows of typed columns, and the lines that are rejected.

Blocks of lines without a fault go through pyarrow's readers with the columns' types. Only where
that fails is a block read as text, and looked at cell by cell. The same code runs here and on
Spark's workers (`csv_lines`, `json_lines`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import DataError
from cepheid.files.bad_rows import UTF_8, BadRows
from cepheid.files.cell_values import convert, without_nan
from cepheid.files.declared import type_name
from cepheid.files.formats import Format
from cepheid.files.time_format import TimeFormat

REJECTED = pa.schema(
    {"file": pa.string(), "number": pa.int64(), "line": pa.string(), "reason": pa.string()}
)
"""The columns of rejected rows: the file, the line number if it is known, the line as it is in the
file, and the reason."""

_SHOWN = 60
"""How many characters of a cell a reason shows."""


@dataclass(frozen=True, slots=True)
class RowFormat:
    """How lines become rows: the format of the files, the columns wanted, the one of the event
    time, and what the user has said of times, letters and bad rows. `multiline`: a cell of CSV may
    go over several lines. `start` is the column of the time at which an event starts."""

    format: Format
    columns: pa.Schema
    time: str
    time_format: TimeFormat | None = None
    encoding: str = UTF_8
    bad_rows: BadRows = BadRows.REJECT
    multiline: bool = False
    start: str | None = None

    def format_of(self, name: str) -> TimeFormat | None:
        """The user's format for the cells of a column, if there is one."""
        return self.time_format if name in (self.time, self.start) else None


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of a file, which end as `with_line_ends` makes them; the first has a number if
    that is known. `header` are the columns of a CSV file."""

    file: str
    text: bytes
    number: int | None = None
    header: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowFault:
    """The reason why a row is rejected. A row that only lacks a time isn't `bad`."""

    reason: str
    bad: bool = True


@dataclass(frozen=True, slots=True)
class RejectedLine:
    """A rejected line, numbered from the first of its block."""

    number: int
    text: str
    fault: RowFault


@dataclass(frozen=True, slots=True)
class EventRows:
    """The rows of a block, and its rejected lines."""

    table: pa.Table
    rejected: pa.Table = field(default_factory=REJECTED.empty_table)


def typed(
    form: RowFormat, texts: Mapping[str, pa.Array], length: int, lacking: Container[str] = ()
) -> tuple[pa.Table, dict[int, RowFault]]:
    """The cells as values, and the faults by row. A column without cells is NULL; if the file is
    `lacking` it, all its rows are bad."""
    faults: dict[int, RowFault] = {}
    arrays = []
    nulled = form.bad_rows is BadRows.NULL
    for column in form.columns:
        cells = texts.get(column.name)
        if cells is None:
            arrays.append(pa.nulls(length, column.type))
            if column.name in lacking and not nulled:
                fault = RowFault(f"its file has no column `{column.name}`")
                faults |= {row: fault for row in range(length) if row not in faults}
            continue
        converted = convert(cells, column.type, form.format_of(column.name))
        arrays.append(converted.values)
        if converted.misfits is None or (nulled and column.name not in (form.time, form.start)):
            continue
        for row in np.flatnonzero(converted.misfits).tolist():
            reason = misfit(column, str(cells[row]))
            faults.setdefault(row, RowFault(reason, not nulled))
    return pa.Table.from_arrays(arrays, schema=form.columns), faults


def settled(form: RowFormat, table: pa.Table) -> pa.Table | None:
    """Convert columns that pyarrow read as text; None if a cell doesn't fit. Missing columns are
    NULL."""
    arrays = []
    for column in form.columns:
        if column.name not in table.column_names:
            arrays.append(pa.nulls(table.num_rows, column.type))
            continue
        array = table[column.name]
        if array.type != column.type:
            given = form.format_of(column.name)
            converted = [convert(chunk, column.type, given) for chunk in array.chunks]
            if any(c.misfits is not None for c in converted):
                return None
            array = pa.chunked_array([c.values for c in converted], column.type)
        elif pa.types.is_floating(column.type):
            array = without_nan(array)
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=form.columns)


def without_time(
    form: RowFormat, table: pa.Table, faults: dict[int, RowFault]
) -> dict[int, RowFault]:
    """Add the faults of rows that have no time or no start, or start after their end."""
    names = [n for n in (form.time, form.start) if n is not None and n in table.column_names]
    missing: dict[int, RowFault] = {}
    if len(names) == 2 and len({table[name].type for name in names}) == 1:
        late = pc.fill_null(pc.greater(table[names[1]], table[names[0]]), False).to_numpy()
        fault = RowFault(f"`{names[1]}` is after `{names[0]}`", bad=False)
        missing = {row: fault for row in np.flatnonzero(late).tolist()}
    for name in names:
        if table[name].null_count:
            empty = RowFault(f"`{name}` is empty", bad=False)
            rows = np.flatnonzero(pc.is_null(table[name]).to_numpy()).tolist()
            missing = {row: empty for row in rows} | missing
    return missing | faults


def misfit(column: pa.Field, cell: str) -> str:
    """
    >>> misfit(pa.field("x", pa.int64()), "n.n.")
    "`x` is 'n.n.', not an integer"
    """
    shown = cell if len(cell) <= _SHOWN else f"{cell[:_SHOWN]}…"
    return f"`{column.name}` is {shown!r}, not {_called(column.type)}"


def _called(type_: pa.DataType) -> str:
    is_ = pa.types
    if type_ == pa.int64():
        return "an integer"
    if is_.is_float64(type_):
        return "a number"
    if is_.is_timestamp(type_):
        return "a time"
    if is_.is_date(type_):
        return "a date"
    if is_.is_boolean(type_):
        return "true or false"
    return type_name(type_)


def finish(
    form: RowFormat,
    block: LineBlock,
    table: pa.Table,
    faults: Mapping[int, RowFault],
    lines: Sequence[RejectedLine],
) -> EventRows:
    """Drop the faulty rows; return the table and the rejected lines, these and others. Raises
    DataError for the first bad one if the user wants that."""
    if not lines:
        return EventRows(table)
    if faults:
        good = np.ones(table.num_rows, np.bool_)
        good[list(faults)] = False
        table = table.filter(pa.array(good))
    lines = sorted(lines, key=lambda line: line.number)
    numbers = [None if block.number is None else block.number + line.number for line in lines]
    if form.bad_rows is BadRows.FAIL:
        for line, number in zip(lines, numbers, strict=True):
            if line.fault.bad:
                raise _bad_row(block.file, number, line)
    columns = [
        [block.file] * len(lines),
        numbers,
        [line.text for line in lines],
        [line.fault.reason for line in lines],
    ]
    return EventRows(table, pa.table(columns, schema=REJECTED))


def _bad_row(file: str, number: int | None, line: RejectedLine) -> DataError:
    place = file if number is None else f"{file}:{number}"
    return DataError(
        f"{place}: {line.fault.reason}. --bad-rows reject leaves such rows out, and --schema "
        "declares other types"
    )


def with_line_ends(text: bytes) -> bytes:
    """The text with a line feed after every line. Files of other systems have a carriage return
    instead, or both; Spark and pyarrow take each of them for the end of a line.

    >>> with_line_ends(b"a\\r\\nb\\rc\\n")
    b'a\\nb\\nc\\n'
    """
    if b"\r" not in text:
        return text
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def decoded(form: RowFormat, text: bytes) -> tuple[bytes, list[RejectedLine]]:
    """A block as UTF-8. Lines that aren't in the encoding are left empty, so that the others keep
    their numbers."""
    if form.encoding == UTF_8 and text.isascii():
        return text, []
    try:
        plain = text.decode(form.encoding)
        return (text if form.encoding == UTF_8 else plain.encode()), []
    except UnicodeDecodeError:
        pass
    fault = RowFault(f"it isn't {form.encoding.upper()}; --encoding names another encoding")
    kept, wrong = [], []
    for number, line in enumerate(text.split(b"\n")):
        try:
            kept.append(line.decode(form.encoding).encode())
        except UnicodeDecodeError:
            kept.append(b"")
            wrong.append(RejectedLine(number, line.decode("latin-1"), fault))
    return b"\n".join(kept), wrong
