"""The scalar functions of the language: names, synonyms, parameters, result types.

Operators and the forms that binding lowers (`BETWEEN`, `nullif`, `if`) are in
`expression_binder`. What a function returns where mathematics defines nothing (`sqrt(-1)`, `ln(0)`)
is NULL. A NULL argument gives NULL, except to `coalesce`, `greatest` and `least`, which skip it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.types import Type


class Accepts(Enum):
    """What a parameter takes. FLOAT is any number, given as a double; SAME is what the other
    arguments are."""

    NUMBER = "number"
    AMOUNT = "amount"
    FLOAT = "float"
    INTEGER = "integer"
    STRING = "string"
    CALENDAR = "calendar"
    TIMESTAMP = "timestamp"
    SAME = "same"

    @property
    def words(self) -> str:
        match self:
            case Accepts.NUMBER | Accepts.FLOAT:
                return "a number"
            case Accepts.AMOUNT:
                return "a number or a duration"
            case Accepts.INTEGER:
                return "an integer"
            case Accepts.STRING:
                return "a string"
            case Accepts.CALENDAR | Accepts.TIMESTAMP:
                return "a timestamp or a date"
            case Accepts.SAME:
                return "arguments of one type"
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True)
class Function:
    """`required` of the parameters must be given; the last one repeats if `variadic`.

    `result` None: the type of the first argument.
    """

    name: str
    parameters: tuple[Accepts, ...]
    result: Type | None
    doc: str
    required: int
    variadic: bool = False

    @property
    def most(self) -> int | None:
        return None if self.variadic else len(self.parameters)

    def parameter(self, index: int) -> Accepts:
        return self.parameters[min(index, len(self.parameters) - 1)]

    @property
    def signature(self) -> str:
        """Its arguments, as in `x, y [, z]`."""
        names = "xyz"[: len(self.parameters)]
        if self.variadic:
            return ", ".join([*"xyz"[: max(1, self.required)], "…"])
        required, optional = names[: self.required], names[self.required :]
        return ", ".join(required) + "".join(f" [, {name}]" for name in optional)

    @property
    def arity(self) -> str:
        """How many arguments, in words."""
        if self.variadic:
            return f"at least {_count(self.required)}"
        if self.required < len(self.parameters):
            return f"{self.required} or {_count(len(self.parameters))}"
        return _count(self.required)


def _count(number: int) -> str:
    return "1 argument" if number == 1 else f"{number} arguments"


def _function(
    name: str,
    parameters: Iterable[Accepts],
    result: Type | None,
    doc: str,
    *,
    required: int | None = None,
    variadic: bool = False,
) -> Function:
    taken = tuple(parameters)
    return Function(
        name, taken, result, doc, len(taken) if required is None else required, variadic
    )


_N, _F, _I, _S = Accepts.NUMBER, Accepts.FLOAT, Accepts.INTEGER, Accepts.STRING
_C, _T, _A = Accepts.CALENDAR, Accepts.TIMESTAMP, Accepts.SAME

FUNCTIONS: dict[str, Function] = {
    f.name: f
    for f in (
        _function("abs", [Accepts.AMOUNT], None, "the number without its sign"),
        _function("sign", [_N], Type.INTEGER, "-1, 0 or 1; NULL for NaN"),
        _function("ceil", [_N], Type.INTEGER, "the smallest integer not below the number"),
        _function("floor", [_N], Type.INTEGER, "the largest integer not above the number"),
        _function(
            "round", [_N, _I], None, "to d decimals, halves away from zero; d is 0", required=1
        ),
        _function("sqrt", [_F], Type.FLOAT, "the square root"),
        _function("power", [_F, _F], Type.FLOAT, "the first to the power of the second"),
        _function("exp", [_F], Type.FLOAT, "e to the power of the number"),
        _function("ln", [_F], Type.FLOAT, "the natural logarithm"),
        _function("log10", [_F], Type.FLOAT, "the logarithm to base 10"),
        _function(
            "greatest", [_A], None, "the largest that is not NULL", required=2, variadic=True
        ),
        _function("least", [_A], None, "the smallest that is not NULL", required=2, variadic=True),
        _function("coalesce", [_A], None, "the first that is not NULL", variadic=True),
        _function("upper", [_S], Type.STRING, "in upper case"),
        _function("lower", [_S], Type.STRING, "in lower case"),
        _function("length", [_S], Type.INTEGER, "the number of characters"),
        _function("trim", [_S], Type.STRING, "without spaces at both ends"),
        _function("ltrim", [_S], Type.STRING, "without spaces at the start"),
        _function("rtrim", [_S], Type.STRING, "without spaces at the end"),
        _function(
            "substring", [_S, _I, _I], Type.STRING, "from position (from 1), a length", required=2
        ),
        _function("replace", [_S, _S, _S], Type.STRING, "every occurrence replaced"),
        _function("concat", [_S], Type.STRING, "one after the other; also `||`", variadic=True),
        _function("contains", [_S, _S], Type.BOOLEAN, "the second is a part of the first"),
        _function("starts_with", [_S, _S], Type.BOOLEAN, "the first begins with the second"),
        _function("ends_with", [_S, _S], Type.BOOLEAN, "the first ends with the second"),
        _function("split_part", [_S, _S, _I], Type.STRING, "a part between separators, from 1"),
        _function("rlike", [_S, _S], Type.BOOLEAN, "a regular expression occurs in the text"),
        _function("cidr_contains", [_S, _S], Type.BOOLEAN, "the network has the IP address"),
        _function("year", [_C], Type.INTEGER, "the year, in UTC"),
        _function("quarter", [_C], Type.INTEGER, "the quarter, 1 to 4, in UTC"),
        _function("month", [_C], Type.INTEGER, "the month, 1 to 12, in UTC"),
        _function("day", [_C], Type.INTEGER, "the day of the month, in UTC"),
        _function("weekofyear", [_C], Type.INTEGER, "the ISO week, 1 to 53, in UTC"),
        _function("dayofyear", [_C], Type.INTEGER, "the day of the year, 1 to 366, in UTC"),
        _function("dayofweek", [_C], Type.INTEGER, "1 (Sunday) to 7 (Saturday), in UTC"),
        _function("hour", [_T], Type.INTEGER, "the hour, 0 to 23, in UTC"),
        _function("minute", [_T], Type.INTEGER, "the minute, 0 to 59"),
        _function("second", [_T], Type.INTEGER, "the second, 0 to 59, without its fraction"),
        _function("subsecond", [_T], Type.FLOAT, "the fraction of the second"),
        _function(
            "date_trunc", [_S, _T], Type.TIMESTAMP, "when the year, month, hour … began, in UTC"
        ),
    )
}

SYNONYMS: dict[str, str] = {
    "ceiling": "ceil",
    "pow": "power",
    "log": "ln",
    "signum": "sign",
    "len": "length",
    "char_length": "length",
    "ucase": "upper",
    "lcase": "lower",
    "substr": "substring",
    "startswith": "starts_with",
    "endswith": "ends_with",
    "dayofmonth": "day",
    "regexp_like": "rlike",
    "regexp": "rlike",
}

LOWERED: dict[str, int] = {
    "nullif": 2,
    "if": 3,
    "iif": 3,
    "ifnull": 2,
    "nvl": 2,
    "mod": 2,
    "date_part": 2,
}
"""Functions that binding writes with others: name → number of arguments."""

PARTS: dict[str, str] = {
    **{name: name for name in ("year", "quarter", "month", "day", "hour", "minute")},
    **dict.fromkeys(("week", "w"), "weekofyear"),
    **dict.fromkeys(("doy", "dayofyear"), "dayofyear"),
    **dict.fromkeys(("dow", "dayofweek"), "dayofweek"),
    "second": "second",
}
"""What `EXTRACT(part FROM x)` and `date_part('part', x)` take: part → function."""

UNITS: tuple[str, ...] = (
    *("year", "quarter", "month", "week", "day"),
    *("hour", "minute", "second", "millisecond", "microsecond"),
)
"""What `date_trunc` takes. A week begins on Monday."""

OF_GROUPS: dict[str, str] = {
    "PREV(b.x [, value])": "of the element before; the value is for the first one",
    "ALL(b.x)": "compared with something: it holds for every element",
    "SOME(b.x)": "compared with something: it holds for an element",
    "reduce(b, start, acc -> e)": "the elements folded in their order",
    "duration()": "the match's end less its start",
}
"""Calls that are neither functions of values nor aggregates, and what they are."""

NAMES: frozenset[str] = (
    frozenset(FUNCTIONS)
    | frozenset(SYNONYMS)
    | frozenset(AGGREGATES)
    | frozenset(LOWERED)
    | {call.partition("(")[0].lower() for call in OF_GROUPS}
)
