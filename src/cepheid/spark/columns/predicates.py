"""Predicates over one event as Spark columns.

Only what Spark computes exactly as the engine does is translated; for the rest the answer is
None, and the engine evaluates it. Values are as predicates see them (`algebra.types.Type`):
integers are longs, times are microseconds, dates days. No translation can raise an error on
some row, whether the session is in ANSI mode or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.algebra.expressions import Attribute, Call, Constant, Expr
from cepheid.algebra.types import Type
from cepheid.spark.columns.column_names import named

DAY = 86_400_000_000

EXACT_DECIMAL = 15
"""Up to this many digits, every conversion of a decimal to a double gives the same result."""

_CASTS = {
    Type.BOOLEAN: "boolean",
    Type.INTEGER: "long",
    Type.FLOAT: "double",
    Type.DECIMAL: "double",
    Type.STRING: "string",
    Type.BINARY: "binary",
    Type.DATE: "long",
    Type.TIMESTAMP: "long",
    Type.DURATION: "long",
}

_ORDER: Mapping[str, Callable[[Column, Column], Column]] = {
    "=": lambda x, y: x == y,
    "<>": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}

_STRINGS: Mapping[str, Callable[..., Column]] = {
    "contains": F.contains,
    "starts_with": F.startswith,
    "ends_with": F.endswith,
    "concat": F.concat,
    "length": lambda x: F.length(x).cast("long"),
    "trim": F.trim,
    "ltrim": F.ltrim,
    "rtrim": F.rtrim,
}

_CALENDAR: Mapping[str, Callable[[Column], Column]] = {
    "year": F.year,
    "month": F.month,
    "day": F.dayofmonth,
}


def microseconds(column: Column, type_: t.DataType) -> Column:
    """A time column as the engine's 64-bit integer."""
    match type_:
        case t.TimestampType():
            return F.unix_micros(column)
        case t.TimestampNTZType():
            # The difference of two local times doesn't depend on the session's time zone.
            since = column - F.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'")
            return (since.cast("decimal(20,6)") * 1_000_000).cast("long")
        case t.DateType():
            return F.unix_date(column).cast("long") * DAY
        case _:
            return column.cast("long")


def combine(operation: Callable[[Column, Column], Column], columns: Sequence[Column]) -> Column:
    """Combine many columns in a shallow tree: Spark Connect refuses deep ones."""
    if len(columns) == 1:
        return columns[0]
    half = len(columns) // 2
    return operation(combine(operation, columns[:half]), combine(operation, columns[half:]))


class Translator:
    """Translates the predicates over events with these columns."""

    def __init__(self, columns: Mapping[str, t.DataType]) -> None:
        self._columns = columns

    def column(self, expr: Expr) -> Column | None:
        """The expression over the current row; None if Spark would compute something else."""
        match expr:
            case Constant():
                return _constant(expr)
            case Attribute():
                return self._attribute(expr)
            case Call():
                native = self._native(expr)
                return self._call(expr) if native is None else native
            case _:
                return None

    def _attribute(self, attribute: Attribute) -> Column | None:
        column, type_ = named(attribute.name), self._columns[attribute.name]
        match attribute.type:
            case Type.TIMESTAMP:
                return microseconds(column, type_)
            case Type.DATE:
                return F.unix_date(column).cast("long")
            case Type.DECIMAL if not _exact(type_):
                return None
            case Type.OTHER:
                return column
            case Type.NULL | Type.DURATION:
                return None
            case kind:
                # Also a string with a collation: the engine compares bytes.
                return column if type_ == _plain(kind) else column.cast(_CASTS[kind])

    def _native(self, call: Call) -> Column | None:
        """Compare a time column with constants in Spark's own type, which data sources
        understand."""
        compared = call.operator in _ORDER or call.operator == "in"
        first, rest = call.arguments[0], call.arguments[1:]
        if not compared or not all(isinstance(r, Constant) for r in rest):
            return None
        if not isinstance(first, Attribute) or first.type not in (Type.TIMESTAMP, Type.DATE):
            return None
        type_ = self._columns[first.name]
        values = [r.value for r in rest if isinstance(r, Constant) and type(r.value) is int]
        if len(values) < len(rest) or any(r.type is not first.type for r in rest):
            return None
        if isinstance(type_, t.TimestampNTZType):
            return None
        make = F.date_from_unix_date if first.type is Type.DATE else F.timestamp_micros
        wanted = [make(F.lit(v)) for v in values]
        column = named(first.name)
        if call.operator == "in":
            return combine(or_, [column == w for w in wanted])
        return _ORDER[call.operator](column, wanted[0])

    def _call(self, call: Call) -> Column | None:
        arguments = [self.column(a) for a in call.arguments]
        known = [a for a in arguments if a is not None]
        if len(known) < len(arguments):
            return None
        kind = call.arguments[0].type
        x = known[0]
        match call.operator:
            case "and":
                return combine(and_, known)
            case "or":
                return combine(or_, known)
            case "not":
                return ~x
            case "is_null":
                return x.isNull()
            case "=" | "<>" if kind is not Type.OTHER:
                return _ORDER[call.operator](x, known[1])
            case "<" | "<=" | ">" | ">=" if kind not in (Type.OTHER, Type.BINARY):
                return _ORDER[call.operator](x, known[1])
            case "in":
                if all(isinstance(a, Constant) for a in call.arguments[1:]):
                    return x.isin(*known[1:])
                return combine(or_, [x == option for option in known[1:]])
            case "array_contains":
                return _array_contains(x, known[1], call.arguments[1].type)
            case "coalesce":
                return F.coalesce(*known)
            case "case":
                return _case(known, call.type)
            case "to_float":
                return x.cast("double")
            case "to_timestamp":
                return F.try_multiply(x, F.lit(DAY).cast("long"))
            case _:
                number = _arithmetic(call, known)
                return _string(call, known) if number is None else number


