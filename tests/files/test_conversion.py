"""What cells are as values, by type. The values are written down by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cepheid.errors import DataError
from cepheid.files.cell_values import MOMENT, convert
from cepheid.files.time_format import TimeFormat

BAD = object()


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def check(type_: pa.DataType, expected: dict[str | None, object], form: str | None = None) -> None:
    """All cells at once, and each by itself: one that doesn't fit changes nothing for others."""
    given = None if form is None else TimeFormat.of(form)
    for cells in (list(expected), *([cell] for cell in expected)):
        found = convert(pa.array(cells, pa.string()), type_, given)
        misfits = [False] * len(cells) if found.misfits is None else found.misfits.tolist()
        seen = [BAD if bad else v for v, bad in zip(found.values.to_pylist(), misfits, strict=True)]
        assert seen == [expected[cell] for cell in cells]


MISSING: dict[str | None, object] = dict.fromkeys((None, "", "NA", "null", "N/A", "NaN", "None"))


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (
            pa.int64(),
            {
                "7": 7, " 12 ": 12, "+5": 5, "-3": -3, "007": 7, "9223372036854775807": 2**63 - 1,
                "9223372036854775808": BAD, "1.0": BAD, "1e3": BAD, "1_0": BAD, "x": BAD, "-": BAD,
                **MISSING,
            },
        ),
        (pa.int8(), {"127": 127, "128": BAD, **MISSING}),
        (
            pa.float64(),
            {
                "7": 7.0, "1.5": 1.5, ".5": 0.5, "5.": 5.0, "+1e3": 1000.0, "-inf": -float("inf"),
                " Infinity": float("inf"), "1,5": BAD, "1d": BAD, "x": BAD, **MISSING,
            },
        ),
        (pa.bool_(), {"true": True, "FALSE": False, "1": BAD, "yes": BAD, **MISSING}),
        (
            pa.date32(),
            {
                "2026-01-31": date(2026, 1, 31), "2026-02-30": BAD, "31.01.2026": BAD,
                "2026-01-31T00:00": BAD, **MISSING,
            },
        ),
        (
            MOMENT,
            {
                "2026-01-31": at(2026, 1, 31),
                "2026-01-31 12": at(2026, 1, 31, 12),
                "2026-01-31T12:30": at(2026, 1, 31, 12, 30),
                "2026-01-31T12:30:05Z": at(2026, 1, 31, 12, 30, 5),
                "2026-01-31T12:30:05.25+02:00": at(2026, 1, 31, 10, 30, 5, 250_000),
                "2026-01-31 12:30:05-0130": at(2026, 1, 31, 14, 0, 5),
                "2026-01-31 12:30:05.123456789": at(2026, 1, 31, 12, 30, 5, 123_456),
                " 2026-01-31 12:00:00 ": at(2026, 1, 31, 12),
                "2026-02-30T12:00:00": BAD, "2026-01-31T24:00:00": BAD, "soon": BAD,
                "1769860800": BAD, **MISSING,
            },
        ),
        (pa.timestamp("us"), {"2026-01-31T12:00:00+02:00": datetime(2026, 1, 31, 10), "x": BAD}),
        (
            pa.decimal128(5, 2),
            {
                "1.5": Decimal("1.50"), "-123.45": Decimal("-123.45"), "1.555": BAD, "1234": BAD,
                "1e1": BAD, **MISSING,
            },
        ),
        (pa.string(), {" x ": " x ", "": "", "NA": "NA", None: None}),
    ],
    ids=str,
)  # fmt: skip
def test_cells(type_: pa.DataType, expected: dict[str | None, object]) -> None:
    check(type_, expected)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (
            "%d.%m.%Y %H:%M:%S",
            {
                "31.1.2026 7:05:09": at(2026, 1, 31, 7, 5, 9),
                "31.01.2026  07:05:09": at(2026, 1, 31, 7, 5, 9),
                "31.2.2026 07:05:09": BAD, "2026-01-31T12:00:00": BAD, "": None,
            },
        ),
        (
            "%m/%d/%y %I:%M %p",
            {
                "01/31/26 12:05 AM": at(2026, 1, 31, 0, 5),
                "1/31/26 12:05 pm": at(2026, 1, 31, 12, 5),
                "1/31/69 3:05 PM": at(1969, 1, 31, 15, 5), "1/31/26 13:05 PM": BAD,
            },
        ),
        ("%d/%b/%Y:%T %z", {"31/Jan/2026:12:00:00 +0200": at(2026, 1, 31, 10), "x/y": BAD}),
        ("%Y%m%dT%H%M%S.%f", {"20260131T120000.5": at(2026, 1, 31, 12, 0, 0, 500_000)}),
        ("%d %B %Y", {"31 January 2026": at(2026, 1, 31), "31 Nothing 2026": BAD}),
        ("100%% %F", {"100% 2026-01-31": at(2026, 1, 31)}),
    ],
    ids=str,
)  # fmt: skip
def test_times_in_another_form(form: str, expected: dict[str | None, object]) -> None:
    check(MOMENT, expected, form)


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ("%d.%m", "one of %Y, %y is needed"),
        ("%Y-%m-%d %Q", "%Q isn't known"),
        ("%Y-%m-%d %Y", "%Y occurs twice"),
        ("%Y-%m-%d %I:%M", "hours are %H, or %I with %p"),
        ("yyyy-MM-dd", "one of %Y, %y is needed"),
        ("%Y-%m-%d %", "% isn't known"),
    ],
)
def test_formats_that_make_no_sense(form: str, why: str) -> None:
    with pytest.raises(DataError, match="--time-format") as error:
        TimeFormat.of(form)
    assert why in str(error.value) and "'%d.%m.%Y %H:%M:%S'" in str(error.value)
