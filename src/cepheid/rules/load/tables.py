"""Tables of parameters: from files, and from whatever holds a table in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset

from cepheid.algebra.kinds import check_readable, reasons
from cepheid.engine.attribution.json_rows import RULE
from cepheid.errors import DataError
from cepheid.inprocess.frames import as_table, to_arrow
from cepheid.query.runtimes import runtime_of

TABLES = (".csv", ".parquet")
"""The endings of table files. A folder may be a table, as Spark writes them."""

_BLOCK = 1 << 26
"""How many bytes of a CSV file are read to infer its column types."""


def rows_of(data: Any) -> pa.Table:
    """The rows of a pyarrow Table, a pandas, polars or Spark frame (which is collected), a list of
    dicts, or a dict of columns. In a pandas frame, NaN is a parameter that has no value.

    >>> rows_of([{"low": 5, "country": "DE"}, {"low": 7, "country": None}]).num_rows
    2
    """
    if isinstance(data, Mapping):
        return pa.table(dict(data))
    if isinstance(data, list) and all(isinstance(row, Mapping) for row in data):
        return pa.Table.from_pylist(data)
    source = to_arrow(runtime_of(data).collected(data), nan_is_null=True)
    check_readable(reasons(source.schema), source.schema.names)
    return as_table(source)


def read_rows(path: Path) -> pa.Table:
    """The rows of a file. In a CSV file an empty field is NULL, and nothing else is: the country
    NA is a country. Names of rules are text, and so are numbers that begin with a zero: codes."""
    try:
        if path.suffix.lower() != ".csv":
            return pa.dataset.dataset(path, format="parquet").to_table()
        rows = _csv(path, ()).to_table()
        whole = [field.name for field in rows.schema if pa.types.is_integer(field.type)]
        texts = _csv(path, whole).to_table(columns=whole)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"the table can't be read: {str(error).splitlines()[0]}") from None
    for name in whole:
        if pc.any(pc.match_substring_regex(texts[name], "^[+-]?0[0-9]")).as_py():
            rows = rows.set_column(rows.column_names.index(name), name, texts[name])
    return rows


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