def _array_contains(array: Column, value: Column, kind: Type) -> Column | None:
    """Elements whose values differ between predicates and Spark are left to the engine."""
    if kind not in (Type.BOOLEAN, Type.INTEGER, Type.FLOAT, Type.STRING):
        return None
    return F.array_contains(array.cast(f"array<{_CASTS[kind]}>"), value)


def _plain(kind: Type) -> t.DataType | None:
    plain: dict[Type, t.DataType] = {
        Type.BOOLEAN: t.BooleanType(),
        Type.INTEGER: t.LongType(),
        Type.FLOAT: t.DoubleType(),
        Type.STRING: t.StringType(),
        Type.BINARY: t.BinaryType(),
    }
    return plain.get(kind)


def _exact(type_: t.DataType) -> bool:
    return isinstance(type_, t.DecimalType) and type_.precision <= EXACT_DECIMAL


def _constant(constant: Constant) -> Column | None:
    if constant.type not in _CASTS:
        return None
    return F.lit(constant.value).cast(_CASTS[constant.type])


def _case(arguments: list[Column], type_: Type) -> Column | None:
    if type_ not in _CASTS:
        return None
    result = arguments[-1].cast(_CASTS[type_])
    for condition, value in reversed(list(zip(arguments[:-1:2], arguments[1:-1:2], strict=True))):
        result = F.when(condition, value.cast(_CASTS[type_])).otherwise(result)
    return result


def _arithmetic(call: Call, arguments: list[Column]) -> Column | None:
    """Integers that overflow give NULL, as does a division by zero. What the last digit of a
    double may depend on (`%`, roots, logarithms) is left to the engine."""
    whole = call.type is not Type.FLOAT
    x = arguments[0]
    y = arguments[1] if len(arguments) > 1 else F.lit(None)
    match call.operator:
        case "+":
            return F.try_add(x, y) if whole else x + y
        case "-":
            return F.try_subtract(x, y) if whole else x - y
        case "*":
            return F.try_multiply(x, y) if whole else x * y
        case "/":
            return F.try_divide(x.cast("double"), y.cast("double"))
        case "%" if whole:
            return F.when(y != 0, F.try_mod(x, y))
        case "neg":
            return F.try_subtract(F.lit(0).cast("long"), x) if whole else -x
        case "abs" if not whole:
            return F.abs(x)
        case _:
            return None


def _string(call: Call, arguments: list[Column]) -> Column | None:
    if call.operator in _STRINGS:
        return _STRINGS[call.operator](*arguments)
    match call.operator, call.arguments:
        case "like", (_, Constant(value=str() as pattern)) if "\\" not in pattern:
            return arguments[0].like(pattern)
        case "year" | "month" | "day", (part,) if part.type is Type.DATE:
            date = F.date_from_unix_date(arguments[0].cast("int"))
            return _CALENDAR[call.operator](date).cast("long")
        case _:
            return None
