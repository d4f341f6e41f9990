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

from cepheid.engine.arrays.columns import Column, as_integers
from cepheid.engine.rows.store import EventStore
from cepheid.kernels import load
from cepheid.kernels.compile import Kernel
from cepheid.kernels.templates.automaton import SORT

Ints = NDArray[np.int64]

Key = tuple[Column | None, ...]
"""One part of the key: the column of each class."""

DENSE = 2
"""Key codes may use up to this many numbers per row, also for keys that no row has."""


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
    store: EventStore, positions: Ints, classes: Sequence[Ints], key: Sequence[Key], jit: bool
) -> tuple[list[Listed], int]:
    """The classes' rows key by key, and the number of keys. A class that has no column for the key
    is whole in every key. A row whose key is NULL is in none: NULL equals nothing. (The key of a
    part of the pattern is the part's own, so the classes still have such rows.)"""
    if not key:
        return [_whole(rows, positions, 1) for rows in classes], 1
    read = [tuple(part[n] for part in key) for n in range(len(classes))]
    codes, keys = _codes(
        store, list(dict.fromkeys(columns for columns in read if None not in columns))
    )
    sort = load(SORT, jit)
    known: dict[tuple[Key, int, int], Listed] = {}  # of classes without a gap
    lists: list[Listed] = []
    for rows, columns in zip(classes, read, strict=True):
        if None in columns:
            lists.append(_whole(rows, positions, keys))
            continue
        place = (columns, int(rows[0]), len(rows)) if _gapless(rows) else None
        listed = known.get(place) if place else None
        if listed is None:
            listed = _by_key(_with_key(rows, store, columns), codes[columns], keys, positions, sort)
            if place:
                known[place] = listed
        lists.append(listed)
    return lists, keys


def _gapless(rows: Ints) -> bool:
    """Whether a class has taken every row, as all do in a stream of one type: then it shares its
    list with the others."""
    return len(rows) > 0 and int(rows[-1]) - int(rows[0]) + 1 == len(rows)


def _whole(rows: Ints, positions: Ints, keys: int) -> Listed:
    return Listed(rows, positions[rows], np.zeros(keys, np.int64), np.full(keys, len(rows)))


def _with_key(rows: Ints, store: EventStore, columns: Key) -> Ints:
    for column in columns:
        valid = None if column is None else store.valid[column]
        if valid is not None:
            rows = rows[valid[rows]]
    return rows


def _codes(store: EventStore, read: list[Key]) -> tuple[dict[Key, Ints], int]:
    """For each of the tuples of columns, a number for each row of the store; equal where the keys
    are. Mostly all classes read the same columns."""
    combined: Ints | None = None
    keys = 1
    for part in zip(*read, strict=True):
        values = [as_integers(store.values[column]) for column in part if column is not None]
        column_codes, count = _encode(values[0] if len(values) == 1 else np.concatenate(values))
        if combined is None:
            combined, keys = column_codes, count
        else:
            combined, keys = _encode(combined * count + column_codes)
    assert combined is not None
    return dict(zip(read, np.split(combined, len(read)), strict=True)), keys


def key_codes(store: EventStore, columns: Key) -> tuple[Ints, int]:
    """For each row of the store a number of its key, and how many numbers there are."""
    codes, keys = _codes(store, [columns])
    return codes[columns], keys


def _encode(values: Ints) -> tuple[Ints, int]:
    """Codes from 0 up, and their number. Integers that lie close together are their own codes."""
    if len(values) == 0:
        return values, 0
    low, high = int(values.min()), int(values.max())
    if high - low < DENSE * len(values):
        return values if low == 0 else values - low, high - low + 1
    encoded = pc.dictionary_encode(pa.array(values))
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _by_key(rows: Ints, codes: Ints, keys: int, positions: Ints, sort: Kernel) -> Listed:
    begins, ends = np.zeros(keys, np.int64), np.zeros(keys, np.int64)
    listed, at = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    sort(codes, rows, positions, begins, ends, listed, at)
    return Listed(listed, at, begins, ends)
