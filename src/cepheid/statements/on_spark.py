"""Statements on Spark: temporary views stand for the clauses, and Spark runs the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cepheid.errors import OptionError
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Source
from cepheid.options import Options, refuse_dead_letters
from cepheid.row_patterns.recognition_summary import RecognitionSummary
from cepheid.row_patterns.syntax import Recognition
from cepheid.spark.columns.column_names import in_quotes
from cepheid.spark.match_recognize import explain, recognize
from cepheid.spark.views import run_sql, session_of, view_of
from cepheid.statements.parameters import parameters_in
from cepheid.statements.statement import Statement
from cepheid.statements.tokens import QUERIES, Dialect, tokens_of


class SparkTables:
    """Tables and views of a session, and DataFrames by name, which replace no view of the
    user's."""

    def __init__(
        self,
        given: Mapping[str, Any],
        statement: Statement,
        spark: Any,
        params: Mapping[str, object],
        dead_letters: bool,
    ) -> None:
        self.spark = session_of(given.values(), spark)
        self.params = params
        self.dead_letters = dead_letters
        self.statement = statement
        self.given = {
            name.lower(): f"{in_quotes(name)} AS (SELECT * FROM {view_of(table)})"
            for name, table in given.items()
        }

    def select(self, table: str, common: str, span: Span) -> Any:
        begins = next(tokens_of(table, Dialect.SPARK)).word in QUERIES
        body = f"({table})" if begins else table
        try:
            return self.run(f"{common}SELECT * FROM {body}")
        except OptionError as error:
            raise self.statement.wrong("CEP609", str(error), span) from None

    def recognize(self, recognition: Recognition, source: Source, frame: Any) -> Any:
        if not frame.isStreaming:
            refuse_dead_letters(Options(time="", dead_letters=self.dead_letters))
        return recognize(recognition, source, frame, self.params, self.dead_letters)

    def explain(
        self, recognition: Recognition, source: Source, table: str, frame: Any, analyze: bool
    ) -> RecognitionSummary:
        return explain(recognition, source, table, frame, self.params, analyze)

    def register(self, frame: Any) -> str:
        return view_of(frame)

    def run(self, statement: str) -> Any:
        try:
            used = parameters_in(statement, Dialect.SPARK, self.params)
            return run_sql(self.spark, with_tables(statement, self.given), used)
        except OptionError as error:
            if "[INVALID_TEMP_OBJ_REFERENCE]" not in str(error):
                raise
            what = "MATCH_RECOGNIZE, or of tables that are given"
            remedy = "CREATE TEMPORARY VIEW, or CREATE TABLE … AS"
            raise OptionError(f"Spark keeps no permanent view of {what}: {remedy}") from None


def with_tables(text: str, tables: Mapping[str, str]) -> str:
    """The statement with more common tables, by their names in small letters, before its own.

    >>> with_tables("WITH b AS (SELECT 2) SELECT * FROM a, b", {"a": "a AS (SELECT 1)"})
    'WITH a AS (SELECT 1), b AS (SELECT 2) SELECT * FROM a, b'
    >>> with_tables("INSERT INTO c SELECT * FROM a", {"a": "a AS (SELECT 1)"})
    'INSERT INTO c WITH a AS (SELECT 1) SELECT * FROM a'

    A common table of the statement hides one of these, and may read it; what is no query reads
    none:

    >>> with_tables("WITH a AS (SELECT * FROM a) SELECT * FROM a", {"a": "a AS (SELECT 1)"})
    'WITH a AS (SELECT 1) (WITH a AS (SELECT * FROM a) SELECT * FROM a)'
    >>> with_tables("SHOW TABLES", {"a": "a AS (SELECT 1)"})
    'SHOW TABLES'
    """
    if not tables:
        return text
    statement = Statement(Source(text), Dialect.SPARK)
    place = statement.query_begin()
    if place is None:
        return text
    begin, more = statement.tokens[place], ", ".join(tables.values())
    head, query = text[: begin.span.start], text[begin.span.start : statement.end]
    if begin.word != "WITH":
        return f"{head}WITH {more} {query}"
    if any(table.name.lower() in tables for table in statement.tables_of(place)):
        return f"{head}WITH {more} ({query})"
    recursive = statement.tokens[place + 1].word == "RECURSIVE"
    last = statement.tokens[place + 1 if recursive else place]
    rest = text[last.span.end : statement.end].lstrip()
    return f"{head}WITH {'RECURSIVE ' if recursive else ''}{more}, {rest}"
