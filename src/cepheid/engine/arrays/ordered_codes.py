"""Values as 64-bit integers in the order of the values, so that one kernel compares all of them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]

LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def ordered(values: NDArray[np.generic]) -> Ints:
    """Integers in the order of the values: -0.0 is 0.0, and NaN is one value above all others."""
    if values.dtype != np.float64:
        return values.astype(np.int64)
    floats = values.astype(np.float64) + 0.0
    bits = np.where(np.isnan(floats), np.nan, floats).view(np.int64)
    return np.where(bits < 0, bits ^ HIGHEST, bits)


def disordered(codes: Ints) -> NDArray[np.float64]:
    """The doubles of these integers."""
    return np.where(codes < 0, codes ^ HIGHEST, codes).view(np.float64)
