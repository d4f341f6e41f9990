"""Statements over frames in this process: DuckDB runs what isn't MATCH_RECOGNIZE."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from cepheid.algebra.binding.findings import did_you_mean
from cepheid.algebra.kinds import check_readable, reasons
from cepheid.algebra.nested_columns import with_extracted
from cepheid.errors import DataError, OptionError
from cepheid.extras import require
from cepheid.inprocess.frames import as_table, like, to_arrow
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Source
from cepheid.row_patterns.bound import BoundRecognition, bind, check_conditions
from cepheid.row_patterns.recognition_summary import RecognitionSummary, order_text, summary
from cepheid.row_patterns.recognize import profiled, recognize
from cepheid.row_patterns.syntax import Recognition
from cepheid.statements.parameters import in_duckdb, parameters_in
from cepheid.statements.statement import Recognizing, Statement
from cepheid.statements.tokens import QUERIES, Dialect, Token, tokens_of

_NO_TABLE = re.compile(r"Table with name (.+) does not exist")


@dataclass(frozen=True)
class InProcessTables:
    """The tables of the call, by name. Results have names that no table has."""

    given: Mapping[str, Any]
    statement: Statement
    params: Mapping[str, object]

    def without_rows(self) -> InProcessTables:
        """The same tables with their columns alone: nothing is matched."""
        empty = {n: to_arrow(frame).schema.empty_table() for n, frame in self.given.items()}
        return InProcessTables(empty, self.statement, self.params)

    @cached_property
    def _results(self) -> dict[str, pa.Table]:
        return {}

    @cached_property
    def _connection(self) -> Any:
        require("sql")
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET python_enable_replacements = false")
        for name, frame in self.given.items():
            connection.register(name, as_table(to_arrow(frame)))
        return connection

    def select(self, table: str, common: str, span: Span) -> Any:
        tokens = list(tokens_of(table, Dialect.DUCKDB))
        if common or len(tokens) > 1 or not tokens[0].is_name:
            body = f"({table})" if tokens[0].word in QUERIES else table
            return self._query(f"{common}SELECT * FROM {body}")
        name = tokens[0].name
        if name in self._results:
            return self._results[name]
        known = self._given_name(name)
        if known is None:
            hint = did_you_mean(name, self.given, f"tables are {', '.join(self.given)}")
            raise self.statement.wrong("CEP609", f"there is no table `{name}`", span, hint)
        return self.given[known]

    def _given_name(self, name: str) -> str | None:
        """As in SQL, regardless of case."""
        folded = {other.lower(): other for other in self.given}
        return name if name in self.given else folded.get(name.lower())

    def recognize(self, recognition: Recognition, source: Source, frame: Any) -> pa.Table:
        return recognize(*self._bound(recognition, source, frame))

    def _bound(
        self, recognition: Recognition, source: Source, frame: Any
    ) -> tuple[BoundRecognition, pa.Table]:
        """The clause, and the columns that it reads."""
        events = to_arrow(frame)
        bound = bind(recognition, events.schema, source, self.params)
        check_readable(reasons(events.schema), bound.reads)
        check_conditions(recognition, bound, events.schema, source)
        return bound, with_extracted(as_table(events), bound.reads)

    def explain(
        self, recognition: Recognition, source: Source, table: str, frame: Any, analyze: bool
    ) -> RecognitionSummary:
        bound, rows = self._bound(recognition, source, frame)
        profile = profiled(bound, rows)[1] if analyze else None
        by = f"by {', '.join(bound.partition)}" if bound.partition else "none"
        order = f", in order of {order_text(bound.order)}" if bound.order else ""
        where = "in this process"
        return summary(recognition, bound, source, table, where, by + order, profile)

    def register(self, frame: Any) -> str:
        name = f"__cepheid_{len(self._results)}"
        self._results[name] = frame if isinstance(frame, pa.Table) else as_table(to_arrow(frame))
        return name

    def run(self, statement: str) -> Any:
        simple = _simple_columns(self.statement)
        if simple is not None and len(self._results) == 1:
            (result,) = self._results.values()
            table = _chosen(result, simple)
        else:
            table = self._query(statement)
        first = next(iter(self.given.values()))
        return like(first, table.schema, iter(table.to_batches()))

    def _query(self, text: str) -> pa.Table:
        connection = self._connection
        for name, table in self._results.items():
            connection.register(name, table)
        import duckdb

        text = in_duckdb(text, self.params)
        try:
            kinds = [statement.type for statement in connection.extract_statements(text)]
            if len(kinds) != 1 or kinds[0] not in _returning():
                raise OptionError("in this process, `sql` runs one statement: a SELECT or a COPY")
            used = parameters_in(text, Dialect.DUCKDB, self.params)
            return connection.sql(text, params=used or None).to_arrow_table()
        except RuntimeError as error:
            if "interrupted" in str(error):  # what DuckDB makes of Ctrl-C
                raise KeyboardInterrupt from None
            raise
        except duckdb.CatalogException as error:
            raise OptionError(self._unknown(str(error))) from None
        except duckdb.ProgrammingError as error:
            raise OptionError(f"DuckDB: {error}") from None
        except duckdb.Error as error:
            raise DataError(f"DuckDB: {error}") from None

    def _unknown(self, text: str) -> str:
        """What DuckDB doesn't know. It would suggest tables of its own for one that isn't there."""
        table = _NO_TABLE.search(text)
        if table is None:
            return f"DuckDB: {text}"
        hint = did_you_mean(table[1], self.given, f"tables are {', '.join(self.given)}")
        return f"there is no table `{table[1]}`; {hint}"


def _returning() -> tuple[Any, ...]:
    """Statements that return rows, or write a file. Tables that others make would be gone when
    `sql` returns."""
    from duckdb import StatementType

    return StatementType.SELECT, StatementType.EXPLAIN, StatementType.COPY


# ── statements that need no DuckDB ───────────────────────────────────────────


@dataclass(frozen=True)
class SimpleColumn:
    """`name [AS alias]`; the name may be `*`."""

    name: str
    alias: str


def _simple_columns(statement: Statement) -> list[SimpleColumn] | None:
    """The columns of `SELECT columns FROM table MATCH_RECOGNIZE ( … ) [alias]`; None if the
    statement is another."""
    tokens = list(statement.tokens)
    if tokens and tokens[-1].text == ";":
        tokens.pop()
    clauses = statement.clauses
    if len(clauses) != 1 or not isinstance(clauses[0], Recognizing) or not tokens:
        return None
    (clause,) = clauses
    before = [t for t in tokens if t.span.end <= clause.span.start]
    after = [t for t in tokens if t.span.start >= clause.span.end]
    if after and after[0].word == "AS":
        after = after[1:]
    if len(after) > 1 or (after and not after[0].is_name) or len(before) < 3:
        return None
    select, *chosen, source = before
    if select.word != "SELECT" or source.word != "FROM":
        return None
    return _items(chosen, after[0].name.lower() if after else None)


def _items(tokens: list[Token], alias: str | None) -> list[SimpleColumn] | None:
    items: list[list[Token]] = [[]]
    for token in tokens:
        if token.text == ",":
            items.append([])
        else:
            items[-1].append(token)
    columns = [_item(item, alias) for item in items]
    known = [c for c in columns if c is not None]
    return known if len(known) == len(columns) else None


def _item(tokens: list[Token], alias: str | None) -> SimpleColumn | None:
    if len(tokens) >= 3 and tokens[1].text == "." and tokens[0].name.lower() == alias:
        tokens = tokens[2:]
    match [t.word if t.kind == "word" else t.text for t in tokens]:
        case ["*"]:
            return SimpleColumn("*", "*")
        case [_] if tokens[0].is_name:
            return SimpleColumn(tokens[0].name, tokens[0].name)
        case [_, "AS", _] if tokens[0].is_name and tokens[2].is_name:
            return SimpleColumn(tokens[0].name, tokens[2].name)
        case _:
            return None


def _chosen(table: pa.Table, columns: list[SimpleColumn]) -> pa.Table:
    arrays: list[pa.ChunkedArray] = []
    names: list[str] = []
    folded = {name.lower(): name for name in table.column_names}
    for column in columns:
        if column.name == "*":
            arrays += table.columns
            names += table.column_names
            continue
        name = column.name if column.name in table.column_names else folded.get(column.name.lower())
        if name is None:
            hint = did_you_mean(column.name, table.column_names, "")
            known = hint or f"columns are {', '.join(table.column_names)}"
            raise OptionError(f"the result has no column `{column.name}`; {known}")
        arrays.append(table.column(name))
        names.append(column.alias)
    return pa.table(arrays, names=names)
