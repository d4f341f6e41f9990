"""Integers of 64 bits, over arrays: a result that doesn't fit is NULL, as of Spark's `try_add`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

BEYOND = 1 << 63
"""The first number that is no 64-bit integer."""

_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_WRAPPING = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def arithmetic(operator: str, x: Any, y: Any) -> Any:
    """Sums, differences and products, also of doubles. Integers seldom overflow, and then pyarrow
    says only that one did."""
    try:
        return _CHECKED[operator](x, y)
    except pa.ArrowInvalid:
        wrapped = _WRAPPING[operator](x, y)
    if isinstance(wrapped, pa.Scalar):
        return pa.scalar(None, wrapped.type)
    fits = pa.array(_fits(operator, *(known_numbers(z) for z in (x, y, wrapped))))
    return pc.if_else(fits, wrapped, pa.scalar(None, wrapped.type))


def _fits(operator: str, x: Any, y: Any, wrapped: Any) -> Any:
    """The mask of results that didn't overflow: overflow shows in the signs and, for a product, in
    the double, unless it is close to the limit; then it could only have wrapped around once."""
    match operator:
        case "+":
            return ((x ^ wrapped) & (y ^ wrapped)) >= 0
        case "-":
            return ((x ^ y) & (x ^ wrapped)) >= 0
        case _:
            size = np.abs(x.astype(np.float64) * y.astype(np.float64))
            near = (size < 9.3e18) & ((wrapped < 0) == ((x < 0) != (y < 0)))
            return (size < 9.2e18) | near


def known_numbers(z: Any) -> Any:
    """The numbers as NumPy has them, and 1 where one is NULL."""
    known = pc.fill_null(z, pa.scalar(1, z.type))
    if isinstance(z, pa.Scalar):
        return np.array(known.as_py())
    return known.to_numpy(zero_copy_only=False)


def round_integer(x: int, digits: int) -> int | None:
    """To tens, hundreds and so on, if `digits` is negative; halves away from zero."""
    unit = 10 ** min(max(-digits, 0), 20)
    size = (2 * abs(x) + unit) // (2 * unit) * unit
    return _fitting(size if x > 0 else -size)


def _fitting(value: int) -> int | None:
    return value if -BEYOND <= value < BEYOND else None


def may_overflow(values: pa.Array) -> bool:
    """Whether a sum of some of these numbers may not fit."""
    if not pa.types.is_integer(values.type):
        return False
    ends = pc.min_max(values).as_py().values()
    return max((abs(end) for end in ends if end is not None), default=0) * len(values) >= BEYOND


def sums(offsets: NDArray[np.int64], values: pa.Array) -> pa.Array:
    """The sums of the numbers between neighboring offsets."""
    plain = values.to_pylist()
    return pa.array([_sum(plain[begin:end]) for begin, end in pairwise(offsets)], pa.int64())


def _sum(values: list[int | None]) -> int | None:
    """The sum from left to right; NULL as soon as it doesn't fit, as Spark's `try_sum`."""
    total: int | None = None
    for value in values:
        if value is not None:
            total = _fitting(value + (total or 0))
            if total is None:
                return None
    return total
