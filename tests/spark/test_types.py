"""Every type passes through RETURN unchanged, and so does NULL."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

import cepheid as cep
from cepheid.errors import DataError

VALUES = {
    "flag": ("true", "boolean"),
    "byte": ("-8Y", "tinyint"),
    "short": ("1S", "smallint"),
    "whole": ("7", "int"),
    "long": ("9000000000L", "bigint"),
    "single": ("CAST(0.5 AS FLOAT)", "float"),
    "double": ("2.25D", "double"),
    "price": ("12.34BD", "decimal(4,2)"),
    "huge": ("CAST('12345678901234567890.123456789' AS DECIMAL(38,9))", "decimal(38,9)"),
    "text": ("'naïve'", "string"),
    "bytes": ("X'00FF'", "binary"),
    "day": ("DATE'2024-02-29'", "date"),
    "moment": ("TIMESTAMP_LTZ'2024-11-03 06:30:00.000017Z'", "timestamp"),
    "wall": ("TIMESTAMP_NTZ'2024-03-10 02:30:00.000017'", "timestamp_ntz"),
    "span": ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "interval day to second"),
    "list": ("array(1, NULL, 3)", "array<int>"),
    "record": ("named_struct('a', 1, 'b', array('x'))", "struct<a:int,b:array<string>>"),
    "dict": ("map('k', 1.5D, 'l', NULL)", "map<string,double>"),
    "deep": (
        "array(named_struct('m', map(1, DATE'2020-01-01')))",
        "array<struct<m:map<int,date>>>",
    ),
}


def events(spark: SparkSession) -> DataFrame:
    """a has values, b has none of them, c has them again."""
    full = ", ".join(f"{value} AS `{name}`" for name, (value, _) in VALUES.items())
    empty = ", ".join(f"CAST(NULL AS {kind}) AS `{name}`" for name, (_, kind) in VALUES.items())
    return spark.sql(f"""
        SELECT 1 AS ts, 'A' AS kind, {full}
        UNION ALL SELECT 2, 'B', {empty}
        UNION ALL SELECT 3, 'C', {full}
    """)


QUERY = "PATTERN A a ; B b ; C+ c WITHIN 5"


def run(data: DataFrame, returned: str) -> tuple[Row, t.StructType]:
    query = f"{QUERY} RETURN {returned}"
    result = cep.match(data, query, time="ts", type="kind", jit=False)
    (row,) = result.collect()
    return row, result.schema


def test_columns(spark: SparkSession) -> None:
    data = events(spark)
    originals = {row.kind: row for row in data.collect()}
    columns = [f"a.{n} AS a_{n}, b.{n} AS b_{n}, collect(c.{n}) AS c_{n}" for n in VALUES]
    row, schema = run(data, ", ".join(columns))
    for name in VALUES:
        kind = _nullable(data.schema[name].dataType)
        assert schema[f"a_{name}"].dataType == kind
        assert schema[f"c_{name}"].dataType == t.ArrayType(kind)
        assert row[f"a_{name}"] == originals["A"][name]
        assert row[f"b_{name}"] is None
        assert row[f"c_{name}"] == [originals["C"][name]]


def test_whole_events(spark: SparkSession) -> None:
    data = events(spark)
    row, _ = run(data, "a, b, c")
    originals = {kept.kind: kept.asDict(True) for kept in data.collect()}
    assert row.a.asDict(True) == originals["A"]
    assert row.b.asDict(True) == originals["B"]
    assert [element.asDict(True) for element in row.c] == [originals["C"]]


def _nullable(type_: t.DataType) -> t.DataType:
    """The type, with NULL allowed everywhere: a match may lack any part."""
    match type_:
        case t.ArrayType():
            return t.ArrayType(_nullable(type_.elementType), True)
        case t.MapType():
            return t.MapType(_nullable(type_.keyType), _nullable(type_.valueType), True)
        case t.StructType():
            fields = [t.StructField(f.name, _nullable(f.dataType), True) for f in type_.fields]
            return t.StructType(fields)
        case _:
            return type_


@pytest.mark.parametrize(
    ("column", "window", "span"),
    [
        ("DATE'2024-02-28'", "3 days", "INTERVAL '2' DAY"),
        ("TIMESTAMP_LTZ'2024-11-03 05:30:00Z'", "2 hours", "INTERVAL '1' HOUR"),
        ("TIMESTAMP_NTZ'2024-11-03 01:30:00'", "2 hours", "INTERVAL '1' HOUR"),
        ("CAST(7 AS SMALLINT)", "3", "CAST(2 AS SMALLINT)"),
    ],
    ids=["date", "timestamp", "timestamp_ntz", "smallint"],
)
def test_times(spark: SparkSession, column: str, window: str, span: str) -> None:
    """match_start and match_end have the type of the time column, also through slices."""
    data = spark.sql(f"""
        SELECT explode(sequence(0, 9)) AS n, {column} AS zero
    """).selectExpr("n", f"CAST(zero + n * {span} AS {_type_of(spark, column)}) AS at")
    query = f"PATTERN a ; b WITHIN {window} RETURN a.n AS a, b.n AS b, a.at AS a_at, b.at AS b_at"
    for partitioning in ("auto", "single"):
        result = cep.match(
            data, query, time="at", partitioning=partitioning, partitions=2, jit=False
        )
        rows = sorted(result.collect())
        assert [(row.a, row.b) for row in rows] == [(n, n + 1) for n in range(9)]
        assert all((row.match_start, row.match_end) == (row.a_at, row.b_at) for row in rows)
        assert result.schema["match_end"].dataType == data.schema["at"].dataType


def _type_of(spark: SparkSession, expression: str) -> str:
    return spark.sql(f"SELECT {expression}").schema[0].dataType.simpleString()


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_time_zones(spark: SparkSession, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        row, _ = run(events(spark), "a.moment AS m, a.wall AS w, year(a.moment) AS y")
        (want,) = events(spark).filter("kind = 'A'").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    assert (row.m, row.w, row.y) == (want.moment, want.wall, 2024)


def test_what_arrow_cannot_carry(spark: SparkSession) -> None:
    """Such a column may be there, but a query can't read it."""
    data: Any = spark.sql(
        "SELECT 1 AS ts, INTERVAL '1' MONTH AS i, parse_json('1') AS v, make_interval(1, 2) AS c,"
        " array(parse_json('1')) AS n, 5 AS x"
    )
    row = cep.match(data, "PATTERN a RETURN a.x", time="ts", jit=False).first()
    assert row is not None
    assert row.x == 5
    for name, kind in (("i", "interval month"), ("v", "variant"), ("n", "array<variant>")):
        with pytest.raises(DataError, match=f"column `{name}` is {kind}, which can't be read"):
            cep.match(data, f"PATTERN a RETURN a.{name}", time="ts")
    with pytest.raises(DataError, match="column `i` is interval month"):
        cep.match(data, "PATTERN a", time="ts")  # returns all of it


