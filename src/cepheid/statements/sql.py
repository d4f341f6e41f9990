"""`cep.sql`: a statement in which MATCH_RECOGNIZE may stand wherever a table may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from cepheid.errors import DataError
from cepheid.extras import require
from cepheid.language.diagnostics import Source
from cepheid.query import match
from cepheid.row_patterns.clause import parse_recognition
from cepheid.row_patterns.syntax import Recognition
from cepheid.statements.in_process import InProcessTables
from cepheid.statements.statement import Clause, Matching, Recognizing, Statement, literal_value

Frame = TypeVar("Frame")


class Tables(Protocol[Frame]):
    """Where the tables of a statement are, and what runs the rest of it."""

    def select(self, table: str, tables_before: list[str]) -> Frame:
        """A table that the statement reads, after the common tables that come before."""

    def recognize(self, recognition: Recognition, source: Source, frame: Frame) -> Frame: ...

    def register(self, frame: Frame) -> str:
        """A name under which the statement can read the frame."""

    def run(self, statement: str) -> Any:
        """The result of a statement that has no clause of ours left."""


def sql(text: str, tables: Mapping[str, Any] | None = None, *, spark: Any = None) -> Any:
    """The result of a SQL statement in which `MATCH_RECOGNIZE ( … )` may follow any table.

    With `spark`, or if the tables are Spark DataFrames, or if there are none, the statement runs on
    Spark, and the result is a DataFrame. Otherwise `tables` are frames in this process; what stands
    around the clauses runs in DuckDB (the extra `sql`). A plain `SELECT columns FROM t
    MATCH_RECOGNIZE ( … )` needs no DuckDB. The result is of the kind of the first table.

    >>> import cepheid as cep, pyarrow as pa
    >>> ticker = pa.table({"day": [1, 2, 3, 4], "price": [9, 7, 5, 8]})
    >>> cep.sql('''
    ...     SELECT * FROM ticker MATCH_RECOGNIZE (
    ...         ORDER BY day
    ...         MEASURES LAST(DOWN.day) AS bottom, LAST(UP.price) AS price
    ...         PATTERN (DOWN+ UP+)
    ...         DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price))
    ... ''', {"ticker": ticker}).to_pylist()
    [{'bottom': 3, 'price': 8}]
    """
    if not isinstance(text, str):
        raise DataError(f"`sql` takes the text of a statement, not {type(text).__name__}")
    statement = Statement(Source(text, "sql"))
    given = dict(tables or {})
    if spark is not None or not given or any(map(_is_spark_frame, given.values())):
        require("spark")
        from cepheid.statements.on_spark import SparkTables

        return _run(statement, SparkTables(given, spark))
    return _run(statement, InProcessTables(given, statement))


def _is_spark_frame(table: object) -> bool:
    return any(base.__module__.startswith("pyspark.sql") for base in type(table).__mro__)


def _run(statement: Statement, tables: Tables[Any]) -> Any:
    """Inner clauses first: each is replaced by the name of its result."""
    text = statement.source.text
    replaced: list[tuple[Clause, str]] = []
    for clause in statement.clauses:
        before = [
            statement.text(common.span, replaced) for common in statement.tables_in_scope(clause)
        ]
        frame = tables.select(statement.text(clause.table, replaced), before)
        match clause:
            case Recognizing():
                recognition = parse_recognition(statement.source, clause.body)
                result = tables.recognize(recognition, statement.source, frame)
            case Matching():
                result = _matched(statement, clause, frame)
        replaced.append((clause, tables.register(result)))
    whole = statement.tokens[0].span.to(statement.tokens[-1].span) if statement.tokens else None
    if whole is None:
        raise DataError("the statement is empty")
    return tables.run(statement.text(whole, replaced) if replaced else text)


def _matched(statement: Statement, clause: Matching, frame: Any) -> Any:
    """`cep_match`: a query of our own language."""
    options: dict[str, Any] = {
        name.text.lower(): literal_value(value) for name, value in clause.options
    }
    if "time" not in options:
        hint = "say which column is the time: `time => 'ts'`"
        raise statement.wrong("CEP608", "cep_match needs the time", clause.span, hint)
    return match(frame, str(literal_value(clause.query)), **options)
