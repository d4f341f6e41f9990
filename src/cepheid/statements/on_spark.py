"""Statements on Spark: temporary views stand for the clauses, and Spark runs the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cepheid.language.diagnostics import Source
from cepheid.row_patterns.recognition_summary import RecognitionSummary
from cepheid.row_patterns.syntax import Recognition
from cepheid.spark.columns.column_names import in_quotes
from cepheid.spark.match_recognize import explain, recognize
from cepheid.spark.views import run_sql, session_of, view_of
from cepheid.statements.statement import Statement


class SparkTables:
    """Tables and views of a session, and DataFrames by name, which replace no view of the
    user's."""

    def __init__(self, given: Mapping[str, Any], spark: Any = None) -> None:
        self.spark = session_of(given.values(), spark)
        self.given = [
            f"{in_quotes(name)} AS (SELECT * FROM {view_of(table)})"
            for name, table in given.items()
        ]

    def select(self, table: str, tables_before: list[str]) -> Any:
        return self._query(f"SELECT * FROM {table}", tables_before)

    def recognize(self, recognition: Recognition, source: Source, frame: Any) -> Any:
        return recognize(recognition, source, frame)

    def explain(
        self, recognition: Recognition, source: Source, table: str, frame: Any, analyze: bool
    ) -> RecognitionSummary:
        return explain(recognition, source, table, frame, analyze)

    def register(self, frame: Any) -> str:
        return view_of(frame)

    def run(self, statement: str) -> Any:
        return self._query(statement, [])

    def _query(self, text: str, tables: list[str]) -> Any:
        return run_sql(self.spark, with_tables(text, [*self.given, *tables]))


def with_tables(text: str, tables: list[str]) -> str:
    """The statement with more common tables before its own.

    >>> with_tables("WITH b AS (SELECT 2) SELECT * FROM a, b", ["a AS (SELECT 1)"])
    'WITH a AS (SELECT 1), b AS (SELECT 2) SELECT * FROM a, b'
    """
    if not tables:
        return text
    tokens = Statement(Source(text)).tokens
    if not tokens or tokens[0].word != "WITH":
        return f"WITH {', '.join(tables)} {text}"
    recursive = len(tokens) > 1 and tokens[1].word == "RECURSIVE"
    rest = text[tokens[1 if recursive else 0].span.end :].lstrip()
    return f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(tables)}, {rest}"
