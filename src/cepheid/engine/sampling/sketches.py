"""Hashes of values that are the same everywhere, and the sketches made of them."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import kernel_values
from cepheid.engine.arrays.interner import Interner
from cepheid.statistics.samples import DRAWN, MINIMA, Values


def sketch(array: pa.Array, type_: Type, random: np.random.Generator) -> Values:
    """The sketch of these events' values; NULL is no value, and agrees with nothing."""
    array = array.drop_null()
    if len(array) == 0:
        return Values()
    hashes = value_hashes(array, type_)
    minima = np.unique(hashes)[:MINIMA]
    ranks = random.integers(1 << 62, size=len(hashes))
    places = np.argsort(ranks, kind="stable")[:DRAWN]
    texts = [_text(v) for v in array.take(pa.array(places)).to_pylist()]
    drawn = zip(ranks[places].tolist(), hashes[places].tolist(), texts, strict=True)
    return Values(minima=tuple(minima.tolist()), drawn=tuple(sorted(drawn)))


def value_hashes(array: pa.Array, type_: Type) -> NDArray[np.int64]:
    """Non-negative and below `samples.HASHES`; equal for equal values, on every machine."""
    if type_ in (Type.STRING, Type.BINARY):
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        values = encoded.dictionary.to_pylist()
        digests = np.array([_digest(v) for v in values], np.uint64)
        bits = digests[encoded.indices.to_numpy(zero_copy_only=False)]
    else:
        plain, _ = kernel_values(array, type_, Interner())
        if plain.dtype == np.float64:
            # One bit pattern for each number: -0.0 as 0.0, every NaN as one.
            floats = plain.astype(np.float64)
            plain = np.where(np.isnan(floats), np.nan, floats + 0.0).view(np.int64)
        bits = _mixed(plain.astype(np.int64).view(np.uint64))
    return np.asarray((bits >> np.uint64(2)).view(np.int64))


def _digest(value: str | bytes) -> int:
    data = value.encode() if isinstance(value, str) else value
    return int.from_bytes(blake2b(data, digest_size=8).digest())


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64, a bijection that leaves no pattern."""
    mixed = bits + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _text(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"
