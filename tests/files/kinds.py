"""Kinds of values × readers of files: what a column of each kind is in CSV, in lines of JSON and in
Parquet, as a value and as a time. `docs/data.md` has the same table for users."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

NAIVE = datetime(2026, 1, 31, 12, 0, 0, 5)
NOON = NAIVE.replace(tzinfo=UTC)
EARLIER = datetime(2026, 1, 31, 10, tzinfo=UTC)
HUGE = 2**64 - 1


@dataclass(frozen=True)
class Kind:
    """`cell` is a value in a file of text, in JSON with quotes if it is a str, and read as `text`;
    `stored` is one in Parquet, read as `value`, and on Spark as `on_spark`, if that differs.
    `as_time` is what the cell is as an event time; None if it can't be one. `beside` is the cell of
    another row, if that isn't the same."""

    cell: object
    text: Any
    stored: pa.Array
    value: Any
    as_time: Any = None
    on_spark: Any = None
    beside: object = None


KINDS = {
    "integer": Kind(7, 7, pa.array([7], pa.int32()), 7, as_time=7),
    "unsigned": Kind(200, 200, pa.array([200], pa.uint8()), 200, as_time=200),
    "huge": Kind(HUGE, str(HUGE), pa.array([HUGE], pa.uint64()), HUGE, on_spark=Decimal(HUGE)),
    "number": Kind(1.5, 1.5, pa.array([1.5]), 1.5),
    "decimal": Kind(12.3, 12.3, pa.array([Decimal("12.30")]), Decimal("12.30")),
    "boolean": Kind(True, True, pa.array([True]), True),
    "word": Kind("naïve", "naïve", pa.array(["naïve"]), "naïve"),
    "code": Kind("007", "007", pa.array(["007"]).dictionary_encode(), "007"),
    "date": Kind("2026-01-31", NOON.date(), pa.array([NOON.date()]), NOON.date(), NOON.date()),
    "zoned": Kind("2026-01-31T12:00:00+02:00", EARLIER, pa.array([EARLIER]), EARLIER, EARLIER),
    "naive": Kind("2026-01-31 12:00:00.000005", NOON, pa.array([NAIVE]), NAIVE, NOON),
    "finer": Kind(
        "2026-01-31T12:00:00.000005999Z",
        NOON,
        pa.array([1769860800000005999], pa.timestamp("ns", "UTC")),
        NOON,
        NOON,
    ),
    "duration": Kind(
        5_000_000,
        5_000_000,
        pa.array([timedelta(seconds=5)], pa.duration("us")),
        timedelta(seconds=5),
        5_000_000,
        on_spark=5_000_000,
    ),
    "clock": Kind("09:30:00", "09:30:00", pa.array([time(9, 30)]), time(9, 30)),
    "nothing": Kind(None, None, pa.nulls(1), None),
    "not a number": Kind("NaN", None, pa.array([float("nan")]), "NaN", beside=0.5),
}


def read_value(value: Any) -> Any:
    """A value that was read, as it is in the table: NaN isn't equal to itself."""
    return "NaN" if isinstance(value, float) and value != value else value


def write_text(path: Path, rows: list[dict[str, object]]) -> Path:
    """CSV or lines of JSON, as the ending says."""
    if path.suffix == ".csv":
        cells = [["" if cell is None else str(cell) for cell in row.values()] for row in rows]
        lines = [",".join(line) for line in [list(rows[0]), *cells]]
    else:
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def write_kinds(path: Path) -> Path:
    """A row with a column of each kind and the event time 1; and another that is to be left."""
    first = {"t": 1, **{name: kind.cell for name, kind in KINDS.items()}}
    other = {name: kind.beside for name, kind in KINDS.items() if kind.beside is not None}
    return write_text(path, [first, {**first, **other, "t": 2}])


def write_parquet(path: Path, *without: str) -> Path:
    columns = {name: kind.stored for name, kind in KINDS.items() if name not in without}
    pq.write_table(pa.table({"t": [1], **columns}), path)
    return path
