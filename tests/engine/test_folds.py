"""Aggregates as kernels and as arrays, against the oracle's definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.algebra.aggregates import AGGREGATES, AggregateFunction
from cepheid.algebra.types import Type
from cepheid.engine.arrays.reduction import reduced
from cepheid.engine.lowering import FoldPart, Inputs, KernelLowering, Term, accumulate, finalized
from cepheid.engine.lowering.folds import merge
from cepheid.kernels.compile import load
from tests.examples import examples
from tests.oracle.test_values import same
from tests.oracle.values import aggregate as by_definition
from tests.oracle.values import fitting

FOLDED = [a for a in AGGREGATES.values() if a.folds]
LARGE = 2**62
INTEGERS = st.none() | st.integers(-9, 9) | st.sampled_from([LARGE, -LARGE, 2**63 - 1])
DOUBLES = st.none() | st.sampled_from([0.0, 0.5, -2.0, 8.0, math.nan, math.inf])


def kernel(function: AggregateFunction, type_: Type) -> Any:
    """The aggregate of values that are given in parts: each is folded, then all are merged."""
    low = KernelLowering(Inputs(frozenset(), False), {})
    zero = "0.0" if type_ is Type.FLOAT else "0"
    whole = FoldPart(low.let(zero), low.let("0"))
    with low.block("for values, valid in parts:"):
        part = FoldPart(low.let(zero), low.let("0"))
        with low.block("for value, known in zip(values, valid):"):
            accumulate(low, function, part, Term("value", "known"), type_)
        with low.block(f"if {part.count} != 0:"):
            merge(low, function, whole, part, type_)
    result = finalized(function, whole)
    low.line(f"out.append({result.value} if {result.valid or True} else None)")
    lines = "\n".join(f"    {line}" for line in low.inner)
    return load(f"\n\ndef kernel(parts, out):\n{lines}\n", jit=False)


def value(function: AggregateFunction, type_: Type, parts: list[list[Any]]) -> Any:
    out: list[Any] = []
    kernel(function, type_)(
        [([0 if v is None else v for v in part], [v is not None for v in part]) for part in parts],
        out,
    )
    return out[0]


def doubles(function: AggregateFunction, values: list[Any]) -> list[Any]:
    """As the binder gives them: `avg` is over doubles."""
    given = function.name == "avg"
    return [float(v) if given and v is not None else v for v in values]


@pytest.mark.parametrize("function", FOLDED, ids=lambda f: f.name)
@settings(max_examples=examples("folds"))
@given(st.lists(st.lists(st.none() | st.integers(-9, 9)), max_size=4))
def test_merged_parts_are_the_whole(function: AggregateFunction, parts: list[list[Any]]) -> None:
    type_ = Type.FLOAT if function.name == "avg" else Type.INTEGER
    parts = [doubles(function, part) for part in parts]
    expected = by_definition(function.name, [v for part in parts for v in part])
    assert same(value(function, type_, parts), expected)


@pytest.mark.parametrize("name", ["min", "max", "sum"])
@settings(max_examples=examples("folds"))
@given(st.lists(st.lists(DOUBLES), max_size=4))
def test_merged_doubles(name: str, parts: list[list[Any]]) -> None:
    expected = by_definition(name, [v for part in parts for v in part])
    assert same(value(AGGREGATES[name], Type.FLOAT, parts), expected)


@settings(max_examples=examples("folds"))
@given(st.lists(st.lists(INTEGERS, max_size=4), max_size=5))
def test_a_sum_that_overflows_in_a_part_stays_null(parts: list[list[Any]]) -> None:
    known = [[v for v in part if v is not None] for part in parts]
    totals = [by_definition("sum", part) for part in known if part]
    expected = None if None in totals else by_definition("sum", totals)
    assert value(AGGREGATES["sum"], Type.INTEGER, parts) == expected
    assert expected is None or fitting(expected) == expected


@pytest.mark.parametrize("function", AGGREGATES.values(), ids=lambda f: f.name)
@settings(max_examples=examples("folds"))
@given(st.lists(st.lists(INTEGERS, max_size=4), min_size=1, max_size=4))
def test_arrays_are_reduced_as_defined(
    function: AggregateFunction, groups: list[list[Any]]
) -> None:
    groups = [doubles(function, group) for group in groups]
    offsets = np.concatenate(([0], np.cumsum([len(group) for group in groups])))
    type_ = pa.float64() if function.name == "avg" else pa.int64()
    values = pa.array([v for group in groups for v in group], type_)
    found = reduced(function, offsets, values).to_pylist()
    expected = [by_definition(function.name, group) for group in groups]
    assert all(map(same, found, expected)), (found, expected)
