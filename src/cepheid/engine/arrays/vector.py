"""Expressions over whole arrays, with pyarrow: class filters, derived columns, RETURN.

Values are as predicates see them (`cepheid.algebra.types.Type`): timestamps are microseconds,
dates days, decimals doubles. NULL, NaN and undefined results follow the same rules as kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, reduce
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import (
    Accumulator,
    Aggregate,
    Attribute,
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Previous,
    PreviousOr,
    Reduce,
    Some,
    TimeSpan,
    Whole,
)
from cepheid.algebra.kinds import attribute_type
from cepheid.algebra.text_patterns import regular_expression_problem
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import beyond, days, microseconds, ticks
from cepheid.engine.arrays.conversion import CALENDAR, converted, moments, truncated
from cepheid.engine.arrays.integers import BEYOND, arithmetic, known_numbers, round_integer

Read = Callable[[Attribute], pa.Array]
Special = Callable[[Expr], pa.Array]

DAY = 86_400_000_000

ARROW: dict[Type, pa.DataType] = {
    Type.BOOLEAN: pa.bool_(),
    Type.INTEGER: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.DECIMAL: pa.float64(),
    Type.STRING: pa.string(),
    Type.BINARY: pa.binary(),
    Type.DATE: pa.int64(),
    Type.TIMESTAMP: pa.int64(),
    Type.DURATION: pa.int64(),
    Type.NULL: pa.bool_(),
}


def evaluate(expr: Expr, read: Read, length: int, special: Special | None = None) -> pa.Array:
    """One value per row. `special` answers for what needs more than the row: aggregates, spans."""
    result = _evaluate(expr, read, special)
    if isinstance(result, pa.Scalar):
        return pa.repeat(result, length)
    return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result


def seen(name: str, array: pa.Array, type_: Type) -> pa.Array:
    """A column as predicates see it; `DataError`, if some of its values have no such form."""
    try:
        return logical(array, type_)
    except pa.ArrowInvalid as error:
        raise beyond(name, error) from None


def logical(array: pa.Array, type_: Type) -> pa.Array:
    """An Arrow array as predicates see it."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_null(array.type) and type_ in ARROW:
        return array.cast(ARROW[type_])
    match type_:
        case Type.TIMESTAMP:
            return microseconds(array)
        case Type.DATE:
            return days(array)
        case Type.DURATION:
            return ticks(array)
        case Type.OTHER | Type.NULL:
            return array
        case _:
            return array if array.type == ARROW[type_] else array.cast(ARROW[type_])


def _evaluate(expr: Expr, read: Read, special: Special | None) -> Any:
    match expr:
        case Constant():
            if expr.type is Type.OTHER:
                return pa.scalar(None)
            return pa.scalar(expr.value, ARROW[expr.type])
        case Attribute():
            return seen(expr.name, read(expr), expr.type)
        case Call():
            return _call(expr, [_evaluate(a, read, special) for a in expr.arguments])
        case (
            Previous()
            | PreviousOr()
            | Aggregate()
            | Accumulator()
            | Reduce()
            | Every()
            | Some()
            | TimeSpan()
            | MatchDuration()
            | Whole()
        ):
            if special is None:
                raise AssertionError(f"{type(expr).__name__} needs a match")
            return special(expr)
        case _:
            assert_never(expr)


def _call(expr: Call, args: list[Any]) -> Any:
    kind = expr.arguments[0].type
    x = args[0]
    y = args[1] if len(args) > 1 else None
    match expr.operator:
        case "and":
            return reduce(pc.and_kleene, args)
        case "or":
            return reduce(pc.or_kleene, args)
        case "not":
            return pc.invert(x)
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            return compare(expr.operator, x, y, kind)
        case "in":
            tests = [compare("=", x, option, kind) for option in args[1:]]
            return reduce(pc.or_kleene, tests)
        case "+" | "-" | "*":
            return arithmetic(expr.operator, x, y)
        case "/":
            return pc.divide(x, _nonzero(y))
        case "%":
            return _remainder(x, _nonzero(y))
        case "neg" if pa.types.is_integer(x.type):
            return arithmetic("-", pa.scalar(0, x.type), x)
        case "neg":
            return pc.negate(x)
        case "is_null":
            return pc.is_null(x)
        case "case":
            return _case(expr, args)
        case "coalesce":
            return pc.coalesce(*args)
        case "to_float":
            return x.cast(pa.float64(), safe=False)  # rounded to the nearest, as in Spark
        case "to_timestamp":
            return arithmetic("*", x, pa.scalar(DAY, pa.int64()))
        case _:
            return _function(expr, args)


