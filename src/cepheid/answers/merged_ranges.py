"""The aggregates of ranges of partial ones, where ranges overlap.

Numbers are merged by doubling: of every place, the merger of the 1, 2, 4, 8 … entries from there
on, so a range of n entries takes at most log n of those, and none is ever taken out. Other states
are gathered, each entry for every range that it is in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.answer_shape import MatchAggregate
from cepheid.answers.aggregate_states import State, joined_states, merged, taken

Ints: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[Any]

_MOST_AT_ONCE = 1 << 20
"""Entries that are gathered at once."""
_ADDED = ("count", "approx_count", "sum", "avg")


def merged_ranges(aggregate: MatchAggregate, state: State, begins: Ints, counts: Ints) -> State:
    """The state of each range: so many entries from its beginning on."""
    if not aggregate.distinct:
        if aggregate.column is None or aggregate.function in _ADDED:
            return [_numbers(part, begins, counts, np.add, 0) for part in state]
        if aggregate.function in ("min", "max") and _ordered_numbers(state[0].type):
            return [_extreme(state[0], begins, counts, greatest=aggregate.function == "max")]
    parts = list(_gathered(aggregate, state, begins, counts))
    return joined_states(parts) if parts else taken(state, begins)


def added(values: Numbers, begins: Ints, counts: Ints) -> Numbers:
    return _doubled(values, begins, counts, np.add, 0)


def _ordered_numbers(type_: pa.DataType) -> bool:
    signed = pa.types.is_signed_integer(type_) or pa.types.is_floating(type_)
    moment = pa.types.is_timestamp(type_) or pa.types.is_duration(type_)
    return bool(signed or moment) and type_ != pa.float16()


def _extreme(values: pa.Array, begins: Ints, counts: Ints, *, greatest: bool) -> pa.Array:
    """NaN is above every number."""
    if pa.types.is_floating(values.type):
        if greatest:
            return _numbers(values, begins, counts, np.maximum, -np.inf)
        return _numbers(values, begins, counts, np.fmin, np.nan)
    whole, limits = values.cast(pa.int64()), np.iinfo(np.int64)
    if greatest:
        return _numbers(whole, begins, counts, np.maximum, limits.min).cast(values.type)
    return _numbers(whole, begins, counts, np.minimum, limits.max).cast(values.type)


def _numbers(
    values: pa.Array, begins: Ints, counts: Ints, function: np.ufunc, nothing: Any
) -> pa.Array:
    """NULL if all entries of a range are."""
    if not values.null_count:
        return pa.array(
            _doubled(values.to_numpy(zero_copy_only=False), begins, counts, function, nothing)
        )
    plain = pc.fill_null(values, pa.scalar(nothing, values.type)).to_numpy(zero_copy_only=False)
    known = pc.is_valid(values).to_numpy(zero_copy_only=False)
    some = _doubled(known, begins, counts, np.logical_or, False)
    return pa.array(_doubled(plain, begins, counts, function, nothing), mask=~some)


def _doubled(
    values: Numbers, begins: Ints, counts: Ints, function: np.ufunc, nothing: Any
) -> Numbers:
    out = np.full(len(begins), nothing, values.dtype)
    at = begins
    with np.errstate(invalid="ignore", over="ignore"):
        for bit in range(int(counts.max(initial=0)).bit_length()):
            step = 1 << bit
            rows = np.flatnonzero(counts & step)
            out[rows] = function(out[rows], values[at[rows]])
            at = at + (counts & step)
            values = function(values[:-step], values[step:])
    return out


def _gathered(
    aggregate: MatchAggregate, state: State, begins: Ints, counts: Ints
) -> Iterator[State]:
    total = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        before = int(total[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, before + _MOST_AT_ONCE, "right")))
        count = counts[begin:end]
        bounds = np.cumsum(count) - count
        rows = np.repeat(begins[begin:end] - bounds, count) + np.arange(int(count.sum()))
        yield merged(aggregate, taken(state, rows), np.append(bounds, len(rows)))
        begin = end
