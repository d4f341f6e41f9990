"""Statements: where clauses stand, what is left to the SQL engine, and what comes back."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.language.diagnostics import Source
from cepheid.statements.in_process import InProcessTables
from cepheid.statements.statement import Recognizing, Statement
from cepheid.statements.tokens import Dialect

ROWS = {"k": ["a", "a", "a", "b", "b"], "t": [1, 2, 3, 1, 2], "x": [3, 1, 2, 5, 4]}
CLAUSE = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY t MEASURES LAST(DOWN.x) AS low
    PATTERN (DOWN) DEFINE DOWN AS x < PREV(x))"""


def run(statement: str, **tables: Any) -> list[dict[str, Any]]:
    return list(cep.sql(statement, tables or {"t": pa.table(ROWS)}).to_pylist())


LOW = [{"k": "a", "low": 1}, {"k": "b", "low": 4}]


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT * FROM t {CLAUSE}",
        f"SELECT k, low FROM t {CLAUSE} AS m;",
        f"SELECT m.k, m.low FROM t AS events {CLAUSE} m",
        f"-- t MATCH_RECOGNIZE (\nSELECT * FROM `t` {CLAUSE} /* MATCH_RECOGNIZE ( */",
        f"SELECT * FROM (SELECT * FROM t) {CLAUSE} ORDER BY k",
        f"SELECT k, low FROM (SELECT * FROM t) {CLAUSE} ORDER BY k",
        f"SELECT m.k, m.low FROM range(1) r JOIN (SELECT * FROM t) {CLAUSE} m ON true ORDER BY k",
        f"SELECT * FROM (SELECT * FROM t) AS s {CLAUSE} ORDER BY k",
        f"SELECT * FROM (SELECT t, x, k FROM t) AS s(t, x, k) {CLAUSE} ORDER BY k",
        f"SELECT * FROM (SELECT t, x, k FROM t) s(t, x, k) {CLAUSE} m ORDER BY k",
        f"SELECT m.* FROM range(1) r, t AS u(k, t, x) {CLAUSE} m ORDER BY k",
        f"SELECT * FROM query('SELECT * FROM t') {CLAUSE} ORDER BY k",
        f"WITH s AS (SELECT * FROM t) SELECT * FROM s {CLAUSE} ORDER BY k",
        f"WITH s AS (SELECT * FROM t {CLAUSE}) SELECT * FROM s ORDER BY k",
        f"SELECT k, low FROM t {CLAUSE} WHERE k <> 'MATCH_RECOGNIZE (' ORDER BY k",
        f"SELECT * FROM T {CLAUSE}",
        f'SELECT * FROM "T" AS "My t" {CLAUSE} AS "m"',
        f"SELECT M.* FROM t {CLAUSE} m",
        f"SELECT k, low FROM (VALUES ('a', 1, 3), ('a', 2, 1), ('b', 1, 5), ('b', 2, 4)) v(k, t, x)"
        f" {CLAUSE} ORDER BY k",
        f"WITH t AS (SELECT * FROM t WHERE x > 0) SELECT * FROM t {CLAUSE} ORDER BY k",
        "WITH RECURSIVE r(k, t, x) AS (SELECT 'a', 1, 3 UNION ALL SELECT k, t + 1, 4 - x FROM r "
        f"WHERE t < 2), s AS (SELECT * FROM r UNION ALL SELECT k, t, x FROM t WHERE k = 'b') "
        f"SELECT * FROM s {CLAUSE} ORDER BY k",
        f"SELECT u.k, low FROM (SELECT DISTINCT k FROM t) u LEFT JOIN t {CLAUSE} m USING (k)"
        " ORDER BY k",
        f"FROM t {CLAUSE} SELECT k, low ORDER BY k",
        f"TABLE t {CLAUSE} ORDER BY k",
        f"SELECT * FROM (t {CLAUSE} m JOIN t {CLAUSE} n USING (k, low)) ORDER BY k",
        f"SELECT DISTINCT k, x AS low FROM t WHERE x IN (SELECT low FROM t {CLAUSE}) ORDER BY k",
        "select k, low from t match_recognize -- (\n(partition by k order by t /* ) */"
        " measures last(down.x) as low pattern (down) define down as x < prev(x)) order by k",
        f"SELECT * FROM t {CLAUSE} WHERE k = 'a' UNION ALL SELECT * FROM t {CLAUSE} WHERE k = 'b'",
        f"SELECT DISTINCT k, low FROM (t JOIN (SELECT 1 AS y) ON true) {CLAUSE} ORDER BY k",
        f"SELECT a.k, b.low FROM t {CLAUSE} a JOIN t {CLAUSE} b ON a.k = b.k ORDER BY a.k",
    ],
)
def test_clauses_stand_where_tables_may(statement: str) -> None:
    assert run(statement) == LOW


