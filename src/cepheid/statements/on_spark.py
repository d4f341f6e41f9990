"""Statements on Spark: temporary views stand for the clauses, and Spark runs the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from cepheid.language.diagnostics import Source
from cepheid.row_patterns.syntax import Recognition
from cepheid.spark.names import in_quotes
from cepheid.spark.row_patterns import recognize
from cepheid.spark.session import adopt_session
from cepheid.statements.statement import Statement


class SparkTables:
    """Tables and views of a session, and DataFrames by name. Spark looks views up when a statement
    runs, so they stay; no two have one name, and none replaces a view of the user's."""

    def __init__(self, given: Mapping[str, DataFrame], spark: Any = None) -> None:
        frame = next(iter(given.values()), None)
        self.spark: Any = spark or (
            frame.sparkSession if frame is not None else SparkSession.active()
        )
        adopt_session(self.spark)
        self.given = [
            f"{in_quotes(name)} AS (SELECT * FROM {self.register(table)})"
            for name, table in given.items()
        ]

    def select(self, table: str, tables_before: list[str]) -> DataFrame:
        return self._query(f"SELECT * FROM {table}", tables_before)

    def recognize(self, recognition: Recognition, source: Source, frame: DataFrame) -> DataFrame:
        return recognize(recognition, source, frame)

    def register(self, frame: DataFrame) -> str:
        name = f"cepheid_{uuid4().hex}"
        frame.createOrReplaceTempView(name)
        return name

    def run(self, statement: str) -> DataFrame:
        return self._query(statement, [])

    def _query(self, text: str, tables: list[str]) -> DataFrame:
        found: DataFrame = self.spark.sql(with_tables(text, [*self.given, *tables]))
        return found


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
