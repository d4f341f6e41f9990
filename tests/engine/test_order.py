"""The order of rows: sorting by two halves, tables that are in order already, positions."""

from __future__ import annotations

import math
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cepheid.algebra.types import Schema, Type
from cepheid.engine.rows import order
from cepheid.engine.rows.clock import Ticker
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


# ── tables ──

COLUMNS = {
    "whole": pa.int64(),
    "moment": pa.timestamp("us"),
    "day": pa.date32(),
    "small": pa.uint8(),
    "double": pa.float64(),
    "text": pa.string(),
}


@given(st.data())
def test_a_table_comes_out_in_the_order_of_its_columns(data: st.DataObject) -> None:
    """Whether it is in order already, nearly, or not at all: NULL first, NaN last."""
    names = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3))
    row = st.tuples(*(st.sampled_from([None, 0, 1, 2]) for _ in names))
    rows = data.draw(st.lists(row, max_size=12))
    ordered = data.draw(st.booleans())
    by = [tuple((-1 if v is None else v) for v in values) for values in rows]
    rows = [rows[i] for i in sorted(range(len(rows)), key=by.__getitem__)] if ordered else rows
    arrays = [_array(name, [values[n] for values in rows]) for n, name in enumerate(names)]
    columns = [f"{n} {name}" for n, name in enumerate(names)]
    table = pa.table([*arrays, pa.array(range(len(rows)))], names=[*columns, "row"])
    with patch.object(order, "STRETCH", data.draw(st.sampled_from([1, 3, 100]))):
        found = order.sorted_by(table, columns)["row"].to_pylist()
    by = [tuple((-1 if v is None else v) for v in values) for values in rows]
    assert found == sorted(range(len(rows)), key=by.__getitem__)


def _array(name: str, values: list[int | None]) -> pa.Array:
    if name == "text":
        return pa.array([None if v is None else "abc"[v] for v in values])
    if name == "double":
        return pa.array([None if v is None else (0.5, 1.5, math.nan)[v] for v in values])
    return pa.array(values, pa.int32() if name == "day" else pa.int64()).cast(COLUMNS[name])


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=12),
    st.sets(st.integers(1, 11)),
    st.booleans(),
)
def test_positions_rise_with_time_and_tie(
    rows: list[tuple[int, int, bool]], cuts: set[int], nullable: bool
) -> None:
    """Wherever batches end; rows of no class count for nothing."""
    rows = sorted(rows, key=lambda row: row[:2])
    schema = Schema({"ts": Type.INTEGER, "tie": Type.INTEGER}, "ts", tie="tie")
    ticker = Ticker(schema, None, ())
    found: list[int] = []
    for begin, end in pairwise([0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]):
        part = rows[begin:end]
        tie = [None if nullable and tie == 0 else tie for _, tie, _ in part]
        batch = pa.record_batch(
            {
                "ts": pa.array([ts for ts, _, _ in part], pa.int64()),
                "tie": pa.array(tie, pa.int64()),
            }
        )
        chosen = np.flatnonzero([chosen for _, _, chosen in part])
        found += ticker.read(batch, chosen).position.tolist()
    chosen_rows = [row[:2] for row in rows if row[2]]
    ranks = {position: rank for rank, position in enumerate(sorted(set(chosen_rows)), 1)}
    assert found == [ranks[row] for row in chosen_rows]