def test_a_clause_reads_the_result_of_another() -> None:
    outer = """MATCH_RECOGNIZE (ORDER BY low MEASURES FIRST(low) AS least, count(*) AS n
        PATTERN (A+))"""
    assert run(f"SELECT * FROM (SELECT * FROM t {CLAUSE}) {outer}") == [{"least": 1, "n": 2}]
    assert run(f"SELECT * FROM t {CLAUSE} AS m {outer} AS n") == [{"least": 1, "n": 2}]
    common = f"WITH s AS (SELECT * FROM t {CLAUSE}) SELECT * FROM s {outer}"
    assert run(common) == [{"least": 1, "n": 2}]


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (Dialect.SPARK, r"SELECT 'it''s \' t MATCH_RECOGNIZE (', `a``(` FROM t"),
        (Dialect.SPARK, r"SELECT r'\', ' t MATCH_RECOGNIZE (' FROM t"),
        (Dialect.SPARK, 'SELECT " t MATCH_RECOGNIZE (" FROM t'),
        (Dialect.SPARK, "SELECT 1 -- t MATCH_RECOGNIZE ("),
        (Dialect.SPARK, "SELECT 1 -- on the next line, too \\\n t MATCH_RECOGNIZE ("),
        (Dialect.SPARK, "SELECT /* a /* b */ t MATCH_RECOGNIZE ( */ 1"),
        (Dialect.DUCKDB, r"SELECT '\', ' t MATCH_RECOGNIZE (' FROM t"),
        (Dialect.DUCKDB, r"SELECT e'\' t MATCH_RECOGNIZE (' FROM t"),
        (Dialect.DUCKDB, 'SELECT "t MATCH_RECOGNIZE (" FROM t'),
        (Dialect.DUCKDB, "SELECT $$ ' t MATCH_RECOGNIZE ( $$ FROM t"),
        (Dialect.DUCKDB, "SELECT $a$ $$ t MATCH_RECOGNIZE ( $a$ FROM t"),
        (Dialect.DUCKDB, "SELECT 1 /* never closed: t MATCH_RECOGNIZE ("),
    ],
)
def test_strings_and_comments_hide_clauses(dialect: Dialect, text: str) -> None:
    assert Statement(Source(text), dialect).clauses == ()


@pytest.mark.parametrize(
    ("statement", "params", "rows"),
    [
        (
            "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY t MEASURES x + :by AS y "
            "PATTERN (A) DEFINE A AS x IN :some)",
            {"by": 10, "some": [3, 5]},
            [{"k": "a", "y": 13}, {"k": "b", "y": 15}],
        ),
        (
            f"SELECT low + 0 AS low FROM (SELECT * FROM t WHERE k = :k) {CLAUSE} WHERE low < $most",
            {"k": "b", "most": 5, "unused": None},
            [{"low": 4}],
        ),
        (
            "SELECT low FROM cep_match(TABLE(t), 'PATTERN a WHERE a.x = :x RETURN a.x AS low', "
            "time => 't') WHERE ':x' <> low::text",
            {"x": 4},
            [{"low": 4}],
        ),
    ],
)
def test_parameters(statement: str, params: dict[str, object], rows: list[object]) -> None:
    assert cep.sql(statement, {"t": pa.table(ROWS)}, params=params).to_pylist() == rows


@pytest.mark.parametrize("table", ["STREAM t", "STREAM a.t", "STREAM(t)", "stream", '"a"."t"'])
@pytest.mark.parametrize("alias", ["", " u", ' AS "u"'])
def test_tables_that_only_spark_names_so(table: str, alias: str) -> None:
    text = f"SELECT * FROM {table}{alias} {CLAUSE}"
    (clause,) = Statement(Source(text), Dialect.SPARK).clauses
    # Spark decides whether `stream u` is a stream, or a table with an alias.
    left = alias if (table, alias) == ("stream", " u") else ""
    assert text[clause.table.start : clause.table.end] == table + left


