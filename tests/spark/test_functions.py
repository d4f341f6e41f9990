"""Functions that Spark SQL has too return what it returns: one table of calls, one job."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.algebra.functions import FUNCTIONS, LOWERED, SYNONYMS

NAN, INF = float("nan"), float("inf")
ROWS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int64(), [5, -7, 0, None, 2**63 - 1, -(2**63), 3, 12]),
    "j": (pa.int64(), [2, 3, 0, None, -1, 1, None, -5]),
    "x": (pa.float64(), [2.5, NAN, -0.0, None, INF, -INF, -2.5, 0.125]),
    "y": (pa.float64(), [0.5, 2.0, 0.0, None, NAN, 1.0, None, -3.75]),
    "s": (pa.string(), ["abc", "  Ab ", "", None, "Straße", "a.b.c", "A_b\nc", "été%"]),
    "u": (pa.string(), ["a", "b", "", None, "ß", ".", "\n", "%"]),
    "n": (pa.string(), ["12.7", " 12 ", "1e3", "Infinity", "-inf", "NaN", "+5", "1d"]),
    "m": (pa.string(), ["", "\u00a07", "9223372036854775808", "1e400", ".5", "5.", "1_0", "\t7\n"]),
    "v": (pa.string(), ["t", "Yes", " no ", "0", "2", "F", "TRUE", None]),
    "b": (pa.bool_(), [True, False, None, None, True, False, True, False]),
    "d": (
        pa.date32(),
        [
            date(2024, 2, 29),
            date(1969, 12, 31),
            date(1970, 1, 1),
            None,
            date(2021, 1, 3),
            date(2020, 12, 31),
            date(1900, 3, 1),
            date(2026, 11, 18),
        ],
    ),
    "t": (
        pa.timestamp("us", "UTC"),
        [
            datetime(2024, 2, 29, 23, 59, 59, 999999, UTC),
            datetime(1969, 12, 31, 23, 59, 59, 1, UTC),
            datetime(1970, 1, 1, tzinfo=UTC),
            None,
            datetime(2021, 1, 3, 12, 30, 15, 500000, UTC),
            datetime(2020, 12, 31, 0, 0, 1, tzinfo=UTC),
            datetime(1900, 3, 1, 7, 8, 9, tzinfo=UTC),
            datetime(2026, 11, 18, 6, 5, 4, 321000, UTC),
        ],
    ),
}
CALLS = """
    abs(x) | abs(j) | sign(x) | signum(j) | ceil(y) | ceiling(x) | floor(y) | floor(x) | round(x)
    round(y, 1) | round(j, -1) | sqrt(y) | sqrt(x) | power(x, 2) | pow(y, 0.5) | exp(y) | ln(y)
    log(x) | log10(x) | greatest(i, j) | greatest(x, y) | greatest(s, u) | greatest(i, j, 4)
    least(i, j) | least(x, y) | least(s, u, 'b') | coalesce(i, j, 9) | coalesce(s, 'none')
    upper(s) | ucase(u) | lower(s) | lcase(u) | length(s) | len(s) | char_length(u) | trim(s)
    ltrim(s) | rtrim(s) | substring(s, 2) | substring(s, 2, 2) | substr(s, -2, 2)
    substring(s, 0, 2) | substring(s, j) | replace(s, 'b', '--') | replace(s, u, '+')
    concat(s, u) | concat(s, '-', u) | s || u | contains(s, u) | startswith(s, u) | endswith(s, u)
    split_part(s, '.', 2) | split_part(s, 'b', -1) | split_part(s, '.', 9) | rlike(s, '[a-c]+')
    regexp_like(s, '^.b') | regexp(s, 'ß|é') | s RLIKE '(?i)^ST' | s LIKE '%b%' | s ILIKE 'A%'
    s LIKE 'a_c' | year(d) | year(t) | quarter(t) | month(d) | day(t) | dayofmonth(d)
    weekofyear(d) | weekofyear(t) | dayofyear(t) | dayofweek(d) | hour(t) | minute(t) | second(t)
    date_trunc('year', t) | date_trunc('quarter', t) | date_trunc('month', t)
    date_trunc('week', t) | date_trunc('day', t) | date_trunc('hour', t) | date_trunc('minute', t)
    date_trunc('second', t) | date_trunc('millisecond', t) | date_trunc('microsecond', t)
    EXTRACT(year FROM t) | EXTRACT(week FROM d) | EXTRACT(doy FROM t) | EXTRACT(dow FROM t)
    date_part('quarter', t) | nullif(i, 5) | if(b, i, j) | ifnull(j, 1) | nvl(s, u) | mod(j, 3)
    j % 2 | x + y | x * y | x / y | j / 2 | i / j | x % y | -x | CAST(x AS integer)
    CAST(j AS string) | CAST(s AS integer) | CAST(b AS integer) | CAST(j AS boolean)
    CAST(n AS integer) | CAST(n AS double) | CAST(m AS integer) | CAST(m AS double)
    CAST(v AS boolean) | CAST(x AS string) | CAST(y AS boolean)
    split_part(s, 'b', -9) | split_part(s, '', 1) | split_part(s, u, 1) | split_part(s, u, -1)
    i IN (5, NULL) | i NOT IN (5, NULL) | x <> y | x >= y | greatest(i, NULL) | least(x, NULL)
    rlike(s, '^$') | rlike(s, 'b.c') | s LIKE 'A_b%' | s ILIKE '%E' | i + j | i - j | i * j | i % j
    CAST(j AS double) | CAST(d AS string) | CAST(t AS date) | CAST('2024-02-30' AS date)
    x = y | x < y | x <= y | x IN (2.5, 0) | x BETWEEN -1 AND 1 | s < u | b AND x > y
    b OR x > y | NOT b
    CASE WHEN x > 1 THEN 'more' WHEN x < 1 THEN 'less' ELSE 'equal' END | iif(b, 1, 2)
