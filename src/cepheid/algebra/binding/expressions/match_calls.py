"""Aggregates over matches: `count(*)`, `sum(a.x)` of a variable that binds one event, and
`avg(count(b))`, where the closure's own aggregate stands inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.binding.expressions.group_calls import fitting
from cepheid.algebra.binding.expressions.resolution import WRONG, Clause
from cepheid.algebra.binding.scope import Scope
from cepheid.algebra.expressions import Expr
from cepheid.algebra.functions import SYNONYMS
from cepheid.algebra.query import Kind
from cepheid.algebra.types import Type
from cepheid.language import ast
from cepheid.language.traversal import walk

if TYPE_CHECKING:
    from cepheid.algebra.binding.expressions.expression_binder import ExpressionBinder

APPROXIMATE = "approx_count"


def over_matches(node: ast.Call, scope: Scope) -> bool:
    """Whether this aggregates matches: it is an aggregate, and reads no closure but inside the
    closure's own aggregates. `count(*)` counts matches."""
    name = SYNONYMS.get(node.name, node.name)
    if name == APPROXIMATE:
        return True
    if name not in AGGREGATES or len(node.arguments) != 1:
        return False
    if node.arguments == (ast.Star(),):
        return name == "count"
    groups = {v.name for v in scope.variables.values() if v.kind is not Kind.SINGLE}
    return groups.isdisjoint(_read(node.arguments[0], scope))


def has_aggregates(node: object, scope: Scope) -> bool:
    """Whether an aggregate over matches stands anywhere in it."""
    return any(isinstance(part, ast.Call) and over_matches(part, scope) for part in walk(node))


def _read(node: object, scope: Scope) -> Iterator[str]:
    """The variables that an expression reads outside of aggregates."""
    match node:
        case ast.Call(name) if SYNONYMS.get(name, name) in (*AGGREGATES, "reduce"):
            return
        case ast.Attribute(variable):
            yield variable
        case ast.Star(variable) if variable is not None:
            yield variable
        case ast.Name(name) if name in scope.variables:
            yield name
        case ast.Name() if len(scope.positive) == 1:
            yield scope.positive[0].name
        case tuple():
            for part in node:
                yield from _read(part, scope)
        case _ if is_dataclass(node) and not isinstance(node, ast.Span):
            for attribute in fields(node):
                yield from _read(getattr(node, attribute.name), scope)


def aggregate_matches(low: ExpressionBinder, name: str, node: ast.Call) -> Expr:
    groups = low.groups
    assert groups is not None
    if groups.inside:
        message = f"`{low.text(node)}` is over matches, and can't stand inside another aggregate"
        hint = "a closure's own aggregate stands inside: `avg(count(b))`"
        return low.wrong("CEP342", message, node.span, hint)
    if not groups.open:
        return _too_early(low, node)
    if name == APPROXIMATE:
        if node.arguments != (ast.Star(),) or node.distinct:
            message = "`approx_count` counts matches: it takes `*`"
            return low.wrong("CEP209", message, node.span, "write `approx_count(*)`")
        return groups.aggregate(APPROXIMATE, None, Type.FLOAT, False)
    function = AGGREGATES[name]
    argument = node.arguments[0]
    if isinstance(argument, ast.Star) and argument.variable is None and not node.distinct:
        return groups.aggregate("count", None, Type.INTEGER, False)
    inner = _argument(low, argument, node)
    if inner is None:
        return WRONG
    if inner.type is Type.OTHER:
        text = low.text(argument)
        message = f"`{name}` over matches needs a value that can be compared, but `{text}` is "
        return low.wrong("CEP210", message + "nested", argument.span, "name a part of it")
    fitted = fitting(low, function, inner, node)
    if fitted is None:
        return WRONG
    distinct = node.distinct and not function.extreme and not function.placed
    type_ = function.type or fitted.type
    return groups.aggregate(name, fitted, type_, distinct)


def _too_early(low: ExpressionBinder, node: ast.Call) -> Expr:
    text = low.text(node)
    if low.clause is Clause.GROUP_BY:
        message = f"GROUP BY can't hold `{text}`: it is over the matches of a group"
        return low.wrong("CEP341", message, node.span, "group by values of a match")
    what = "chooses events" if low.clause is not Clause.HAVING else "before GROUP BY checks matches"
    message = f"`{text}` is over the matches of a group, and {low.clause.value} {what}"
    return low.wrong("CEP341", message, node.span, "check groups with HAVING after GROUP BY")


def _argument(low: ExpressionBinder, node: ast.Expression, call: ast.Call) -> Expr | None:
    """What of a match is aggregated. `count(a)` counts the matches that have an a."""
    assert low.groups is not None
    within = replace(low, groups=replace(low.groups, inside=True))
    name = node.variable if isinstance(node, ast.Star) else getattr(node, "name", None)
    known = len(low.findings)
    if isinstance(node, ast.Name | ast.Star) and name in low.scope.variables:
        assert name is not None
        if call.name != "count" or call.distinct:
            message = f"`{call.name}` needs an attribute, but `{name}` is an event"
            low.wrong("CEP213", message, call.span, f"write `{call.name}({name}.x)`")
            return None
        variable = low.variable(name, node.span)
        return None if variable is None else low.attribute(variable, low.schema.time, node.span)
    inner = within.lower(node)
    return inner if len(low.findings) == known else None
