"""Events as text and as cells: what is written can be read, and tests read it, too."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.errors import DataError
from cepheid.lab.situations.cells import MOST, from_cells, to_cells
from cepheid.lab.situations.notation import read_events, write_events
from tests.corpus.reader import read_events as read_case


def test_events_are_read_in_their_order() -> None:
    table = read_events("A@1(x=5, s='it''s') # a comment\nB@-3(x=2.5, ok=true, y=null) `c d`@7")
    assert table.to_pylist() == [
        {"ts": 1, "type": "A", "x": 5.0, "s": "it's", "ok": None, "y": None},
        {"ts": -3, "type": "B", "x": 2.5, "s": None, "ok": True, "y": None},
        {"ts": 7, "type": "c d", "x": None, "s": None, "ok": None, "y": None},
    ]


def test_moments() -> None:
    table = read_events("A@2026-03-02T10:00 B@2026-03-02T10:00:01.5")
    assert table["ts"].to_pylist() == [
        datetime(2026, 3, 2, 10),
        datetime(2026, 3, 2, 10, 0, 1, 500_000),
    ]
    assert read_events(write_events(table)).equals(table)


@pytest.mark.parametrize(
    "text, message",
    [
        ("A@1 B", "line 1, column 6: expected `@`, not the end"),
        ("A@1\nB@x", "line 2, column 3: expected a time, not 'x'; an event is like A@1(x=5)"),
        ("A@1(x=)", "line 1, column 7: expected a value, not ')'"),
        ("A@1(x=5", "line 1, column 8: expected `)`, not the end"),
        ("A@1(x=big)", "a text stands in quotes: 'big'"),
        ("A@1(ts=5)", "`ts` stands before the parenthesis"),
        ("A@1 A@2026-03-02T10:00", "some times are integers and some are moments"),
        ("A@1.5", "the time 1.5 isn't an integer"),
        ("A@1(x=5) A@2(x='b')", "the values of `x` are of several types"),
        ("A@1(x=99999999999999999999)", "a value of `x` is too large"),
        ("A@2026-13-02T10:00", "there is no moment 2026-13-02T10:00"),
        ("A@1 <b>", "line 1, column 5: can't read '<b>'"),
        ("A@1 " * (MOST + 1), "at most 20,000 events"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(DataError) as error:
        read_events(text)
    assert message in str(error.value)


NAMES = st.sampled_from(["x", "y", "user_id"])
VALUES = {
    "x": st.integers(-(2**53), 2**53),
    "y": st.floats(allow_nan=False, allow_infinity=False),
    "user_id": st.text("ab' <&\n,()=", max_size=6),
}


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ABC"),
            st.integers(-50, 50),
            st.fixed_dictionaries({}, optional=VALUES),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_written_is_read_again(events: list[tuple[str, int, dict[str, object]]]) -> None:
    rows = [{"ts": time, "type": type_, **values} for type_, time, values in events]
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    again = read_events(write_events(table))
    for row, read in zip(table.to_pylist(), again.to_pylist(), strict=True):
        assert {n: v for n, v in row.items() if v is not None} == {
            n: v for n, v in read.items() if v is not None
        }
    cells = to_cells(table, "ts")
    assert from_cells(cells, "ts").to_pylist() == table.to_pylist()


def test_tests_read_what_the_lab_writes() -> None:
    text = "A@1(x=5, s='text') B@3(ok=true, y=null) B@-3(x=-2)"
    table = read_events(text)
    events = read_case(write_events(table), "type")
    assert [{n: e.values.get(n) for n in table.column_names} for e in events] == table.to_pylist()


def test_cells_keep_types_that_json_lacks() -> None:
    table = pa.table(
        {
            "ts": pa.array([1, 2], pa.timestamp("ms", "Europe/Berlin")),
            "big": [2**60, None],
            "odd": [float("inf"), 0.5],
            "price": [Decimal("1.50"), Decimal("2.25")],
            "day": [date(2026, 3, 2), None],
            "at": pa.array([datetime(2026, 3, 2, 10), None], pa.timestamp("s")),
            "tags": [["a", "b"], None],
            "kind": pa.array(["u", "v"]).dictionary_encode(),
            "raw": [b"x", b"y"],
            "small": pa.array([200, 1], pa.uint8()),
        }
    )
    cells = to_cells(table, "ts")
    assert [c["name"] for c in cells["columns"]] == [n for n in table.column_names if n != "raw"]
    assert cells["rows"][0][:2] == [1000, str(2**60)]
    again = from_cells(cells, "ts")
    assert again.schema.field("ts").type == pa.timestamp("us", "UTC")
    for name in ("big", "odd", "price", "day", "at", "tags", "kind", "small"):
        assert again[name].to_pylist() == table[name].to_pylist(), name


def column(type_: str, *rows: object, name: str = "ts") -> dict[str, object]:
    return {"columns": [{"name": name, "type": type_}], "rows": [*rows]}


@pytest.mark.parametrize(
    "cells, message",
    [
        ([], "events are an object"),
        ({"columns": [{"name": "ts"}], "rows": []}, "a column is an object"),
        (column("nonsense"), "no type that the lab knows"),
        (column("long, x long"), "no type"),
        (column("long", [1, 2]), "row 0 has not one value"),
        (column("long", ["<b>"]), 'row 0: "<b>" in `ts`'),
        (column("long", [True]), "row 0: true in `ts`"),
        (column("long", [2**70]), "no long"),
        (column("string", [5]), "row 0: 5 in `ts` is no string"),
        (column("long", *[[1]] * (MOST + 1)), "at most 20,000"),
        ({"columns": [{"name": "ts", "type": "long"}] * 2, "rows": []}, "the same name"),
    ],
)
def test_cells_that_fit_no_column(cells: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_cells(cells, "ts")
