"""RETURN's values as JSON: whole events are objects, with values as Python's json writes them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from cepheid.engine.attribution.json_rows import as_json

EVENT = pa.struct(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("at", pa.timestamp("us")),
        ("amount", pa.float64()),
        ('a "name"', pa.string()),
        ("n", pa.int64()),
        ("yes", pa.bool_()),
        ("bytes", pa.binary()),
        ("list", pa.list_(pa.float64())),
        ("inner", pa.struct([("x", pa.float64())])),
        ("nothing", pa.null()),
    ]
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {"ts": datetime(2026, 1, 2, 3, 4, 5), "at": datetime(2026, 1, 2, 3, 4, 5, 60)},
            {"ts": "2026-01-02T03:04:05+00:00", "at": "2026-01-02T03:04:05.000060"},
        ),
        ({"amount": 1.0, "n": 1, "yes": True}, {"amount": 1.0, "n": 1, "yes": True}),
        ({"amount": float("nan"), "list": [float("inf"), 2.0]}, None),
        (
            {'a "name"': 'it\'s "it"\n', "bytes": b"\xff"},
            {'a "name"': 'it\'s "it"\n', "bytes": "/w=="},
        ),
        ({"inner": {"x": 0.1}}, {"inner": {"x": 0.1}}),
        ({"inner": None, "amount": -0.0}, {"amount": -0.0}),
    ],
)
def test_an_event_is_an_object(value: dict[str, Any], text: dict[str, Any] | None) -> None:
    text = {"amount": "NaN", "list": ["Infinity", 2.0]} if text is None else text
    whole = {field.name: text.get(field.name) for field in EVENT}
    batch = pa.record_batch({"e": pa.array([value, None, value], EVENT)})
    written = json.dumps(whole, separators=(",", ":"))
    assert as_json(batch).to_pylist() == [f'{{"e":{v}}}' for v in (written, "null", written)]
