"""Are rules right for these events? Each is bound, but for rules that only differ in values whose
kind is the same, one stands for all.

What is wrong with a condition depends on its own parameters alone, and of those on few things: the
type of the column, whether the value is NULL, the size of an amount of time or of events, and
whether a text that is compared with moments is one. So the rows are put in classes by those, one
condition after another, and one row of each class is bound.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.algebra import bind
from cepheid.algebra.kinds import attribute_type
from cepheid.algebra.schemas import assumed, bind_schema, bind_streams
from cepheid.algebra.types import Schema, Type
from cepheid.errors import QueryError
from cepheid.language import ast
from cepheid.language.diagnostics import Diagnostic
from cepheid.language.traversal import walk
from cepheid.options import Options
from cepheid.query.runtimes import runtime_of
from cepheid.rules.findings import Finding
from cepheid.rules.load.lifted import Lifted, lifted
from cepheid.rules.load.readers import reading
from cepheid.rules.load.row_classes import MOST, Classes, QueryPart, amounts, moments, parts, sizes
from cepheid.rules.template import Template
from cepheid.runtime import Columns

_NO_MOMENT = "?"


def check(
    templates: Iterable[Template], columns: Columns | None, options: Options
) -> Iterator[Finding]:
    """Findings of the templates over events with these columns. Without columns, every attribute is
    assumed to exist, with the type of what it is compared with."""
    templates = tuple(templates)
    schema = None if columns is None else _schema(columns, options)
    # What others return is known when they are bound: of matches, every attribute is assumed.
    readers = {id(templates[place]) for place in reading(templates, None, False)}

    def findings_of(template: Template) -> Iterator[Finding]:
        fitting = None if id(template) in readers else schema
        fitting = fitting or bind_schema(assumed_columns(template, options), options)
        return _Check(template, fitting).findings()

    right = {
        place
        for shared in lifted(templates)
        for place in _without(shared, findings_of(shared.template))
    }
    for place, template in enumerate(templates):
        if place not in right:
            yield from findings_of(template)


def _without(shared: Lifted, findings: Iterable[Finding]) -> Iterator[int]:
    """The written rules without findings; the others are checked again one by one, so that findings
    name their own texts."""
    wrong: set[int] = set()
    for finding in findings:
        wrong.update(finding.rows or range(1, len(shared.places) + 1))
    return (place for row, place in enumerate(shared.places, 1) if row not in wrong)


def count_wrong(templates: Iterable[Template], findings: Collection[Finding]) -> int:
    """How many rules have a finding. A finding without rows counts for all rules."""
    by_template: dict[str | None, list[tuple[int, ...]]] = {}
    for finding in findings:
        by_template.setdefault(finding.template, []).append(finding.rows)
    wrong = 0
    for template in templates:
        row_sets = by_template.get(template.name, [])
        wrong += len({row for rows in row_sets for row in rows}) if all(row_sets) else len(template)
    return wrong


def _schema(columns: pa.Schema | Mapping[str, pa.Schema], options: Options) -> Schema:
    if isinstance(columns, pa.Schema):
        return bind_schema(columns, options)
    return bind_streams(columns, options)[1]


def assumed_columns(template: Template, options: Options) -> pa.Schema:
    """Columns that fit the query and its parameters' types."""
    columns = assumed(template.query.syntax, options)
    types = {name: column.type for name, column in template.columns.items()}
    for node in walk(template.query.syntax) if types else ():
        names, compared = _compared(node)
        for type_ in (types[name] for name in compared & types.keys()):
            for name in names & {*columns.names} - {options.time}:
                if not attribute_type(type_).numeric and not pa.types.is_null(type_):
                    columns = columns.set(columns.names.index(name), pa.field(name, type_))
    return columns


def _compared(node: object) -> tuple[set[str], set[str]]:
    """Pairs of attributes and parameters that a comparison compares."""
    match node:
        case ast.Comparison(operands=operands):
            sides: tuple[object, ...] = operands
        case ast.InList(operand=operand, options=options):
            sides = (operand, *options)
        case ast.InRange(operand=operand, low=low, high=high):
            sides = (operand, low, high)
        case ast.Like(operand=operand, pattern=pattern):
            sides = (operand, pattern)
        case ast.KeyTest(attribute=attribute, value=ast.Parameter(name=name)):
            return {attribute}, {name}
        case _:
            return set(), set()
    attributes = {side.name for side in sides if isinstance(side, ast.Attribute)}
    return attributes, {side.name for side in sides if isinstance(side, ast.Parameter)}


