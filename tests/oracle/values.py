"""Scalar operators as SQL (and Spark) has them: NULL is None, unknown is None too."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from ipaddress import ip_address
from operator import attrgetter
from typing import Any

from cepheid.algebra.types import Type

Value = Any
MICROSECONDS_PER_DAY = 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1. NaN as in Spark: equal to itself, greater than every number."""
    if is_nan(left) or is_nan(right):
        return int(is_nan(left)) - int(is_nan(right))
    return int(left > right) - int(left < right)


def conjunction(values: Sequence[Value]) -> bool | None:
    if any(v is False for v in values):
        return False
    return None if any(v is None for v in values) else True


def disjunction(values: Sequence[Value]) -> bool | None:
    if any(v is True for v in values):
        return True
    return None if any(v is None for v in values) else False


def negate(value: Value) -> bool | None:
    return None if value is None else not value


def member(operand: Value, options: Sequence[Value]) -> bool | None:
    """`x IN (…)` is the disjunction of the equalities; NULL IN () would be false."""
    return disjunction(
        [None if operand is None or o is None else compare(operand, o) == 0 for o in options]
    )


def case(arguments: Sequence[Value]) -> Value:
    """c1, v1, c2, v2, …, default."""
    for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        if condition is True:
            return value
    return arguments[-1]


def coalesce(arguments: Sequence[Value]) -> Value:
    return next((a for a in arguments if a is not None), None)


def fitting(value: Value) -> Value:
    """Integers have 64 bits; a result that doesn't fit is undefined, as of Spark's `try_add`."""
    return None if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63 else value


def integer(function: Callable[..., Value]) -> Callable[..., Value]:
    return lambda *arguments: fitting(function(*arguments))


def divide(left: Value, right: Value) -> Value:
    return None if right == 0 else float(left) / float(right)


def remainder(left: Value, right: Value) -> Value:
    """With the sign of the dividend; NULL if the divisor is zero."""
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return int(math.copysign(1, left)) * (abs(left) % abs(right))
    return math.nan if math.isinf(left) else math.fmod(left, right)


def like(text: str, pattern: str) -> bool:
    """`%` any text, `_` any character, a backslash takes the next character as it is."""
    parts: list[str] = []
    characters = iter(pattern)
    for c in characters:
        match c:
            case "%":
                parts.append(".*")
            case "_":
                parts.append(".")
            case "\\":
                parts.append(re.escape(next(characters, "\\")))
            case _:
                parts.append(re.escape(c))
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def to_timestamp(days: int) -> Value:
    return fitting(days * MICROSECONDS_PER_DAY)


def whole(rounding: Callable[[float], int]) -> Callable[[Value], Value]:
    """ceil and floor give integers; of NaN and infinity they are undefined."""
    return lambda x: None if isinstance(x, float) and not math.isfinite(x) else fitting(rounding(x))


def sign(value: Value) -> Value:
    return None if is_nan(value) else compare(value, 0)


def rounded(value: Value, digits: int = 0) -> Value:
    """Half away from zero, as SQL rounds."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    result = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return float(result) if isinstance(value, float) else fitting(int(result))


def real(function: Callable[..., float]) -> Callable[..., Value]:
    """Outside of its domain a function is undefined: NULL. Beyond all numbers: infinity."""

    def apply(*arguments: Value) -> Value:
        try:
            return function(*(float(a) for a in arguments))
        except ValueError:
            return None
        except OverflowError:
            return math.inf

    return apply


def substring(text: str, start: int, length: int | None = None) -> str:
    """From 1; 0 is 1 too; a negative start counts from the end."""
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = len(text) if length is None else first + length
    return text[max(first, 0) : max(last, 0)]


def replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


def calendar(value: int, kind: Type) -> datetime | date:
    """A timestamp is microseconds, a date days, since the epoch, in UTC."""
    if kind is Type.DATE:
        return EPOCH + timedelta(days=value)
    return EPOCH + timedelta(microseconds=value)


def extreme(direction: int) -> Callable[..., Value]:
    """greatest and least skip NULLs, as in Spark."""

    def choose(*arguments: Value) -> Value:
        best = None
        for a in arguments:
            if a is not None and (best is None or compare(a, best) * direction > 0):
                best = a
        return best

    return choose


def split_part(text: str, separator: str, number: int) -> Value:
    """Spark's: from 1, below 0 from the end, empty where there is no such part."""
    parts = text.split(separator) if separator else [text]
    if number == 0:
        return None
    if number < 0:
        parts, number = parts[::-1], -number
    return parts[number - 1] if number <= len(parts) else ""


