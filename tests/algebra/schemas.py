"""The schemas that binding is tested against, by the names that the fixtures use."""

from __future__ import annotations

from dataclasses import replace

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

SCHEMAS = {
    "typed": TYPED,
    "stamped": STAMPED,
    "untyped": UNTYPED,
    "streams": STREAMS,
    "milliseconds": replace(TYPED, unit=Unit.MILLISECONDS),
}
