"""How written expressions are lowered and typed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from cepheid.algebra.expressions import Call, Constant
from cepheid.algebra.types import Type
from tests.algebra.test_roles import bound
from tests.algebra.text import text

LOWERED = [
    ("a.x != 3", "a.x <> 3"),
    ("a.x > 2.5", "to_float(a.x) > 2.5"),
    ("a.price > 3", "a.price > 3.0"),
    ("a.price > 20%", "a.price > 0.2"),
    ("a.cost > 3", "to_float(a.cost) > 3.0"),
    ("a.cost = a.cost", "to_float(a.cost) = to_float(a.cost)"),
    ("a.x = NULL", "a.x = NULL"),
    ("a.x BETWEEN 1 AND 2", "(a.x >= 1) and (a.x <= 2)"),
    ("a.x NOT BETWEEN 1 AND 2", "(a.x < 1) or (a.x > 2)"),
    ("a.x IN (1, 2.5)", "in(to_float(a.x), 1.0, 2.5)"),
    ("a.x NOT IN (1, 2)", "not(in(a.x, 1, 2))"),
    ("a.name LIKE 'a%'", "like(a.name, 'a%')"),
    ("a.name NOT LIKE 'a%'", "not(like(a.name, 'a%'))"),
    ("a.name CONTAINS 'b'", "contains(a.name, 'b')"),
    ("a.name IS NOT NULL", "not(is_null(a.name))"),
    ("a.tags IS NULL", "is_null(a.tags)"),
    ("a.ok", "a.ok"),
    ("NOT a.ok OR a.x = 1 OR a.x = 2", "not(a.ok) or (a.x = 1) or (a.x = 2)"),
    ("a.x + 1 = a.x * 2", "(a.x + 1) = (a.x * 2)"),
    ("a.x / 2 > 1", "(to_float(a.x) / 2.0) > 1.0"),
    ("a.x % 3 = 1", "(a.x % 3) = 1"),
    ("mod(a.x, 3) = 1", "(a.x % 3) = 1"),
    ("-a.x > -3", "neg(a.x) > -3"),
    ("a.name || 'x' = 'yx'", "concat(a.name, 'x') = 'yx'"),
    ("ucase(a.name) = 'X'", "upper(a.name) = 'X'"),
    ("pow(a.x, 2) > 3", "power(to_float(a.x), 2.0) > 3.0"),
    ("ceiling(a.price) > 3", "ceil(a.price) > 3"),
    ("ifnull(a.x, 1.5) > 1", "coalesce(to_float(a.x), 1.5) > 1.0"),
    ("nullif(a.x, 1) > 1", "case(a.x = 1, NULL, a.x) > 1"),
    ("if(a.ok, 1, 2.5) > 1", "case(a.ok, 1.0, 2.5) > 1.0"),
    ("CASE WHEN a.ok THEN 1 END > 1", "case(a.ok, 1, NULL) > 1"),
    ("CASE a.x WHEN 1 THEN 'q' ELSE 'r' END = 'q'", "case(a.x = 1, 'q', 'r') = 'q'"),
    ("greatest(a.x, a.price) > 1", "greatest(to_float(a.x), a.price) > 1.0"),
    ("a.at > a.on", "a.at > to_timestamp(a.on)"),
    ("a.on = '1970-01-03'", "a.on = 2"),
    ("a.on > '1970-01-01 00:00:01'", "to_timestamp(a.on) > 1000000"),
    ("a.at > '1970-01-02'", "a.at > 86400000000"),
    ("a.at > '1970-01-01T00:00:01+01:00'", "a.at > -3599000000"),
    ("a.at - a.on > 2 seconds", "(a.at - to_timestamp(a.on)) > 2000000"),
    ("a.at + 1 hour > a.at", "(a.at + 3600000000) > a.at"),
    ("hour(a.on) = 0", "hour(to_timestamp(a.on)) = 0"),
    ("X > 3", "a.x > 3"),
    ("a.PRICE > 3", "a.price > 3.0"),
    ("a.x = 1 = a.id", "(a.x = 1) and (1 = a.id)"),
]


@pytest.mark.parametrize(("written", "expected"), LOWERED)
def test_lowered(written: str, expected: str) -> None:
    where = bound(f"PATTERN A a WHERE {written}").where
    whole = " and ".join(f"({text(c.expression)})" if len(where) > 1 else text(c.expression)
                         for c in where)  # fmt: skip
    assert whole == expected


TYPES = [
    ("a.x + 1", Type.INTEGER),
    ("a.x + 1.0", Type.FLOAT),
    ("a.x / 2", Type.FLOAT),
    ("a.x % 2", Type.INTEGER),
    ("a.price % 2", Type.FLOAT),
    ("a.cost", Type.DECIMAL),
    ("a.cost * 2", Type.FLOAT),
    ("a.at - a.at", Type.DURATION),
    ("a.at + 2 hours", Type.TIMESTAMP),
    ("a.ts + 1", Type.INTEGER),
    ("floor(a.price)", Type.INTEGER),
    ("round(a.price, 1)", Type.FLOAT),
    ("abs(a.x)", Type.INTEGER),
    ("length(a.name)", Type.INTEGER),
    ("a.x > 3", Type.BOOLEAN),
    ("coalesce(a.cost, 1)", Type.FLOAT),
    ("sum(b.x)", Type.INTEGER),
    ("sum(b.cost)", Type.FLOAT),
    ("avg(b.x)", Type.FLOAT),
    ("max(b.name)", Type.STRING),
    ("first(b.cost)", Type.DECIMAL),
    ("count(b.x)", Type.INTEGER),
    ("collect(b.x)", Type.OTHER),
    ("duration()", Type.INTEGER),
]


@pytest.mark.parametrize(("written", "expected"), TYPES)
def test_type(written: str, expected: Type) -> None:
    query = bound(f"PATTERN A a ; B+ b ; C c WITHIN 10 RETURN {written} AS y")
    assert query.outputs[0].expression.type is expected


PARAMETERS = [
    (3, "a.x", Constant(3, Type.INTEGER)),
    (2.5, "a.price", Constant(2.5, Type.FLOAT)),
    (Decimal("2.5"), "a.price", Constant(2.5, Type.FLOAT)),
    ("q", "a.name", Constant("q", Type.STRING)),
    (True, "a.ok", Constant(True, Type.BOOLEAN)),
    (None, "a.x", Constant(None, Type.INTEGER)),
    (datetime(1970, 1, 1, 0, 0, 1), "a.at", Constant(1_000_000, Type.TIMESTAMP)),
    (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "a.at", Constant(1_000_000, Type.TIMESTAMP)),
    (date(1970, 1, 3), "a.on", Constant(2, Type.DATE)),
    (timedelta(seconds=2), "a.at - a.at", Constant(2_000_000, Type.DURATION)),
    ("1970-01-03", "a.on", Constant(2, Type.DATE)),
]


@pytest.mark.parametrize(("value", "beside", "expected"), PARAMETERS)
def test_parameter(value: object, beside: str, expected: Constant) -> None:
    query = bound(f"PATTERN A a WHERE {beside} = :p", p=value)
    comparison = query.where[0].expression
    assert isinstance(comparison, Call)
    assert comparison.arguments[1] == expected


DURATIONS = [
    ("typed", "duration() > 5 units", Constant(5, Type.INTEGER)),
    ("typed", "duration() > 5", Constant(5, Type.INTEGER)),
    ("typed", "b.ts - a.ts > 5", Constant(5, Type.INTEGER)),
    ("typed", "b.at - a.at > 5 seconds", Constant(5_000_000, Type.DURATION)),
    ("milliseconds", "duration() > 5 seconds", Constant(5_000, Type.INTEGER)),
    ("milliseconds", "b.at - a.at > 5 seconds", Constant(5_000_000, Type.DURATION)),
    ("stamped", "duration() > 5 minutes", Constant(300_000_000, Type.DURATION)),
    ("stamped", "b.ts - a.ts > 1.5 hours", Constant(5_400_000_000, Type.DURATION)),
]


@pytest.mark.parametrize(("schema", "condition", "expected"), DURATIONS)
def test_duration(schema: str, condition: str, expected: Constant) -> None:
    window = "10 units" if schema == "typed" else "1 hour"
    query = bound(f"PATTERN A a ; B b WHERE {condition} WITHIN {window}", schema)
    comparison = query.where[0].expression
    assert isinstance(comparison, Call)
    assert comparison.arguments[1] == expected
