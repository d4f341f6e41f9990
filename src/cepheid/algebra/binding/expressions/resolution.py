"""Names, parameters and durations of a query's expressions: what each stands for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from fractions import Fraction

import pyarrow as pa

from cepheid.algebra.binding.findings import Findings, did_you_mean
from cepheid.algebra.binding.group_scope import GroupScope
from cepheid.algebra.binding.scope import Scope, listed
from cepheid.algebra.expressions import Attribute, Constant, Expr
from cepheid.algebra.kinds import attribute_type
from cepheid.algebra.nested_columns import Missing, field_names, is_array
from cepheid.algebra.query import Variable
from cepheid.algebra.structure import Structure
from cepheid.algebra.types import Schema, Type
from cepheid.algebra.values import (
    NoTick,
    NoUnit,
    constant,
    duration_constant,
    integer_time,
    ticks,
)
from cepheid.language import ast
from cepheid.language.attribute_paths import Field, read_path
from cepheid.language.render import render_expression

WRONG = Constant(None, Type.NULL)
"""Stands for a part that was reported; NULL fits anywhere, so that the rest is looked at."""

_MICROSECOND_CLOCK = Schema({"time": Type.TIMESTAMP}, "time")


class Clause(Enum):
    WHERE = "WHERE"
    HAVING = "HAVING"
    GROUP_BY = "GROUP BY"
    RETURN = "RETURN"
    UNTIL = "UNTIL"


@dataclass(frozen=True)
class Resolver:
    """Resolves for one clause of the query; `groups` are those of its matches, if it has some."""

    scope: Scope
    structure: Structure
    params: Mapping[str, object]
    findings: Findings
    clause: Clause
    groups: GroupScope | None = None

    @property
    def schema(self) -> Schema:
        return self.scope.schema

    @property
    def duration_type(self) -> Type:
        """Over an integer time column durations are numbers like any other."""
        return Type.INTEGER if integer_time(self.schema) else Type.DURATION

    def wrong(self, code: str, message: str, span: ast.Span, hint: str = "") -> Constant:
        self.findings.add(code, message, span, hint)
        return WRONG

    def text(self, node: ast.Expression) -> str:
        """As the query has it; canonical if it was not given as text."""
        return self.findings.text(node.span) or render_expression(node)

    def variable(self, name: str, span: ast.Span) -> Variable | None:
        bound = self.scope.lookup(name, span, self.findings)
        if bound is None or bound.negation is None:
            return bound
        if self.clause is Clause.HAVING:
            message = f"HAVING can't read `{name}`: it is negated, so a match doesn't have it"
            self.findings.add("CEP331", message, span, "say in WHERE which events are forbidden")
            return None
        if self.clause is Clause.UNTIL:
            message = f"UNTIL can't read `{name}`: it is negated"
            self.findings.add("CEP322", message, span, "read the closure or what stands before it")
            return None
        if self.clause in (Clause.RETURN, Clause.GROUP_BY):
            message = f"{self.clause.value} can't read `{name}`: it is negated, so a match "
            hint = "return a variable that is not negated"
            if self.clause is Clause.GROUP_BY:
                hint = "name a variable that is not negated"
            self.findings.add("CEP330", message + "doesn't have it", span, hint)
            return None
        return bound

    def attribute(self, variable: Variable, name: str, span: ast.Span) -> Expr:
        column = self.scope.column(variable, name)
        if column is None:
            reached = self.scope.reach(variable, name)
            if isinstance(reached, Missing):
                message, hint = missing_step(reached, self.schema)
                return self.wrong("CEP204", message, span, hint)
            path = read_path(name)
            if path is not None:
                name = path.column
            owner = " or ".join(variable.types) or f"`{variable.name}`"
            hint = did_you_mean(name, variable.columns, f"it has {listed(variable.columns)}")
            return self.wrong("CEP204", f"{owner} has no attribute `{name}`", span, hint)
        return Attribute(variable.name, column, self.schema.columns[column])

    def name(self, node: ast.Name) -> Expr:
        """An attribute without its variable, which only one variable leaves clear."""
        if self.groups is not None and (end := self.groups.window_end(node.name)) is not None:
            return end
        if node.name in self.scope.variables or node.name in self.scope.ambiguous:
            message = f"`{node.name}` is an event, not a value"
            return self.wrong("CEP205", message, node.span, f"name an attribute: `{node.name}.x`")
        positive = self.scope.positive
        if len(positive) == 1:
            return self.attribute(positive[0], node.name, node.span)
        owners = [v.name for v in positive if self.scope.column(v, node.name)]
        if not owners:
            known = {*self.scope.variables, *(c for v in positive for c in v.columns)}
            hint = did_you_mean(node.name, known, f"variables are {listed(self.scope.variables)}")
            return self.wrong("CEP203", f"nothing is called `{node.name}`", node.span, hint)
        hint = f"say whose it is: `{owners[0]}.{node.name}`"
        message = f"`{node.name}` could belong to several events"
        return self.wrong("CEP205", message, node.span, hint)

    def parameter_value(self, node: ast.Parameter) -> object:
        """KeyError, after a finding, if it has no value."""
        if node.name not in self.params:
            hint = did_you_mean(node.name, self.params, f'give it one: params={{"{node.name}": …}}')
            self.findings.add(
                "CEP206", f"the parameter `:{node.name}` has no value", node.span, hint
            )
            raise KeyError(node.name)
        return self.params[node.name]

    def parameter(self, node: ast.Parameter, *, micros: bool = False) -> Expr:
        try:
            value = self.parameter_value(node)
        except KeyError:
            return WRONG
        if isinstance(value, timedelta):
            amount = Fraction(value // timedelta(microseconds=1))
            return self._ticks(amount, ast.Unit.MICROSECONDS, node.span, micros)
        literal = constant(value)
        if literal is None:
            message = f"`:{node.name}` is a {type(value).__name__}, which no predicate can read"
            return self.wrong("CEP207", message, node.span)
        return literal

    def listed(self, node: ast.Parameter, values: Iterable[object]) -> list[Expr]:
        """The values of a parameter that is a list."""
        pairs = [(value, constant(value)) for value in values]
        for value, _ in (pair for pair in pairs if pair[1] is None):
            message = f"`:{node.name}` has a {type(value).__name__}, which no predicate can read"
            self.findings.add("CEP207", message, node.span)
        return [expr for _, expr in pairs if expr is not None]

    def amount(self, node: ast.Duration | ast.EventCount) -> Fraction | timedelta | None:
        """The number of a duration; a timedelta only as the value of a bare `:name`."""
        written = node.amount if isinstance(node, ast.Duration) else node.count
        if not isinstance(written, ast.Parameter):
            return Fraction(written)
        try:
            value = self.parameter_value(written)
        except KeyError:
            return None
        bare = isinstance(node, ast.Duration) and node.unit is ast.Unit.UNITS
        if isinstance(value, timedelta) and bare:
            return value
        number = constant(value)
        if (
            number is not None
            and number.type.numeric
            and isinstance(number.value, int | float)
            and math.isfinite(number.value)
        ):
            return Fraction(str(value))
        message = f"`:{written.name}` must be a number, not {value!r}"
        self.findings.add("CEP207", message, written.span)
        return None

    def duration(self, node: ast.Duration, *, micros: bool = False) -> Expr:
        amount = self.amount(node)
        if amount is None:
            return WRONG
        if isinstance(amount, timedelta):
            micro = Fraction(amount // timedelta(microseconds=1))
            return self._ticks(micro, ast.Unit.MICROSECONDS, node.span, micros)
        return self._ticks(amount, node.unit, node.span, micros)

    def _ticks(self, amount: Fraction, unit: ast.Unit, span: ast.Span, micros: bool) -> Expr:
        """`micros`: it meets timestamps, so that an integer time column has no say in it."""
        size = self.clock_ticks(amount, unit, span, micros=micros)
        if size is None:
            return WRONG
        return duration_constant(size, integer=integer_time(self.schema) and not micros)

    def clock_ticks(
        self, amount: Fraction, unit: ast.Unit, span: ast.Span, *, micros: bool = False
    ) -> Fraction | None:
        try:
            if micros and unit is not ast.Unit.UNITS:
                return ticks(amount, unit, _MICROSECOND_CLOCK)
            return ticks(amount, unit, self.schema)
        except NoTick:
            time = self.schema.time
            message = f"the time column `{time}` is an integer, and nothing says how long one is"
            shown = f"{_plain(amount)} units"
            hint = f'write `{shown}`, or say what one tick is: unit="ms"'
            self.findings.add("CEP403", message, span, hint)
        except NoUnit:
            message = f"the time column `{self.schema.time}` is a timestamp, so this needs a unit"
            self.findings.add("CEP404", message, span, f"write `{_plain(amount)} seconds`")
        return None


def missing_step(missing: Missing, schema: Schema) -> tuple[str, str]:
    """What to say of a path that leads nowhere: the message and the hint."""
    path, type_, step = str(missing.path), missing.type, missing.step
    key = step.name if isinstance(step, Field) else step.key
    names = field_names(type_)
    if isinstance(key, str) and names and (isinstance(step, Field) or not is_array(type_)):
        hint = did_you_mean(key, names, f"it has {listed(names)}")
        return f"`{path}` has no field `{key}`", hint
    if names and not is_array(type_):
        return f"`{path}` is a struct, whose fields have names", f"write `{path}.{names[0]}`"
    if is_array(type_):
        return f"`{path}` is an array, whose elements have numbers", f"write `{path}[0]`"
    if pa.types.is_map(type_):
        kind = attribute_type(type_.key_type)
        example = {Type.STRING: "['x']", Type.INTEGER: "[0]"}.get(kind)
        hint = f"write `{path}{example}`" if example else "such keys can't be written in a query"
        return f"`{path}` is a map whose keys are of type {kind.value}", hint
    kind = schema.columns[path] if path in schema.columns else attribute_type(type_)
    parts = "fields" if isinstance(step, Field) else "elements"
    return f"`{path}` is of type {kind.value}, and has no {parts}", ""


def _plain(amount: Fraction) -> str:
    return str(int(amount)) if amount.denominator == 1 else str(float(amount))
