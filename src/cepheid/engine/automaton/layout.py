"""Rows key by key: what an automaton's kernel goes through.

The rows of each class are sorted by key, then position, so that the events of a key lie side by
side, and all that a match of it needs is near.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.engine.columns import Column, as_integers
from cepheid.engine.store import EventStore

Ints = NDArray[np.int64]

Key = tuple[Column | None, ...]
"""One part of the key: the column of each class."""


@dataclass(frozen=True)
class Listed:
    """The rows of a class: `rows[begins[k]:ends[k]]` are those of key k, in order; `at` are their
    positions."""

    rows: Ints
    at: Ints
    begins: Ints
    ends: Ints

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints, Ints]:
        return self.rows, self.at, self.begins, self.ends


def lay_out(
    store: EventStore, positions: Ints, classes: Sequence[Ints], key: Sequence[Key]
) -> tuple[list[Listed], int]:
    """The classes' rows key by key, and the number of keys. A class that has no column for the key
    is whole in every key."""
    if not key:
        return [_whole(rows, positions, 1) for rows in classes], 1
    parted = [n for n in range(len(classes)) if all(part[n] is not None for part in key)]
    codes, keys = _codes(
        store, [classes[n] for n in parted], [[part[n] for n in parted] for part in key]
    )
    of = dict(zip(parted, codes, strict=True))
    return [
        _parted(rows, of[n], keys, positions) if n in of else _whole(rows, positions, keys)
        for n, rows in enumerate(classes)
    ], keys


def _whole(rows: Ints, positions: Ints, keys: int) -> Listed:
    return Listed(rows, positions[rows], np.zeros(keys, np.int64), np.full(keys, len(rows)))


def _codes(
    store: EventStore, classes: list[Ints], key: list[list[Column | None]]
) -> tuple[list[Ints], int]:
    """A number for each row of each class; equal where the keys are."""
    cuts = np.cumsum([len(rows) for rows in classes])
    combined: Ints | None = None
    keys = 1
    for part in key:
        same = all(column == part[0] for column in part)
        if same and part[0] is not None:
            # One encoding of the whole store serves all classes.
            everything, count = _encode(as_integers(store.values[part[0]]))
            own = np.concatenate([everything[rows] for rows in classes])
        else:
            values = [
                as_integers(store.values[column][rows])
                for column, rows in zip(part, classes, strict=True)
                if column is not None
            ]
            own, count = _encode(np.concatenate(values))
        if combined is None:
            combined, keys = own, count
        else:
            combined, keys = _encode(combined * count + own)
    assert combined is not None
    return np.split(combined, cuts[:-1]), keys


def _encode(values: Ints) -> tuple[Ints, int]:
    encoded = pc.dictionary_encode(pa.array(values))
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _parted(rows: Ints, codes: Ints, keys: int, positions: Ints) -> Listed:
    order = _order(codes, keys)
    rows = rows[order]
    counts = np.bincount(codes, minlength=keys)
    ends = np.cumsum(counts)
    return Listed(rows, positions[rows], ends - counts, ends)


def _order(codes: Ints, keys: int) -> Ints:
    """What sorts the codes and keeps the order of equal ones. NumPy sorts 16-bit numbers digit by
    digit, which is many times faster than comparing."""
    low = (codes & 0xFFFF).astype(np.uint16)
    order = np.argsort(low, kind="stable")
    if keys > 1 << 16:
        high = (codes >> 16).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order
