"""A query and the table of its parameters: as many rules as the table has rows.

Nothing here is per rule: names, parameters and what is carried along stay in the columns of the
table, so that a rule takes the few bytes that its values take.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.binding.findings import did_you_mean
from cepheid.algebra.text_patterns import regular_expression_problem
from cepheid.engine.attribution.json_rows import KEY, MATCH, RULE, TEMPLATE
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.errors import DataError
from cepheid.language import ast
from cepheid.language.diagnostics import Diagnostic
from cepheid.language.outline import Outline
from cepheid.language.traversal import parameters, walk
from cepheid.options import GivenOptions, Options, takes_options
from cepheid.query import Query, options_of
from cepheid.reasons.funnel import Funnel
from cepheid.reasons.looked_at import Amount
from cepheid.rules.findings import Finding, of_diagnostic


@dataclass(frozen=True)
class Rule:
    """One query of a set, with the values of its parameters. `carried` are the values that go to
    the output with its matches; `origin` is where it was written."""

    name: str
    query: Query
    params: Mapping[str, object]
    carried: Mapping[str, object]
    origin: str

    @takes_options
    def match(
        self, data: Any, options: Options | None = None, **named: Unpack[GivenOptions]
    ) -> Any:
        """The matches of this rule alone, RETURN's values as columns; see `cepheid.match`."""
        chosen = options_of(options, named)
        given = {**chosen.params, **self.params}
        return self.query.match(data, replace(chosen, params=given))

    @takes_options
    def funnel(
        self,
        data: Any,
        options: Options | None = None,
        *,
        by: str | None = None,
        rows: Amount = None,
        **named: Unpack[GivenOptions],
    ) -> Funnel:
        """How many got to each step of this rule; see `cepheid.funnel`."""
        chosen = options_of(options, named)
        given = {**chosen.params, **self.params}
        return self.query.funnel(data, replace(chosen, params=given), by=by, rows=rows)

    @takes_options
    def typed(
        self, matches: Any, data: Any, options: Options | None = None, **named: Unpack[GivenOptions]
    ) -> Any:
        """What `match` returns, taken from the `matches` of a set of rules with this one in it, so
        that nothing is run again. Of the data only the columns are looked at: a schema will do.
        """
        from cepheid.rules.run.typed_frame import typed_frame

        chosen = options_of(options, named)
        given = {**chosen.params, **self.params}
        return typed_frame(self.name, self.query, matches, data, replace(chosen, params=given))


