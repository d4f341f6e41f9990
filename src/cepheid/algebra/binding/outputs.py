"""RETURN: the columns of a match, their names, and the input columns that a query reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cepheid.algebra.binding.conjuncts import bare_groups, first_of_optional
from cepheid.algebra.binding.expressions.expression_binder import ExpressionBinder
from cepheid.algebra.binding.findings import Findings
from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Expr,
    Previous,
    Whole,
    walk,
)
from cepheid.algebra.patterns import Closure, Pattern
from cepheid.algebra.patterns import walk as walk_pattern
from cepheid.algebra.query import Conjunct, KeyPart, Kind, Output, Variable
from cepheid.algebra.types import Schema, Type
from cepheid.language import ast
from cepheid.language.attribute_paths import Field
from cepheid.language.render import render_expression

RESERVED = ("match_start", "match_end")


@dataclass(frozen=True, slots=True)
class ReturnColumn:
    """A RETURN column before names are settled. `prefix` is what makes it unique if need be;
    a name that the user gave is never changed."""

    name: str
    expression: Expr
    span: ast.Span
    prefix: str | None = None


def outputs(query: ast.Query, lowering: ExpressionBinder) -> tuple[Output, ...]:
    if query.returns:
        columns = [c for item in query.returns for c in _columns(item, lowering)]
    else:
        columns = list(_all_variables(lowering, query.pattern.span))
    return named(columns, lowering.findings)


def _all_variables(lowering: ExpressionBinder, span: ast.Span) -> Iterator[ReturnColumn]:
    for variable in lowering.scope.positive:
        yield ReturnColumn(variable.name, Whole(variable.name, variable.columns), span)


def _columns(item: ast.ReturnItem, lowering: ExpressionBinder) -> Iterator[ReturnColumn]:
    expression, span = item.expression, item.span
    match expression:
        case ast.Star(None):
            yield from _all_variables(lowering, span)
        case ast.Star(name) if name is not None:
            variable = lowering.variable(name, expression.span)
            for column in variable.columns if variable else ():
                attribute = Attribute(name, column, lowering.schema.columns[column])
                assert variable is not None
                yield ReturnColumn(column, _value(attribute, variable), span, name)
        case ast.Name(name) if name in lowering.scope.variables or name in lowering.scope.ambiguous:
            variable = lowering.variable(name, expression.span)
            if variable is not None:
                yield ReturnColumn(item.alias or name, Whole(name, variable.columns), span)
        case ast.Attribute() | ast.Name():
            value = lowering.lower(expression)
            if isinstance(value, Attribute):
                bound = lowering.scope.variables[value.variable]
                prefix = None if item.alias else value.variable
                name = item.alias or last_name(value.name, lowering.schema)
                yield ReturnColumn(name, _value(value, bound), span, prefix)
        case _:
            value = first_of_optional(lowering.lower(expression), lowering.scope)
            check_value(value, expression, lowering)
            yield ReturnColumn(item.alias or render_expression(expression), value, span)


def last_name(column: str, schema: Schema) -> str:
    """As in SQL, a field of a struct is returned under its own name."""
    path = schema.paths.get(column)
    match None if path is None else path.steps[-1]:
        case Field(name):
            return name
        case _:
            return column


def _value(attribute: Attribute, variable: Variable) -> Expr:
    match variable.kind:
        case Kind.SINGLE:
            return attribute
        case Kind.GROUP:
            return Aggregate("collect", attribute, variable.name, Type.OTHER)
        case Kind.OPTIONAL:
            return Aggregate("first", attribute, variable.name, attribute.type)


def check_value(value: Expr, written: ast.Expression, lowering: ExpressionBinder) -> None:
    groups = sorted(bare_groups(value, lowering.structure))
    if groups:
        name = groups[0]
        message = f"`{name}` is a group, and this needs one value of it"
        hint = f"say which: `first({name}.x)`, `avg({name}.x)`, `collect({name}.x)`"
        lowering.findings.add("CEP213", message, written.span, hint)
    previous = next((e for e in walk(value) if isinstance(e, Previous)), None)
    if previous is not None:
        message = "`PREV` is outside a running condition"
        hint = f"`LAST({previous.variable}.{previous.name}, 1)` is the last element but one"
        lowering.findings.add("CEP321", message, written.span, hint)


def named(columns: list[ReturnColumn], findings: Findings) -> tuple[Output, ...]:
    """Equal attribute names get their variable as a prefix; equal names after that are wrong."""
    counts = Counter(c.name for c in columns)
    names = [
        f"{c.prefix}_{c.name}" if c.prefix is not None and counts[c.name] > 1 else c.name
        for c in columns
    ]
    seen: set[str] = set()
    for name, column in zip(names, columns, strict=True):
        if name in RESERVED:
            message = f"`{name}` is a column that every match has anyway"
            findings.add("CEP221", message, column.span, "give it another name with AS")
        elif name in seen:
            message = f"RETURN has two columns called `{name}`"
            findings.add("CEP220", message, column.span, "name one of them with AS")
        seen.add(name)
    return tuple(Output(n, c.expression) for n, c in zip(names, columns, strict=True))


def required(
    schema: Schema,
    pattern: Pattern,
    where: Iterable[Conjunct],
    having: Iterable[Expr],
    key: Iterable[KeyPart],
    returned: Iterable[Output],
) -> tuple[str, ...]:
    """The columns that the query reads, in the order of the schema."""
    columns_read = {c for c in (*schema.order, schema.type) if c is not None}
    columns_read.update(column for part in key for column in part.columns.values())
    until = (
        p.until for p in walk_pattern(pattern) if isinstance(p, Closure) and p.until is not None
    )
    roots = (
        *(c.expression for c in where),
        *having,
        *until,
        *(o.expression for o in returned),
    )
    for expr in (e for root in roots for e in walk(root)):
        match expr:
            case Attribute(_, name, _) | Previous(_, name, _):
                columns_read.add(name)
            case Whole(_, columns, _):
                columns_read.update(columns)
            case _:
                pass
    known = [c for c in schema.columns if c in columns_read]
    return (*known, *sorted(columns_read.difference(known)))
