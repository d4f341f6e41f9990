"""What an aggregate over matches keeps of them, so that parts can be merged.

A *state* is a list of arrays, with an entry for each part. States of parts that stand one after the
other are merged by segments: segment n has the entries from `offsets[n]` to `offsets[n + 1]`, and
none is empty. Integer sums are kept in halves of 32 bits, so that they are exact whatever the order
in which parts are merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.answer_shape import MatchAggregate
from cepheid.engine.arrays.reduction import first_ones, reduced
from cepheid.errors import DataError

Ints: TypeAlias = NDArray[np.int64]
State: TypeAlias = list[pa.Array]

_HALF = 32
_LOW = (1 << _HALF) - 1
BEYOND = 2.0**63 * (1 - 1e-9)

TOO_MANY = "there are more matches than 64 bits can count: write `approx_count(*)`, a double"
TOO_LARGE = "a sum over matches is beyond 64 bits: add doubles, as in `sum(CAST(a.x AS double))`"


def result_type(aggregate: MatchAggregate, values: pa.DataType | None) -> pa.DataType:
    """The type of its result, given that of the column that it is over."""
    match aggregate.function:
        case "count":
            return pa.int64()
        case "approx_count" | "avg" | "stddev":
            return pa.float64()
        case "sum":
            if values is not None and (_is_whole(values) or pa.types.is_duration(values)):
                return values if pa.types.is_duration(values) else pa.int64()
            return pa.float64()
        case "collect":
            return pa.list_(values)
        case "min" | "max" | "first" | "last":
            return values
        case unknown:
            raise _stateless(unknown)


@dataclass(frozen=True)
class MatchCounts:
    """How many matches each row stands for, as an integer and as a double. The integer is wrong
    where the double is beyond 64 bits."""

    exact: Ints
    about: NDArray[np.float64]

    @staticmethod
    def single(rows: int) -> MatchCounts:
        return MatchCounts(np.ones(rows, np.int64), np.ones(rows))

    def counts(self) -> Ints:
        if (self.about >= BEYOND).any():
            raise DataError(TOO_MANY)
        return self.exact


def first_state(
    aggregate: MatchAggregate,
    values: pa.Array | None,
    ends: Ints,
    starts: Ints,
    weights: MatchCounts,
) -> State:
    """Of rows that each stand for so many matches with these values."""
    if aggregate.function == "approx_count":
        return [pa.array(weights.about)]
    if values is None:
        return _halves(weights.counts())
    if aggregate.distinct or aggregate.function == "collect":
        columns = (pa.array(ends), pa.array(starts), values)
        each = pa.array(np.arange(len(ends) + 1), pa.int32())
        return [pa.ListArray.from_arrays(each, column) for column in columns]
    match aggregate.function:
        case "count":
            return _halves(weights.counts() * _numbers(_known(values)))
        case "sum" if pa.types.is_floating(values.type):
            return [pc.multiply(values.cast(pa.float64()), pa.array(weights.about))]
        case "sum":
            numbers = values.cast(pa.int64())
            whole = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
            if (np.abs(whole.astype(np.float64)) * weights.about >= BEYOND).any():
                raise DataError(TOO_LARGE)
            return [*_halves(whole * weights.exact), _known(values)]
        case "avg":
            about = pa.array(weights.about)
            known = pc.multiply(_known(values).cast(pa.float64()), about)
            return [pc.multiply(values.cast(pa.float64()), about), known]
        case "stddev":
            mean = pc.fill_null(values.cast(pa.float64()), 0.0)
            known = pc.multiply(_known(values).cast(pa.float64()), pa.array(weights.about))
            return [known, mean, pa.array(np.zeros(len(ends)))]
        case "first" | "last":
            return [pa.array(ends), pa.array(starts), values]
        case "min" | "max":
            return [values]
        case unknown:
            raise _stateless(unknown)


@dataclass(frozen=True)
class CarriedTotals:
    """What a value comes to over the matches of each row: its sum, whole if it is an integer, and
    how many of the matches have one."""

    known: MatchCounts
    about: NDArray[np.float64]
    whole: Ints | None

    def state(self, aggregate: MatchAggregate) -> State:
        some = pa.array(self.known.about > 0)
        match aggregate.function:
            case "count":
                return _halves(self.known.counts())
            case "sum" if self.whole is not None:
                if (np.abs(self.about) >= BEYOND).any():
                    raise DataError(TOO_LARGE)
                return [*_halves(self.whole), some.cast(pa.int64())]
            case "sum":
                return [pc.if_else(some, pa.array(self.about), pa.scalar(None, pa.float64()))]
            case "avg":
                sums = pc.if_else(some, pa.array(self.about), pa.scalar(None, pa.float64()))
                return [sums, pa.array(self.known.about)]
            case unknown:
                raise _stateless(unknown)


def merged(aggregate: MatchAggregate, state: State, offsets: Ints) -> State:
    """The state of each segment."""
    if aggregate.column is None:
        return [_added(part, offsets) for part in state]
    if aggregate.distinct or aggregate.function == "collect":
        return _different(_joined(state, offsets), aggregate)
    match aggregate.function:
        case "count":
            return [_added(part, offsets) for part in state]
        case "sum" if len(state) == 3:
            return [_added(part, offsets) for part in state]
        case "sum":
            return [reduced(AGGREGATES["sum"], offsets, state[0])]
        case "avg":
            return [reduced(AGGREGATES["sum"], offsets, state[0]), _added(state[1], offsets)]
        case "stddev":
            return _spread(state, offsets)
        case "first" | "last":
            return _placed(state, offsets, last=aggregate.function == "last")
        case "min" | "max":
            return [reduced(AGGREGATES[aggregate.function], offsets, state[0])]
        case unknown:
            raise _stateless(unknown)


def results(aggregate: MatchAggregate, state: State) -> pa.Array:
    """What the aggregate returns of each part."""
    if aggregate.function == "approx_count":
        return state[0]
    if aggregate.distinct or aggregate.function == "collect":
        values = _list_values(state[2])
        offsets = _list_offsets(state[2])
        return reduced(AGGREGATES[aggregate.function], offsets, values)
    match aggregate.function:
        case "count":
            return pa.array(_whole(state, TOO_MANY))
        case "sum" if len(state) == 3:
            return pa.array(_whole(state, TOO_LARGE), mask=_numbers(state[2]) == 0)
        case "avg":
            return pc.divide(state[0], state[1])
        case "stddev":
            count = _numbers(state[0])
            spread = np.sqrt(_numbers(state[2]) / np.maximum(count - 1, 1))
            return pa.array(spread, mask=count < 2)
        case "first" | "last":
            return state[2]
        case "sum" | "min" | "max":
            return state[0]
        case unknown:
            raise _stateless(unknown)


def empty_result(aggregate: MatchAggregate, type_: pa.DataType, n: int) -> pa.Array:
    """Over no matches."""
    match aggregate.function:
        case "count" | "approx_count":
            return pa.array(np.zeros(n, np.int64)).cast(type_)
        case "collect":
            nothing = pa.array(np.zeros(n + 1, np.int32))
            return pa.ListArray.from_arrays(nothing, pa.array([], type_.value_type))
        case "sum" | "avg" | "stddev" | "min" | "max" | "first" | "last":
            return pa.nulls(n, type_)
        case unknown:
            raise _stateless(unknown)


def _stateless(function: str) -> AssertionError:
    return AssertionError(f"no state is known of the aggregate `{function}`")


def taken(state: State, rows: Ints) -> State:
    index = pa.array(rows)
    return [part.take(index) for part in state]


def joined_states(states: list[State]) -> State:
    return [pa.concat_arrays(list(parts)) for parts in zip(*states, strict=True)]


def _is_whole(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_null(type_))


def _numbers(array: pa.Array) -> NDArray[Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _known(values: pa.Array) -> pa.Array:
    return pc.is_valid(values).cast(pa.int64())


def _added(counts: pa.Array, offsets: Ints) -> pa.Array:
    return pa.array(np.add.reduceat(_numbers(counts), offsets[:-1]))


def _halves(numbers: Ints) -> State:
    return [pa.array(numbers >> _HALF), pa.array(numbers & _LOW)]


def _whole(state: State, beyond: str) -> Ints:
    """The numbers whose halves were added."""
    high, low = map(_numbers, state[:2])
    high = high + (low >> _HALF)
    if ((high < -(1 << 31)) | (high >= 1 << 31)).any():
        raise DataError(beyond)
    return np.asarray((high << _HALF) + (low & _LOW), np.int64)


def _spread(state: State, offsets: Ints) -> State:
    """Count, mean and sum of squared distances of what is merged (Chan, Golub, LeVeque)."""
    count, mean, squares = map(_numbers, state)
    sizes = np.diff(offsets)
    total = np.add.reduceat(count, offsets[:-1])
    with np.errstate(invalid="ignore", over="ignore"):
        center = np.add.reduceat(count * mean, offsets[:-1]) / np.maximum(total, 1)
        away = mean - np.repeat(center, sizes)
        spread = np.add.reduceat(squares + count * away * away, offsets[:-1])
    return [pa.array(total), pa.array(center), pa.array(spread)]


def _placed(state: State, offsets: Ints, *, last: bool) -> State:
    """The entry that comes first, or last, in the order of ends, starts and values."""
    order = _in_order(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), state)
    return taken(state, order[offsets[1:] - 1] if last else order[offsets[:-1]])


def _in_order(segments: Ints, columns: State) -> Ints:
    """The entries of each segment by ends, starts and values; NULL is last."""
    names = ("segment", "end", "start", "value")
    table = pa.table(dict(zip(names, (pa.array(segments), *columns), strict=True)))
    keys = [(name, "ascending") for name in names]
    order = pc.sort_indices(table, sort_keys=keys)
    return np.asarray(order.to_numpy(), np.int64)


def _list_offsets(lists: pa.Array) -> Ints:
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))


def _list_values(lists: pa.Array) -> pa.Array:
    return lists.flatten()


def _joined(state: State, offsets: Ints) -> State:
    """The lists of each segment as one, in order."""
    new = _list_offsets(state[0])[offsets]
    columns = [_list_values(part) for part in state]
    segments = np.repeat(np.arange(len(offsets) - 1), np.diff(new))
    order = pa.array(_in_order(segments, columns))
    bounds = pa.array(new, pa.int32())
    return [pa.ListArray.from_arrays(bounds, column.take(order)) for column in columns]


def _different(state: State, aggregate: MatchAggregate) -> State:
    """With DISTINCT, the first of equal values."""
    if not aggregate.distinct:
        return state
    offsets, values = _list_offsets(state[2]), _list_values(state[2])
    kept = first_ones(offsets, values)
    bounds = pa.array(np.searchsorted(kept, offsets), pa.int32())
    index = pa.array(kept)
    return [pa.ListArray.from_arrays(bounds, _list_values(part).take(index)) for part in state]
