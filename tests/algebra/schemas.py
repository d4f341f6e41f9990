"""The schemas that binding is tested against, by the names that the fixtures use."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from cepheid.algebra import STREAM_COLUMN, Schema, Type
from cepheid.language.ast import Unit

_COLUMNS = {
    "ts": Type.INTEGER,
    "type": Type.STRING,
    "id": Type.INTEGER,
    "user": Type.INTEGER,
    "x": Type.INTEGER,
    "price": Type.FLOAT,
    "cost": Type.DECIMAL,
    "name": Type.STRING,
    "ok": Type.BOOLEAN,
    "at": Type.TIMESTAMP,
    "on": Type.DATE,
    "tags": Type.OTHER,
}

TYPED = Schema(_COLUMNS, time="ts", type="type")
"""Integer time, and a type column."""

STAMPED = Schema({**_COLUMNS, "ts": Type.TIMESTAMP}, time="ts", type="type")

UNTYPED = Schema(_COLUMNS, time="ts")

STREAMS = Schema(
    {
        STREAM_COLUMN: Type.STRING,
        "ts": Type.INTEGER,
        "id": Type.INTEGER,
        "price": Type.FLOAT,
        "volume": Type.INTEGER,
        "bid": Type.FLOAT,
    },
    time="ts",
    type=STREAM_COLUMN,
    streams={
        "Trade": frozenset(("ts", "id", "price", "volume")),
        "Quote": frozenset(("ts", "id", "bid")),
    },
)

_NESTED = {
    "request": pa.struct(
        [("ip", pa.string()), ("user", pa.struct([("name", pa.string()), ("ip", pa.string())]))]
    ),
    "tags": pa.list_(pa.string()),
    "headers": pa.map_(pa.string(), pa.int64()),
    "items": pa.list_(pa.struct([("name", pa.string()), ("price", pa.float64())])),
}

NESTED = replace(
    TYPED,
    columns={"ts": Type.INTEGER, "type": Type.STRING, "x": Type.INTEGER}
    | dict.fromkeys(_NESTED, Type.OTHER),
    nested=_NESTED,
)

SCHEMAS = {
    "typed": TYPED,
    "nested": NESTED,
    "stamped": STAMPED,
    "untyped": UNTYPED,
    "streams": STREAMS,
    "milliseconds": replace(TYPED, unit=Unit.MILLISECONDS),
}
