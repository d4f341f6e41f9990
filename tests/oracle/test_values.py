"""Operators as SQL has them; expected values are from the standard and from Spark's manual."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cepheid.algebra.types import Type
from tests.oracle.values import aggregate, apply, compare

NAN, INF = math.nan, math.inf


def same(left: Any, right: Any) -> bool:
    """Equal, of one type, and NaN is itself."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return type(left) is type(right) and left == right


@pytest.mark.parametrize(
    ("operator", "arguments", "expected"),
    [
        ("and", (True, True, True), True),
        ("and", (True, None), None),
        ("and", (None, False), False),
        ("or", (False, False), False),
        ("or", (False, None), None),
        ("or", (None, True), True),
        ("not", (None,), None),
        ("not", (True,), False),
        ("=", (1, 1), True),
        ("=", (None, None), None),
        ("<>", (1, None), None),
        ("<>", (1, 2), True),
        ("<", ("a", "b"), True),
        ("<=", (2, 2), True),
        (">", (False, True), False),
        (">=", (1.5, 2), False),
        ("=", (NAN, NAN), True),
        ("<", (INF, NAN), True),
        (">", (NAN, 1.0), True),
        ("<", (NAN, NAN), False),
        ("<>", (NAN, 1.0), True),
        ("=", (0.0, -0.0), True),
        ("+", (1, 2), 3),
        ("-", (1, None), None),
        ("*", (2, 2.5), 5.0),
        ("/", (6, 4), 1.5),
        ("/", (6, 3), 2.0),
        ("/", (1, 0), None),
        ("/", (0.0, 0.0), None),
        ("%", (7, 3), 1),
        ("%", (-7, 3), -1),
        ("%", (7, -3), 1),
        ("%", (-6, 3), 0),
        ("%", (-7.5, 2.0), -1.5),
        ("%", (INF, 2.0), NAN),
        ("%", (7, 0), None),
        ("neg", (3,), -3),
        ("concat", ("a", "b", "c"), "abc"),
        ("concat", ("a", None), None),
        ("like", ("abc", "a%"), True),
        ("like", ("abc", "_b_"), True),
        ("like", ("abc", "b"), False),
        ("like", ("a.c", "a.c"), True),
        ("like", ("abc", "a.c"), False),
        ("like", ("a%c", "a\\%c"), True),
        ("like", ("abc", "a\\%c"), False),
        ("like", ("a\nc", "a%c"), True),
        ("like", ("", "%"), True),
        ("like", (None, "%"), None),
        ("contains", ("abc", "bc"), True),
        ("contains", ("abc", "ac"), False),
        ("contains", ("abc", ""), True),
        ("is_null", (None,), True),
        ("is_null", (NAN,), False),
        ("in", (1, 2, 1), True),
        ("in", (1, 2, None), None),
        ("in", (1, 2, 3), False),
        ("in", (None, 1), None),
        ("in", (NAN, NAN), True),
        ("case", (False, "a", True, "b", "c"), "b"),
        ("case", (None, "a", "c"), "c"),
        ("coalesce", (None, 2, 3), 2),
        ("coalesce", (None, None), None),
        ("to_float", (3,), 3.0),
        ("to_timestamp", (1,), 86_400_000_000),
        ("abs", (-3,), 3),
        ("+", (2**63 - 1, 1), None),
        ("-", (-(2**63), 1), None),
        ("*", (2**62, 2), None),
        ("*", (2**62, -2), -(2**63)),
        ("*", (1e308, 10.0), INF),
        ("neg", (-(2**63),), None),
        ("abs", (-(2**63),), None),
        ("%", (-(2**63), -1), 0),
        ("to_timestamp", (2**31 - 1,), None),
        ("ceil", (1e300,), None),
        ("round", (2**63 - 1, -1), None),
        ("sign", (-2.5,), -1),
        ("sign", (0,), 0),
        ("sign", (NAN,), None),
        ("ceil", (1.2,), 2),
        ("floor", (-1.2,), -2),
        ("ceil", (NAN,), None),
        ("floor", (INF,), None),
        ("round", (2.5,), 3.0),
        ("round", (-2.5,), -3.0),
        ("round", (1.005, 2), 1.01),
        ("round", (15, -1), 20),
        ("sqrt", (9,), 3.0),
        ("sqrt", (-1,), None),
        ("power", (2, 10), 1024.0),
        ("power", (-8.0, 0.5), None),
        ("exp", (0,), 1.0),
        ("exp", (1000,), INF),
        ("ln", (0,), None),
        ("log10", (100,), 2.0),
        ("greatest", (1, None, 3), 3),
        ("greatest", (1.0, NAN), NAN),
        ("least", (None, None), None),
        ("least", (NAN, 2.0), 2.0),
        ("upper", ("aB",), "AB"),
        ("lower", ("aB",), "ab"),
        ("length", ("",), 0),
        ("trim", ("  a ",), "a"),
        ("ltrim", ("  a ",), "a "),
        ("rtrim", ("  a ",), "  a"),
        ("substring", ("hello", 2, 3), "ell"),
        ("substring", ("hello", 2), "ello"),
        ("substring", ("hello", -3, 2), "ll"),
        ("substring", ("hello", 0, 2), "he"),
        ("substring", ("hello", 9), ""),
        ("replace", ("aXbX", "X", "-"), "a-b-"),
        ("starts_with", ("abc", "ab"), True),
        ("ends_with", ("abc", "ab"), False),
    ],
)
def test_apply(operator: str, arguments: tuple[Any, ...], expected: Any) -> None:
    found = apply(operator, arguments, [Type.NULL] * len(arguments))
    assert same(found, expected), found


@pytest.mark.parametrize(
    ("operator", "value", "kind", "expected"),
    [
        ("year", -1, Type.TIMESTAMP, 1969),
        ("year", 365, Type.DATE, 1971),
        ("month", 31, Type.DATE, 2),
        ("day", 31, Type.DATE, 1),
        ("hour", 3_600_000_000 * 25, Type.TIMESTAMP, 1),
        ("minute", 61_000_000, Type.TIMESTAMP, 1),
        ("second", 61_999_999, Type.TIMESTAMP, 1),
        ("hour", 5, Type.DATE, 0),
    ],
)
def test_calendar(operator: str, value: int, kind: Type, expected: int) -> None:
    assert apply(operator, (value,), (kind,)) == expected
    assert apply(operator, (None,), (kind,)) is None


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("sum", [1, None, 2], 3),
        ("sum", [2**63 - 1, 1, -5], None),
        ("sum", [2**63 - 1, -5, 1], 2**63 - 5),
        ("sum", [], None),
        ("sum", [None], None),
        ("avg", [1, None, 2], 1.5),
        ("avg", [], None),
        ("count", [1, None], 1),
        ("count", [], 0),
        ("min", [3.0, NAN, 1.0], 1.0),
        ("max", [3.0, NAN, None], NAN),
        ("min", ["b", "a"], "a"),
        ("first", [None, 1], None),
        ("last", [1, None], None),
        ("last", [], None),
        ("collect", [1, None], [1, None]),
        ("collect", [], []),
    ],
)
def test_aggregate(function: str, values: list[Any], expected: Any) -> None:
    assert same(aggregate(function, values), expected)


def test_order_is_total() -> None:
    ordered = [-INF, -1.5, 0.0, 2.0, INF, NAN]
    for i, left in enumerate(ordered):
        for j, right in enumerate(ordered):
            assert compare(left, right) == (i > j) - (i < j)
