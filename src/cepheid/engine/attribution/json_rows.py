"""Alerts: matches of rules, in the same columns for all rules, with RETURN's values as JSON.

So the columns stay the same whatever the rules are, also when they change while a stream runs.
"""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.engine.match_schema import MATCH_END, MATCH_START

RULE, MATCH = "rule", "match"
"""The rule's name, and RETURN's values."""

KEY, TEMPLATE = "key", "template"
"""The value of the key that the match's events agree in, as text, and the name of the rule's
query."""

KEY_PARTS = "__key_"
"""What the names of columns begin with that a rule's query returns for `key`."""

_ESCAPED = r'["\\\x00-\x1f]'


def alert_schema(rules: pa.Table, time: pa.DataType) -> pa.Schema:
    """The columns of an alert: the rule, the match's start and end, RETURN, the key, and the rules'
    carried columns, the template first."""
    carried = [rules.schema.field(name) for name in rules.column_names if name != RULE]
    fixed = [
        pa.field(RULE, pa.string()),
        pa.field(MATCH_START, time),
        pa.field(MATCH_END, time),
        pa.field(MATCH, pa.string()),
        pa.field(KEY, pa.string()),
    ]
    return pa.schema([*fixed, *carried])


def alert_rows(
    rules: pa.Table, numbers: NDArray[np.int64], matches: pa.RecordBatch, schema: pa.Schema
) -> pa.RecordBatch:
    """Alerts from matches of the rules with these numbers."""
    parts = [name for name in matches.schema.names if name.startswith(KEY_PARTS)]
    named = rules.take(pa.array(numbers)).combine_chunks()
    columns = {
        **{name: named[name].combine_chunks() for name in named.column_names},
        MATCH_START: matches.column(MATCH_START),
        MATCH_END: matches.column(MATCH_END),
        MATCH: as_json(matches.drop_columns([MATCH_START, MATCH_END, *parts])),
        KEY: key_text(matches.select(parts)),
    }
    arrays = [columns[name].cast(schema.field(name).type) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def as_json(batch: pa.RecordBatch) -> pa.Array:
    """Each row as an object. Times are ISO 8601, bytes Base64; NaN and infinities, which JSON has
    no numbers for, are texts.

    >>> as_json(pa.record_batch({"x": [1, None], "s": ['a"b', "c"]})).to_pylist()
    ['{"x":1,"s":"a\\\\"b"}', '{"x":null,"s":"c"}']
    """
    if not batch.num_columns:
        return pa.repeat("{}", batch.num_rows)
    parts: list[Any] = []
    for n, name in enumerate(batch.schema.names):
        parts += [f"{',' if n else '{'}{json.dumps(name, ensure_ascii=False)}:"]
        parts += [pc.fill_null(_values(batch.column(n)), "null")]
    return pc.binary_join_element_wise(*parts, "}", "").cast(pa.string())


def key_text(parts: pa.RecordBatch) -> pa.Array:
    """Each row as text: a value as it is, several as a JSON array; NULL where there is no key.

    >>> key_text(pa.record_batch({"__key_1": ["de", "fr"]})).to_pylist()
    ['de', 'fr']
    >>> key_text(pa.record_batch({"__key_1": ["de", "fr"], "__key_2": [7, 8]})).to_pylist()
    ['["de",7]', '["fr",8]']
    """
    if not parts.num_columns:
        return pa.nulls(parts.num_rows, pa.string())
    if parts.num_columns == 1:
        values = parts.column(0)
        return values if pa.types.is_string(values.type) else pc.utf8_trim(_values(values), '"')
    texts = [pc.fill_null(_values(column), "null") for column in parts.columns]
    inside = pc.binary_join_element_wise(*texts, ",")
    return pc.binary_join_element_wise("[", inside, "]", "")


def _values(array: pa.Array) -> pa.Array:
    """Each value as JSON; NULL stays NULL."""
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return array.cast(pa.string())
    if pa.types.is_floating(kind) and not _some(pc.invert(pc.is_finite(array))):
        return array.cast(pa.string())
    if pa.types.is_string(kind) and not _some(pc.match_substring_regex(array, _ESCAPED)):
        return pc.binary_join_element_wise('"', array, '"', "")
    if pa.types.is_struct(kind) and kind.num_fields and not any(_maps(kind)):
        return _structs(array)
    return _each_encoded(array)


def _structs(array: pa.Array) -> pa.Array:
    """Each struct as an object."""
    parts: list[Any] = []
    for field, values in zip(array.type, array.flatten(), strict=True):
        parts += [f"{',' if parts else '{'}{_encode(field.name)}:"]
        floats = pa.types.is_floating(field.type)  # Python writes 1.0 where Arrow writes 1
        texts = _each_encoded(values) if floats else _values(values)
        parts += [pc.fill_null(texts, "null")]
    objects = pc.binary_join_element_wise(*parts, "}", "").cast(pa.string())
    return pc.if_else(array.is_valid(), objects, pa.scalar(None, pa.string()))


def _each_encoded(array: pa.Array) -> pa.Array:
    """Each value in Python; of plain values, each distinct one once."""
    if any(is_plain(array.type) for is_plain in _PLAIN):
        distinct = array.dictionary_encode()
        return _encoded(distinct.dictionary).take(distinct.indices)
    return _encoded(array)


def _encoded(array: pa.Array) -> pa.Array:
    texts = [None if v is None else _encode(finite(v)) for v in json_values(array)]
    return pa.array(texts, pa.string())


def _encode(value: Any) -> str:
    return _ENCODER.encode(value)


def json_values(array: pa.Array) -> list[Any]:
    """The values as Python objects. Maps are dicts, as they are objects in what Spark writes; of a
    key that a map has twice, the last value counts. Maps whose keys are structs, lists or maps
    remain lists of pairs.

    >>> json_values(pa.array([[(1, True)]], pa.map_(pa.int64(), pa.bool_())))
    [{'1': True}]
    """
    keys = [of_map.key_type for of_map in _maps(array.type)]
    if not keys or any(map(pa.types.is_nested, keys)):
        values: list[Any] = array.to_pylist()
        return values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of keys that occur twice
        return [_with_text_keys(value) for value in array.to_pylist(maps_as_pydicts="lossy")]


def _maps(type_: pa.DataType) -> Iterator[pa.MapType]:
    """The maps in a type, itself among them."""
    if pa.types.is_map(type_):
        yield type_
    for n in range(type_.num_fields):
        yield from _maps(type_.field(n).type)


def _with_text_keys(value: Any) -> Any:
    match value:
        case dict():
            return {_key(name): _with_text_keys(part) for name, part in value.items()}
        case list():
            return [_with_text_keys(part) for part in value]
        case _:
            return value


def _key(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return value if isinstance(value, str) else str(plain(value))


def _some(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())


def finite(value: Any) -> Any:
    """JSON has neither NaN nor infinity; as in what Spark writes, their names stand for them.

    >>> finite({"x": [float("nan"), 1.5, float("-inf")]})
    {'x': ['NaN', 1.5, '-Infinity']}
    """
    match value:
        case float() if value != value:
            return "NaN"
        case float() if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {name: finite(part) for name, part in value.items()}
        case list() | tuple():
            return [finite(part) for part in value]
        case _:
            return value


def plain(value: Any) -> Any:
    """The text for a value that JSON can't express."""
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value // timedelta(microseconds=1)
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return str(value)


_PLAIN = (
    pa.types.is_temporal,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_decimal,
)
_ENCODER = json.JSONEncoder(default=plain, separators=(",", ":"), ensure_ascii=False)