_PLAIN = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal}


def _is_number(y: Any) -> bool:
    """Whether this is one value, and neither NULL nor NaN."""
    if not isinstance(y, pa.Scalar) or not y.is_valid:
        return False
    value = y.as_py()
    return bool(value == value)


def compare(operator: str, x: Any, y: Any, kind: Type) -> Any:
    """Spark's order of doubles: NaN equals itself and is above every number."""
    match operator:
        case "<>":
            return pc.invert(compare("=", x, y, kind))
        case ">":
            return compare("<", y, x, kind)
        case ">=":
            return compare("<=", y, x, kind)
    if kind is not Type.FLOAT or _is_number(y):  # then NaN on the left is greater
        return _PLAIN[operator](x, y)
    match operator:
        case "=":
            return pc.or_(pc.equal(x, y), pc.and_(pc.is_nan(x), pc.is_nan(y)))
        case "<":
            return pc.or_(pc.less(x, y), pc.and_(pc.is_nan(y), pc.invert(pc.is_nan(x))))
        case _:
            return pc.or_(pc.less_equal(x, y), pc.and_(pc.is_nan(y), pc.is_valid(x)))


def _null(type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(None, type_)


def _where(condition: Any, value: Any) -> Any:
    """The value where the condition is true, else NULL."""
    return pc.if_else(pc.fill_null(condition, False), value, _null(value.type))


def _nonzero(y: Any) -> Any:
    return _where(pc.not_equal(y, pa.scalar(0, y.type)), y)


def _remainder(x: Any, y: Any) -> Any:
    """With the sign of the dividend; of doubles pyarrow has none, and a rounded quotient is
    wrong where it is large or the divisor is infinite. Of integers its quotient may overflow."""
    with np.errstate(invalid="ignore"):
        rest = np.fmod(known_numbers(x), known_numbers(y))
    both = pc.and_(pc.is_valid(x), pc.is_valid(y))
    return _where(both, pa.array(rest) if rest.ndim else pa.scalar(rest.item()))


def _case(expr: Call, args: list[Any]) -> Any:
    result = args[-1]
    target = ARROW[expr.type]
    result = result.cast(target)
    for condition, value in zip(reversed(args[:-1][::2]), reversed(args[:-1][1::2]), strict=True):
        result = pc.if_else(pc.fill_null(condition, False), value.cast(target), result)
    return result


def _extreme(operator: str, args: list[Any], kind: Type) -> Any:
    best = args[0]
    for other in args[1:]:
        better = compare("<" if operator == "greatest" else ">", best, other, kind)
        chosen = pc.if_else(pc.fill_null(better, False), other, best)
        best = pc.coalesce(chosen, other)
    return best


def array_contains(x: Any, value: Any, kind: Type) -> Any:
    """Whether the value, of this kind, is an element; unknown if it isn't and one is NULL."""
    x = x.combine_chunks() if isinstance(x, pa.ChunkedArray) else x
    if kind is Type.NULL:
        return pa.nulls(len(x), pa.bool_())
    parents = np.asarray(pc.list_parent_indices(x))
    elements = logical(pc.list_flatten(x), attribute_type(x.type.value_type)).cast(ARROW[kind])
    wanted = value if isinstance(value, pa.Scalar) else value.take(pa.array(parents))
    same = pc.fill_null(compare("=", elements, wanted, kind), False)
    is_element, unknown = np.zeros(len(x), np.bool_), np.zeros(len(x), np.bool_)
    is_element[parents[_bits(same)]] = True
    unknown[parents[_bits(pc.is_null(elements))]] = True
    known = pc.and_(pc.is_valid(x), pc.is_valid(value))
    return _where(pc.and_(known, pa.array(is_element | ~unknown)), pa.array(is_element))


def _bits(values: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(values.to_numpy(zero_copy_only=False), np.bool_)


def contained(elements: tuple[Any, ...], value: Any) -> bool | None:
    """The same of one array."""
    if any(e == value or (e != e and value != value) for e in elements):
        return True
    return None if None in elements else False


def _between(x: Any, least: float, beyond: float) -> Any:
    return pc.and_(pc.greater_equal(x, least), pc.less(x, beyond))


def _function(expr: Call, args: list[Any]) -> Any:
    x = args[0]
    kind = expr.arguments[0].type
    match expr.operator:
        case "greatest" | "least":
            return _extreme(expr.operator, args, kind)
        case "array_contains":
            return array_contains(x, args[1], expr.arguments[1].type)
        case "abs":
            if pa.types.is_integer(x.type):
                x = _where(pc.greater(x, pa.scalar(-BEYOND, x.type)), x)
            return pc.abs(x)
        case "sign":
            if kind is Type.FLOAT:
                x = _where(pc.invert(pc.is_nan(x)), x)
            return pc.sign(x).cast(pa.int64())
        case "ceil" | "floor":
            if pa.types.is_integer(x.type):
                return x
            whole = (pc.ceil if expr.operator == "ceil" else pc.floor)(x)
            return _where(_between(whole, -float(BEYOND), float(BEYOND)), whole).cast(pa.int64())
        case "round":
            return _round(x, args[1] if len(args) > 1 else pa.scalar(0, pa.int64()))
        case "sqrt":
            return pc.sqrt(_where(pc.greater_equal(x, 0.0), x))
        case "ln":
            return pc.ln(_where(pc.greater(x, 0.0), x))
        case "log10":
            return pc.log10(_where(pc.greater(x, 0.0), x))
        case "exp":
            return pc.exp(x)
        case "power":
            result = pc.power(x, args[1])
            undefined = pc.and_(
                pc.is_nan(result), pc.invert(pc.or_(pc.is_nan(x), pc.is_nan(args[1])))
            )
            return pc.if_else(undefined, _null(result.type), result)
        case "date_trunc" if isinstance(x, pa.Scalar):
            return truncated(args[1], x.as_py())
        case operator if operator in CALENDAR:
            return CALENDAR[operator](moments(x, kind)).cast(ARROW[expr.type])
        case operator if operator.startswith("cast_"):
            return converted(x, kind, expr.type)
        case _:
            return _string(expr.operator, args)


def _round(x: Any, digits: Any) -> Any:
    constant = digits.as_py() if isinstance(digits, pa.Scalar) else None
    if pa.types.is_integer(x.type):
        plain = constant is not None and constant >= 0
        return x if plain else rowwise(round_integer, [x, digits], x.type)
    if constant is not None:
        return pc.round(x, ndigits=constant, round_mode="half_towards_infinity")
    return rowwise(_round_double, [x, digits], x.type)


def _round_double(x: float, digits: int) -> Any:
    return pc.round(pa.scalar(x), ndigits=digits, round_mode="half_towards_infinity").as_py()


def _string(operator: str, args: list[Any]) -> Any:
    x = args[0]
    constant = all(isinstance(a, pa.Scalar) and a.is_valid for a in args[1:])
    match operator:
        case "upper":
            return pc.utf8_upper(x)
        case "lower":
            return pc.utf8_lower(x)
        case "length":
            return pc.utf8_length(x).cast(pa.int64())
        case "trim":
            return pc.utf8_trim(x, characters=" ")
        case "ltrim":
            return pc.utf8_ltrim(x, characters=" ")
        case "rtrim":
            return pc.utf8_rtrim(x, characters=" ")
        case "concat":
            return pc.binary_join_element_wise(*args, "")
        case "like" if constant:
            return _like_all(x, args[1].as_py())
        case "like" if not isinstance(args[1], pa.Scalar) and not isinstance(x, pa.Scalar):
            return _like_each(x, args[1])
        case "rlike" if constant:
            return matched(x, args[1].as_py())
        case "contains" if constant:
            return pc.match_substring(x, args[1].as_py())
        case "starts_with" if constant:
            return pc.starts_with(x, args[1].as_py())
        case "ends_with" if constant:
            return pc.ends_with(x, args[1].as_py())
        case "replace" if constant and args[1].as_py():
            return pc.replace_substring(x, args[1].as_py(), args[2].as_py())
        case _:
            function, type_ = ROWWISE[operator]
            return rowwise(function, args, type_)


def _like_each(texts: pa.Array, patterns: pa.Array) -> pa.Array:
    """Each text with its own pattern: equal patterns at once."""
    encoded = patterns.dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    begins = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    alike = np.zeros(len(codes), np.bool_)
    known = pc.and_(texts.is_valid(), patterns.is_valid())
    for pattern, begin, end in zip(
        encoded.dictionary.to_pylist(), begins[:-1], begins[1:], strict=True
    ):
        at = order[begin:end]
        some = _like_all(texts.take(pa.array(at)), pattern)
        alike[at] = pc.fill_null(some, False).to_numpy(zero_copy_only=False)
    return pc.if_else(known, pa.array(alike), _null(pa.bool_()))


def _like_all(texts: Any, pattern: str) -> Any:
    """Which texts fit the pattern. Where it begins or ends with `%`, Arrow takes an escape in it as
    a text, so patterns with escapes become expressions."""
    if "\\" not in pattern:
        return pc.match_like(texts, pattern)
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    expression = "".join(_WILDCARDS.get(part) or re.escape(part[-1]) for part in parts)
    return pc.match_substring_regex(texts, rf"(?s)\A{expression}\z")


_WILDCARDS = {"%": ".*", "_": "."}


def like(text: str, pattern: str) -> bool:
    return bool(_like_all(pa.scalar(text), pattern).as_py())


def substring(text: str, begin: int, length: int | None = None) -> str:
    """From position 1; 0 counts as 1, a negative position from the end, as in Spark."""
    start = begin - 1 if begin > 0 else max(0, len(text) + begin) if begin < 0 else 0
    if begin < 0 and length is not None and len(text) + begin < 0:
        length += len(text) + begin
    return text[start:] if length is None else text[start : start + max(0, length)]


def matched(x: Any, expression: str) -> Any:
    """Whether the regular expression occurs in the text; NULL if it is none."""
    if regular_expression_problem(expression) is not None:
        return _where(pa.scalar(False), pc.is_null(x))
    return pc.match_substring_regex(x, expression)


def split_part(text: str, separator: str, number: int) -> str | None:
    """Parts count from 1, below 0 from the end; there is no part 0, and further parts are empty."""
    parts = text.split(separator) if separator else [text]
    if number == 0:
        return None
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


def cidr_contains(network: str, address: str) -> bool | None:
    """NULL, if one of them isn't what it should be."""
    inside = _network(network)
    try:
        return None if inside is None else ip_address(address) in inside
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


ROWWISE: dict[str, tuple[Callable[..., Any], pa.DataType]] = {
    "like": (like, pa.bool_()),
    "contains": (lambda x, y: y in x, pa.bool_()),
    "array_contains": (contained, pa.bool_()),
    "starts_with": (lambda x, y: x.startswith(y), pa.bool_()),
    "ends_with": (lambda x, y: x.endswith(y), pa.bool_()),
    "replace": (lambda x, y, z: x.replace(y, z) if y else x, pa.string()),
    "substring": (substring, pa.string()),
    "rlike": (lambda x, y: matched(pa.scalar(x), y).as_py(), pa.bool_()),
    "split_part": (split_part, pa.string()),
    "cidr_contains": (cidr_contains, pa.bool_()),
    "date_trunc": (lambda x, y: truncated(pa.scalar(y), x).as_py(), pa.int64()),
}
"""What pyarrow has only for constants, or not at all."""


def rowwise(function: Callable[..., Any], args: list[Any], type_: pa.DataType) -> Any:
    length = next((len(a) for a in args if not isinstance(a, pa.Scalar)), None)
    count = 1 if length is None else length
    if any(isinstance(a, pa.Scalar) and not a.is_valid for a in args):
        return pa.scalar(None, type_) if length is None else pa.nulls(count, type_)
    lists = [[a.as_py()] * count if isinstance(a, pa.Scalar) else a.to_pylist() for a in args]
    results = [
        None if any(v is None for v in row) else function(*row) for row in zip(*lists, strict=True)
    ]
    return pa.scalar(results[0], type_) if length is None else pa.array(results, type_)