def occurs(text: str, expression: str) -> Value:
    """Python's expressions are RE2's where both have them, if classes are of ASCII."""
    try:
        return re.search(expression, text, re.ASCII) is not None
    except re.error:
        return None


def network_has(network: str, address: str) -> Value:
    """Compared bit by bit, as far as the prefix goes."""
    try:
        base, _, length = network.partition("/")
        left, right = ip_address(base), ip_address(address)
        prefix = int(length) if length else left.max_prefixlen
    except ValueError:
        return None
    if not 0 <= prefix <= left.max_prefixlen:
        return None
    shift = left.max_prefixlen - prefix
    return left.version == right.version and int(left) >> shift == int(right) >> shift


def began(unit: str, ticks: int) -> Value:
    """date_trunc: the fields of the moment that are smaller than the unit, at their least."""
    moment = EPOCH + timedelta(microseconds=ticks)
    least = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0}
    fields = list(least)
    match unit.lower():
        case "week":
            moment -= timedelta(days=moment.weekday())
            kept = "day"
        case "quarter":
            moment = moment.replace(day=1, month=moment.month - (moment.month - 1) % 3)
            kept = "month"
        case "millisecond":
            moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
            kept = "microsecond"
        case "year":
            kept = ""
        case other if other in least:
            kept = other
        case _:
            return None
    dropped = fields[fields.index(kept) + 1 :] if kept else fields
    return (moment.replace(**{f: least[f] for f in dropped}) - EPOCH) // timedelta(microseconds=1)


def cast(value: Value, kind: Type, target: Type) -> Value:
    """Spark's try_cast, of what the language lets be cast."""
    blank = "".join(chr(code) for code in range(ord(" ") + 1))
    text = value.strip(blank) if kind is Type.STRING else ""
    match kind, target:
        case Type.STRING, Type.INTEGER:
            return fitting(int(text)) if re.fullmatch("[+-]?[0-9]+", text) else None
        case Type.STRING, Type.FLOAT:
            digits = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?"
            if re.fullmatch(rf"[+-]?{digits}[df]", text, re.IGNORECASE):
                text = text[:-1]
            number = rf"[+-]?({digits}|inf|infinity)|nan"
            return float(text) if re.fullmatch(number, text, re.IGNORECASE) else None
        case Type.STRING, Type.BOOLEAN:
            truth = {"t": True, "true": True, "y": True, "yes": True, "1": True}
            falsehood = {"f": False, "false": False, "n": False, "no": False, "0": False}
            return (truth | falsehood).get(text.lower())
        case Type.STRING, (Type.TIMESTAMP | Type.DATE):
            try:
                moment = datetime.fromisoformat(text)
            except ValueError:
                return None
            since = moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH
            return since.days if target is Type.DATE else since // timedelta(microseconds=1)
        case Type.TIMESTAMP, Type.INTEGER:
            return value // 1_000_000
        case Type.TIMESTAMP, Type.FLOAT:
            return value / 1_000_000
        case Type.TIMESTAMP, Type.DATE:
            return value // MICROSECONDS_PER_DAY
        case _, Type.TIMESTAMP:
            return fitting(int(value * 1_000_000)) if math.isfinite(value) else None
        case _, Type.INTEGER:
            return fitting(math.trunc(value)) if math.isfinite(value) else None
        case _, Type.FLOAT:
            return float(value)
        case _, Type.BOOLEAN:
            return value != 0
        case Type.BOOLEAN, Type.STRING:
            return str(value).lower()
        case Type.DATE, Type.STRING:
            return str(calendar(value, kind))[:10]
        case Type.TIMESTAMP, Type.STRING:
            return re.sub(r"(\.[0-9]*?)0*$", r"\1", str(calendar(value, kind))[:-6])
        case Type.FLOAT, Type.STRING:
            return java_text(value)
        case _:
            return str(value)


def java_text(value: float) -> str:
    """Java's Double.toString."""
    if not math.isfinite(value):
        return "NaN" if is_nan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


CASTS = {
    f"cast_{t.value}": t
    for t in (Type.INTEGER, Type.FLOAT, Type.STRING, Type.BOOLEAN, Type.TIMESTAMP, Type.DATE)
}

