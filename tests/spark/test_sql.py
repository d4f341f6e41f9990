"""MATCH_RECOGNIZE on Spark: the same rows as in process, in statements that Spark runs."""

from __future__ import annotations

import json
import re
import warnings
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid as cep
from cepheid.language.diagnostics import Source
from cepheid.row_patterns.clause import parse_recognition
from cepheid.row_patterns.recognition_summary import RecognitionSummary
from cepheid.spark.match_recognize import clause_text
from cepheid.spark.streaming.status.reports import Status
from tests.examples import in_turn
from tests.row_patterns.test_corpus import CASES, Case
from tests.spark.streaming_harness import collect, one_partition, read, write

ROWS = {
    "User Id": ["a", "a", "b", "a", "b", None, None],
    "t": [1, 2, 1, 3, 2, 1, 2],
    "x": [3, 1, 5, 2, 4, 7, 6],
}
CLAUSE = """MATCH_RECOGNIZE (PARTITION BY `User Id` ORDER BY t DESC
    MEASURES FIRST(A.x) AS low, count(*) AS n, array_agg(CLASSIFIER()) AS labels {rows}
    PATTERN (A B+) DEFINE B AS B.x > PREV(B.x))"""
STATEMENT = """WITH s AS (SELECT * FROM events)
    SELECT * FROM s {clause} AS m WHERE n > 1 ORDER BY `User Id`, low"""


@pytest.mark.essential
@pytest.mark.parametrize("rows", ["", "ALL ROWS PER MATCH"])
def test_statement(spark: Any, rows: str) -> None:
    statement = STATEMENT.format(clause=CLAUSE.format(rows=rows))
    table = pa.table(ROWS)
    frame = spark.createDataFrame(table.to_pandas())
    wanted = cep.sql(f"{statement} NULLS FIRST", {"events": table}).to_pylist()
    found = [row.asDict() for row in cep.sql(statement, {"events": frame}).collect()]
    assert sorted(map(str, found)) == sorted(map(str, wanted))
    assert wanted