"""
OTHERWISE = {
    "CAST(x AS integer)": "try_cast(x AS bigint)",
    "CAST(s AS integer)": "try_cast(s AS bigint)",
    "CAST(n AS integer)": "try_cast(n AS bigint)",
    "CAST(n AS double)": "try_cast(n AS double)",
    "CAST(m AS integer)": "try_cast(m AS bigint)",
    "CAST(m AS double)": "try_cast(m AS double)",
    "CAST(v AS boolean)": "try_cast(v AS boolean)",
    "i + j": "try_add(i, j)",
    "i - j": "try_subtract(i, j)",
    "i * j": "try_multiply(i, j)",
    "CAST(b AS integer)": "CAST(b AS bigint)",
    "CAST('2024-02-30' AS date)": "try_cast('2024-02-30' AS date)",
    "iif(b, 1, 2)": "if(b, 1, 2)",
}
"""What Spark calls otherwise."""

DIFFERENT = {
    "ceil": "NULL for NaN and infinity, of which Spark makes 0 and the largest integers",
    "floor": "as ceil",
    "ln": "NULL for NaN",
    "log10": "NULL for NaN",
    "power": "NULL where Spark returns NaN, for a root of a negative number",
    "sign": "NULL for NaN",
    "sqrt": "NULL for NaN and negative numbers, of which Spark makes NaN",
    "upper": "ß becomes ẞ, one character; Java makes SS of it",
}
"""Where they differ on purpose: a number that isn't there is NULL, as in division by zero."""

NOT_SPARKS = {
    "cidr_contains": "Spark SQL has none",
    "subsecond": "Spark SQL has none",
    "starts_with": "Spark calls it startswith, a synonym here",
    "ends_with": "Spark calls it endswith, a synonym here",
}


def calls() -> list[str]:
    return [call.strip() for line in CALLS.strip().splitlines() for call in line.split(" | ")]


def values_here(names: list[str]) -> list[dict[str, Any]]:
    columns = {name: pa.array(values, type_) for name, (type_, values) in ROWS.items()}
    table = pa.table({"ts": pa.array(range(8)), **columns})
    returned = ", ".join(f"{_of_variable(call)} AS c{n}" for n, call in enumerate(names))
    return cep.match(table, f"PATTERN a RETURN {returned}", time="ts").to_pylist()


def _of_variable(call: str) -> str:
    """`abs(x)` over the event `a`: `abs(a.x)`."""
    return re.sub(
        r"'[^']*'|\b[a-z]\b",
        lambda found: f"a.{found[0]}" if found[0] in ROWS else found[0],
        call,
    )


def same(here: Any, there: Any) -> bool:
    if isinstance(here, float) or isinstance(there, float):
        if here is None or there is None:
            return here is there
        if math.isnan(here) or math.isnan(there):
            return math.isnan(here) and math.isnan(there)
        return here == there or math.isclose(here, there, rel_tol=1e-12)
    return bool(here == there) and type(here) is type(there)


def test_every_function_is_called() -> None:
    text = " ".join(calls()).lower()
    named = {*FUNCTIONS, *SYNONYMS, *LOWERED} - NOT_SPARKS.keys()
    assert [name for name in sorted(named) if f"{name}(" not in text] == []


def test_values(spark: SparkSession) -> None:
    names = calls()
    columns = {name: pa.array(values, type_) for name, (type_, values) in ROWS.items()}
    frame = spark.createDataFrame(pa.table({"ts": pa.array(range(8)), **columns}))
    settings = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "UTC"}
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        texts = [f"{OTHERWISE.get(call, call)} AS c{n}" for n, call in enumerate(names)]
        there = frame.selectExpr("ts", *texts).toArrow().sort_by("ts").to_pylist()
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    wrong = [
        f"{call} of row {row}: {here[f'c{n}']!r} here, {spark_row[f'c{n}']!r} in Spark"
        for n, call in enumerate(names)
        for row, (here, spark_row) in enumerate(zip(values_here(names), there, strict=True))
        if not same(here[f"c{n}"], spark_row[f"c{n}"])
    ]
    named = {SYNONYMS.get(text.partition("(")[0], text.partition("(")[0]) for text in wrong}
    assert named == DIFFERENT.keys(), wrong
    assert all(": None here, " in text or "ẞ" in text for text in wrong), wrong
