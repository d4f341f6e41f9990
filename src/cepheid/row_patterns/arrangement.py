"""Rows arranged as a matcher reads them: partition after partition, each in its order. Values of
expressions over such rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Expr
from cepheid.engine.arrays.columns import as_integers, decoded, in_one
from cepheid.engine.arrays.vector import evaluate
from cepheid.row_patterns.syntax import SortKey

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Arrangement:
    """`rows` are the numbers of the rows in their new order (None: as they are). Partition n is
    from `begins[n]` to `begins[n + 1]`."""

    rows: Rows | None
    begins: Rows

    def apply(self, table: pa.Table) -> pa.Table:
        table = table.combine_chunks()
        return table if self.rows is None else table.take(pa.array(self.rows))


def arrange(table: pa.Table, partition: Sequence[str], order: Sequence[SortKey]) -> Arrangement:
    """Rows with equal order keys stay in the order in which they are given."""
    length = table.num_rows
    codes = _partition_codes([_whole(table, name) for name in partition], length)
    keys = [key for item in order for key in _sort_keys(_whole(table, item.column), item)]
    rows = None if codes is None else _by_partition(codes)
    begins = _begins(codes, rows, length)
    if not _is_sorted(keys, rows, begins):
        given: list[Rows] = [*reversed(keys), *([] if codes is None else [codes])]
        rows = np.lexsort(given).astype(np.int64, copy=False)
    return Arrangement(rows, begins)


def _whole(table: pa.Table, name: str) -> pa.Array:
    return decoded(table.column(name).combine_chunks())


def _begins(codes: Rows | None, rows: Rows | None, length: int) -> Rows:
    if length == 0:
        return np.zeros(1, np.int64)
    if codes is None or rows is None:
        return np.array([0, length], np.int64)
    arranged = codes[rows]
    changes = np.flatnonzero(arranged[1:] != arranged[:-1]) + 1
    return np.concatenate(([0], changes, [length])).astype(np.int64)


def _partition_codes(columns: Sequence[pa.Array], length: int) -> Rows | None:
    """A number for each row, equal where all values are; NULL equals NULL. Partitions are numbered
    as they first appear."""
    if not columns:
        return None
    mixed = np.zeros(length, np.int64)
    for column in columns:
        codes, count = _codes(column)
        mixed, _ = _codes(pa.array(mixed * count + codes)) if len(columns) > 1 else (codes, count)
    return mixed


def _codes(column: pa.Array) -> tuple[Rows, int]:
    if pa.types.is_floating(column.type):  # every NaN is one, and so are both zeros
        whole = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        nulls = pc.is_null(column)
        column = pc.if_else(nulls, pa.scalar(None, pa.int64()), pa.array(as_integers(whole)))
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, max(1, len(encoded.dictionary))


def _by_partition(codes: Rows) -> Rows:
    """The rows of each partition together, in the order in which they are given."""
    if codes.size and codes.max() < 1 << 16:
        codes = codes.astype(np.uint16)  # NumPy sorts short integers by their digits
        return np.argsort(codes, kind="stable")
    return _by_digits(codes)


def _by_digits(codes: Rows) -> Rows:
    low = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
    rest = codes >> 16
    while rest.any():
        low = low[np.argsort((rest[low] & 0xFFFF).astype(np.uint16), kind="stable")]
        rest = rest >> 16
    return low


def _sort_keys(column: pa.Array, key: SortKey) -> list[Rows]:
    """Integers that have the order of the values; if some are NULL, first one that says so."""
    numbers = ordered_integers(column)
    keys = [~numbers if key.descending else numbers]
    if column.null_count:
        # NULL is the least value, unless the query says where it goes.
        first = not key.descending if key.nulls_first is None else key.nulls_first
        null = pc.is_null(column).to_numpy(zero_copy_only=False)
        keys.insert(0, (~null if first else null).astype(np.int64))
    return keys


def ordered_integers(column: pa.Array) -> Rows:
    """An integer per value with the order of the values; NaN is the largest number."""
    type_ = column.type
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_):
        if pa.types.is_uint64(type_):
            return _ranks(column)
        return _filled(column.cast(pa.int64()))
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_) or pa.types.is_date64(type_):
        return _filled(column.cast(pa.int64()))
    if pa.types.is_date32(type_):
        return _filled(column.cast(pa.int32()).cast(pa.int64()))
    if pa.types.is_floating(type_):
        floats = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        bits = np.where(np.isnan(floats), np.nan, floats + 0.0).view(np.int64)
        return np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    return _ranks(column)


def _filled(column: pa.Array) -> Rows:
    whole = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    filled: Rows = whole.astype(np.int64, copy=False)
    return filled


def _ranks(column: pa.Array) -> Rows:
    encoded = pc.dictionary_encode(column)
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order] = np.arange(len(order))
    ranks[-1] = 0
    indices = pc.fill_null(encoded.indices, len(order)).to_numpy(zero_copy_only=False)
    row_ranks: Rows = ranks[indices]
    return row_ranks


def _is_sorted(keys: Sequence[Rows], rows: Rows | None, begins: Rows) -> bool:
    """Whether the rows of every partition are in order as they are."""
    undecided: NDArray[np.bool_] | None = None
    for key in keys:
        arranged = key if rows is None else key[rows]
        before, after = arranged[:-1], arranged[1:]
        falls = after < before
        falls[begins[1:-1] - 1] = False
        if (falls if undecided is None else falls & undecided).any():
            return False
        equal = after == before
        undecided = equal if undecided is None else undecided & equal
    return True


@dataclass(frozen=True)
class ArrangedRows:
    """`table` has its rows partition after partition, in order; `begins` is where each begins."""

    table: pa.Table
    begins: NDArray[np.int64]
    _values: dict[Expr, pa.Array] = field(default_factory=dict)
    _shifted: dict[tuple[Expr, int], pa.Array] = field(default_factory=dict)

    @property
    def length(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> pa.Array:
        return decoded(in_one(self.table.column(name)))

    def values(self, expr: Expr) -> pa.Array:
        """An expression of every row: a column as it is, all else as predicates see it."""
        if isinstance(expr, Attribute):
            return self.column(expr.name)
        if expr not in self._values:
            self._values[expr] = evaluate(expr, lambda a: self.column(a.name), self.length)
        return self._values[expr]

    def shifted(self, expr: Expr, shift: int) -> pa.Array:
        """The expression of the row so many rows further on in the partition; else NULL."""
        if shift == 0:
            return self.values(expr)
        if (expr, shift) not in self._shifted:
            self._shifted[expr, shift] = self._moved(self.values(expr), shift)
        return self._shifted[expr, shift]

    def _moved(self, values: pa.Array, shift: int) -> pa.Array:
        steps = min(abs(shift), self.length)
        if values.null_count == 0 and (
            pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
        ):
            moved = np.roll(values.to_numpy(zero_copy_only=False), -shift)
            return pa.array(moved, values.type, mask=self._near_edge(steps, at_start=shift < 0))
        nothing = pa.nulls(steps, values.type)
        kept = values.slice(0, self.length - steps) if shift < 0 else values.slice(steps)
        moved = pa.concat_arrays([nothing, kept] if shift < 0 else [kept, nothing])
        outside = pa.array(self._near_edge(steps, at_start=shift < 0))
        return pc.if_else(outside, pa.scalar(None, values.type), moved)

    def _near_edge(self, steps: int, at_start: bool) -> NDArray[np.bool_]:
        """The rows that are less than so many steps from the start or the end of a partition."""
        near = np.zeros(self.length, np.bool_)
        begins, ends = self.begins[:-1], self.begins[1:]
        for step in range(min(steps, int(np.diff(self.begins).max(initial=0)))):
            at = begins + step if at_start else ends - 1 - step
            near[at[(at < ends) & (at >= begins)]] = True
        return near