@pytest.mark.parametrize("table", ["t", "db.t", "(SELECT * FROM t)"])
@pytest.mark.parametrize("alias", ["", " u", " AS u"])
def test_merge_uses_what_a_clause_returns(table: str, alias: str) -> None:
    text = f"MERGE INTO h USING {table}{alias} {CLAUSE} m ON h.k = m.k WHEN MATCHED THEN DELETE"
    (clause,) = Statement(Source(text), Dialect.SPARK).clauses
    assert text[clause.table.start : clause.table.end] == table


@pytest.mark.parametrize("dialect", [Dialect.SPARK, Dialect.DUCKDB])
def test_texts_inside_of_a_clause_are_those_of_our_language(dialect: Dialect) -> None:
    body = r"PATTERN (A) DEFINE A AS s <> '\' AND s <> ')' -- )"
    statement = Statement(Source(f"SELECT '(' FROM t MATCH_RECOGNIZE ({body}\n) WHERE x"), dialect)
    (clause,) = statement.clauses
    assert isinstance(clause, Recognizing)
    assert statement.source.text[clause.body.start : clause.body.end] == f"{body}\n"


def test_columns_get_other_names_and_are_found_without_case() -> None:
    assert run(f"SELECT LOW AS Bottom FROM t {CLAUSE}") == [{"Bottom": 1}, {"Bottom": 4}]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("rest", ["", " WHERE low < 9"])
def test_results_are_of_the_kind_of_the_tables(kind: Any, rest: str) -> None:
    frame = kind(ROWS)
    assert isinstance(cep.sql(f"SELECT * FROM t {CLAUSE} m{rest}", {"t": frame}), type(frame))


def test_queries_of_our_own_language_are_tables_too() -> None:
    statement = """SELECT k, count(*) AS n FROM cep_match(TABLE(t),
        'PATTERN a ; b WHERE [k] AND b.x > a.x WITHIN 9 RETURN a.k AS k', time => 't') GROUP BY k"""
    assert run(statement) == [{"k": "a", "n": 1}]


EXPLAINED = """\
MATCH_RECOGNIZE over (SELECT * FROM t WHERE x > 0)

program
  0  take A
  1  try 2, then 4
  2  take DOWN
  3  go to 1
  4  take UP
  5  match

conditions
  A     always true
  DOWN  once for every row: x < PREV(x)
  UP    while rows are taken: UP.x > A.x

search
  failures before UP are tried again; at most 100 k steps for each row of a partition

in this process
  partitioning  by k, in order of t
  columns       3 of 3: k, t, x"""


def test_explain() -> None:
    """By hand, with - after a step that fails. In a (3, 1, 2): A try DOWN go try DOWN- UP- UP-,
    then A try DOWN- UP match. In b (5, 4): A try DOWN go try DOWN- UP- UP-, then A try DOWN-
    UP-."""
    statement = """SELECT * FROM (SELECT * FROM t WHERE x > 0) MATCH_RECOGNIZE (
        PARTITION BY k ORDER BY t PATTERN (A DOWN* UP)
        DEFINE DOWN AS x < PREV(x), UP AS UP.x > A.x)"""
    tables = {"t": pa.table(ROWS)}
    assert str(cep.explain_sql(statement, tables)) == EXPLAINED
    analyzed = cep.explain_sql(statement, tables, analyze=True)
    run = {"rows": 5, "partitions": 2, "matches": 1, "steps": 25, "backtracks": 9}
    assert analyzed.to_dict()["clauses"][0]["profile"] == run
    lines = [f"  {name:<10}  {figure}" for name, figure in run.items()]
    assert str(analyzed) == "\n".join([EXPLAINED, "", "run", *lines])


def test_explain_of_what_is_no_clause_of_sql() -> None:
    tables = {"t": pa.table(ROWS)}
    assert "left to the SQL engine" in str(cep.explain_sql("SELECT 1", tables))
    statement = "SELECT * FROM cep_match(TABLE(t), 'PATTERN a ; b WITHIN 9', time => 't')"
    assert str(cep.explain_sql(statement, tables)).startswith("PATTERN a ; b\n")


