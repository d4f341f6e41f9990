"""Sorting by two halves gives the order of a stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cepheid.engine.rows.order import ascending

RANDOM = np.random.default_rng(7)
FAR = 1 << 62


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(0, np.int64),
        np.array([5]),
        RANDOM.integers(-9, 9, 1000),
        RANDOM.integers(-(1 << 15), 1 << 15, 5000),
        RANDOM.integers(0, 1 << 17, 5000),
        FAR - RANDOM.integers(1, 1 << 32, 5000),
        np.array([0, (1 << 32) - 1, 1 << 16, (1 << 16) - 1, 0]),
        np.array([1 << 32, 0, 7]),
        np.array([FAR, -FAR, 0, FAR, -FAR]),
    ],
    ids=["none", "one", "few", "16 bits", "17 bits", "32 bits", "edges", "33 bits", "far apart"],
)
def test_the_order_of_a_stable_sort(values: NDArray[np.int64]) -> None:
    assert ascending(values).tolist() == np.argsort(values, kind="stable").tolist()
