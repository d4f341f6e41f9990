"""What the generators share: chunks with a random stream each, and tables made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ParamSpec

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import DataError

CHUNK_ROWS = 1 << 17
"""Fixed, because a chunk's random numbers depend on where it begins."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows `first` to `first + rows` of the whole, with random numbers of their own."""

    number: int
    first: int
    rows: int
    random: np.random.Generator


def chunks(rows: int, seed: int) -> Iterator[Chunk]:
    require_size(rows, seed)
    for number, first in enumerate(range(0, rows, CHUNK_ROWS)):
        size = min(CHUNK_ROWS, rows - first)
        yield Chunk(number, first, size, np.random.default_rng([seed, number]))


def tabled(
    batches: Callable[P, Iterator[pa.RecordBatch]], schema: pa.Schema
) -> Callable[P, pa.Table]:
    """The function that puts all of `batches` into one table, with the same parameters."""

    def generate(*args: P.args, **kwargs: P.kwargs) -> pa.Table:
        return pa.Table.from_batches(batches(*args, **kwargs), schema)

    generate.__doc__ = batches.__doc__
    return generate


def arrival_times(chunk: Chunk, rows: int, start: int, span: int) -> Ints:
    """Sorted times of a chunk's rows, in microseconds, if `rows` arrive evenly during `span`.

    A chunk owns the part of the span that its row numbers take up, so chunks stay in order, and
    inside of it arrivals are uniform, as a Poisson process is once its count is known.
    """
    low = span * chunk.first // rows
    high = span * (chunk.first + chunk.rows) // rows
    return start + low + np.sort(chunk.random.integers(0, max(1, high - low), chunk.rows))


def timestamps(microseconds: Ints) -> pa.Array:
    return pa.array(microseconds).cast(pa.timestamp("us", tz="UTC"))


def strings(codes: npt.NDArray[np.integer], values: pa.Array) -> pa.Array:
    """The values that the codes stand for."""
    return values.take(pa.array(codes))


def require_size(rows: int, seed: int) -> None:
    if rows < 0:
        raise DataError(f"the number of rows must not be negative, but it is {rows}")
    if seed < 0:
        raise DataError(f"the seed must not be negative, but it is {seed}")


def require_share(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise DataError(f"`{name}` is a share between 0 and 1, but it is {value}")