@dataclass(frozen=True)
class _Check:
    template: Template
    schema: Schema

    def findings(self) -> Iterator[Finding]:
        """Merge equal findings: each has all its rows; none if it is about all rows."""
        template = self.template
        if template.rows is None or not len(template):
            for diagnostic in self.bound({}):
                yield Finding(
                    diagnostic.source.name,
                    diagnostic.message,
                    diagnostic.hint,
                    (),
                    template.name,
                    diagnostic,
                )
            return
        wrong: dict[Diagnostic, npt.NDArray[np.bool_]] = {}
        for row in self.representatives():
            for diagnostic in map(self.of_column, self.bound(template.values(row))):
                rows = wrong.setdefault(diagnostic, np.zeros(len(template), np.bool_))
                rows |= self.alike(diagnostic, row)
        for diagnostic, rows in wrong.items():
            numbers = tuple(template.number(int(row)) for row in np.flatnonzero(rows))
            about = () if len(numbers) == len(template) else numbers
            file = template.origin if about else diagnostic.source.name
            yield Finding(
                file, diagnostic.message, diagnostic.hint, about, template.name, diagnostic
            )

    def of_column(self, diagnostic: Diagnostic) -> Diagnostic:
        """A type mismatch is one of a column, so the hint for a single value doesn't help."""
        if diagnostic.code != "CEP210":
            return diagnostic
        text = diagnostic.source.text[diagnostic.span.start : diagnostic.span.end]
        columns = self.template.columns
        read = [name for name in re.findall(r":(\w+)", text) if name in columns]
        if not read:
            return diagnostic
        types = " and ".join(f"`{name}` is {columns[name].type}" for name in dict.fromkeys(read))
        return replace(diagnostic, hint=f"in {self.template.origin} {types}")

    def bound(self, values: Mapping[str, object]) -> tuple[Diagnostic, ...]:
        """Findings of these values; a missing value is reported earlier."""
        query = self.template.query
        try:
            bind(query.syntax, self.schema, values, query.source)
        except QueryError as error:
            return tuple(
                diagnostic for diagnostic in error.diagnostics if diagnostic.code != "CEP206"
            )
        return ()

    def representatives(self) -> list[int]:
        """A sample row of every class of every part."""
        rows = {0}
        for classes in self.classes.values():
            _, first, size = np.unique(classes, return_index=True, return_counts=True)
            rows.update(first[np.argsort(-size, kind="stable")[:MOST]].tolist())
        return sorted(rows)

    def alike(self, diagnostic: Diagnostic, row: int) -> npt.NDArray[np.bool_]:
        """The rows that the finding is about: the row's class in the part where it was found, or
        all rows if the part has no parameters."""
        for part, classes in self.classes.items():
            if part.has(diagnostic.span):
                return np.asarray(classes == classes[row])
        return np.ones(len(self.template), np.bool_)

    @cached_property
    def classes(self) -> dict[QueryPart, Classes]:
        """The class of each row, for every part that has parameters."""
        by_part = {}
        for part in parts(self.template.query.syntax):
            classes = np.zeros(len(self.template), np.int64)
            for name in part.names:
                kinds = self.kinds.get(name)
                if kinds is not None:
                    joined = classes * (kinds.max() + 1) + kinds
                    classes = np.unique(joined, return_inverse=True)[1].astype(np.int64)
            by_part[part] = classes
        return by_part

    @cached_property
    def kinds(self) -> dict[str, Classes | None]:
        """For each parameter, the class of its value in each row; None if there is only one
        class."""
        amount = amounts(self.template.query.syntax)
        kinds_by_name: dict[str, Classes | None] = {}
        for name, values in self.template.columns.items():
            column = values.combine_chunks()
            type_ = attribute_type(column.type)
            kinds = column.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
            if name in amount and (type_.numeric or type_ is Type.DURATION):
                kinds = kinds + 2 * sizes(column)
            elif type_ is Type.STRING and self.compares_moments(name):
                kinds = kinds + 2 * moments(column)
            kinds_by_name[name] = kinds if np.ptp(kinds) else None
        return kinds_by_name

    def compares_moments(self, name: str) -> bool:
        """Whether the condition refuses a text that is no moment."""
        values = {**self.template.values(0), name: _NO_MOMENT}
        return any(
            diagnostic.code == "CEP214" and name in diagnostic.message
            for diagnostic in self.bound(values)
        )


def columns_of(data: Any) -> Columns | None:
    """The event columns of a schema, of data, or of a dict of streams of either."""
    if isinstance(data, Mapping):
        return {name: columns_of(part) for name, part in data.items()}
    if data is None or isinstance(data, pa.Schema):
        return data
    return runtime_of(data).columns(data)
