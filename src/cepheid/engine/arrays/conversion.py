"""Values of one type as another, and parts of moments, over whole arrays.

What can't be converted is NULL. Numbers and moments are written as Spark writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.functions import UNITS
from cepheid.algebra.types import Type

DAY = 86_400_000_000
SECOND = 1_000_000
_LARGEST = 2**63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

CALENDAR: Mapping[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "weekofyear": pc.iso_week,
    "day": pc.day,
    "dayofyear": pc.day_of_year,
    "dayofweek": lambda x: pc.day_of_week(x, count_from_zero=False, week_start=7),
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "subsecond": pc.subsecond,
}


def moments(x: Any, kind: Type) -> Any:
    """Microseconds or days as Arrow's own type."""
    return x.cast(pa.int32()).cast(pa.date32()) if kind is Type.DATE else x.cast(_MICROSECONDS)


_MICROSECONDS = pa.timestamp("us")


def truncated(x: Any, unit: str | None) -> Any:
    """The start of the unit of time that contains the moment; NULL if there is no such unit."""
    if unit is None or unit.lower() not in UNITS:
        return pc.if_else(pc.is_null(x), x, pa.scalar(None, pa.int64()))
    floor = pc.floor_temporal(x.cast(_MICROSECONDS), unit=unit.lower(), week_starts_monday=True)
    return floor.cast(pa.int64())


def converted(x: Any, kind: Type, target: Type) -> Any:
    """Convert value by value: conversions are rare, and their rules are many."""
    convert, type_ = _CONVERSIONS[target]
    if isinstance(x, pa.Scalar):
        value = x.as_py()
        return pa.scalar(None if value is None else convert(value, kind), type_)
    return pa.array([None if v is None else convert(v, kind) for v in x.to_pylist()], type_)


def to_integer(value: Any, kind: Type) -> int | None:
    """Towards zero; a timestamp as whole seconds since 1970."""
    match kind:
        case Type.TIMESTAMP:
            return int(value) // SECOND
        case Type.STRING:
            number = int(value) if _INTEGER.fullmatch(value := value.strip(_BLANK)) else None
        case _:
            number = int(value) if abs(value) < float("inf") else None
    return number if number is not None and -_LARGEST <= number < _LARGEST else None


def to_double(value: Any, kind: Type) -> float | None:
    match kind:
        case Type.TIMESTAMP:
            return float(value / SECOND)
        case Type.STRING:
            number = _NUMBER.fullmatch(value.strip(_BLANK))
            return float(number["digits"] or number[0]) if number else None
        case _:
            return float(value)


def to_boolean(value: Any, kind: Type) -> bool | None:
    if kind is not Type.STRING:
        return bool(value != 0)
    return _TRUTH.get(value.strip(_BLANK).lower())


def to_text(value: Any, kind: Type) -> str | None:
    match kind:
        case Type.BOOLEAN:
            return "true" if value else "false"
        case Type.FLOAT:
            return _double(value)
        case Type.DATE | Type.TIMESTAMP:
            return _moment(value, kind)
        case _:
            return str(value)


def _double(value: float) -> str:
    """As Java writes it: plain from 0.001 to 10 million, else with an exponent."""
    if value != value or abs(value) == float("inf"):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = next(d for p in range(18) if float(d := f"{value:.{p}e}") == value)
    mantissa, _, exponent = shortest.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _moment(value: int, kind: Type) -> str | None:
    try:
        moment = _EPOCH + timedelta(**{"days" if kind is Type.DATE else "microseconds": value})
    except OverflowError:
        return None
    if kind is Type.DATE:
        return moment.date().isoformat()
    text = moment.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if "." in text else text


def to_moment(value: Any, kind: Type) -> int | None:
    """Numbers are seconds since 1970."""
    if kind is Type.STRING:
        return _read(value)
    if kind is Type.FLOAT and not abs(value) < float("inf"):
        return None
    ticks = int(value * SECOND)
    return ticks if -_LARGEST <= ticks < _LARGEST else None


def to_day(value: Any, kind: Type) -> int | None:
    ticks = _read(value, zone=False) if kind is Type.STRING else value
    return None if ticks is None else int(ticks // DAY)


def _read(text: str, *, zone: bool = True) -> int | None:
    """A date with or without a time; a time without a zone is UTC."""
    written = _WRITTEN.fullmatch(text.strip(_BLANK))
    if written is None:
        return None
    year, month, day, hour, minute, second = (int(written[p] or least) for p, least in _PARTS)
    micros = int((written["fraction"] or "").ljust(6, "0")[:6])
    try:
        moment = datetime(year, month, day, hour, minute, second, micros, UTC)
    except ValueError:
        return None
    shift = timedelta(0)
    if zone and written["sign"]:
        shift = timedelta(hours=int(written["hours"]), minutes=int(written["minutes"] or 0))
        shift = -shift if written["sign"] == "-" else shift
    return (moment - shift - _EPOCH) // timedelta(microseconds=1)


_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(
    r"(?P<digits>[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)[df]?|[+-]?inf(inity)?|nan",
    re.ASCII | re.IGNORECASE,
)
"""Java's letters for double and float may follow the digits."""
_BLANK = "".join(map(chr, range(0x21)))
"""What Java trims: no other spaces of Unicode."""
_WRITTEN = re.compile(
    r"(?P<year>\d{4})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2})"
    r"([ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(:(?P<second>\d{1,2})(\.(?P<fraction>\d+))?)?"
    r"\s*(Z|UTC|(?P<sign>[+-])(?P<hours>\d{1,2}):?(?P<minutes>\d{2})?)?)?)?)?",
    re.ASCII,
)
_PARTS = (("year", 1), ("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))
_TRUTH: dict[str, bool] = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
_CONVERSIONS: Mapping[Type, tuple[Callable[[Any, Type], Any], pa.DataType]] = {
    Type.INTEGER: (to_integer, pa.int64()),
    Type.FLOAT: (to_double, pa.float64()),
    Type.STRING: (to_text, pa.string()),
    Type.BOOLEAN: (to_boolean, pa.bool_()),
    Type.TIMESTAMP: (to_moment, pa.int64()),
    Type.DATE: (to_day, pa.int64()),
}
