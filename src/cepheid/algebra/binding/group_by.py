"""GROUP BY, and what RETURN, HAVING and LIMIT say of groups of matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cepheid.algebra.answer_shape import ANSWER, WINDOW_END, WINDOW_START, Answers
from cepheid.algebra.binding import windows
from cepheid.algebra.binding.conjuncts import first_of_optional
from cepheid.algebra.binding.expressions.expression_binder import ExpressionBinder
from cepheid.algebra.binding.expressions.match_calls import has_aggregates
from cepheid.algebra.binding.expressions.resolution import WRONG, Clause
from cepheid.algebra.binding.group_scope import GroupScope
from cepheid.algebra.binding.outputs import ReturnColumn, check_value, last_name, named
from cepheid.algebra.binding.scope import Scope
from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Constant,
    Expr,
    MatchDuration,
    Reduce,
    TimeSpan,
    Whole,
    conjuncts,
    walk,
)
from cepheid.algebra.query import Output
from cepheid.algebra.text import expression_text
from cepheid.algebra.types import Type
from cepheid.algebra.values import integer_time
from cepheid.language import ast
from cepheid.language.group_clause import GroupBy
from cepheid.language.render import render_expression, render_group_by

_COUNT = ast.ReturnItem(ast.Call("count", (ast.Star(),)))
_ENDS = (ast.ReturnItem(ast.Name("window_start")), ast.ReturnItem(ast.Name("window_end")))


def is_grouped(query: ast.Query, scope: Scope) -> bool:
    """Whether the query returns answers. Without GROUP BY, all matches are one group if RETURN has
    an aggregate over matches."""
    return query.group_by is not None or has_aggregates(query.returns, scope)


def bind_groups(query: ast.Query, lowering: ExpressionBinder) -> tuple[tuple[Output, ...], Answers]:
    """The values that matches must have, and how answers are made of them."""
    group_by = query.group_by or GroupBy()
    before = replace(lowering, clause=Clause.GROUP_BY)
    keys = tuple(_key(node, query, before) for node in group_by.expressions)
    window = None
    if group_by.window is not None:
        window = windows.group_window(group_by.window, lowering)
    time = Type.INTEGER if integer_time(lowering.schema) else Type.TIMESTAMP
    groups = GroupScope(tuple(dict.fromkeys(keys)), window, time, open=True)
    returning = replace(lowering, clause=Clause.RETURN, groups=groups)
    items = query.returns or (() if WRONG in keys else _default(group_by))
    columns = [c for item in items for c in _columns(item, returning)]
    having = tuple(_having(group_by, returning))
    answers = Answers(
        tuple(f"g{n}" for n in range(len(groups.keys))),
        window,
        tuple(groups.aggregates.values()),
        having,
        named(columns, lowering.findings),
        _most(query.limit, lowering),
        "\n".join(render_group_by(group_by)) if query.group_by is not None else "",
    )
    return groups.columns, answers


def _default(group_by: GroupBy) -> tuple[ast.ReturnItem, ...]:
    """Without RETURN: the group, its window, and how many matches it has."""
    ends = _ENDS if group_by.window is not None else ()
    return (*map(ast.ReturnItem, group_by.expressions), *ends, _COUNT)


def _key(node: ast.Expression, query: ast.Query, lowering: ExpressionBinder) -> Expr:
    """A group expression; the alias of a RETURN column stands for what it is of."""
    node = _aliased(node, query, lowering.scope)
    known = len(lowering.findings)
    key = first_of_optional(lowering.lower(node), lowering.scope)
    if len(lowering.findings) > known:
        return WRONG
    check_value(key, node, lowering)
    if key.type is Type.OTHER:
        message = f"matches can't be grouped by `{lowering.text(node)}`: it is nested"
        return lowering.wrong("CEP210", message, node.span, "name a part of it")
    if isinstance(key, Constant):
        message = f"`{lowering.text(node)}` is the same for all matches"
        hint = "name an attribute, as in `GROUP BY a.x`"
        return lowering.wrong("CEP343", message, node.span, hint)
    return key


def _aliased(node: ast.Expression, query: ast.Query, scope: Scope) -> ast.Expression:
    if not isinstance(node, ast.Name) or node.name in scope.variables:
        return node
    if sum(scope.column(v, node.name) is not None for v in scope.positive) == 1:
        return node
    named = (i for i in query.returns if i.alias == node.name)
    return next((item.expression for item in named), node)


def _columns(item: ast.ReturnItem, lowering: ExpressionBinder) -> Iterator[ReturnColumn]:
    node = item.expression
    groups = lowering.groups
    assert groups is not None
    if isinstance(node, ast.Star):
        hint = "name group expressions and aggregates, as in `RETURN count(*)`"
        lowering.wrong(
            "CEP340", "`*` returns events, and a group has many matches", node.span, hint
        )
        return
    written = _value(node, lowering)
    expr = groups.grouped(written)
    _check_grouped(expr, node, lowering)
    name, prefix = item.alias or render_expression(node), None
    if item.alias is None and isinstance(written, Attribute) and written.variable != ANSWER:
        name, prefix = last_name(written.name, lowering.schema), written.variable
    yield ReturnColumn(name, expr, item.span, prefix)


def _value(node: ast.Expression, lowering: ExpressionBinder) -> Expr:
    name = node.name if isinstance(node, ast.Name) else ""
    assert lowering.groups is not None
    if name in (WINDOW_START, WINDOW_END) and lowering.groups.window is None:
        hint = "add one, as in `GROUP BY TUMBLE(1 hour)`"
        return lowering.wrong("CEP344", f"`{name}` needs a window in GROUP BY", node.span, hint)
    if name in lowering.scope.variables:
        hint = "add it to GROUP BY as values, or aggregate it, as in `count(*)`"
        message = f"`{lowering.text(node)}` is an event, and a group has many matches"
        return lowering.wrong("CEP340", message, node.span, hint)
    known = len(lowering.findings)
    value = first_of_optional(lowering.lower(node), lowering.scope)
    if len(lowering.findings) == known:
        check_value(value, node, lowering)
    return value if len(lowering.findings) == known else WRONG


def _having(group_by: GroupBy, lowering: ExpressionBinder) -> Iterator[Expr]:
    groups = lowering.groups
    assert groups is not None
    if group_by.having is None:
        return
    condition = first_of_optional(lowering.condition(group_by.having), lowering.scope)
    check_value(condition, group_by.having, lowering)
    expr = groups.grouped(condition)
    _check_grouped(expr, group_by.having, lowering)
    yield from conjuncts(expr)


def _check_grouped(expr: Expr, node: ast.Expression, lowering: ExpressionBinder) -> None:
    """Nothing of a single match may be left."""
    assert lowering.groups is not None
    of_match = next((e for e in walk(expr) if _of_a_match(e)), None)
    if of_match is None or WRONG in lowering.groups.keys:  # it may have been the one that is wrong
        return
    text = expression_text(of_match)
    message = f"`{text}` isn't grouped: the matches of a group may differ in it"
    example = f"avg({text})" if isinstance(of_match, Aggregate | Reduce) else f"max({text})"
    hint = f"add it to GROUP BY, or aggregate it, as in `{example}`"
    lowering.findings.add("CEP340", message, node.span, hint)


def _of_a_match(expr: Expr) -> bool:
    match expr:
        case Attribute(variable):
            return variable != ANSWER
        case Aggregate() | Reduce() | MatchDuration() | TimeSpan() | Whole():
            return True
        case _:
            return False


def _most(limit: ast.MatchLimit | None, lowering: ExpressionBinder) -> int | None:
    if limit is None:
        return None
    if limit.per_key:
        message = "LIMIT counts answers here, and they have no key"
        lowering.findings.add("CEP333", message, limit.span, "leave PER KEY out")
    return windows.most(limit.most, lowering)
