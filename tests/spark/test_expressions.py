"""Predicates in Spark choose the rows that the oracle chooses, or are left to the engine."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from operator import or_

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cepheid.algebra import bind
from cepheid.algebra.expressions import Call, Expr
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import bind_schema
from cepheid.algebra.types import Type
from cepheid.language import parse
from cepheid.options import Options
from cepheid.plan.reads import leaves
from cepheid.planner import make_plan
from cepheid.spark.columns.column_names import named, types_of
from cepheid.spark.columns.entrance import entered
from cepheid.spark.columns.predicates import Translator, microseconds
from tests.oracle import matches
from tests.oracle.events import Event

SCHEMA = pa.schema(
    {
        "ts": pa.int64(),
        "i": pa.int64(),
        "n": pa.int32(),
        "x": pa.float64(),
        "y": pa.float32(),
        "d": pa.decimal128(9, 2),
        "s": pa.string(),
        "u": pa.string(),
        "b": pa.bool_(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "wall": pa.timestamp("us"),
        "many": pa.list_(pa.int64()),
        "odd `name`.x": pa.int64(),
    }
)

BIG = 2**62
NAN, INF = float("nan"), float("inf")

ROWS = [
    (5, 5, 2.5, 0.5, "1.50", "abc", "a", True, 0, 1_000_000, 1_000_000, [1], 1),
    (-7, 3, NAN, -1.0, "-0.25", "a%c", "", False, -400, -1, 999_999, [], 2),
    (0, 0, -0.0, 0.0, "0.00", "", "c", True, 19_000, 0, 86_400_000_000, None, 3),
    (None, None, None, None, None, None, None, None, None, None, None, None, None),
    (BIG, -2, INF, NAN, "1234567.89", "A_b\nc", "b", None, 18_321, 1_700_000_000_000_001, -5, [2],
     4),
    (-3, 2, -INF, INF, "0.10", "  ab ", "ab", False, 365, 1_600_000_000_000_000, 0, [3], 5),
    (1, -1, 0.1, 0.125, "0.10", "Straße", "ß", True, 59, 5, 5, [4], 6),
]  # fmt: skip

TRANSLATED = """
    a.i > 3 | a.i >= -7 AND a.i <> 0 | a.i = 5 | a.i < 2.5 | a.n = a.i | a.n <= a.x
    a.x > 1 | a.x < 0 | a.x = 0 | a.x <> 0 | a.x >= a.y | a.x = a.x | NOT a.x > 1 | a.y = 0.125
    a.x BETWEEN -1 AND 1 | a.x NOT BETWEEN -1 AND 1 | a.d > 0.1 | a.d = 0.1 | a.d < a.x
    a.i IN (5, 0, 9) | a.i NOT IN (5, 0) | a.i IN (5, NULL) | a.i NOT IN (5, NULL) | a.x IN (2.5)
    a.s = 'abc' | a.s < 'b' | a.s <> a.u | a.s IN ('', 'abc') | a.s LIKE 'a%' | a.s LIKE 'A__%'
    a.s LIKE '' | a.s NOT LIKE '%c' | contains(a.s, a.u) | starts_with(a.s, 'a')
    ends_with(a.s, a.u)
    a.s CONTAINS '%' | length(a.s) > 3 | trim(a.s) = 'ab' | ltrim(a.s) = 'ab ' | rtrim(a.s) = '  ab'
    a.s || a.u = 'abca' | a.b | NOT a.b | a.b = TRUE | a.b IS NULL | a.many IS NULL
    a.i IS NOT NULL OR a.s = 'x' | a.i > 3 OR a.x > 1 | NOT (a.i > 3 AND a.x > 1) | a.s IS NULL
    a.i + 1 > 5 | a.n * 2 = 10 | a.i - a.n > 0 | -a.i > 2 | a.i % 3 = -1 | a.i % a.n = 0
    a.i * 4 > 5 | a.i * 4 <= 5 | a.i + a.i <> 0 | a.i - (-a.i) <> 0 | a.i * a.n * 2 < 9
    a.i / a.n > 1 | a.x / a.y > 0 | a.x * 2 + 1 < 3 | abs(a.x) > 2 | a.x - a.y = 0
    coalesce(a.i, a.n, 9) = 9 | CASE WHEN a.i > 0 THEN 'p' WHEN a.i < 0 THEN 'n' END = 'n'
    CASE a.i WHEN 5 THEN 1 ELSE 2.5 END > 2 | nullif(a.i, 5) IS NULL | if(a.b, a.i, a.n) = 5
    a.day > '2000-01-01' | a.day = '1970-01-01' | a.day <= '1971-01-01' | year(a.day) = 1970
    month(a.day) = 3 | day(a.day) > 27 | a.at > '2020-01-01' | a.at < '1970-01-01T00:00:00.000001'
    a.at = '1970-01-01 00:00:01' | a.at IN ('1970-01-01 00:00:01') | a.at - a.wall > 0 seconds
    a.at = a.wall | a.wall < '1970-01-01 00:00:01' | a.day < a.at | a.at + 1 second > a.wall
    a.`odd ``name``.x` > 3
