"""Aggregates over arrays: the values of many groups, one after the other, become one per group.

Group n has the values from `offsets[n]` to `offsets[n + 1]`.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.aggregates import AggregateFunction, FoldResult, FoldStep
from cepheid.engine.arrays.integers import may_overflow, sums

Offsets = NDArray[np.int64]


def reduced(
    aggregate: AggregateFunction,
    offsets: Offsets,
    values: pa.Array,
    *,
    distinct: bool = False,
    offset: int = 0,
) -> pa.Array:
    """The aggregate of each group. `distinct`: only the first of equal values counts; `offset`:
    FIRST and LAST take the element this many further in."""
    if distinct:
        kept = first_ones(offsets, values)
        return reduced(aggregate, np.searchsorted(kept, offsets), values.take(pa.array(kept)))
    match aggregate.step:
        case FoldStep.COUNT:
            return pc.fill_null(_by_group("count", offsets, values), 0)
        case FoldStep.ADD if aggregate.result is FoldResult.MEAN:
            return _by_group("mean", offsets, values)
        case FoldStep.ADD:
            if may_overflow(values):
                return sums(offsets, values)
            return _by_group("sum", offsets, values)
        case FoldStep.LEAST:
            return _extreme("min", offsets, values)
        case FoldStep.GREATEST:
            return _extreme("max", offsets, values)
        case FoldStep.FIRST:
            return _taken(offsets[:-1] + offset, offsets, values)
        case FoldStep.LAST:
            return _taken(offsets[1:] - 1 - offset, offsets, values)
        case FoldStep.APPEND:
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
        case FoldStep.SPREAD:
            return _deviations(offsets, values)
        case _:
            assert_never(aggregate.step)


def _taken(at: Offsets, offsets: Offsets, values: pa.Array) -> pa.Array:
    """The value at a place; NULL if that is outside of its group."""
    some = (offsets[:-1] <= at) & (at < offsets[1:])
    return values.take(pa.array(np.where(some, at, 0), mask=~some))


def first_ones(offsets: Offsets, values: pa.Array) -> Offsets:
    """The places of the first of equal values, in each group. -0.0 is 0.0, and every NaN the same,
    as in Spark."""
    if pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))
        values = pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), values)
    codes = pc.dictionary_encode(values, null_encoding="encode")
    groups = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    keys = groups * (len(codes.dictionary) + 1) + codes.indices.to_numpy(zero_copy_only=False)
    return np.sort(np.unique(keys, return_index=True)[1])


def _deviations(offsets: Offsets, values: pa.Array) -> pa.Array:
    """The sample standard deviation, by Welford's update as in kernels: the n-th values of all
    groups together."""
    known = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
    starts = np.searchsorted(known, offsets)
    numbers = values.to_numpy(zero_copy_only=False)[known].astype(np.float64)
    sizes = np.diff(starts)
    mean, squares = np.zeros(len(sizes)), np.zeros(len(sizes))
    for n in range(int(sizes.max(initial=0))):
        groups = np.flatnonzero(sizes > n)
        with np.errstate(invalid="ignore", over="ignore"):
            distance = numbers[starts[groups] + n] - mean[groups]
            step = distance / (n + 1)
            mean[groups] += step
            squares[groups] += distance * (distance - step)
    deviations = np.sqrt(squares / np.maximum(sizes - 1, 1))
    return pa.array(deviations, mask=sizes < 2)


def _by_group(function: str, offsets: Offsets, values: pa.Array) -> pa.Array:
    """One of pyarrow's aggregates; NULL for an empty group."""
    n = len(offsets) - 1
    groups = pa.array(np.repeat(np.arange(n), np.diff(offsets)))
    table = pa.table({"group": groups, "value": values})
    totals = table.group_by("group").aggregate([("value", function)])
    index = np.full(n, -1)
    index[totals["group"].to_numpy()] = np.arange(len(totals))
    result = totals[f"value_{function}"].combine_chunks()
    return result.take(pa.array(np.maximum(index, 0), mask=index < 0))


def _extreme(function: str, offsets: Offsets, values: pa.Array) -> pa.Array:
    """min or max; pyarrow passes NaN over, but it is above every number, as in Spark."""
    if pa.types.is_duration(values.type):  # pyarrow has no such aggregate
        return _extreme(function, offsets, values.cast(pa.int64())).cast(values.type)
    best = _by_group(function, offsets, values)
    if function == "min" or not pa.types.is_floating(values.type):
        return best
    some = pc.fill_null(_by_group("max", offsets, pc.is_nan(values)), False)
    return pc.if_else(some, pa.scalar(float("nan"), best.type), best)
