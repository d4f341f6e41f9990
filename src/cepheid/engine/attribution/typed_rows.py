"""Converts alerts back to columns of a rule's own types: the inverse of `as_json`.

Numbers are kept as they are written until their type is known, so that none is rounded twice.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from cepheid.engine.attribution.json_rows import MATCH
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.errors import DataError

Read: TypeAlias = Callable[[Any], Any]

_MICROSECOND = timedelta(microseconds=1)
_NANOSECONDS = re.compile(r"\.\d{6}(\d{3})")
_PER_MICROSECOND = {"s": (1, 1_000_000), "ms": (1, 1_000), "us": (1, 1), "ns": (1_000, 1)}


def typed(matches: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The alerts of one rule, in the columns that it returns.

    >>> found = pa.record_batch({"match": ['{"x":0.1}'], "match_start": [1], "match_end": [2]})
    >>> columns = {"x": pa.float32(), "match_start": pa.int64(), "match_end": pa.int64()}
    >>> typed(found, pa.schema(columns)).to_pylist()
    [{'x': 0.10000000149011612, 'match_start': 1, 'match_end': 2}]
    """
    texts = matches.column(MATCH).to_pylist()
    rows = [json.loads(text, parse_int=str, parse_float=str) for text in texts]
    arrays = []
    for field in schema:
        if field.name in (MATCH_START, MATCH_END):
            arrays.append(matches.column(field.name).cast(field.type))
        else:
            arrays.append(_array([_value(row, field.name) for row in rows], field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _value(row: Any, name: str) -> Any:
    if not isinstance(row, dict) or name not in row:
        raise DataError(
            f"the matches have no `{name}` for this rule: they come from another set of rules, or "
            "the rule has changed since"
        )
    return row[name]


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    try:
        if pa.types.is_float32(type_) or pa.types.is_float64(type_):
            return pa.array(values, pa.string()).cast(type_)
        return pa.array(list(map(_reader(type_), values)), type_)
    except (ValueError, TypeError, ArithmeticError) as error:  # Arrow's errors are among them
        raise DataError(
            f"the matches aren't {type_}: {error}; pass the events of that run, or others with "
            "the same columns"
        ) from None


def _reader(type_: pa.DataType) -> Read:
    """From JSON to a value that Arrow takes for the type; NULL stays NULL."""
    read = _of_values(type_)
    return lambda value: None if value is None else read(value)


def _of_values(type_: pa.DataType) -> Read:
    is_ = pa.types
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_):
        element = _reader(type_.value_type)
        return lambda values: list(map(element, values))
    if is_.is_map(type_):
        key, item = _reader(type_.key_type), _reader(type_.item_type)
        return lambda values: [(key(k), item(v)) for k, v in _pairs(values)]
    if is_.is_struct(type_):
        parts = {field.name: _reader(field.type) for field in type_}
        return lambda value: {name: read(value[name]) for name, read in parts.items()}
    if is_.is_timestamp(type_):
        return _moments(type_)
    plain: tuple[tuple[Callable[[pa.DataType], bool], Read], ...] = (
        (is_.is_boolean, lambda value: value in (True, "true")),  # a text: the key of a map
        (is_.is_integer, int),
        (is_.is_floating, float),
        (is_.is_decimal, Decimal),
        (is_.is_date, date.fromisoformat),
        (is_.is_time, time.fromisoformat),
        (is_.is_duration, lambda text: timedelta(microseconds=int(text))),
        (is_.is_binary, base64.b64decode),
        (is_.is_large_binary, base64.b64decode),
        (is_.is_fixed_size_binary, base64.b64decode),
    )
    return next((read for test, read in plain if test(type_)), lambda value: value)


def _pairs(values: Any) -> Iterable[Any]:
    """A map is an object; earlier versions wrote an array of pairs."""
    return values.items() if isinstance(values, dict) else values


def _moments(type_: pa.DataType) -> Read:
    """Ticks since 1970, in the type's unit: Python's own moments have no nanoseconds."""
    epoch = datetime(1970, 1, 1, tzinfo=None if type_.tz is None else UTC)
    times, over = _PER_MICROSECOND[type_.unit]

    def read(text: str) -> int:
        ticks = (datetime.fromisoformat(text) - epoch) // _MICROSECOND * times // over
        beyond = _NANOSECONDS.search(text)
        return ticks if beyond is None else ticks + int(beyond[1])

    return read