def test_findings_in_queries_stand_in_the_whole_statement() -> None:
    statement = """SELECT * FROM cep_match(TABLE(t),
        'PATTERN a ; b WHERE a.k = ''a'' AND b.y > 5 WITHIN 9', time => 't')"""
    with pytest.raises(cep.QueryError) as failed:
        run(statement)
    assert str(failed.value) == (
        "CEP204: `b` has no attribute `y`\n  sql:2:46\n"
        "  2 |         'PATTERN a ; b WHERE a.k = ''a'' AND b.y > 5 WITHIN 9', time => 't')\n"
        "    |                                              ^^^ it has `k`, `t`, `x`"
    )


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("", "the statement is empty"),
        ("SELECT 1 +", "DuckDB: Parser Error: syntax error"),
        ("SELECT 1; SELECT 2", "in this process, `sql` runs one statement: a SELECT or a COPY"),
        ("CREATE TABLE u AS SELECT 1", "in this process, `sql` runs one statement: a SELECT or a"),
        (f"SELECT n.low FROM t {CLAUSE} m", 'DuckDB: Binder Error: Referenced table "n" not found'),
        (f"SELECT lwo FROM t {CLAUSE}", "the result has no column `lwo`; did you mean `low`?"),
    ],
)
def test_wrong_statements(statement: str, message: str) -> None:
    with pytest.raises(cep.OptionError) as failed:
        run(statement)
    assert str(failed.value).startswith(message)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A)",
            "CEP105: this parenthesis is never closed",
        ),
        ("MATCH_RECOGNIZE (PATTERN (A))", "CEP607: MATCH_RECOGNIZE needs a table before it"),
        (f"SELECT * FROM {CLAUSE}", "CEP607: MATCH_RECOGNIZE needs a table before it"),
        (f"SELECT * FROM t AT 5 {CLAUSE}", "CEP607: MATCH_RECOGNIZE needs a table before it"),
        (
            f"SELECT * FROM t LATERAL VIEW explode(x) e AS y {CLAUSE}",
            "CEP607: MATCH_RECOGNIZE needs a table before it",
        ),
        (f"SELECT * FROM t GROUP BY k {CLAUSE}", "CEP607: MATCH_RECOGNIZE needs a table before it"),
        (f"SELECT * FROM t WHERE k {CLAUSE}", "CEP607: MATCH_RECOGNIZE needs a table before it"),
        (f"SELECT 1 UNION ALL t {CLAUSE}", "CEP607: MATCH_RECOGNIZE needs a table before it"),
        (
            f"SELECT * FROM t JOIN t u USING (k) {CLAUSE}",
            "CEP607: MATCH_RECOGNIZE needs a table before it",
        ),
        (
            f"SELECT * FROM t JOIN t u ON t.k = u.k {CLAUSE}",
            "CEP607: MATCH_RECOGNIZE needs a table before it",
        ),
        (
            "SELECT * FROM cep_match(TABLE(t), 'PATTERN a', tme => 't')",
            "CEP608: cep_match has no option `tme`",
        ),
        (
            "SELECT * FROM cep_match(TABLE(t), 'PATTERN a', time => 't', TIME => 'x')",
            "CEP608: cep_match has the option `time` already",
        ),
        (f"SELECT * FROM tt {CLAUSE}", "CEP609: there is no table `tt`"),
        ("SELECT * FROM cep_match(t, 'x')", "CEP608: cep_match takes a table and a query"),
        ("SELECT * FROM cep_match(TABLE(t), 'PATTERN a')", "CEP608: cep_match needs the time"),
    ],
)
def test_wrong_clauses(statement: str, message: str) -> None:
    with pytest.raises(cep.QueryError) as failed:
        run(statement)
    assert str(failed.value).splitlines()[0] == message


def test_dead_letters_are_those_of_streams() -> None:
    with pytest.raises(cep.OptionError, match="dead_letters= is for streams"):
        cep.sql(f"SELECT * FROM t {CLAUSE}", {"t": pa.table(ROWS)}, dead_letters=True)


def test_without_tables_a_session_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_session() -> None:
        raise PySparkRuntimeError("[NO_ACTIVE_OR_DEFAULT_SESSION]")

    monkeypatch.setattr(SparkSession, "active", no_session)
    with pytest.raises(cep.OptionError, match="neither tables nor a Spark session: pass tables="):
        cep.sql("SELECT 1")


def test_text_is_needed() -> None:
    number: Any = 5
    with pytest.raises(cep.DataError, match="takes the text of a statement, not int"):
        cep.sql(number, {"t": pa.table(ROWS)})


def test_ctrl_c_is_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB ends a statement that is interrupted with an error of its own."""

    class Relation:
        def to_arrow_table(self) -> pa.Table:
            raise RuntimeError("Query interrupted")

    class Connection:
        extract_statements = staticmethod(duckdb.extract_statements)

        def sql(self, text: str, params: object) -> Relation:
            return Relation()

    monkeypatch.setattr(InProcessTables, "_connection", Connection())
    with pytest.raises(KeyboardInterrupt):
        run("SELECT 1 AS x FROM t")