LOWS = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY t MEASURES LAST(DOWN.x) AS low
    PATTERN (DOWN) DEFINE DOWN AS x < PREV(x))"""
STATEMENTS = [
    f"SELECT * FROM T {LOWS}",
    f"SELECT k, low FROM (SELECT * FROM t) s {LOWS} AS m",
    f"SELECT '\\'' AS s, low FROM /* a /* b */ MATCH_RECOGNIZE ( */ t {LOWS} WHERE k <> \"x\"",
    f"SELECT low FROM VALUES ('a', 1, 3), ('a', 2, 1), ('b', 1, 5), ('b', 2, 4) v(k, t, x) {LOWS}",
    f"SELECT low FROM t TABLESAMPLE (100 PERCENT) {LOWS}",
    f"WITH t AS (SELECT k, t, x FROM t WHERE x > 0), u AS (SELECT * FROM t {LOWS}) SELECT * FROM u",
    f"SELECT low FROM t {LOWS} WHERE k = 'a' UNION ALL SELECT low FROM t {LOWS} WHERE k = 'b'",
    f"SELECT a.low FROM t {LOWS} a JOIN (SELECT * FROM t) {LOWS} AS b(key, l) ON a.k = b.key",
    f"FROM t {LOWS} |> WHERE low > 0 |> SELECT low",
    f"SELECT DISTINCT low FROM t JOIN LATERAL (SELECT * FROM t {LOWS} m WHERE m.k = t.k)",
    f"SELECT n + 0 FROM t {LOWS} MATCH_RECOGNIZE (ORDER BY low MEASURES low AS n PATTERN (A))",
]


@pytest.mark.essential
@pytest.mark.filterwarnings("ignore:MATCH_RECOGNIZE without PARTITION BY")
def test_clauses_stand_where_tables_may(spark: Any) -> None:
    rows = {"k": ["a", "a", "a", "b", "b"], "t": [1, 2, 3, 1, 2], "x": [3, 1, 2, 5, 4]}
    tables = {"t": spark.createDataFrame(pa.table(rows).to_pandas())}
    for statement in STATEMENTS:
        found = cep.sql(statement, tables).collect()
        assert sorted(row[-1] for row in found) == [1, 4], statement


@pytest.mark.essential
def test_parameters(spark: Any) -> None:
    rows = {"k": ["a", "a", "a", "b", "b"], "t": [1, 2, 3, 1, 2], "x": [3, 1, 2, 5, 4]}
    tables = {"t": spark.createDataFrame(pa.table(rows).to_pandas())}
    below = LOWS.replace("x < PREV(x)", "x < PREV(x) AND x > :least")
    statement = f"SELECT low, :word AS w FROM (SELECT * FROM t WHERE k IN (:k, 'b')) {below}"
    given = {"k": "a", "least": 3, "word": ":k", "unused": [1]}
    assert [tuple(row) for row in cep.sql(statement, tables, params=given).collect()] == [(4, ":k")]


def test_a_stream_resumes_with_the_same_parameters() -> None:
    source = Source("ORDER BY t MEASURES x + :by AS y PATTERN (A) DEFINE A AS x > :least")
    recognition = parse_recognition(source)
    text = clause_text(recognition, source, {"least": 5, "by": 1, "unused": 2})
    assert text == f"{source.text} :by = 1 :least = 5"


def test_statements_that_make_something(spark: Any) -> None:
    rows = {"k": ["a", "a"], "t": [1, 2], "x": [3, 1]}
    tables = {"t": spark.createDataFrame(pa.table(rows).to_pandas())}
    cep.sql(f"CREATE OR REPLACE TEMP VIEW lows_of_sql AS SELECT * FROM t {LOWS}", tables)
    assert [row.low for row in spark.table("lows_of_sql").collect()] == [1]
    explained = cep.sql(f"EXPLAIN WITH u AS (SELECT * FROM t) SELECT * FROM u {LOWS}", tables)
    assert "MapInArrow" in explained.collect()[0].plan
    with pytest.raises(cep.OptionError, match="no permanent view of MATCH_RECOGNIZE, or of tables"):
        cep.sql(f"CREATE VIEW lows_for_ever AS SELECT * FROM t {LOWS}", tables)
    assert "lows_of_sql" in {row.tableName for row in cep.sql("SHOW TABLES", tables).collect()}


def _corpus(case: Case) -> tuple[str, str]:
    """The rows of a case as a common table, and a query that returns its result as texts. The name
    of the case is the name of the table."""
    name = re.sub(r"\W", "_", case.name)
    columns = ", ".join(f"`{column}`" for column in case.columns)

    def value(row: dict[str, Any], column: str) -> str:
        text = any(isinstance(r[column], str) for r in case.rows)
        known = "NULL" if row[column] is None else f"'{row[column]}'"
        return f"CAST({known} AS {'STRING' if text else 'BIGINT'})"

    rows = [f"SELECT {', '.join(value(row, c) for c in case.columns)}" for row in case.rows]
    data = " UNION ALL ".join(rows) or f"SELECT {', '.join('0L' for _ in case.columns)} WHERE false"
    common = f"{name}({columns}) AS ({data})"
    options = "map('ignoreNullFields', 'false')"
    result = f"SELECT '{name}', to_json(struct(m.*), {options}) FROM {name}"
    return common, f"{result} MATCH_RECOGNIZE ({case.clause}) m"


@pytest.mark.essential
@pytest.mark.filterwarnings("ignore:MATCH_RECOGNIZE without PARTITION BY")
def test_corpus(spark: Any) -> None:
    """Cases in one statement: some, or in a long run all."""
    cases = in_turn([c for c in CASES if c.error is None], "corpus on Spark", 8)
    wanted = {re.sub(r"\W", "_", c.name): c.returns for c in cases}
    tables, queries = zip(*map(_corpus, cases), strict=True)
    statement = f"WITH {', '.join(tables)} {' UNION ALL '.join(queries)}"
    found: dict[str, list[Any]] = {name: [] for name in wanted}
    for name, row in cep.sql(statement, spark=spark).collect():
        found[name].append(json.loads(row))
    for name, rows in wanted.items():
        assert sorted(map(str, found[name])) == sorted(map(str, rows)), name


def test_explain_counts_what_workers_did(spark: Any) -> None:
    table = pa.table(ROWS)
    statement = f"SELECT * FROM events {CLAUSE.format(rows='')}"
    here = cep.explain_sql(statement, {"events": table}, analyze=True).clauses[0]
    frame = spark.createDataFrame(table.to_pandas())
    there = cep.explain_sql(statement, {"events": frame}, analyze=True).clauses[0]
    assert isinstance(here, RecognitionSummary) and isinstance(there, RecognitionSummary)
    assert there.profile == here.profile
    assert there.where == "on Spark"
    assert there.distribution == (
        ("partitioning", "by User Id, shuffled; each partition sorted by t DESC"),
        ("columns", "3 of 3: User Id, t, x"),
    )


def test_paths_into_nested_columns(spark: Any) -> None:
    rows = "VALUES (1, 1, struct(3 AS n)), (1, 2, struct(2 AS n)), (1, 3, struct(5 AS n))"
    found = cep.sql(
        f"""SELECT * FROM (SELECT * FROM {rows} AS v(k, t, r)) MATCH_RECOGNIZE (
            PARTITION BY k ORDER BY t MEASURES LAST(UP.r.n) AS n PATTERN (A UP)
            DEFINE UP AS r.n > PREV(r.n))""",
        spark=spark,
    )
    assert [tuple(row) for row in found.collect()] == [(1, 5)]


def test_without_partition_by_one_task_runs(spark: Any) -> None:
    frame = spark.range(5).withColumnRenamed("id", "t")
    frame.createOrReplaceTempView("numbers_of_sql")
    with pytest.warns(UserWarning, match="runs in one task"):
        found = cep.sql(
            "SELECT n FROM numbers_of_sql MATCH_RECOGNIZE (ORDER BY t MEASURES count(*) AS n "
            "PATTERN (A+))",
            spark=spark,
        )
    assert [row.n for row in found.collect()] == [5]


def test_mistakes_are_found_before_any_job(spark: Any) -> None:
    frame = spark.range(5)
    with warnings.catch_warnings(), pytest.raises(cep.QueryError, match="there is no column `idd`"):
        cep.sql("SELECT * FROM r MATCH_RECOGNIZE (ORDER BY idd PATTERN (A))", {"r": frame})
    for statement, message in (
        ("SELECT * FROM rr", r"Spark: \[TABLE_OR_VIEW_NOT_FOUND\] .*`rr`"),
        ("SELEC * FROM r", r"Spark: \[PARSE_SYNTAX_ERROR\] .*'SELEC'"),
    ):
        with pytest.raises(cep.OptionError, match=message) as failed:
            cep.sql(statement, {"r": frame})
        assert "\n" not in str(failed.value)


def test_tables_of_a_statement_on_spark_are_sparks(spark: Any) -> None:
    statement = "SELECT * FROM a MATCH_RECOGNIZE (PARTITION BY id PATTERN (A)) JOIN b USING (id)"
    with pytest.raises(cep.OptionError, match="`b` is a Table, and the statement runs on Spark"):
        cep.sql(statement, {"a": spark.range(2), "b": pa.table({"id": [1]})})


STREAMED = """SELECT k, low AS bottom, n FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY t
    MEASURES LAST(DOWN.x) AS low, MATCH_NUMBER() AS n PATTERN (A DOWN+ UP) WITHIN INTERVAL '1' HOUR
    DEFINE DOWN AS x < PREV(x), UP AS x > PREV(x)) WHERE low < 5"""


def _stream_rows(*rows: tuple[str, int, int]) -> pa.Table:
    keys, minutes, values = zip(*rows, strict=True)
    at = [datetime(2024, 5, 1, tzinfo=UTC) + timedelta(minutes=m) for m in minutes]
    times = pa.array(at, pa.timestamp("us", "UTC"))
    return pa.table({"k": pa.array(keys), "t": times, "x": pa.array(values, pa.int64())})


def test_a_stream_is_resumed(spark: Any, tmp_path: Path) -> None:
    """V shapes across files, and across a restart: row by row as in a table."""
    parts = [
        _stream_rows(("a", 0, 5), ("b", 0, 9), ("a", 1, 3)),
        _stream_rows(("b", 2, 4), ("a", 3, 4), ("a", 4, 2)),
        _stream_rows(("b", 5, 6), ("a", 6, 7), ("c", 7, 1)),
        _stream_rows(("c", 200, 1)),
    ]
    write(parts[:2], tmp_path / "in")
    run = partial(_run_stream, spark, tmp_path, parts[0].schema)
    first = run()
    write(parts[2:], tmp_path / "in", first=2)
    run()
    table = pa.concat_tables(parts)
    wanted = cep.sql(STREAMED, {"events": table}).to_pylist()
    returned = pq.read_table(tmp_path / "out").to_pylist()
    assert sorted(map(str, returned)) == sorted(map(str, wanted))
    # a: 5 3 4, then 2 alone is no start of a shape; b: 9 4 6.
    assert sorted((r["k"], r["bottom"], r["n"]) for r in wanted) == [("a", 3, 1), ("b", 4, 1)]
    assert first.totals.events == 6


def _run_stream(spark: Any, folder: Path, schema: pa.Schema) -> Status:
    events = read(spark, folder / "in", schema)
    query = (
        cep.sql(STREAMED, {"events": events})
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    cep.wait(query)
    return cep.status(query)


def test_a_match_comes_with_the_watermark_that_decides_it(spark: Any, tmp_path: Path) -> None:
    """The window of what begins at 1 is over when 5 has passed. By then no rows come to those
    buckets, and the watermark advances by a millisecond."""

    def at(milliseconds: int) -> datetime:
        return datetime(2024, 5, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)

    schema = pa.schema([("k", pa.string()), ("t", pa.timestamp("us", "UTC"))])
    start = [{"k": f"k{n}", "t": at(time)} for n in range(8) for time in (1, 2)]
    parts = [start, *([{"k": "clock", "t": at(time)}] for time in range(4, 8))]
    write([pa.Table.from_pylist(part, schema) for part in parts], tmp_path)
    statement = """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY t
        MEASURES count(*) AS n PATTERN (A B+) WITHIN 4 milliseconds)"""
    with one_partition(spark):
        rows, batches = collect(cep.sql(statement, {"events": read(spark, tmp_path, schema)}))
    assert [(row.k, row.n) for row in sorted(rows)] == [(f"k{n}", 2) for n in range(8)]
    found = {batch.watermark: batch.matches for batch in batches if batch.matches}
    assert found == {"2024-05-01T00:00:00.005Z": 8}


def test_dead_letters_of_a_stream(spark: Any, tmp_path: Path) -> None:
    """A row that is late, one without a time, and one that is ahead of the clock."""
    parts = [
        _stream_rows(("a", 0, 5), ("a", 1, 3)),
        _stream_rows(("a", 100, 4), ("b", 100, 1)),
        _stream_rows(("a", 2, 9), ("a", 100_000_000, 7)),
        _stream_rows(("b", 300, 1)),
    ]
    nothing = pa.table({"k": ["z"], "t": [None], "x": [6]}).cast(parts[0].schema)
    write([*parts[:3], nothing, parts[3]], tmp_path / "in")
    statement = """SELECT k, n, dead_letter FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY t
        MEASURES count(*) AS n PATTERN (A B) WITHIN INTERVAL '1' HOUR)"""
    events = read(spark, tmp_path / "in", parts[0].schema)
    query = (
        cep.sql(statement, {"events": events}, dead_letters=True)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    cep.wait(query)
    returned = pq.read_table(tmp_path / "out").to_pylist()
    assert [(r["k"], r["n"]) for r in returned if r["dead_letter"] is None] == [("a", 2)]
    letters = [r["dead_letter"] for r in returned if r["dead_letter"] is not None]
    kept = {(r["reason"], r["row"]["k"]) for r in letters}
    assert kept == {("late", "a"), ("no time", "z"), ("future", "a")}
    assert all(r["k"] is None and r["n"] is None for r in returned if r["dead_letter"])
    counted = cep.status(query).totals
    assert (counted.late, counted.rejected, counted.future) == (1, 1, 1)
    with pytest.raises(cep.OptionError, match="dead_letters= is for streams"):
        table = spark.createDataFrame(parts[0].to_pandas())
        cep.sql(statement, {"events": table}, dead_letters=True)


def test_what_streams_refuse(spark: Any) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(cep.QueryError, match="CEP620: a stream needs ORDER BY"):
        cep.sql(
            "SELECT * FROM r MATCH_RECOGNIZE (MEASURES count(*) AS n PATTERN (A))", {"r": stream}
        )
