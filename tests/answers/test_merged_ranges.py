"""Aggregates of ranges that overlap are those of each range by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.algebra import Type
from cepheid.algebra.answer_shape import MatchAggregate
from cepheid.answers.aggregate_states import MatchCounts, first_state, merged, results, taken
from cepheid.answers.merged_ranges import merged_ranges
from tests.answers.test_corpus import same
from tests.examples import examples

VALUES: dict[Any, Any] = {
    pa.int64(): st.integers(-(1 << 40), 1 << 40),
    pa.float64(): st.sampled_from([0.0, 1.5, -2.25, float("inf"), float("nan")]),
    pa.string(): st.sampled_from(["", "a", "b"]),
    pa.timestamp("us"): st.integers(0, 1 << 40),
}
NUMBERS = ("sum", "avg", "stddev")


@pytest.mark.parametrize("type_", VALUES, ids=str)
@settings(max_examples=examples("folds", 2), deadline=None)
@given(data=st.data())
def test_ranges(type_: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[type_], min_size=1, max_size=20))
    n = len(values)
    spans = st.tuples(st.integers(0, n - 1), st.integers(1, n))
    drawn = data.draw(st.lists(spans, min_size=1, max_size=8))
    begins = np.array([begin for begin, _ in drawn], np.int64)
    counts = np.array([min(count, n - begin) for begin, count in drawn], np.int64)
    numeric = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    names = ("count", "min", "max", "first", "last", "collect", *(NUMBERS if numeric else ()))
    times = np.arange(n, dtype=np.int64)
    for name in names:
        aggregate = MatchAggregate("x", name, "x", Type.INTEGER)
        state = first_state(aggregate, pa.array(values, type_), times, times, MatchCounts.single(n))
        found = results(aggregate, merged_ranges(aggregate, state, begins, counts))
        for row, (begin, count) in enumerate(zip(begins, counts, strict=True)):
            part = taken(state, np.arange(begin, begin + count))
            alone = results(aggregate, merged(aggregate, part, np.array([0, count])))
            assert same(found[row].as_py(), alone[0].as_py()), name
