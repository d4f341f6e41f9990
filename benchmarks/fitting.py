"""Two small pieces of numerics: least squares without negative weights, and rank correlation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SLIGHT = 1e-10


def nonnegative(matrix: Floats, target: Floats) -> Floats:
    """The weights, none below zero, with which the matrix' columns come closest to the target.

    Lawson and Hanson's algorithm: weights are let go of zero one by one, the most wanted first, and
    go back to zero if the solution without bounds would make them negative.

    >>> nonnegative(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, -3.0])).tolist()
    [2.0, 0.0]
    """
    weights = np.zeros(matrix.shape[1])
    free = np.zeros(matrix.shape[1], bool)
    scale = SLIGHT * max(1.0, float(np.abs(matrix.T @ target).max()))
    for _ in range(3 * matrix.shape[1]):
        wanted = np.where(free, -np.inf, matrix.T @ (target - matrix @ weights))
        if wanted.max() <= scale:
            break
        free[int(wanted.argmax())] = True
        while True:
            solved = np.zeros_like(weights)
            solved[free] = np.linalg.lstsq(matrix[:, free], target, rcond=None)[0]
            negative = free & (solved <= 0)
            if not negative.any():
                break
            step = (weights[negative] / (weights[negative] - solved[negative])).min()
            weights = weights + step * (solved - weights)
            free &= weights > scale
        weights = solved
    return weights


def ranks(values: Sequence[float]) -> Floats:
    """From 1 up; equal values share the mean of their ranks.

    >>> ranks([10.0, 30.0, 20.0, 20.0]).tolist()
    [1.0, 4.0, 2.5, 2.5]
    """
    array = np.asarray(values, np.float64)
    smaller = (array[None, :] < array[:, None]).sum(axis=1)
    equal = (array[None, :] == array[:, None]).sum(axis=1)
    ranked: NDArray[np.float64] = smaller + (equal + 1) / 2
    return ranked


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """The correlation of ranks: 1 if both are in the same order, -1 if in the opposite one.

    >>> spearman([1, 2, 3], [10, 20, 300]), spearman([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    return round(float(np.corrcoef(ranks(first), ranks(second))[0, 1]), 12)
