"""Rows of Parquet files: their columns have types, but a time may be text, or missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet

from cepheid.errors import DataError
from cepheid.files.cell_values import MOMENT, is_text
from cepheid.files.inference import InferredColumn
from cepheid.files.output import json_line
from cepheid.files.text_rows import (
    EventRows,
    LineBlock,
    RejectedLine,
    RowFault,
    RowFormat,
    finish,
    typed,
    without_time,
)

_WRONG = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


def parquet_columns(files: Sequence[Path], time: str) -> tuple[InferredColumn, ...]:
    """The columns of the first file. Text in the time column is a time, and nothing is finer than a
    microsecond."""
    try:
        schema = pa.parquet.read_schema(files[0])
    except (*_WRONG, OSError) as error:
        raise _unreadable(files[0], error) from None
    return tuple(InferredColumn(column.name, read_as(column, time)) for column in schema)


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column with the type in which most files store it, an example file, and the files that
    differ."""

    name: str
    example: Path
    others: tuple[Path, ...]


def stored_columns(files: Sequence[Path]) -> list[StoredColumn]:
    """The columns of all files; unreadable files are ignored."""
    types_by_column: dict[str, dict[Path, pa.DataType]] = {}
    for file in files:
        try:
            schema = pa.parquet.read_schema(file)
        except (*_WRONG, OSError):
            continue
        for column in schema:
            types_by_column.setdefault(column.name, {})[file] = column.type
    columns = []
    for name, types in types_by_column.items():
        chosen, _ = Counter(types.values()).most_common(1)[0]
        example = next(file for file, type_ in types.items() if type_ == chosen)
        others = tuple(file for file, type_ in types.items() if type_ != chosen)
        columns.append(StoredColumn(name, example, others))
    return columns


def read_as(column: pa.Field, time: str) -> pa.DataType:
    if column.name == time and _holds_text(column.type):
        return MOMENT
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return pa.timestamp("us", column.type.tz)
    return column.type


def _holds_text(type_: pa.DataType) -> bool:
    """A dictionary of texts does, too: pandas writes categories as such."""
    return is_text(type_.value_type if pa.types.is_dictionary(type_) else type_)


def read_parquet(form: RowFormat, path: Path) -> EventRows:
    """The rows of a file; missing columns are NULL."""
    try:
        dataset = pa.dataset.dataset(path, format="parquet")
        names = [name for name in form.columns.names if name in dataset.schema.names]
        stored = dataset.to_table(columns=names)
    except (*_WRONG, OSError) as error:
        raise _unreadable(path, error) from None
    table, faults = typed_columns(form, stored, str(path))
    lines = []
    if faults:
        whole = dataset.to_table().take(pa.array(sorted(faults))).to_pylist()
        texts = map(json_line, whole)
        lines = [
            RejectedLine(row, text, faults[row])
            for row, text in zip(sorted(faults), texts, strict=True)
        ]
    return finish(form, LineBlock(str(path), b""), table, faults, lines)


def typed_columns(
    form: RowFormat, stored: pa.Table, file: str
) -> tuple[pa.Table, dict[int, RowFault]]:
    """Convert the columns to the wanted types, text cell by cell; also returns faults by row."""
    texts, arrays = {}, {}
    for column in form.columns:
        if column.name not in stored.column_names:
            continue
        array = stored[column.name]
        if _holds_text(array.type) and not _holds_text(column.type):
            texts[column.name] = pc.cast(array, pa.string()).combine_chunks()
        elif array.type != column.type:
            arrays[column.name] = _cast(array, column, file)
        else:
            arrays[column.name] = array
    table, faults = typed(form, texts, stored.num_rows)
    for name, array in arrays.items():
        table = table.set_column(
            table.schema.get_field_index(name), form.columns.field(name), array
        )
    return table, without_time(form, table, faults)


def _cast(array: pa.ChunkedArray, column: pa.Field, file: str) -> pa.ChunkedArray:
    both = pa.types.is_timestamp(array.type) and pa.types.is_timestamp(column.type)
    try:
        return array.cast(column.type, safe=not both)
    except _WRONG as error:
        raise DataError(
            f"{file}: `{column.name}` is {array.type} and can't be read as {column.type}: {error}"
        ) from None


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: {str(error).strip().splitlines()[0]}")