@dataclass(frozen=True, eq=False)
class Template:
    """The rules of a query.

    name     what the query is called
    rows     a row for each rule: column `rule` is its name, those called as the query's parameters
             are their values, all others are carried to the output. Where there is no column
             `rule`, the rules are called by the template's name and their number. None is a single
             rule, called as the query is, and without parameters.
    origin   the file of the rows, or what else they are called
    numbers  which rows of the table these are, from 1; None are all of them
    outline  a query without parameters, taken apart, if it was
    """

    name: str
    query: Query
    rows: pa.Table | None = None
    origin: str = ""
    numbers: pa.Array | None = None
    outline: Outline | None = None

    def __post_init__(self) -> None:
        if self.rows is not None:
            object.__setattr__(self, "rows", _with_names(self.rows, self.name).combine_chunks())
        if not self.origin:
            object.__setattr__(self, "origin", self.name)

    def __len__(self) -> int:
        return 1 if self.rows is None else int(self.rows.num_rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __getstate__(self) -> dict[str, Any]:
        """Drop caches before pickling."""
        return {name: vars(self)[name] for name in self.__dataclass_fields__}

    @cached_property
    def parameters(self) -> Mapping[str, ast.Span]:
        """The query's parameters, and where they stand."""
        if self.outline is not None or ":" not in self.query.text:
            return {}
        return parameters(self.query.syntax)

    @property
    def label(self) -> str | None:
        """The query's INTO label."""
        return self.query.syntax.into if self.outline is None else self.outline.label

    @property
    def names(self) -> pa.ChunkedArray:
        """The names of the rules, in the order of the rows."""
        return pa.chunked_array([[self.name]]) if self.rows is None else self.rows[RULE]

    @property
    def is_written(self) -> bool:
        """Whether this is one rule, called as its query is: what it carries is in the header of
        the query, or was given for it."""
        if self.rows is None:
            return True
        alone = len(self) == 1 and self.origin == self.name
        return alone and str(self.names[0]) == self.name

    @property
    def carried(self) -> tuple[str, ...]:
        """The columns that go to the output with the matches."""
        columns = [] if self.rows is None else self.rows.column_names
        return tuple(name for name in columns if name not in self.parameters and name != RULE)

    @property
    def carried_schema(self) -> pa.Schema:
        """The types of those columns."""
        if self.rows is None:
            return pa.schema([])
        return pa.schema([field for field in self.rows.schema if field.name in self.carried])

    def rule(self, row: int) -> Rule:
        """The rule of a row, from 0."""
        place = f"{self.origin}, row {self.number(row)}"
        if self.is_written:
            place = f"{self.query.name}:{self.query.line}"
        if self.rows is None:
            return Rule(self.name, self.query, {}, {}, place)
        carried = {name: self.rows[name][row].as_py() for name in self.carried}
        return Rule(str(self.names[row]), self.query, self.values(row), carried, place)

    def values(self, row: int) -> dict[str, object]:
        """The values of the parameters in a row, from 0."""
        return {name: column[row].as_py() for name, column in self.columns.items()}

    @cached_property
    def columns(self) -> Mapping[str, pa.ChunkedArray]:
        """The values of the parameters that have a column."""
        if self.rows is None:
            return {}
        names = self.rows.column_names
        return {name: self.rows[name] for name in self.parameters if names.count(name) == 1}

    def number(self, row: int) -> int:
        """The row's number in the original table, from 1."""
        return row + 1 if self.numbers is None else int(self.numbers[row].as_py())

    def where(self, mask: pa.ChunkedArray) -> Template:
        """The rules for which the mask is true."""
        if self.rows is None:
            raise ValueError("a single rule is taken or left as it is")
        every = pa.array(range(1, len(self) + 1), pa.int32())
        numbers = (every if self.numbers is None else self.numbers).filter(mask.combine_chunks())
        return replace(self, rows=self.rows.filter(mask), numbers=numbers)

    @cached_property
    def fingerprint(self) -> str:
        """The same for templates with the same name, query and rows, wherever they come from, and
        in whatever order the rows stand: rules have names."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{self.name}\0{self.query}\0".encode())
        if self.rows is not None:
            _feed(digest, self.rows)
        return digest.hexdigest()


def _with_names(rows: pa.Table, name: str) -> pa.Table:
    if RULE not in rows.column_names:
        numbers = pa.array(range(1, rows.num_rows + 1)).cast(pa.string())
        names = pc.binary_join_element_wise(name, numbers, "-")
        return rows.append_column(RULE, names)
    if rows.column_names.count(RULE) > 1 or pa.types.is_string(rows[RULE].type):
        return rows
    try:
        names = rows[RULE].cast(pa.string())
    except pa.ArrowException:
        raise DataError(f"the column `{RULE}` is {rows[RULE].type}: names are text") from None
    return rows.set_column(rows.column_names.index(RULE), RULE, names)


def _feed(digest: Any, rows: pa.Table) -> None:
    """The table's values, in the order of names. What Arrow holds in the place of a NULL differs
    between tables that are the same, so NULLs are distinguished from values."""
    if rows.column_names.count(RULE) == 1:
        rows = rows.take(pc.sort_indices(rows[RULE]))
    for name in sorted(rows.column_names):
        column = rows[name].combine_chunks()
        digest.update(f"{name}\0{column.type}\0".encode())
        for part in (pc.is_valid(column), pc.drop_null(column)):
            batch = pa.record_batch([part], ["values"])
            with pa.ipc.new_stream(_Sink(digest), batch.schema) as writer:
                writer.write_batch(batch)


class _Sink:
    """A file object that hashes what is written to it."""

    closed = False

    def __init__(self, digest: Any) -> None:
        self._digest = digest

    def write(self, data: Any) -> int:
        self._digest.update(data)
        return len(data)

    def flush(self) -> None: ...

    def close(self) -> None: ...


# ── what is wrong ────────────────────────────────────────────────────────────


def problems(template: Template) -> Iterator[Finding]:
    """Findings of a template, independent of the events."""
    columns = [] if template.rows is None else template.rows.column_names
    for name in dict.fromkeys(c for c in columns if columns.count(c) > 1):
        yield _of_table(template, f"there are several columns called `{name}`", "keep one")
    for name in template.parameters:
        if name in columns:
            continue
        if template.is_written:
            hint = f"give it a table: `{template.name}.csv`, with a column `{name}`"
            yield _without_value(template, name, f"the parameter `:{name}` has no value", hint)
        else:
            hint = did_you_mean(name, template.carried, f"add a column `{name}` to the table")
            message = f"the parameter `:{name}` has no column in {template.origin}"
            yield _without_value(template, name, message, hint)
    for name in (MATCH_START, MATCH_END, MATCH, KEY, TEMPLATE):
        if name in template.carried:
            message = (
                f"the column `{name}` can't be carried: the matches have a column of that name"
            )
            yield _of_table(template, message, "call it something else")
    yield from _wrong_expressions(template)
    if columns.count(RULE) == 1:
        yield from _bad_names(template)
    elif not template.name.strip():
        yield Finding("the set", "a rule has no name", "call it something")


def clashes(templates: Iterable[Template]) -> Iterator[Finding]:
    """Findings for carried columns whose types differ between tables and have no common type."""
    first: dict[str, tuple[pa.DataType, Template]] = {}
    for template in templates:
        for field in template.carried_schema:
            if pa.types.is_null(field.type):
                continue
            known, other = first.setdefault(field.name, (field.type, template))
            if known == field.type:
                continue
            joined = _unified(known, field.type)
            if joined is not None:
                first[field.name] = joined, other
            else:
                message = (
                    f"the column `{field.name}` is {field.type}, but {known} in {other.origin}"
                )
                hint = "a carried column has one kind of value in all tables"
                yield _of_table(template, message, hint)


def _unified(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The common type of two columns: of numbers, of times, of texts of any width. Arrow would also
    turn texts into bytes, which nobody wants to read."""
    if _is_bytes(left) != _is_bytes(right):
        return None
    schemas = [pa.schema({"": type_}) for type_ in (left, right)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowTypeError:
        return None


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _bad_names(template: Template) -> Iterator[Finding]:
    empty = pc.equal(pc.fill_null(pc.utf8_trim_whitespace(template.names), ""), "")
    if pc.any(empty).as_py():
        rows = tuple(map(template.number, pc.indices_nonzero(empty).to_pylist()))
        hint = f"write one in column `{RULE}`, or leave the column out to have rules numbered"
        yield _of_table(template, "the rule has no name", hint, rows)


def _wrong_expressions(template: Template) -> Iterator[Finding]:
    """A regular expression is right or wrong whatever the events are."""
    for node in walk(template.query.syntax) if template.parameters else ():
        match node:
            case ast.Like(operator="RLIKE", pattern=ast.Parameter(name=name)):
                column = template.columns.get(name)
            case _:
                continue
        if column is None or not pa.types.is_string(column.type):
            continue
        for text in column.unique().drop_null().to_pylist():
            problem = regular_expression_problem(text)
            if problem is not None:
                rows = pc.indices_nonzero(pc.equal(column, text)).to_pylist()
                message = f"`{name}` is no regular expression: {problem}"
                hint = "expressions are RE2's: without look-around and back references"
                yield _of_table(template, message, hint, tuple(map(template.number, rows)))


def _of_table(template: Template, message: str, hint: str, rows: tuple[int, ...] = ()) -> Finding:
    return Finding(template.origin, message, hint, rows, template.name)


def _without_value(template: Template, name: str, message: str, hint: str) -> Finding:
    place = template.parameters[name]
    diagnostic = Diagnostic("CEP206", message, place, template.query.source, hint)
    return of_diagnostic(diagnostic, template.name)
