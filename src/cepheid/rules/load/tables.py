"""Tables of parameters: from files, and from whatever holds a table in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset

from cepheid.algebra.kinds import check_readable, reasons
from cepheid.engine.attribution.json_rows import RULE
from cepheid.errors import DataError
from cepheid.files.inference import CellKind, CellSample, decide, kind_of
from cepheid.inprocess.frames import as_table, to_arrow
from cepheid.query.runtimes import runtime_of

TABLES = (".csv", ".parquet")
"""The endings of table files. A folder may be a table, as Spark writes them."""

_BLOCK = 1 << 26
"""How many bytes of a CSV file are read to infer its column types."""

_NUMBERS = (CellKind.INTEGER, CellKind.FLOAT)


@dataclass(frozen=True, slots=True)
class Misfits:
    """Cells of a column of numbers that are none: they are NULL in the table."""

    column: str
    rows: tuple[int, ...]
    example: str


@dataclass(frozen=True, slots=True)
class TableFile:
    """The rows of a file. A cell that spoils a column is a misfit, not another type for all."""

    rows: pa.Table
    misfits: tuple[Misfits, ...] = ()


def rows_of(data: Any) -> pa.Table:
    """The rows of a pyarrow Table, a pandas, polars or Spark frame (which is collected), a list of
    dicts, or a dict of columns. In a pandas frame, NaN is a parameter that has no value.

    >>> rows_of([{"low": 5, "country": "DE"}, {"low": 7, "country": None}]).num_rows
    2
    """
    if isinstance(data, list) and all(isinstance(row, Mapping) for row in data):
        names = dict.fromkeys(name for row in data for name in row)
        data = {name: [row.get(name) for row in data] for name in names}
    if isinstance(data, Mapping):
        return pa.table({name: _column(name, values) for name, values in data.items()})
    source = to_arrow(runtime_of(data).collected(data), nan_is_null=True)
    check_readable(reasons(source.schema), source.schema.names)
    return as_table(source)


def _column(name: str, values: Any) -> Any:
    """The values of a column; an error names the first that is of another kind than the first."""
    try:
        return pa.array(values) if isinstance(values, list) else values
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        first = next(value for value in values if value is not None)
        for row, value in enumerate(values, 1):
            if value is not None and not _alike(first, value):
                raise DataError(
                    f"row {row}: `{name}` is {value!r}, and {first!r} is before it: a column has "
                    "one kind of value"
                ) from None
        raise


def _alike(*values: object) -> bool:
    try:
        pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True


def read_table(path: Path, numbers: Collection[str] = ()) -> TableFile:
    """The rows of a file. In a CSV file an empty field is NULL, and nothing else is: the country
    NA is a country. Names of rules are text, and so are numbers that begin with a zero: codes.
    Columns that must be `numbers` are, if most cells are."""
    if path.is_file() and not path.stat().st_size:
        raise DataError("the file is empty: its first line says what the columns are called")
    try:
        if path.suffix.lower() != ".csv":
            return TableFile(pa.dataset.dataset(path, format="parquet").to_table())
        rows = _csv(path, ()).to_table()
        whole = [field.name for field in rows.schema if pa.types.is_integer(field.type)]
        texts = _csv(path, whole).to_table(columns=whole)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"the table can't be read: {str(error).splitlines()[0]}") from None
    read = _with_numbers(rows, numbers)
    rows = read.rows
    for name in whole:
        if pc.any(pc.match_substring_regex(texts[name], "^[+-]?0[0-9]")).as_py():
            rows = rows.set_column(rows.column_names.index(name), name, texts[name])
    return replace(read, rows=rows)


def _with_numbers(rows: pa.Table, numbers: Collection[str]) -> TableFile:
    """A column of texts that is numbers but for a few cells becomes a column of numbers; of a
    column that must have them, but for less than half."""
    misfits = []
    for place, field in enumerate(rows.schema):
        if field.name == RULE or not pa.types.is_string(field.type):
            continue
        cells = rows[place].to_pylist()
        if not _looks_like_numbers(rows[place]):
            continue
        filled = [cell for cell in cells if cell is not None]
        type_ = (
            _most(filled) if field.name in numbers else decide(field.name, CellSample(filled)).type
        )
        if not (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
            continue
        read = float if pa.types.is_floating(type_) else int
        fits = [cell is not None and kind_of(cell) in _NUMBERS for cell in cells]
        values = [read(cell) if fit else None for cell, fit in zip(cells, fits, strict=True)]
        rows = rows.set_column(place, field.name, pa.array(values, type_))
        wrong = [at for at, fit in enumerate(fits) if not fit and cells[at] is not None]
        numbered = tuple(at + 1 for at in wrong)
        misfits.append(Misfits(field.name, numbered, cells[wrong[0]]))
    return TableFile(rows, tuple(misfits))


def _most(cells: Sequence[str]) -> pa.DataType:
    """The type of numbers, if most cells are."""
    kinds = Counter(kind_of(cell) for cell in cells)
    if 2 * sum(kinds[kind] for kind in _NUMBERS) <= len(cells):
        return pa.string()
    return pa.float64() if kinds[CellKind.FLOAT] else pa.int64()


def _looks_like_numbers(column: pa.ChunkedArray) -> bool:
    """Whether most texts begin as numbers do: the others needn't be looked at one by one."""
    digits = pc.match_substring_regex(column, r"^\s*[+-]?[0-9.]")
    return bool(2 * (pc.sum(digits).as_py() or 0) > len(column) - column.null_count)


def _csv(path: Path, texts: Iterable[str]) -> Any:
    """A CSV file in which these columns are text."""
    format = pa.dataset.CsvFileFormat(
        read_options=pa.csv.ReadOptions(block_size=_BLOCK),
        convert_options=pa.csv.ConvertOptions(
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            column_types={name: pa.string() for name in (RULE, *texts)},
        ),
    )
    return pa.dataset.dataset(path, format=format)
