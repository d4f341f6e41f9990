"""Files of events for the local engine: their columns, and those of their rows that are wanted."""

from __future__ import annotations

import codecs
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from cepheid.errors import DataError, OptionError
from cepheid.files.bad_rows import UTF_8, BadRows
from cepheid.files.cell_values import MOMENT, is_text
from cepheid.files.file_sample import Sampled, sample_files
from cepheid.files.formats import Format, existing_files
from cepheid.files.inference import InferredColumn
from cepheid.files.line_blocks import blocks_of, read_block
from cepheid.files.parquet_rows import parquet_columns, read_parquet
from cepheid.files.text_rows import REJECTED, EventRows, RowFormat
from cepheid.files.time_format import TimeFormat
from cepheid.language.diagnostics import nearest


@dataclass(frozen=True, slots=True)
class InputOptions:
    """The user's options for the files: the column of the event time, declared columns, the format
    of times, the encoding, what happens to bad rows, and the column of an event's start."""

    time: str
    declared: pa.Schema = field(default_factory=lambda: pa.schema([]))
    time_format: TimeFormat | None = None
    encoding: str = UTF_8
    bad_rows: BadRows = BadRows.REJECT
    start: str | None = None

    def __post_init__(self) -> None:
        try:
            codec = codecs.lookup(self.encoding).name
        except LookupError:
            raise OptionError(
                f"--encoding {self.encoding} isn't known; there are utf-8, latin-1, cp1252 and more"
            ) from None
        if codec.startswith(("utf-16", "utf-32", "utf-7")):
            raise OptionError(
                f"--encoding {self.encoding} can't be read; make it UTF-8, with iconv"
            )
        object.__setattr__(self, "encoding", codec)


@dataclass(frozen=True, slots=True)
class InputColumns:
    """The columns of an input, and what the samples of them looked like; `header` and `multiline`
    are of CSV (see `file_sample`). A column without a value has the type null."""

    schema: pa.Schema
    sampled: tuple[InferredColumn, ...] = ()
    header: tuple[str, ...] = ()
    multiline: bool = False

    @property
    def numeric_texts(self) -> frozenset[str]:
        """The columns that are text, though most of their cells are numbers."""
        texts = {field.name for field in self.schema if is_text(field.type)}
        return frozenset(c.name for c in self.sampled if c.name in texts and c.mostly_numbers)

    def with_schema(self, schema: pa.Schema) -> InputColumns:
        return replace(self, schema=schema)


def nothing_to_tell(path: str) -> DataError:
    return DataError(
        f"{path}: it is empty, so its columns are unknown; name them: --schema 'ts timestamp, user "
        "long, amount double'"
    )


def columns_of(path: str, sampled: Sampled, given: InputOptions) -> InputColumns:
    """The columns that were sampled, or are declared: those count. OptionError if the event
    time can't be one."""
    _warn_of_misspelled(path, sampled, given)
    types = {column.name: column.type for column in sampled.columns}
    types |= {column.name: column.type for column in given.declared}
    for name in (given.time, given.start):
        if name is not None and name in types:
            types[name] = _time_type(path, name, types[name], sampled, given)
    schema = pa.schema(list(types.items()))
    return InputColumns(schema, sampled.columns, sampled.header, sampled.multiline)


def _warn_of_misspelled(path: str, sampled: Sampled, given: InputOptions) -> None:
    """Warn of declared columns that the files don't have, if they have a similar one: it would be
    read as if nothing had been declared."""
    known = [column.name for column in sampled.columns]
    undeclared = {*known} - {*given.declared.names}
    for name in given.declared.names:
        if name not in known and (close := nearest(name, undeclared)):
            warnings.warn(
                f"{path} has no column `{name}` (--schema); did you mean `{close}`?", stacklevel=2
            )


def _time_type(
    path: str, name: str, type_: pa.DataType, sampled: Sampled, given: InputOptions
) -> pa.DataType:
    if given.time_format is not None or name in given.declared.names:
        return MOMENT if given.time_format is not None or is_text(type_) else type_
    if not is_text(type_):
        return type_
    examples = next(c.examples for c in sampled.columns if c.name == name)
    shown = f", such as {examples[0]!r}" if examples else ""
    raise OptionError(
        f"{path}: the time column `{name}` is text{shown}. A time is written as in ISO "
        "8601, 2026-01-31T12:00:00Z, or --time-format says how: '%d.%m.%Y %H:%M:%S'"
    )


def row_format(
    format: Format, known: InputColumns, columns: pa.Schema, given: InputOptions
) -> RowFormat:
    """How lines of the files become rows with these columns."""
    return RowFormat(
        format,
        columns,
        given.time,
        given.time_format,
        given.encoding,
        given.bad_rows,
        known.multiline,
        given.start,
    )


class EventFiles:
    """The events of an input for the local engine."""

    def __init__(self, path: str, format: Format, given: InputOptions) -> None:
        self._format, self._given = format, given
        self._files = existing_files(path)
        self.columns = file_columns(path, self._files, format, given)
        if not self.columns.schema:
            raise nothing_to_tell(path)

    @property
    def schema(self) -> pa.Schema:
        return self.columns.schema

    def read(self, columns: pa.Schema) -> EventRows:
        """Read these columns of all rows; also returns the rejected rows."""
        form = row_format(self._format, self.columns, columns, self._given)
        if self._format is Format.PARQUET:
            read = [read_parquet(form, file) for file in self._files]
        else:
            read = [read_block(form, b) for file in self._files for b in blocks_of(file, form)]
        return EventRows(
            pa.concat_tables([columns.empty_table(), *(rows.table for rows in read)]),
            pa.concat_tables([REJECTED.empty_table(), *(rows.rejected for rows in read)]),
        )


def file_columns(
    path: str, files: Sequence[Path], format: Format, given: InputOptions
) -> InputColumns:
    """The columns of local files."""
    if format is Format.PARQUET:
        sampled = Sampled(parquet_columns(files, given.time))
    else:
        exact = given.bad_rows is BadRows.KEEP
        sampled = sample_files(files, format, given.encoding, given.time, exact=exact)
    return columns_of(path, sampled, given)
