"""Bound expressions in one line, for tables of expectations."""

from __future__ import annotations

from typing import assert_never

from cepheid.algebra.expressions import (
    Accumulator,
    Aggregate,
    Attribute,
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Previous,
    PreviousOr,
    Reduce,
    Some,
    TimeSpan,
    Whole,
)

_INFIX = frozenset(("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "and", "or"))


def text(expr: Expr) -> str:
    match expr:
        case Constant(value, _):
            return "NULL" if value is None else repr(value)
        case Attribute(variable, name, _):
            return f"{variable}.{name}"
        case Previous(variable, name, _):
            return f"PREV({variable}.{name})"
        case PreviousOr(_, value, default, _):
            return f"({text(value)} or first {text(default)})"
        case Aggregate(function, argument, variable):
            over = variable if argument is None else text(argument)
            before, behind = "DISTINCT " * expr.distinct, f", {expr.offset}" * (expr.offset > 0)
            return f"{function}({before}{over}{behind})"
        case Accumulator():
            return "acc"
        case Reduce(variable, start, step, _):
            return f"reduce({variable}, {text(start)}, {text(step)})"
        case Every(variable, condition, _):
            return f"every {variable}: {text(condition)}"
        case Some(variable, condition, _):
            return f"some {variable}: {text(condition)}"
        case TimeSpan(variables, _):
            return f"span({', '.join(variables)})"
        case MatchDuration():
            return "duration()"
        case Whole(variable, columns, _):
            return f"{variable}{{{', '.join(columns)}}}"
        case Call(operator, (left, *rest), _) if operator in _INFIX:
            return f" {operator} ".join([_inner(left), *map(_inner, rest)])
        case Call(operator, arguments, _):
            return f"{operator}({', '.join(map(text, arguments))})"
        case _:
            assert_never(expr)


def _inner(expr: Expr) -> str:
    if isinstance(expr, Every | Some) or (isinstance(expr, Call) and expr.operator in _INFIX):
        return f"({text(expr)})"
    return text(expr)
