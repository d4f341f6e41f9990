"""Lines of JSON as rows (see `rows`)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from cepheid.files.bad_rows import BadRows
from cepheid.files.cell_values import is_text
from cepheid.files.text_rows import (
    EventRows,
    LineBlock,
    RejectedLine,
    RowFault,
    RowFormat,
    decoded,
    finish,
    misfit,
    settled,
    typed,
    without_time,
)

_NULL_AFTER = re.compile(rb"\}[ \t\r]*null")
"""Text that crashes pyarrow's reader: `null` in the place of an object."""


def read_json(form: RowFormat, block: LineBlock) -> EventRows:
    """The rows of a block of lines of JSON. A key that is missing is NULL."""
    text, lines = decoded(form, block.text)
    table = _fast(form, text)
    if table is not None:
        faults = without_time(form, table, {})
        if faults:
            whole = text.decode().split("\n")
            lines += [RejectedLine(r, whole[r], f) for r, f in faults.items()]
        return finish(form, block, table, faults, lines)
    numbers, kept, objects = [], [], []
    for number, line in enumerate(text.decode().split("\n")):
        if line.strip():
            parsed = parse_line(line)
            if parsed is None:
                lines.append(RejectedLine(number, line, RowFault("it isn't a JSON object")))
                continue
            numbers.append(number)
            kept.append(line)
            objects.append(parsed)
    table, faults = _one_by_one(form, kept, objects)
    faults = without_time(form, table, faults)
    lines += [RejectedLine(numbers[row], kept[row], fault) for row, fault in faults.items()]
    return finish(form, block, table, faults, lines)


class Number(str):
    """A number as it is written."""


def parse_line(line: str) -> dict[str, Any] | None:
    """The object of a line, with numbers as they are written; None if the line isn't an object."""
    try:
        value = json.loads(line, parse_int=Number, parse_float=Number, parse_constant=Number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def cell_text(value: object) -> str | None:
    """The value as the cell of a CSV file.

    >>> [cell_text(v) for v in (None, True, Number("1.50"), "x", {"a": Number("1")})]
    [None, 'true', '1.50', 'x', '{"a": "1"}']
    """
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case str():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def _fast(form: RowFormat, text: bytes) -> pa.Table | None:
    """The rows, if every value fits; None if one doesn't, or pyarrow can't tell."""
    read_as = {column.name: _read_as(column.type) for column in form.columns}
    lines = text.count(b"\n{") + text.startswith(b"{")
    plain = lines == np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n")) + (
        not text.endswith(b"\n")
    )
    if None in read_as.values() or not plain:
        return None
    if b"null" in text and _NULL_AFTER.search(text):
        return None
    options = pa.json.ParseOptions(
        explicit_schema=pa.schema(read_as), unexpected_field_behavior="ignore"
    )
    try:
        table = pa.json.read_json(pa.BufferReader(text), parse_options=options)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None
    # Objects may go over several lines, or share one.
    return settled(form, table) if table.num_rows == lines else None


def _read_as(type_: pa.DataType) -> pa.DataType | None:
    """The type that pyarrow's reader should return; None if it can't read the wanted type."""
    is_ = pa.types
    if is_.is_timestamp(type_) or is_.is_date(type_):
        return pa.string()
    known = is_.is_integer(type_) or is_.is_float64(type_) or is_.is_boolean(type_)
    return type_ if known or is_text(type_) or is_.is_nested(type_) else None


def _one_by_one(
    form: RowFormat, lines: Sequence[str], objects: Sequence[dict[str, Any]]
) -> tuple[pa.Table, dict[int, RowFault]]:
    """The rows value by value, and their faults."""
    nested = {column.name: column for column in form.columns if pa.types.is_nested(column.type)}
    texts = {
        name: pa.array([cell_text(parsed.get(name)) for parsed in objects], pa.string())
        for name in form.columns.names
        if name not in nested
    }
    table, faults = typed(form, texts, len(objects))
    for name, column in nested.items():
        values = []
        for row, line in enumerate(lines):
            value = json.loads(line).get(name)
            try:
                values.append(pa.scalar(value, column.type))
            except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError):
                values.append(pa.scalar(None, column.type))
                if form.bad_rows is not BadRows.NULL:
                    faults.setdefault(row, RowFault(misfit(column, json.dumps(value))))
        place = table.schema.get_field_index(name)
        array = pa.array([value.as_py() for value in values], column.type)
        table = table.set_column(place, column, array)
    return table, faults
