"""`cep.sql`: a statement in which MATCH_RECOGNIZE may stand wherever a table may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from cepheid.errors import OptionError
from cepheid.explain import Explanation
from cepheid.extras import require
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Source
from cepheid.options import Options, refuse_dead_letters
from cepheid.query.option_arguments import of_kind
from cepheid.row_patterns.clause import parse_recognition
from cepheid.row_patterns.recognition_summary import RecognitionSummary
from cepheid.row_patterns.syntax import Recognition
from cepheid.statements.cep_match import explained, matched
from cepheid.statements.in_process import InProcessTables
from cepheid.statements.statement import Clause, Matching, Recognizing, Statement
from cepheid.statements.statement_explanation import StatementExplanation
from cepheid.statements.tokens import Dialect

Frame = TypeVar("Frame")


class Tables(Protocol[Frame]):
    """Where the tables of a statement are, and what runs the rest of it."""

    @property
    def params(self) -> Mapping[str, object]: ...

    def select(self, table: str, common: str, span: Span) -> Frame:
        """A table that the statement reads, after the WITH of the `common` tables that come before,
        if there are any. `span` is where it stands."""

    def recognize(self, recognition: Recognition, source: Source, frame: Frame) -> Frame: ...

    def explain(
        self, recognition: Recognition, source: Source, table: str, frame: Frame, analyze: bool
    ) -> RecognitionSummary:
        """How `recognize` runs, and with `analyze`, what happens."""

    def register(self, frame: Frame) -> str:
        """A name under which the statement can read the frame."""

    def run(self, statement: str) -> Any:
        """The result of a statement that has no clause of ours left."""


def sql(
    text: str,
    tables: Mapping[str, Any] | None = None,
    *,
    spark: Any = None,
    params: Mapping[str, Any] | None = None,
    dead_letters: bool = False,
) -> Any:
    """The result of a SQL statement in which `MATCH_RECOGNIZE ( … )` may follow any table.

    With `spark`, or if the tables are Spark DataFrames, or if there are none, the statement runs on
    Spark, and the result is a DataFrame. Otherwise `tables` are frames in this process; what stands
    around the clauses runs in DuckDB (the extra `sql`). A plain `SELECT columns FROM t
    MATCH_RECOGNIZE ( … )` needs no DuckDB. The result is of the kind of the first table.

    `params` are the values of `:name`, in clauses and around them.

    Over a stream, `dead_letters=True` gives what MATCH_RECOGNIZE returns a column `dead_letter`,
    and a row for each row of the stream that is late or has no valid time.

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
    statement, chosen = _prepared(text, tables, spark, params, dead_letters)
    replaced: list[tuple[Clause, str]] = []
    for clause in statement.clauses:
        _, result = _result(statement, clause, chosen, replaced)
        replaced.append((clause, chosen.register(result)))
    return chosen.run(statement.text(statement.span, replaced) if replaced else text)


def explain_sql(
    text: str,
    tables: Mapping[str, Any] | None = None,
    *,
    spark: Any = None,
    params: Mapping[str, Any] | None = None,
    analyze: bool = False,
) -> StatementExplanation:
    """How the clauses of a statement are run: the program of each pattern, which conditions are
    checked once for every row, and how the work is partitioned. With `analyze` the clauses are run,
    and it says how many rows, steps and backtracks that took.

    >>> import cepheid as cep, pyarrow as pa
    >>> ticker = pa.table({"day": [1, 2, 3], "price": [9, 7, 5]})
    >>> print(cep.explain_sql('''
    ...     SELECT * FROM ticker MATCH_RECOGNIZE (
    ...         ORDER BY day MEASURES DOWN.day AS day
    ...         PATTERN (A DOWN) DEFINE DOWN AS price < A.price)
    ... ''', {"ticker": ticker}))
    MATCH_RECOGNIZE over ticker
    <BLANKLINE>
    program
      0  take A
      1  take DOWN
      2  match
    <BLANKLINE>
    conditions
      A     always true
      DOWN  while rows are taken: price < A.price
    ...
    """
    statement, chosen = _prepared(text, tables, spark, params)
    if isinstance(chosen, InProcessTables) and not analyze:
        chosen = chosen.without_rows()
    replaced: list[tuple[Clause, str]] = []
    summaries: list[RecognitionSummary | Explanation] = []
    for clause in statement.clauses:
        frame, result = _result(statement, clause, chosen, replaced)
        match clause:
            case Recognizing():
                recognition = parse_recognition(statement.source, clause.body)
                table = " ".join(statement.text(clause.table, []).split())
                summaries.append(
                    chosen.explain(recognition, statement.source, table, frame, analyze)
                )
            case Matching():
                summaries.append(explained(statement, clause, frame, chosen.params, analyze))
        replaced.append((clause, chosen.register(result)))
    return StatementExplanation(tuple(summaries))


def _prepared(
    text: object,
    tables: object,
    spark: Any,
    params: Mapping[str, Any] | None,
    dead_letters: bool = False,
) -> tuple[Statement, Tables[Any]]:
    """The statement, and the tables of what runs it."""
    if not isinstance(text, str):
        raise OptionError(f"`sql` takes the text of a statement, not {type(text).__name__}")
    if tables is not None and not isinstance(tables, Mapping):
        remedy = 'pass {"name": table}, by the names in the statement'
        raise OptionError(f"tables are a dict of tables, not {type(tables).__name__}: {remedy}")
    values = Options(time="", params={} if params is None else params).params  # it checks them
    given = {} if tables is None else dict(tables)
    on_spark = spark is not None or not given or any(map(_is_spark_frame, given.values()))
    statement = Statement(Source(text, "sql"), Dialect.SPARK if on_spark else Dialect.DUCKDB)
    if not statement.tokens:
        raise OptionError("the statement is empty")
    if not on_spark:
        refuse_dead_letters(Options(time="", dead_letters=dead_letters))
        return statement, InProcessTables(given, statement, values)
    require("spark")
    for name, table in given.items():
        if not _is_spark_frame(table):
            what = f"`{name}` is {of_kind(table)}, and the statement runs on Spark"
            raise OptionError(f"{what}: pass spark.createDataFrame({name})")
    from cepheid.statements.on_spark import SparkTables

    return statement, SparkTables(given, statement, spark, values, dead_letters)


def _is_spark_frame(table: object) -> bool:
    return any(base.__module__.startswith("pyspark.sql") for base in type(table).__mro__)


def _result(
    statement: Statement,
    clause: Clause,
    tables: Tables[Any],
    replaced: list[tuple[Clause, str]],
) -> tuple[Any, Any]:
    """The table that a clause reads, and what it returns. Inner clauses come first: `replaced` are
    those, with the names of their results."""
    table, common = statement.text(clause.table, replaced), _common(statement, clause, replaced)
    frame = tables.select(table, common, clause.table)
    match clause:
        case Recognizing():
            recognition = parse_recognition(statement.source, clause.body)
            return frame, tables.recognize(recognition, statement.source, frame)
        case Matching():
            return frame, matched(statement, clause, frame, tables.params)


def _common(statement: Statement, clause: Clause, replaced: list[tuple[Clause, str]]) -> str:
    tables = statement.tables_in_scope(clause)
    if not tables:
        return ""
    word = "WITH RECURSIVE" if any(table.recursive for table in tables) else "WITH"
    return f"{word} {', '.join(statement.text(table.span, replaced) for table in tables)} "