@pytest.mark.parametrize(
    ("values", "one", "other"),
    [("true, false", "true", "false"), ("X'41', X'42'", "A", "B"), ("7, 8", "7", "8")],
    ids=["boolean", "binary", "integer"],
)
def test_types_of_events(spark: SparkSession, values: str, one: str, other: str) -> None:
    """The same names as in process (`tests/inprocess/test_kinds.py`)."""
    data = spark.sql(f"SELECT pos AS ts, col AS kind FROM (SELECT posexplode(array({values})))")
    query = f"PATTERN `{one}` a ; `{other}` b WITHIN 9 RETURN a.ts AS a, b.ts AS b"
    (row,) = cep.match(data, query, time="ts", type="kind", jit=False).collect()
    assert (row.a, row.b) == (0, 1)
    with pytest.raises(DataError, match="the type column `kind` is double; it must be a string"):
        cep.match(data.withColumn("kind", F.lit(0.5)), query, time="ts", type="kind")


def test_nan_and_minus_zero_are_keys(spark: SparkSession) -> None:
    """As in process (`tests/inprocess/test_frames.py`), wherever their rows are sent."""
    data = spark.sql("""
        SELECT * FROM VALUES (1, 'A', double('NaN')), (2, 'A', -0.0D), (3, 'B', double('NaN')),
            (4, 'B', 0.0D), (5, 'A', NULL), (6, 'B', NULL) AS (ts, kind, x)
    """)
    query = "PATTERN A ; B WHERE [x] WITHIN 9 RETURN A.ts AS a, B.ts AS b"
    found = cep.match(data, query, time="ts", type="kind", partitions=5, jit=False).collect()
    assert sorted((row.a, row.b) for row in found) == [(1, 3), (2, 4)]
