"""Readings of RFID tags in a shop, after SASE, section 2.

Readers above the shelves, the checkout counters and the exits see every product that passes.
Shoplifting is a product seen at a shelf and at an exit, and at no counter in between:

    PATTERN SEQ(SHELF_READING x, !COUNTER_READING y, EXIT_READING z)
    WHERE [id]
    WITHIN 3 hours

Schema: ts, type, id, category, mid, shelf_id. `id` is the product's tag, `mid` its manufacturer;
`shelf_id` is NULL away from shelves. Every product is picked up once and is gone from the shop or
back on its shelf within 2 hours, so the query above finds exactly the products stolen. Each chunk
of rows is a day of the shop, from 9 to 21 o'clock. The knobs:

- `stolen`: the share of products that leave without passing a counter.
- `misplaced`: the share that is put onto a wrong shelf (a second shelf reading) and stays there.
- `bought`: the share that passes a counter and then an exit. The rest is looked at and put back.

    >>> set(generate(1000, seed=1).column("type").to_pylist()) == set(TYPES)
    True
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import DataError
from cepheid.workloads.chunks import (
    CHUNK_ROWS,
    Chunk,
    Ints,
    chunks,
    require_share,
    strings,
    tabled,
    timestamps,
)

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("type", pa.string()),
        ("id", pa.int64()),
        ("category", pa.string()),
        ("mid", pa.int32()),
        ("shelf_id", pa.int32()),
    ]
)
TYPES = ("SHELF_READING", "COUNTER_READING", "EXIT_READING")

OPENING = int(datetime(2026, 3, 2, 9, tzinfo=UTC).timestamp()) * 1_000_000
SHELVES = 200

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_PICKING = 10 * 3600 * _SECOND
_SHELF, _COUNTER, _EXIT = range(3)
_NO_STAGE = -1
_CATEGORIES = ("food", "clothing", "books", "toys", "music", "garden")
_MANUFACTURERS = 50

# The readings of one product, by what becomes of it.
_PUT_BACK, _BOUGHT, _STOLEN, _MISPLACED = range(4)
_STAGES = np.array(
    [
        [_SHELF, _NO_STAGE, _NO_STAGE],
        [_SHELF, _COUNTER, _EXIT],
        [_SHELF, _EXIT, _NO_STAGE],
        [_SHELF, _SHELF, _NO_STAGE],
    ],
    dtype=np.int8,
)


def batches(
    rows: int,
    seed: int = 0,
    *,
    stolen: float = 0.005,
    misplaced: float = 0.01,
    bought: float = 0.6,
) -> Iterator[pa.RecordBatch]:
    """RFID readings; the module says what the knobs do."""
    for name, share in (("stolen", stolen), ("misplaced", misplaced), ("bought", bought)):
        require_share(name, share)
    if stolen + misplaced + bought > 1.0:
        raise DataError("`stolen`, `misplaced` and `bought` together are more than all products")
    thresholds = np.cumsum([1.0 - stolen - misplaced - bought, bought, stolen])
    types, categories = pa.array(TYPES), pa.array(_CATEGORIES)
    for chunk in chunks(rows, seed):
        stage, product, time, shelf = _day(chunk, thresholds)
        tag = chunk.number * CHUNK_ROWS + product
        columns = [
            timestamps(OPENING + chunk.number * _DAY + time),
            strings(stage, types),
            pa.array(tag),
            strings(tag * 2_654_435_761 % len(_CATEGORIES), categories),
            pa.array((tag * 40_503 % _MANUFACTURERS).astype(np.int32)),
            pa.array(shelf, mask=stage != _SHELF),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


generate = tabled(batches, SCHEMA)


def _day(
    chunk: Chunk, thresholds: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int8], Ints, Ints, npt.NDArray[np.int32]]:
    """One day's readings in time order: stage, product, time since opening, shelf.

    Products are added until their readings fill the chunk; the last one's may be cut off.
    """
    random, rows = chunk.random, chunk.rows
    fate = np.searchsorted(thresholds, random.random(rows), side="right")
    stages = _STAGES[fate]
    picked = random.integers(0, _PICKING, rows)
    walk = random.integers(60 * _SECOND, 100 * 60 * _SECOND, rows)
    leave = random.integers(30 * _SECOND, 15 * 60 * _SECOND, rows)
    times = np.cumsum(np.column_stack([picked, walk, leave]), axis=1)
    shelf = random.integers(0, SHELVES, rows, dtype=np.int32)
    other = (shelf + random.integers(1, SHELVES, rows, dtype=np.int32)) % SHELVES
    shelves = np.column_stack([shelf, other, shelf])

    seen = np.flatnonzero(stages.ravel() != _NO_STAGE)[:rows]
    order = seen[np.argsort(times.ravel()[seen], kind="stable")]
    return stages.ravel()[order], order // 3, times.ravel()[order], shelves.ravel()[order]
