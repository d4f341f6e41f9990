"""Bound expressions as text, for plans and messages."""

from __future__ import annotations

from typing import assert_never

from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Previous,
    Some,
    TimeSpan,
    Whole,
)
from cepheid.algebra.types import Type

_INFIX = {"and": "AND", "or": "OR", "like": "LIKE", "contains": "CONTAINS"}
_SYMBOLS = frozenset(("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"))

_SPANS = (
    ("weeks", 604_800_000_000),
    ("days", 86_400_000_000),
    ("hours", 3_600_000_000),
    ("minutes", 60_000_000),
    ("seconds", 1_000_000),
    ("milliseconds", 1_000),
    ("microseconds", 1),
)


def span_text(size: int, ticks: bool = False) -> str:
    """A duration in its largest whole unit.

    >>> span_text(90_000_000), span_text(200, ticks=True)
    ('90 seconds', '200 units')
    """
    name, unit = ("units", 1) if ticks else next(s for s in _SPANS if size % s[1] == 0)
    amount = size // unit
    return f"{amount} {name[:-1] if amount == 1 else name}"


def expression_text(expr: Expr) -> str:
    """The expression in the language's own terms."""
    match expr:
        case Constant():
            return _constant(expr)
        case Attribute():
            return f"{expr.variable}.{expr.name}"
        case Previous():
            return f"PREV({expr.variable}.{expr.name})"
        case Aggregate(argument=None):
            return f"{expr.function}({expr.variable})"
        case Aggregate(argument=argument):
            assert argument is not None
            return f"{expr.function}({expression_text(argument)})"
        case Every():
            return f"every {expr.variable}: {expression_text(expr.condition)}"
        case Some():
            return f"some {expr.variable}: {expression_text(expr.condition)}"
        case TimeSpan():
            return f"span({', '.join(expr.variables)})"
        case MatchDuration():
            return "duration()"
        case Whole():
            return expr.variable
        case Call():
            return _call(expr)
        case _:
            assert_never(expr)


def _constant(expr: Constant) -> str:
    match expr.value:
        case None:
            return "NULL"
        case bool():
            return str(expr.value).upper()
        case str():
            return "'" + expr.value.replace("'", "''") + "'"
        case int() if expr.type is Type.DURATION:
            return span_text(expr.value)
        case float() if expr.value.is_integer():
            return str(int(expr.value))
        case _:
            return str(expr.value)


def _call(expr: Call) -> str:
    texts = [_operand(a) for a in expr.arguments]
    operator = expr.operator
    if operator in _SYMBOLS or operator in _INFIX:
        return f" {_INFIX.get(operator, operator)} ".join(texts)
    match operator:
        case "not":
            return f"NOT {texts[0]}"
        case "neg":
            return f"-{texts[0]}"
        case "is_null":
            return f"{texts[0]} IS NULL"
        case "in":
            return f"{texts[0]} IN ({', '.join(texts[1:])})"
        case "to_float" | "to_timestamp":
            return expression_text(expr.arguments[0])
        case _:
            return f"{operator}({', '.join(expression_text(a) for a in expr.arguments)})"


def _operand(expr: Expr) -> str:
    """An operand, in parentheses if it is an operation itself."""
    plain = not isinstance(expr, Call) or not (
        expr.operator in _SYMBOLS or expr.operator in _INFIX or expr.operator in ("not", "is_null")
    )
    text = expression_text(expr)
    return text if plain or isinstance(expr, Every | Some) else f"({text})"
