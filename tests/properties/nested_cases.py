"""Queries and events with their values in structs, arrays and maps."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa

from cepheid.algebra.types import Schema, Type
from tests.corpus.reader import Case
from tests.oracle.events import Event

PLACES = {"x": "r.x", "id": "r.inner.id", "s": "t[1]", "y": "m['y']"}
"""Where the attributes of a flat event are in a nested one."""

TYPES = {
    "r": pa.struct([("x", pa.int64()), ("inner", pa.struct([("id", pa.int64())]))]),
    "t": pa.list_(pa.string()),
    "m": pa.map_(pa.string(), pa.float64()),
}


READ = re.compile(r"\[[\w, =']+\]|(?<=\w\.)(?:x|id|s|y)\b")
"""A key in brackets, or the attribute of a variable."""


def nested_text(text: str) -> str:
    return READ.sub(lambda read: re.sub(r"\b(x|id|s|y)\b", _place, read[0]), text)


def _place(name: re.Match[str]) -> str:
    return PLACES[name[0]]


def nested_event(event: Event) -> Event:
    """What is NULL isn't there, in one of several ways."""
    x, id_, s, y = (event.values[name] for name in PLACES)
    inner = None if id_ is None else {"id": id_}
    values = {
        **{name: value for name, value in event.values.items() if name not in PLACES},
        "r": None if x is None and inner is None else {"x": x, "inner": inner},
        "t": [""] if s is None else ["", s],
        "m": {"z": 0.0} if y is None else {"z": 0.0, "y": y},
    }
    return replace(event, values=values)


def nested_schema(schema: Schema) -> Schema:
    columns = {name: kind for name, kind in schema.columns.items() if name not in PLACES}
    columns |= dict.fromkeys(TYPES, Type.OTHER)
    return replace(schema, columns=columns, nested=TYPES)


def nested_case(case: Case) -> Case:
    return replace(
        case,
        query_text=nested_text(case.query_text),
        schema=nested_schema(case.schema),
        events=tuple(map(nested_event, case.events)),
    )
