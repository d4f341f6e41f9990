"""Kinds of columns × what a query does with them: each is read as it should be, or an error names
the column and says what to do.

`docs/data.md` has the same table for users. A column `c` holds three values, in rising order where
its kind has one; `t` is the time, 0, 1, 2.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cepheid as cep

# Most columns have no type `A`, and some are texts that look like numbers: that isn't tested here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:no event is of type"),
    pytest.mark.filterwarnings("ignore:.*compares texts that look like numbers"),
]

N = (1, 2, 3)
DAYS = [dt.date(2024, 1, n) for n in N]
CLOCK = [dt.time(n) for n in N]
MOMENTS = [dt.datetime(2024, 1, n) for n in N]
DECIMALS = [Decimal(n) / 2 for n in N]
TEXTS = ["A", "B", "C"]
BYTES = [text.encode() for text in TEXTS]


class Kind(Enum):
    """What may be done with a column: compared (and so a key and a tie), as type, as time. A column
    of any kind but the last can be returned and tested for NULL."""

    WHOLE = "compared, type, time"
    DAY = "compared, type, time "
    MOMENT = "compared, time"
    TEXT = "compared, type"
    NUMBER = "compared"
    NESTED = ""
    NOTHING = "unreadable"


ARROW: dict[str, tuple[Kind, pa.Array]] = {
    **{name: (Kind.WHOLE, pa.array(np.array(N, name))) for name in ("int8", "int16", "int32")},
    **{name: (Kind.WHOLE, pa.array(np.array(N, name))) for name in ("int64", "uint8", "uint16")},
    **{name: (Kind.WHOLE, pa.array(np.array(N, name))) for name in ("uint32", "uint64")},
    "float16": (Kind.NUMBER, pa.array(np.array(N, "float16"))),
    "float32": (Kind.NUMBER, pa.array(N, pa.float32())),
    "float64": (Kind.NUMBER, pa.array(N, pa.float64())),
    "decimal32": (Kind.NUMBER, pa.array(DECIMALS, pa.decimal32(5, 2))),
    "decimal64": (Kind.NUMBER, pa.array(DECIMALS, pa.decimal64(9, 2))),
    "decimal128": (Kind.NUMBER, pa.array(DECIMALS, pa.decimal128(10, 2))),
    "decimal256": (Kind.NUMBER, pa.array(DECIMALS, pa.decimal256(50, 2))),
    "string": (Kind.TEXT, pa.array(TEXTS)),
    "large_string": (Kind.TEXT, pa.array(TEXTS, pa.large_string())),
    "string_view": (Kind.TEXT, pa.array(TEXTS, pa.string_view())),
    "binary": (Kind.TEXT, pa.array(BYTES)),
    "large_binary": (Kind.TEXT, pa.array(BYTES, pa.large_binary())),
    "binary_view": (Kind.TEXT, pa.array(BYTES, pa.binary_view())),
    "fixed_size_binary": (Kind.TEXT, pa.array(BYTES, pa.binary(1))),
    "date32": (Kind.DAY, pa.array(DAYS)),
    "date64": (Kind.DAY, pa.array(DAYS, pa.date64())),
    "time32": (Kind.NUMBER, pa.array(CLOCK, pa.time32("s"))),
    "time64": (Kind.NUMBER, pa.array(CLOCK, pa.time64("us"))),
    **{
        f"{name}[{unit}]": (kind, pa.array(N).cast(type_("s")).cast(type_(unit)))
        for unit in ("s", "ms", "us", "ns")
        for name, kind, type_ in (
            ("timestamp", Kind.MOMENT, pa.timestamp),
            ("zoned", Kind.MOMENT, lambda unit: pa.timestamp(unit, "Europe/Paris")),
            ("duration", Kind.NUMBER, pa.duration),
        )
    },
    "dictionary of strings": (Kind.TEXT, pa.array(TEXTS).dictionary_encode()),
    "dictionary of views": (Kind.TEXT, pa.array(TEXTS, pa.string_view()).dictionary_encode()),
    "dictionary of integers": (Kind.WHOLE, pa.array(N).dictionary_encode()),
    "dictionary of doubles": (Kind.NUMBER, pa.array([0.5, 1.5, 2.5]).dictionary_encode()),
    "dictionary of timestamps": (Kind.MOMENT, pa.array(MOMENTS).dictionary_encode()),
    "dictionary of decimals": (Kind.NUMBER, pa.array(DECIMALS).dictionary_encode()),
    "run ends of strings": (Kind.TEXT, pa.RunEndEncodedArray.from_arrays(N, pa.array(TEXTS))),
    "run ends of integers": (Kind.WHOLE, pa.RunEndEncodedArray.from_arrays(N, pa.array(N))),
    "uuid": (
        Kind.TEXT,
        pa.array([bytes([n]) * 16 for n in N], pa.binary(16)).cast(pa.uuid()),
    ),
    "json": (Kind.TEXT, pa.array(["1", "2", "3"]).cast(pa.json_())),
    "opaque": (Kind.WHOLE, pa.array(N, pa.int32()).cast(pa.opaque(pa.int32(), "t", "v"))),
    "month_day_nano": (Kind.NESTED, pa.array([pa.MonthDayNano([n, 0, 0]) for n in N])),
    "list": (Kind.NESTED, pa.array([[n] for n in N])),
    "large_list": (Kind.NESTED, pa.array([[n] for n in N], pa.large_list(pa.int64()))),
    "list_view": (Kind.NESTED, pa.array([[n] for n in N], pa.list_view(pa.int64()))),
    "fixed_size_list": (Kind.NESTED, pa.array([[n] for n in N], pa.list_(pa.int64(), 1))),
    "list of dictionaries": (
        Kind.NESTED,
        pa.array([[t] for t in TEXTS]).cast(pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    ),
    "struct": (Kind.NESTED, pa.array([{"x": n} for n in N])),
    "struct of views": (
        Kind.NESTED,
        pa.array([{"x": t} for t in TEXTS], pa.struct({"x": pa.string_view()})),
    ),
    "map": (Kind.NESTED, pa.array([[("x", n)] for n in N], pa.map_(pa.string(), pa.int64()))),
}

PANDAS: dict[str, tuple[Kind, pd.Series]] = {
    **{
        f"datetime64[{unit}]": (Kind.MOMENT, pd.Series(MOMENTS).astype(f"datetime64[{unit}]"))
        for unit in ("s", "ms", "us", "ns")
    },
    "zoned": (Kind.MOMENT, pd.Series(MOMENTS).dt.tz_localize("Europe/Paris")),
    "timedelta": (Kind.NUMBER, pd.Series(pd.to_timedelta(N, unit="h"))),
    "objects: text": (Kind.TEXT, pd.Series(TEXTS, dtype=object)),
    "objects: bytes": (Kind.TEXT, pd.Series(BYTES, dtype=object)),
    "objects: decimals": (Kind.NUMBER, pd.Series(DECIMALS, dtype=object)),
    "objects: dates": (Kind.DAY, pd.Series(DAYS, dtype=object)),
    "objects: datetimes": (Kind.MOMENT, pd.Series(MOMENTS, dtype=object)),
    "objects: dicts": (Kind.NESTED, pd.Series([{"x": n} for n in N], dtype=object)),
    "objects: lists": (Kind.NESTED, pd.Series([[n] for n in N], dtype=object)),
    "objects: mixed": (Kind.NOTHING, pd.Series([1, "B", 2.5], dtype=object)),
    "objects: huge": (Kind.NOTHING, pd.Series([1, 2, 2**70], dtype=object)),
    "objects: zones or none": (
        Kind.NOTHING,
        pd.Series([pd.Timestamp(2024, 1, 1), pd.Timestamp(2024, 1, 2, tz="UTC")] * 2, dtype=object),
    ),
    "str": (Kind.TEXT, pd.Series(TEXTS)),
    "string[python]": (Kind.TEXT, pd.Series(TEXTS, dtype="string[python]")),
    "category of text": (Kind.TEXT, pd.Series(TEXTS, dtype="category")),
    "category of integers": (Kind.WHOLE, pd.Series(N, dtype="category")),
    "category of mixed": (Kind.NOTHING, pd.Series([1, "B", 2.5], dtype="category")),
    "category of intervals": (Kind.NOTHING, pd.cut(pd.Series(N), 3)),
    "Int64": (Kind.WHOLE, pd.Series(N, dtype="Int64")),
    "Float32": (Kind.NUMBER, pd.Series(N, dtype="Float32")),
    "float16": (Kind.NUMBER, pd.Series(N, dtype="float16")),
    "complex": (Kind.NOTHING, pd.Series([1j, 2j, 3j])),
    "arrow: string": (Kind.TEXT, pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.string()))),
    "arrow: decimal": (Kind.NUMBER, pd.Series(DECIMALS, dtype=pd.ArrowDtype(pa.decimal128(9, 2)))),
    "period": (Kind.NOTHING, pd.Series(pd.period_range("2024", periods=3, freq="D"))),
    "interval": (Kind.NESTED, pd.Series(pd.interval_range(0, 3))),
    "sparse": (Kind.NOTHING, pd.Series(pd.arrays.SparseArray(N))),
}

POLARS: dict[str, tuple[Kind, pl.Series]] = {
    **{
        str(type_): (Kind.WHOLE, pl.Series(N, dtype=type_))
        for type_ in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
    },
    "UInt64": (Kind.WHOLE, pl.Series(N, dtype=pl.UInt64)),
    "Int128": (Kind.NOTHING, pl.Series(N, dtype=pl.Int128)),
    "Float32": (Kind.NUMBER, pl.Series(N, dtype=pl.Float32)),
    "Float64": (Kind.NUMBER, pl.Series(N, dtype=pl.Float64)),
    "Decimal": (Kind.NUMBER, pl.Series(DECIMALS, dtype=pl.Decimal(10, 2))),
    "String": (Kind.TEXT, pl.Series(TEXTS)),
    "Binary": (Kind.TEXT, pl.Series(BYTES)),
    "Categorical": (Kind.TEXT, pl.Series(TEXTS, dtype=pl.Categorical)),
    "Enum": (Kind.TEXT, pl.Series(TEXTS, dtype=pl.Enum(TEXTS))),
    "Date": (Kind.DAY, pl.Series(DAYS)),
    "Time": (Kind.NUMBER, pl.Series(CLOCK)),
    **{
        f"{name}({unit})": (kind, pl.Series(values).cast(type_(unit)))
        for unit in ("ms", "us", "ns")
        for name, kind, values, type_ in (
            ("Datetime", Kind.MOMENT, MOMENTS, pl.Datetime),
            ("Duration", Kind.NUMBER, [dt.timedelta(hours=n) for n in N], pl.Duration),
        )
    },
    "zoned": (Kind.MOMENT, pl.Series(MOMENTS).dt.replace_time_zone("Europe/Paris")),
    "List": (Kind.NESTED, pl.Series([[n] for n in N])),
    "Array": (Kind.NESTED, pl.Series([[n] for n in N], dtype=pl.Array(pl.Int64, 1))),
    "Struct": (Kind.NESTED, pl.Series([{"x": n} for n in N])),
    "Object": (Kind.NOTHING, pl.Series([object()] * 3, dtype=pl.Object)),
}

Frame = Callable[[dict[str, Any]], Any]


def rows(found: Any) -> list[tuple[Any, ...]]:
    table = pa.table(found) if isinstance(found, pl.DataFrame) else found
    if isinstance(found, pd.DataFrame):
        table = pa.Table.from_pandas(found, preserve_index=False)
    return [tuple(row.values())[:-2] for row in table.to_pylist()]


def run(data: Any, query: str, **named: Any) -> Any:
    return cep.match(data, query, jit=False, **named)


def refused(message: str, data: Any, query: str, **named: Any) -> None:
    with pytest.raises(cep.CepheidError) as caught:
        run(data, query, **named)
    assert message in str(caught.value)
    assert "`c`" in str(caught.value) or "`a.c`" in str(caught.value)


def check(kind: Kind, make: Frame, values: Any, plain: Sequence[Any]) -> None:
    """All that can be done with a column; `plain` are its values in Python."""
    data = make({"t": [0, 1, 2], "c": values})
    assert len(run(data, "PATTERN a ; b WITHIN 9 RETURN b.t", time="t")) == 3
    if kind is Kind.NOTHING:
        refused("column `c` ", data, "PATTERN a RETURN a.c", time="t")
        refused("column `c` ", data, "PATTERN a", time="t")
        refused("column `c` ", data, "PATTERN a RETURN a.t", time="c")
        return
    returned = run(data, "PATTERN a WHERE a.c IS NOT NULL RETURN a.c, a.t", time="t")
    assert rows(returned) == [(value, n) for n, value in enumerate(plain)]
    check_compared(kind, make, values, data)
    check_type(kind, data)
    check_time(kind, data)


def check_compared(kind: Kind, make: Frame, values: Any, data: Any) -> None:
    less = "PATTERN a ; b WHERE a.c < b.c WITHIN 9 RETURN a.t AS a, b.t AS b"
    tied = make({"t": [7, 7, 7], "c": values})
    if "compared" not in kind.value:
        refused("nested", data, less, time="t")
        refused("nested", data, "PATTERN a ; b WHERE [c] WITHIN 9", time="t")
        refused("has no order", tied, "PATTERN a ; b WITHIN 9 RETURN b.t", time="t", tie="c")
        return
    assert rows(run(data, less, time="t")) == [(0, 1), (0, 2), (1, 2)]
    assert not len(run(data, "PATTERN a ; b WHERE [c] WITHIN 9 RETURN b.t", time="t"))
    assert not len(run(data, "PATTERN a ; b WHERE [c] WITHIN 9 EVENTS RETURN b.t", time="t"))
    assert len(run(tied, "PATTERN a ; b WITHIN 9 RETURN b.t", time="t", tie="c")) == 3


def check_type(kind: Kind, data: Any) -> None:
    query = "PATTERN A ; C WITHIN 9 RETURN C.t"
    if "type" in kind.value:
        found = run(data, query, time="t", type="c")
        assert len(found) == (1 if kind is Kind.TEXT and "A" in _texts(data) else 0)
    else:
        refused("cast it to a string", data, query, time="t", type="c")


def _texts(data: Any) -> list[Any]:
    column = data["c"].to_pylist() if isinstance(data, pa.Table) else list(data["c"])
    return [value.decode() if isinstance(value, bytes) else value for value in column]


def check_time(kind: Kind, data: Any) -> None:
    window = "9" if kind is Kind.WHOLE else "9 days"
    query = f"PATTERN a ; b WITHIN {window} RETURN a.t AS a, b.t AS b"
    if "time" in kind.value:
        assert rows(run(data, query, time="c")) == [(0, 1), (0, 2), (1, 2)]
    else:
        refused("it must be a timestamp, a date or an integer", data, query, time="c")


@pytest.mark.parametrize("name", ARROW)
def test_pyarrow(name: str) -> None:
    kind, values = ARROW[name]
    check(kind, pa.table, values, _stored(values).to_pylist())


def _stored(values: pa.Array) -> pa.Array:
    return values.storage if isinstance(values, pa.ExtensionArray) else values


@pytest.mark.parametrize("name", PANDAS)
def test_pandas(name: str) -> None:
    kind, values = PANDAS[name]
    values = values.head(3)
    plain = [] if kind is Kind.NOTHING else _stored(pa.array(values)).to_pylist()
    check(kind, pd.DataFrame, values, plain)


@pytest.mark.parametrize("name", POLARS)
def test_polars(name: str) -> None:
    kind, values = POLARS[name]
    check(kind, pl.DataFrame, values, values.to_list())


class TestReturned:
    """What comes back is of the type that went in, or of the plain one of the same values."""

    @pytest.mark.parametrize(
        ("given", "found"),
        [
            (pa.string_view(), pa.large_string()),
            (pa.float16(), pa.float32()),
            (pa.uuid(), pa.binary(16)),
            (pa.dictionary(pa.int8(), pa.string()), pa.string()),
            (pa.uint64(), pa.uint64()),
            (pa.large_string(), pa.large_string()),
            (pa.timestamp("ns", "Europe/Paris"), pa.timestamp("ns", "Europe/Paris")),
        ],
        ids=str,
    )
    def test_type(self, given: pa.DataType, found: pa.DataType) -> None:
        data = pa.table({"t": [1], "c": pa.nulls(1, given)})
        assert run(data, "PATTERN a RETURN a.c", time="t").schema.field("c").type == found

    @pytest.mark.parametrize("function", ["min", "max"])
    def test_extremes_of_durations(self, function: str) -> None:
        spans = pa.array([3, 1, 2], pa.duration("s"))
        data = pa.table({"t": [0, 1, 2, 3], "c": pa.concat_arrays([spans, spans[:1]])})
        query = f"PATTERN a ; b{{2}} ; c WITHIN 9 RETURN {function}(b.c) AS c"
        (row,) = rows(run(data, query, time="t"))
        assert row == (dt.timedelta(seconds=1 if function == "min" else 2),)


class TestValues:
    def test_unsigned_integers_beyond_64_bits(self) -> None:
        """They can be returned, but not compared."""
        data = pa.table({"t": [0, 1], "c": pa.array([5, 2**64 - 1], pa.uint64())})
        assert rows(run(data, "PATTERN a RETURN a.c", time="t")) == [(5,), (2**64 - 1,)]
        refused("cast it to a decimal", data, "PATTERN a WHERE a.c > 1 RETURN a.t", time="t")
        keyed = "PATTERN a ; b WHERE [c] WITHIN 9 RETURN a.t"
        refused("cast it to a decimal", data, keyed, time="t")
        refused("cast it to a decimal", data, keyed.replace("9", "9 EVENTS"), time="t")
        refused("don't fit into 64 bits", data, "PATTERN a RETURN a.t", time="c")

    def test_nothing_but_null(self) -> None:
        """Such a column has no type, and compares with everything."""
        data = pa.table({"t": [0, 1], "c": pa.nulls(2)})
        assert rows(run(data, "PATTERN a RETURN a.c", time="t")) == [(None,), (None,)]
        for condition in ("a.c < b.c", "a.c = 'x'", "a.c > 5", "[c]"):
            query = f"PATTERN a ; b WHERE {condition} WITHIN 9 RETURN b.t"
            assert not len(run(data, query, time="t"))
        assert len(run(data, "PATTERN a WHERE a.c IS NULL RETURN a.t", time="t")) == 2
        refused("is null", data, "PATTERN a RETURN a.t", time="t", tie="c")

    def test_booleans(self) -> None:
        data = pa.table({"t": [0, 1, 2], "c": [False, True, True]})
        query = "PATTERN a ; b WHERE a.c < b.c WITHIN 9 RETURN a.t AS a, b.t AS b"
        assert rows(run(data, query, time="t")) == [(0, 1), (0, 2)]
        typed = "PATTERN `false` a ; `true` b WITHIN 9 RETURN a.t AS a, b.t AS b"
        assert rows(run(data, typed, time="t", type="c")) == [(0, 1), (0, 2)]

    def test_times_of_day_are_durations_since_midnight(self) -> None:
        data = pa.table({"t": [0, 1, 2], "c": [dt.time(8), dt.time(12), dt.time(17)]})
        query = "PATTERN a WHERE a.c >= 12 hours RETURN a.t"
        assert rows(run(data, query, time="t")) == [(1,), (2,)]

    def test_types_that_are_no_text(self) -> None:
        """Bytes need not be UTF-8 to be compared with a name."""
        data = pa.table({"t": [0, 1, 2], "c": [b"A", b"\xff", b"B"]})
        assert len(run(data, "PATTERN A ; B WITHIN 9 RETURN A.t", time="t", type="c")) == 1

    def test_nanoseconds_of_a_key(self) -> None:
        """Keys are equal where predicates take them as equal, however events are counted."""
        data = pa.table({"t": [0, 1], "c": pa.array([1, 2], pa.duration("ns"))})
        for window in ("9", "9 EVENTS"):
            query = f"PATTERN a ; b WHERE [c] WITHIN {window} RETURN b.t"
            assert len(run(data, query, time="t")) == 1

    def test_uuids_of_python(self) -> None:
        ids = [uuid.UUID(int=n) for n in (5, 5, 6)]
        data = pd.DataFrame({"t": [0, 1, 2], "c": pd.Series(ids, dtype=object)})
        query = "PATTERN a ; b WHERE [c] WITHIN 9 RETURN a.c, b.t"
        assert rows(run(data, query, time="t")) == [(ids[0].bytes, 1)]
