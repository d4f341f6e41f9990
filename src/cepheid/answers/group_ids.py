"""Numbers for groups: equal values of the group expressions have the same one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]

_NAN = object()
_MANY = 10_000
"""Groups that are kept although nothing is known of most of them any more."""


class GroupIds:
    """Groups that have been seen. -0.0 is 0.0, every NaN is the same, and NULL is a value."""

    def __init__(self, types: list[pa.DataType]) -> None:
        self._types = types
        self._ids: dict[tuple[Any, ...], int] = {}
        self._columns = [pa.array([], type_) for type_ in types]

    def __len__(self) -> int:
        return len(self._ids)

    def of(self, columns: list[pa.Array], rows: int) -> Ints:
        """The group of each row."""
        if not columns:
            return np.zeros(rows, np.int64)
        plain = [normalized(column) for column in columns]
        codes, many = numbered(plain)
        first = np.empty(many, np.int64)
        first[codes[::-1]] = np.arange(rows)[::-1]
        return self._numbered([column.take(pa.array(first)) for column in plain])[codes]

    def _numbered(self, columns: list[pa.Array]) -> Ints:
        """The groups of different values; new ones are entered."""
        known = len(self._ids)
        values = zip(*(_plain(column) for column in columns), strict=True)
        ids = np.array([self._ids.setdefault(key, len(self._ids)) for key in values], np.int64)
        fresh = pa.array(np.flatnonzero(ids >= known))
        if len(fresh):
            self._columns = [
                pa.concat_arrays([old, column.take(fresh)])
                for old, column in zip(self._columns, columns, strict=True)
            ]
        return ids

    def columns(self, ids: Ints) -> list[pa.Array]:
        """The values of the group expressions of these groups."""
        return [column.take(pa.array(ids)) for column in self._columns]

    def renumbered(self, ids: Ints) -> Ints:
        """The new numbers of the groups of these cells. Groups are forgotten that none is of, once
        they are the most."""
        live = np.unique(ids)
        if len(self._ids) < _MANY or 2 * len(live) > len(self._ids):
            return ids
        columns = self.columns(live)
        self._ids, self._columns = {}, [pa.array([], type_) for type_ in self._types]
        self._numbered(columns)
        return np.searchsorted(live, ids)


def numbered(columns: Sequence[pa.Array]) -> tuple[Ints, int]:
    """A number for each row, and how many there are: rows that agree on all columns have the
    same."""
    codes, many = np.zeros(len(columns[0]), np.int64), 1
    for n, column in enumerate(columns):
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes, many = codes * len(encoded.dictionary) + indices, many * len(encoded.dictionary)
        if n:
            codes, many = _compact(codes, many)
    return codes, many


def _compact(codes: Ints, below: int) -> tuple[Ints, int]:
    """The same with all numbers in use."""
    if below > 4 * len(codes) + _MANY:
        values, places = np.unique(codes, return_inverse=True)
        return places.astype(np.int64), len(values)
    used = np.zeros(below, np.bool_)
    used[codes] = True
    places = np.cumsum(used) - 1
    return places[codes], int(used.sum())


def normalized(column: pa.Array) -> pa.Array:
    """Values that are equal as SQL groups them are the same."""
    if not pa.types.is_floating(column.type):
        return column
    column = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)


def _plain(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [_NAN if value != value else value for value in values]
    return values