"""  # fmt: skip

LEFT = """
    upper(a.s) = 'ABC' | a.x % 2 > 0 | sqrt(a.x) > 1 | a.s LIKE 'a\\%c' | round(a.x) = 3
    ln(a.x) > 0
    hour(a.at) = 0 | substring(a.s, 1, 2) = 'ab' | floor(a.x) = 2 | power(a.x, 2) > 1
"""  # fmt: skip


def predicates(text: str) -> list[str]:
    return [p.strip() for line in text.strip().splitlines() for p in line.split(" | ")]


def events() -> list[Event]:
    names = SCHEMA.names[1:]
    kept = [
        Event(n, n, {"ts": n, **dict(zip(names, row, strict=True))}) for n, row in enumerate(ROWS)
    ]
    for event in kept:
        text = event.values["d"]
        event.values["d"] = None if text is None else float(text)
    return kept


def table() -> pa.Table:
    columns = [list(range(len(ROWS))), *map(list, zip(*ROWS, strict=True))]
    arrays = {}
    for field, values in zip(SCHEMA, columns, strict=True):
        if pa.types.is_decimal(field.type):
            values = [None if v is None else Decimal(v) for v in values]
        plain = {pa.date32(): pa.int32()}.get(field.type, field.type)
        plain = pa.int64() if pa.types.is_timestamp(plain) else plain
        arrays[field.name] = pa.array(values, plain).cast(field.type)
    return pa.table(arrays)


def events_frame(spark: SparkSession) -> DataFrame:
    frame = spark.createDataFrame(table())
    return entered(frame.withColumn("wall", F.col("wall").cast("timestamp_ntz")))


def filters(predicate: str) -> tuple[BoundQuery, Expr]:
    """The bound query, and the predicate of its only class."""
    query = parse(f"PATTERN a WHERE {predicate}")
    bound = bind(query, bind_schema(SCHEMA, Options(time="ts")))
    (leaf,) = leaves(make_plan(bound))
    first, *others = leaf.filters
    return bound, Call("and", (first, *others), Type.BOOLEAN) if others else first


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_rows(spark: SparkSession, ansi: str) -> None:
    """One job for all predicates; in ANSI mode Spark would raise what others make NULL."""
    kept, frame = events(), events_frame(spark)
    translator = Translator(types_of(frame))
    wanted, columns = {}, []
    for n, predicate in enumerate(predicates(TRANSLATED)):
        bound, condition = filters(predicate)
        column = translator.column(condition)
        assert column is not None, predicate
        wanted[predicate] = [m.bindings["a"] for m in matches(bound, kept)]
        columns.append(F.coalesce(column, F.lit(False)).alias(f"p{n}"))
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        rows = sorted(frame.select("ts", *columns).collect(), key=lambda row: row.ts)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
    got = {p: [row.ts for row in rows if row[f"p{n}"]] for n, p in enumerate(wanted)}
    assert got == wanted
    assert sum(map(bool, wanted.values())) > len(wanted) * 0.9


def test_what_is_left_to_the_engine(spark: SparkSession) -> None:
    frame = events_frame(spark)
    translator = Translator(types_of(frame))
    for predicate in predicates(LEFT):
        _, condition = filters(predicate)
        assert translator.column(condition) is None, predicate


def test_an_overflow_is_null(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.table({"ts": [1, 2], "i": [2**63 - 1, 1]}))
    translator = Translator(types_of(frame))
    overflowing = [filters(p)[1] for p in ("a.i + 1 > 0", "a.i * 2 > 0", "-a.i - 2 < 0")]
    columns = [translator.column(c) for c in overflowing]
    (row,) = frame.filter("ts = 1").select(*columns).collect()
    assert tuple(row) == (None, None, None)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_as_integers(spark: SparkSession, zone: str) -> None:
    """Whatever the session's time zone: also in an hour that it has twice, or not at all."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.sql("""
            SELECT TIMESTAMP_LTZ'2024-11-03 06:30:00.000017Z' AS at,
                   TIMESTAMP_NTZ'2024-03-10 02:30:00.000017' AS wall,
                   DATE'2024-02-29' AS day, 7S AS n
        """)
        columns = [microseconds(named(f.name), f.dataType) for f in frame.schema.fields]
        (row,) = frame.select(*columns).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    moment = datetime(2024, 11, 3, 6, 30, 0, 17, UTC)
    wall = datetime(2024, 3, 10, 2, 30, 0, 17)
    seconds = [moment.timestamp(), wall.replace(tzinfo=UTC).timestamp()]
    days = date(2024, 2, 29).toordinal() - date(1970, 1, 1).toordinal()
    assert tuple(row) == (*(round(s * 1e6) for s in seconds), days * 86_400_000_000, 7)


def test_collations(spark: SparkSession) -> None:
    """The engine compares bytes, whatever Spark's column says of upper and lower case."""
    frame = spark.sql("SELECT s COLLATE UTF8_LCASE AS s FROM VALUES ('A'), ('a') AS t(s)")
    translator = Translator(types_of(frame))
    conditions = [translator.column(filters(f"a.s {test}")[1]) for test in ("= 'a'", "< 'a'")]
    rows = frame.filter(reduce(or_, conditions)).select(*conditions).collect()
    assert sorted(tuple(row) for row in rows) == [(False, True), (True, False)]