ON_VALUES: dict[str, Callable[..., Value]] = {
    "=": lambda a, b: compare(a, b) == 0,
    "<>": lambda a, b: compare(a, b) != 0,
    "<": lambda a, b: compare(a, b) < 0,
    "<=": lambda a, b: compare(a, b) <= 0,
    ">": lambda a, b: compare(a, b) > 0,
    ">=": lambda a, b: compare(a, b) >= 0,
    "+": integer(lambda a, b: a + b),
    "-": integer(lambda a, b: a - b),
    "*": integer(lambda a, b: a * b),
    "/": divide,
    "%": remainder,
    "neg": integer(lambda a: -a),
    "concat": lambda *a: "".join(a),
    "like": like,
    "contains": lambda text, part: part in text,
    "to_float": float,
    "to_timestamp": to_timestamp,
    "abs": integer(abs),
    "sign": sign,
    "ceil": whole(math.ceil),
    "floor": whole(math.floor),
    "round": rounded,
    "sqrt": real(math.sqrt),
    "power": real(math.pow),
    "exp": real(math.exp),
    "ln": real(math.log),
    "log10": real(math.log10),
    "upper": str.upper,
    "lower": str.lower,
    "length": len,
    "trim": lambda a: a.strip(" "),
    "ltrim": lambda a: a.lstrip(" "),
    "rtrim": lambda a: a.rstrip(" "),
    "substring": substring,
    "replace": replace,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "split_part": split_part,
    "rlike": occurs,
    "cidr_contains": network_has,
    "date_trunc": began,
}
"""Functions of values: NULL if any argument is NULL."""

ON_NULLS: dict[str, Callable[[Sequence[Value]], Value]] = {
    "and": conjunction,
    "array_contains": lambda a: None if None in (a[0], a[1]) else member(a[1], a[0]),
    "or": disjunction,
    "not": lambda a: negate(a[0]),
    "is_null": lambda a: a[0] is None,
    "in": lambda a: member(a[0], a[1:]),
    "case": case,
    "coalesce": coalesce,
    "greatest": lambda a: extreme(1)(*a),
    "least": lambda a: extreme(-1)(*a),
}
"""Operators that look at NULLs themselves."""

CALENDAR: dict[str, Callable[[Any], Value]] = {
    **{n: attrgetter(n) for n in ("year", "month", "day", "hour", "minute", "second")},
    "quarter": lambda moment: (moment.month + 2) // 3,
    "weekofyear": lambda moment: moment.isocalendar().week,
    "dayofyear": lambda moment: moment.timetuple().tm_yday,
    "dayofweek": lambda moment: moment.isoweekday() % 7 + 1,
    "subsecond": lambda moment: moment.microsecond / 1_000_000,
}


def apply(operator: str, arguments: Sequence[Value], kinds: Sequence[Type]) -> Value:
    """An operator of bound expressions; `kinds` are the types of the arguments."""
    if operator in ON_NULLS:
        return ON_NULLS[operator](arguments)
    if any(a is None for a in arguments):
        return None
    if operator in CALENDAR:
        return CALENDAR[operator](calendar(arguments[0], kinds[0]))
    if operator in CASTS:
        return cast(arguments[0], kinds[0], CASTS[operator])
    return ON_VALUES[operator](*arguments)


def total(values: Sequence[Value]) -> Value:
    """From left to right; NULL from where it doesn't fit on, as Spark's `try_sum`."""
    result: Value = 0
    for value in values:
        result = None if result is None else fitting(result + value)
    return result


def different(values: Sequence[Value]) -> list[Value]:
    """DISTINCT: repeated values are ignored; NULL is as good as any other here."""
    found: list[Value] = []
    for value in values:
        if not any(
            other is value
            or (other is not None and value is not None and compare(other, value) == 0)
            for other in found
        ):
            found.append(value)
    return found


def deviation(values: Sequence[Value]) -> Value:
    """Spark's `stddev`, that of a sample: Welford's recursion, NULL of fewer than two."""
    mean, squares = 0.0, 0.0
    for n, value in enumerate(values, 1):
        distance = value - mean
        mean += distance / n
        squares += distance * (distance - distance / n)
    return math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else None


def aggregate(function: str, values: Sequence[Value], distinct: bool = False, n: int = 0) -> Value:
    """ "NULLs ignored as in SQL (not by first, last, collect)"; "An empty group: `count` 0,
    `collect` an empty array, other aggregates NULL"."""
    if distinct:
        values = different(values)
    present = [v for v in values if v is not None]
    match function:
        case "collect":
            return list(values)
        case "first":
            return values[n] if n < len(values) else None
        case "last":
            return values[-1 - n] if n < len(values) else None
        case "count":
            return len(present)
        case _ if not present:
            return None
        case "sum":
            return total(present)
        case "avg":
            return sum(present) / len(present)
        case "stddev":
            return deviation(present)
        case "min":
            return extreme(-1)(*present)
        case "max":
            return extreme(1)(*present)
        case _:
            raise ValueError(f"unknown aggregate {function}")
