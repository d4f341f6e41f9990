"""A `Recognition` bound to the columns of a table: names are checked, expressions have types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cepheid.algebra.binding.expressions.resolution import Clause
from cepheid.algebra.binding.findings import Findings, did_you_mean
from cepheid.algebra.binding.scope import Scope, listed
from cepheid.algebra.expressions import Attribute, Constant, walk
from cepheid.algebra.kinds import attribute_type
from cepheid.algebra.nested_columns import with_extracted
from cepheid.algebra.structure import Structure
from cepheid.algebra.types import Schema, Type
from cepheid.engine.lowering import NotLowered
from cepheid.language import ast
from cepheid.language.diagnostics import Source
from cepheid.row_patterns.arrangement import ArrangedRows
from cepheid.row_patterns.definitions import path_checks
from cepheid.row_patterns.leaves import CLASSIFIER, MatchNumber, RowExpression
from cepheid.row_patterns.row_binder import RowBinder
from cepheid.row_patterns.row_program import RowProgram, TooLong, compile_pattern
from cepheid.row_patterns.syntax import (
    AfterRow,
    Measure,
    Recognition,
    RowsPerMatch,
    SkipTo,
    SortKey,
    has_exclusion,
    labels_of,
)

_MOST_LABELS = 63
_NO_STRUCTURE = Structure({}, {}, {}, {}, {}, frozenset())


@dataclass(frozen=True)
class BoundMeasure:
    name: str
    value: RowExpression


@dataclass(frozen=True)
class BoundRecognition:
    """`conditions` are those of the labels that have one. `window` is that of WITHIN, in the units
    of the first ORDER BY column. `subsets` are sets of labels by name."""

    program: RowProgram
    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    measures: tuple[BoundMeasure, ...]
    conditions: Mapping[str, RowExpression]
    rows: RowsPerMatch
    skip: SkipTo
    skip_labels: frozenset[str]
    window: int | None
    schema: Schema

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the table that are read at all."""
        values = [*(m.value for m in self.measures), *self.conditions.values()]
        leaves = [leaf for value in values for leaf in value.leaves]
        arguments = [leaf.argument for leaf in leaves if not isinstance(leaf, MatchNumber)]
        nodes = [node for argument in arguments if argument for node in walk(argument)]
        read = [n.name for n in nodes if isinstance(n, Attribute) and n != CLASSIFIER]
        keys = [key.column for key in self.order]
        return tuple(dict.fromkeys((*self.columns, *self.partition, *keys, *read)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a match gives besides its measures."""
        return self.partition if self.rows is RowsPerMatch.ONE else tuple(self.schema.columns)


def bind(
    recognition: Recognition,
    columns: pa.Schema,
    source: Source,
    params: Mapping[str, object] | None = None,
) -> BoundRecognition:
    """Raises a `QueryError` with everything that is wrong."""
    findings = Findings(source)
    time = recognition.order[0].column if recognition.order else ""
    types = {field.name: attribute_type(field.type) for field in columns}
    nested = {f.name: f.type for f in columns if types[f.name] is Type.OTHER}
    resolved = {name.lower(): name for name in types}
    schema = Schema(types, resolved.get(time.lower(), time), nested=nested)
    binder = _ClauseBinder(recognition, schema, findings, params or {})
    bound = binder.bound()
    findings.check()
    return bound


def check_conditions(
    recognition: Recognition, bound: BoundRecognition, columns: pa.Schema, source: Source
) -> None:
    """A `QueryError`, if a condition of DEFINE can't be checked while rows are taken."""
    nothing = with_extracted(columns.empty_table(), bound.reads)
    rows = ArrangedRows(nothing, np.zeros(1, np.int64))
    findings = Findings(source)
    for definition in recognition.definitions:
        condition = bound.conditions[definition.label]
        try:
            path_checks(bound.program.labels, {definition.label: condition}, rows)
        except NotLowered:
            text = findings.text(definition.condition.span)
            message = f"`{text}` can't be checked while rows are taken"
            hint = "a function in DEFINE reads one row: not an aggregate, nor texts of several rows"
            findings.add("CEP628", message, definition.condition.span, hint)
    findings.check()


class _ClauseBinder:
    def __init__(
        self,
        recognition: Recognition,
        schema: Schema,
        findings: Findings,
        params: Mapping[str, object],
    ) -> None:
        self.recognition = recognition
        self.params = params
        self.schema = schema
        self.findings = findings
        self.labels = tuple(dict.fromkeys(label.name for label in labels_of(recognition.pattern)))
        self.sets = {name: frozenset((name,)) for name in self.labels}
        for subset in recognition.subsets:
            self._subset(subset.name, subset.labels, subset.span)

    def _subset(self, name: str, labels: tuple[str, ...], span: ast.Span) -> None:
        if name in self.sets:
            message = f"`{name}` is a label of the pattern" if name in self.labels else ""
            message = message or f"SUBSET defines `{name}` twice"
            self.findings.add("CEP612", message, span, "give the subset another name")
            return
        for label in labels:
            if label not in self.labels:
                self._no_label(label, span)
        self.sets[name] = frozenset(labels)

    def _no_label(self, name: str, span: ast.Span) -> None:
        if name in self.sets:
            message = f"a SUBSET is made of labels, and `{name}` is a SUBSET itself"
            self.findings.add("CEP611", message, span, f"name the labels of `{name}`")
            return
        hint = did_you_mean(name, self.sets, f"labels are {listed(self.sets)}")
        self.findings.add("CEP611", f"the pattern has no label `{name}`", span, hint)

    def bound(self) -> BoundRecognition:
        recognition = self.recognition
        if len(self.labels) > _MOST_LABELS:
            message = f"this pattern has more than {_MOST_LABELS} labels"
            self.findings.add("CEP614", message, recognition.span)
        rows, skip = recognition.rows, recognition.after
        if rows is RowsPerMatch.UNMATCHED and has_exclusion(recognition.pattern):
            message = "{- -} can't stand with WITH UNMATCHED ROWS: its rows are matched, not shown"
            span = recognition.pattern_span
            self.findings.add("CEP610", message, span, "leave one of them out")
        program = self._program()
        self._check_measure_names()
        self._check_progress(program)
        bound = BoundRecognition(
            program=program,
            partition=tuple(
                self._column("PARTITION BY", name, span) for name, span in recognition.partition
            ),
            order=tuple(
                SortKey(self._column("ORDER BY", k.column, k.span), k.descending, k.nulls_first)
                for k in recognition.order
            ),
            measures=tuple(map(self._measure, recognition.measures)),
            conditions=self._conditions(),
            rows=rows,
            skip=skip.skip,
            skip_labels=self._skip_labels(skip),
            window=self._window(),
            schema=self.schema,
        )
        self._check_some_column()
        return bound

    def _program(self) -> RowProgram:
        try:
            return compile_pattern(self.recognition.pattern)
        except TooLong:
            what = "its quantifiers and permutations are written out"
            message = f"this pattern has too many steps when {what}"
            hint = "use `*`, `+` or smaller numbers, and PERMUTE fewer labels"
            self.findings.add("CEP615", message, self.recognition.pattern_span, hint)
            return RowProgram((), ())

    def _column(self, clause: str, name: str, span: ast.Span) -> str:
        column = self.schema.resolve(name)
        if column is not None and self.schema.columns[column] is Type.OTHER:
            message = f"{clause} takes values that can be compared, and `{name}` is nested"
            hint = "take a part of it in a subquery: `(SELECT *, r.id AS id FROM …)`, and use id"
            self.findings.add("CEP617", message, span, hint)
        if column is None:
            hint = did_you_mean(
                name, self.schema.columns, f"columns are {listed(self.schema.columns)}"
            )
            self.findings.add("CEP204", f"there is no column `{name}`", span, hint)
        return column or name

    def _check_some_column(self) -> None:
        recognition = self.recognition
        if recognition.rows is not RowsPerMatch.ONE or self.findings:
            return
        if not recognition.partition and not recognition.measures:
            message = "ONE ROW PER MATCH returns no column here"
            hint = "add MEASURES, as in `MEASURES count(*) AS n`"
            self.findings.add("CEP627", message, recognition.pattern_span, hint)

    def _check_measure_names(self) -> None:
        """Columns of a result differ in more than their case."""
        recognition = self.recognition
        one_row = recognition.rows is RowsPerMatch.ONE
        given = [name for name, _ in recognition.partition] if one_row else self.schema.columns
        names = {name.lower() for name in given}
        for measure in recognition.measures:
            if measure.name.lower() in names:
                message = f"the result has a column `{measure.name}` already"
                hint = "give the measure another name"
                self.findings.add("CEP612", message, measure.span, hint)
            names.add(measure.name.lower())

    def _check_progress(self, program: RowProgram) -> None:
        """A search that goes to the first row of every match never ends. Where only some matches
        are such, it is an error of the run."""
        after = self.recognition.after
        labels = self.sets.get(after.label or "", frozenset())
        numbers = {n for n, name in enumerate(program.labels) if name in labels}
        if not numbers or not program.first_labels <= numbers:
            return
        if after.skip is SkipTo.FIRST or not numbers & program.later_labels:
            message = f"AFTER MATCH SKIP TO {after.label} goes to the first row of every match"
            hint = "skip to a label that comes later, or TO NEXT ROW"
            self.findings.add("CEP626", message, after.span, hint)

    def _measure(self, measure: Measure) -> BoundMeasure:
        return BoundMeasure(measure.name, self._expression(measure.expression, None))

    def _conditions(self) -> dict[str, RowExpression]:
        conditions: dict[str, RowExpression] = {}
        for definition in self.recognition.definitions:
            if definition.label in self.sets and definition.label not in self.labels:
                message = f"`{definition.label}` is a SUBSET, which has no condition of its own"
                self.findings.add("CEP612", message, definition.span, "define its labels")
            elif definition.label not in self.labels:
                self._no_label(definition.label, definition.span)
            elif definition.label in conditions:
                message = f"DEFINE has a condition for `{definition.label}` already"
                self.findings.add("CEP612", message, definition.span)
            else:
                value = self._expression(definition.condition, definition.label)
                conditions[definition.label] = value
        return conditions

    def _expression(self, node: ast.Expression, defines: str | None) -> RowExpression:
        lowering = RowBinder(
            Scope(self.schema, {}, frozenset()),
            _NO_STRUCTURE,
            self.params,
            self.findings,
            Clause.RETURN if defines is None else Clause.WHERE,
            sets=self.sets,
            final=defines is None and self.recognition.rows is RowsPerMatch.ONE,
            defines=defines,
        )
        expr = lowering.lower(node) if defines is None else lowering.condition(node)
        return RowExpression(expr, tuple(lowering.leaves))

    def _skip_labels(self, after: AfterRow) -> frozenset[str]:
        if after.label is None:
            return frozenset()
        if after.label not in self.sets:
            self._no_label(after.label, after.span)
            return frozenset()
        return self.sets[after.label]

    def _window(self) -> int | None:
        within = self.recognition.within
        if within is None:
            return None
        keys = self.recognition.order
        if not keys or keys[0].descending:
            message = "WITHIN needs ORDER BY with an ascending time"
            self.findings.add("CEP616", message, within.span, "order by the time of the rows first")
            return None
        if self.schema.columns.get(self.schema.time) not in (Type.TIMESTAMP, Type.INTEGER):
            column = keys[0].column
            message = f"WITHIN measures `{column}`, which is not a timestamp"
            cast_ = f"CAST({column} AS TIMESTAMP) AS ts"
            hint = f"order by one of a subquery: `(SELECT *, {cast_} FROM …)`"
            self.findings.add("CEP616", message, within.span, hint)
            return None
        scope = Scope(self.schema, {}, frozenset())
        lowering = RowBinder(scope, _NO_STRUCTURE, self.params, self.findings, Clause.WHERE)
        size = lowering.duration(within)
        return int(size.value) if isinstance(size, Constant) and size.value is not None else None
