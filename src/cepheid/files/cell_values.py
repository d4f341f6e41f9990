"""Cells of text files as typed values: what a number, a date or a time may look like.

The same code runs here and on Spark's workers, so a cell is the same value everywhere. A cell that
doesn't fit is never turned into NULL here: the caller learns which ones don't, and decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.files.time_format import TimeFormat

MOMENT = pa.timestamp("us", "UTC")
"""The type of times that were text. Without an offset they are taken as UTC."""

MISSING = ("", "null", "na", "n/a", "#n/a", "nan", "none", "\\n")
"""Texts that mean NULL in columns other than text, in lower case."""

INTEGER = r"[+-]?[0-9]+"
FLOAT = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?i:inf|infinity)"
BOOLEAN = r"(?i:true|false)"
DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ZONE = r"(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
TIME = rf"{DATE}[T ][0-9]{{2}}(?::[0-9]{{2}}(?::[0-9]{{2}}(?:\.[0-9]{{1,9}})?)?)?{_ZONE}?"
"""The forms of cells. They don't check the calendar: 2026-02-30 has the form of a date."""

_HEXADECIMAL = "0[xX][0-9a-fA-F]{1,16}"  # pyarrow reads it as an integer, so it always is one
_ZONED = rf"[T :][0-9]{{2}}(?:\.[0-9]+)?{_ZONE}$"


@dataclass(frozen=True, slots=True)
class Converted:
    """The values, NULL where a cell is empty or doesn't fit; and the mask of cells that don't fit,
    None if all do."""

    values: pa.Array
    misfits: NDArray[np.bool_] | None = None


def convert(
    texts: pa.Array, type_: pa.DataType, time_format: TimeFormat | None = None
) -> Converted:
    """Cells as values of a type. `time_format` is for timestamps that aren't as in ISO 8601."""
    if is_text(type_) or pa.types.is_binary(type_):
        return Converted(texts.cast(type_))
    if time_format is None and (values := _at_once(texts, type_)) is not None:
        return Converted(values)
    cells = pc.ascii_trim_whitespace(texts)
    empty = pc.is_in(pc.ascii_lower(cells), value_set=pa.array(MISSING))
    cells = pc.if_else(empty, pa.scalar(None, pa.string()), cells)
    if time_format is not None and pa.types.is_timestamp(type_):
        plain = time_format.iso(cells)
    else:
        fits = pc.match_substring_regex(cells, f"^(?:{_form(type_)})$")
        plain = _plain(pc.if_else(fits, cells, pa.scalar(None, pa.string())), type_)
    values = _cast(plain, MOMENT if pa.types.is_timestamp(type_) else type_)
    misfits = _mask(pc.and_(pc.is_valid(cells), pc.is_null(values)))
    return Converted(values.cast(type_), misfits if misfits.any() else None)


def without_nan(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """NaN in a text means NULL."""
    nan = pc.is_nan(array)
    return pc.if_else(nan, pa.scalar(None, array.type), array) if pc.any(nan).as_py() else array


def is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _at_once(texts: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """The values if pyarrow can cast all the texts and would do it as `convert` does. Of times, all
    have an offset or none does."""
    is_ = pa.types
    if is_.is_timestamp(type_):
        # Where casting fails it is slow, so the first cell tells whether there are offsets.
        first = next((str(cell) for cell in texts if cell.is_valid), "")
        steps = [MOMENT] if re.search(_ZONED, first) else [pa.timestamp("us"), MOMENT]
    elif is_.is_integer(type_) or is_.is_floating(type_) or is_.is_date(type_):
        steps = []
    else:
        return None
    values = texts
    try:
        for step in (*steps, type_):
            values = values.cast(step)
    except pa.ArrowInvalid:
        return None
    return without_nan(values) if is_.is_floating(type_) else values


def _form(type_: pa.DataType) -> str:
    is_ = pa.types
    if is_.is_integer(type_):
        return f"{INTEGER}|{_HEXADECIMAL}"
    if is_.is_floating(type_):
        return FLOAT
    if is_.is_boolean(type_):
        return BOOLEAN
    if is_.is_date(type_):
        return DATE
    if is_.is_timestamp(type_):
        return f"{DATE}|{TIME}"
    if is_.is_decimal(type_):
        return rf"[+-]?[0-9]+(?:\.[0-9]{{0,{type_.scale}}})?"
    raise AssertionError(f"no cell can be {type_}")


def _plain(cells: pa.Array, type_: pa.DataType) -> pa.Array:
    """Cells as pyarrow's cast takes them."""
    is_ = pa.types
    if is_.is_timestamp(type_):
        cells = pc.replace_substring_regex(cells, r"(\.[0-9]{6})[0-9]+", r"\1")
        midnight = pc.if_else(pc.equal(pc.utf8_length(cells), len("2026-01-31")), "T00", "")
        cells = pc.binary_join_element_wise(cells, midnight, "")
        zone = pc.if_else(pc.match_substring_regex(cells, _ZONED), "", "Z")
        return pc.binary_join_element_wise(cells, zone, "")
    if is_.is_integer(type_) or is_.is_floating(type_) or is_.is_decimal(type_):
        return pc.replace_substring_regex(cells, r"^\+", "")
    return cells


def _cast(cells: pa.Array, type_: pa.DataType) -> pa.Array:
    """Each cell that can be cast, NULL for the others: numbers beyond a type's range, days that no
    month has. There are few of them, so halving finds them soon."""
    try:
        return cells.cast(type_)
    except pa.ArrowInvalid:
        if len(cells) == 1:
            return pa.nulls(1, type_)
    half = len(cells) // 2
    return pa.concat_arrays([_cast(cells[:half], type_), _cast(cells[half:], type_)])


def _mask(array: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)
