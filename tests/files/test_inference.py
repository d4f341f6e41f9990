"""What columns are, decided from their cells as a person would."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.files.cell_values import MOMENT
from cepheid.files.inference import CellSample, InferredColumn, agree, decide

NUMBERS = [str(n) for n in range(100)]
DAYS = [f"2026-01-{n:02}" for n in range(1, 32)]


@pytest.mark.parametrize(
    ("cells", "type_", "misfits"),
    [
        (NUMBERS, pa.int64(), 0),
        ([*NUMBERS, "n.n.", "?"], pa.int64(), 2),
        ([*NUMBERS, *["?"] * 6], pa.string(), 0),  # 6 of 106 are more than a twentieth
        ([*NUMBERS, "1.5"], pa.float64(), 0),
        ([*NUMBERS, "1e3", "x"], pa.float64(), 1),
        (["1", "2", "3", "x"], pa.int64(), 1),
        (["1", "2", "x"], pa.string(), 0),  # too few to tell
        (["", "NA", "5", ""], pa.int64(), 0),
        (["", "null"], pa.null(), 0),
        (["007", "123", "456"], pa.string(), 0),
        (["0", "0.5"], pa.float64(), 0),
        ([*map(str, range(5000)), "007"], pa.int64(), 0),
        (["12345678901234567890", "5"], pa.string(), 0),  # names: as fractions they'd be rounded
        (["12345678901234567890", "5.5", "1e30"], pa.float64(), 0),
        (["true", "False", "TRUE"], pa.bool_(), 0),
        (["0", "1", "0"], pa.int64(), 0),
        (DAYS, pa.date32(), 0),
        ([*DAYS, "2026-01-31T12:00:00Z"], MOMENT, 0),
        ([*DAYS, "soon"], pa.date32(), 1),
        (["2026-01-31 12:00", "2026-01-31T12:00:00+02:00"], MOMENT, 0),
        (["31.01.2026", "01.02.2026"], pa.string(), 0),
        (["x", "y", "1"], pa.string(), 0),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_column(cells: list[str], type_: pa.DataType, misfits: int) -> None:
    found = decide("x", CellSample(cells))
    assert (found.type, found.misfits) == (type_, misfits)


def test_what_does_not_fit_is_named() -> None:
    found = decide("x", CellSample([*NUMBERS, "?", "n.n.", "?"]))
    assert (found.cells, found.misfits, found.examples) == (103, 3, ("?", "n.n."))


def test_all_cells_must_fit_if_that_is_wanted() -> None:
    found = decide("x", CellSample([*NUMBERS, "?"]), exact=True)
    assert found.type == pa.string() and found.mostly_numbers
    assert decide("x", CellSample(NUMBERS), exact=True).type == pa.int64()


def test_a_time_is_one_if_most_of_it_is() -> None:
    half = ["2026-01-31T12:00:00", "2026-01-31T12:00:01", "soon", "later", "2026-01-31"]
    assert decide("ts", CellSample(half)).type == pa.string()
    found = decide("ts", CellSample(half), time=True)
    assert (found.type, found.misfits) == (MOMENT, 2)
    assert decide("ts", CellSample(["1", "2", "1.5"]), time=True).type == pa.int64()
    assert decide("ts", CellSample(["x", "y"]), time=True).type == pa.string()


def test_quotes_in_json_make_text_of_numbers_but_not_of_times() -> None:
    numbers = decide("x", CellSample(quoted=["12", "13", "14"]))
    assert numbers.type == pa.string() and numbers.mostly_numbers
    assert decide("x", CellSample(quoted=["2026-01-31T12:00:00Z"])).type == MOMENT
    assert decide("x", CellSample(["1", "2", "3", "4"], quoted=["5"])).type == pa.int64()


def test_objects_and_arrays() -> None:
    nested = [{"a": 1}, {"a": 2, "b": [1.5]}]
    expected = pa.struct({"a": pa.int64(), "b": pa.list_(pa.float64())})
    assert decide("x", CellSample(nested=list(nested))).type == expected
    assert decide("x", CellSample(nested=[{"a": 1}, [1]])).type == pa.string()


def column(type_: pa.DataType, cells: int = 10) -> InferredColumn:
    return InferredColumn("x", type_, cells)


@pytest.mark.parametrize(
    ("types", "type_", "misfits"),
    [
        ([pa.int64(), pa.int64(), pa.string()], pa.int64(), 10),
        ([pa.int64(), pa.string()], pa.string(), 0),
        ([pa.int64(), pa.int64(), pa.float64()], pa.float64(), 0),
        ([pa.int64(), pa.float64(), pa.string()], pa.float64(), 10),
        ([pa.date32(), pa.date32(), MOMENT], MOMENT, 0),
        ([pa.null(), pa.null(), pa.int64()], pa.int64(), 0),
        ([pa.null(), pa.null()], pa.null(), 0),
    ],
    ids=str,
)
def test_most_files_decide(types: list[pa.DataType], type_: pa.DataType, misfits: int) -> None:
    found = agree([column(t, 0 if t == pa.null() else 10) for t in types])
    assert (found.type, found.misfits) == (type_, misfits)


def test_files_that_disagree_leave_text_if_all_cells_must_fit() -> None:
    types = [pa.int64(), pa.int64(), pa.string()]
    assert agree([column(t) for t in types], exact=True).type == pa.string()
