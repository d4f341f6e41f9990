"""Integers that don't fit into 64 bits give NULL, in kernels and over arrays."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from cepheid.algebra.expressions import Attribute, Call, Constant
from cepheid.algebra.types import Type
from cepheid.engine.arrays.vector import evaluate
from cepheid.kernels import load
from tests.oracle.values import apply

# Around the limits of sums and of products: 3037000499² is the last square below 2⁶³.
NUMBERS = [
    *(0, 1, 2, 3, 7, 10, 2**31, 2**32, 3037000499, 3037000500, 4294967296 * 3),
    *(2**62 - 1, 2**62, 2**63 - 11, 2**63 - 1),
]
EDGES = [*NUMBERS, *(-n for n in NUMBERS), -(2**63)]
PAIRS = list(product(EDGES, EDGES))

KERNEL = """

@jit
def kernel(x, y, results, fits):
    for i in range(x.shape[0]):
        results[0, i], fits[0, i] = checked_sum(x[i], y[i])
        results[1, i], fits[1, i] = checked_difference(x[i], y[i])
        results[2, i], fits[2, i] = checked_product(x[i], y[i])
"""


@pytest.mark.parametrize("jit", [True, False], ids=["jit", "plain"])
def test_kernels_tell_what_fits(jit: bool) -> None:
    x, y = (np.array(side, np.int64) for side in zip(*PAIRS, strict=True))
    results, fits = np.zeros((3, len(x)), np.int64), np.zeros((3, len(x)), np.bool_)
    load(KERNEL, jit)(x, y, results, fits)
    for n, operator in enumerate("+-*"):
        found = np.where(fits[n], results[n], None).tolist()
        assert found == [apply(operator, pair, (Type.INTEGER,) * 2) for pair in PAIRS]


@pytest.mark.parametrize("operator", ["+", "-", "*", "%"])
def test_arrays(operator: str) -> None:
    x, y = Attribute("", "x", Type.INTEGER), Attribute("", "y", Type.INTEGER)
    pairs = [*PAIRS, (None, 1), (2**63 - 1, None)]
    columns = dict(zip("xy", map(pa.array, zip(*pairs, strict=True)), strict=True))
    call = Call(operator, (x, y), Type.INTEGER)
    found = evaluate(call, lambda a: columns[a.name], len(pairs)).to_pylist()
    expected = [apply(operator, pair, (Type.INTEGER,) * 2) for pair in pairs]
    assert found == expected
    constants = [
        evaluate(Call(operator, tuple(map(_constant, pair)), Type.INTEGER), _none, 1)[0].as_py()
        for pair in pairs[::7]
    ]
    assert constants == expected[::7]


@pytest.mark.parametrize("operator", ["neg", "abs", "to_timestamp"])
def test_arrays_of_one(operator: str) -> None:
    call = Call(operator, (Attribute("", "x", Type.INTEGER),), Type.INTEGER)
    found = evaluate(call, lambda _: pa.array(EDGES), len(EDGES)).to_pylist()
    assert found == [apply(operator, (x,), (Type.INTEGER,)) for x in EDGES]


@pytest.mark.parametrize("digits", [-1, -3, -18, -19, -20, -400, 0, 2])
def test_rounding(digits: int) -> None:
    call = Call("round", (Attribute("", "x", Type.INTEGER), _constant(digits)), Type.INTEGER)
    found = evaluate(call, lambda _: pa.array(EDGES), len(EDGES)).to_pylist()
    assert found == [apply("round", (x, max(digits, -25)), (Type.INTEGER,) * 2) for x in EDGES]


def _constant(value: int | None) -> Constant:
    return Constant(value, Type.INTEGER)


def _none(attribute: Attribute) -> pa.Array:
    raise AssertionError(attribute)
