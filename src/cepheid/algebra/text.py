"""Bound queries as text, for plans and messages: the language's own terms where it has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    Varying,
    Whole,
    transform,
)
from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
)
from cepheid.algebra.query import BoundQuery, Clock, Conjunct, KeyPart, Variable, Window
from cepheid.algebra.types import Schema, Type
from cepheid.language.ast import Mode
from cepheid.language.attribute_paths import quoted_attribute
from cepheid.language.names import quantifier_text, quoted
from cepheid.language.render import Tightness

_INFIX = {
    **{"and": "AND", "or": "OR", "like": "LIKE", "rlike": "RLIKE"},
    **dict.fromkeys(("contains", "array_contains"), "CONTAINS"),
}
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
        case Varying():
            return f":{expr.name}"
        case Constant():
            return _constant(expr)
        case Attribute():
            return f"{expr.variable}.{expr.name}"
        case Previous():
            return f"PREV({expr.variable}.{expr.name})"
        case PreviousOr():
            return f"PREV({expression_text(_at_hand(expr.value))}, {expression_text(expr.default)})"
        case Aggregate(argument=None):
            return f"{expr.function}({expr.variable})"
        case Aggregate(argument=argument):
            assert argument is not None
            before = "DISTINCT " if expr.distinct else ""
            behind = f", {expr.offset}" if expr.offset else ""
            return f"{expr.function}({before}{expression_text(argument)}{behind})"
        case Accumulator():
            return "acc"
        case Reduce():
            step = f"acc -> {expression_text(expr.step)}"
            return f"reduce({expr.variable}, {expression_text(expr.start)}, {step})"
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


def _at_hand(expr: Expr) -> Expr:
    """What PREV stands around: it reads the element at hand."""

    def change(node: Expr) -> Expr | None:
        match node:
            case Previous(variable, name, type_):
                return Attribute(variable, name, type_)
            case _:
                return None

    return transform(expr, change)


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
    operator, arguments = expr.operator, expr.arguments
    if operator in _SYMBOLS or operator in _INFIX:
        return f" {_INFIX.get(operator, operator)} ".join(map(_operand, arguments))
    match operator:
        case "not" if isinstance(inner := arguments[0], Call) and inner.operator == "is_null":
            return f"{_operand(inner.arguments[0])} IS NOT NULL"
        case "not" if isinstance(inner := arguments[0], Call) and inner.operator == "in":
            listed = ", ".join(map(_operand, inner.arguments[1:]))
            return f"{_operand(inner.arguments[0])} NOT IN ({listed})"
        case "not":
            return f"NOT {_operand(arguments[0])}"
        case "neg":
            return f"-{_operand(arguments[0])}"
        case "is_null":
            return f"{_operand(arguments[0])} IS NULL"
        case "in":
            return f"{_operand(arguments[0])} IN ({', '.join(map(_operand, arguments[1:]))})"
        case "in_list":
            return " IN ".join(map(_operand, arguments))
        case "to_float" | "to_timestamp":
            return expression_text(arguments[0])
        case _ if operator.startswith("cast_"):
            return f"CAST({expression_text(arguments[0])} AS {expr.type.value})"
        case _:
            return f"{operator}({', '.join(map(expression_text, arguments))})"


def _operand(expr: Expr) -> str:
    """An operand, in parentheses if it is an operation itself."""
    plain = not isinstance(expr, Call) or not (
        expr.operator in _SYMBOLS or expr.operator in _INFIX or expr.operator in ("not", "is_null")
    )
    text = expression_text(expr)
    return text if plain or isinstance(expr, Every | Some) else f"({text})"


# ── patterns and queries ─────────────────────────────────────────────────────


def pattern_text(pattern: Pattern, variables: Mapping[str, Variable]) -> str:
    """The pattern as it would be written, with the alias of every event that has one."""
    return _pattern(pattern, variables, Tightness.SEQUENCE)


def _pattern(pattern: Pattern, variables: Mapping[str, Variable], least: Tightness) -> str:
    tightness, text = _tight_text(pattern, variables)
    return text if tightness >= least else f"({text})"


def _tight_text(pattern: Pattern, variables: Mapping[str, Variable]) -> tuple[Tightness, str]:
    t = Tightness

    def joined(items: Iterable[Pattern], operator: str, least: Tightness) -> str:
        return operator.join(_pattern(i, variables, least) for i in items)

    match pattern:
        case Leaf(variable):
            return t.LEAF, leaf_text(variables[variable])
        case Sequence(items, operators):
            text = _pattern(items[0], variables, t.DISJUNCTION)
            for operator, item in zip(operators, items[1:], strict=True):
                text += f" {operator.value} {_pattern(item, variables, t.DISJUNCTION)}"
            return t.SEQUENCE, text
        case Disjunction(items):
            return t.DISJUNCTION, joined(items, " | ", t.CONJUNCTION)
        case Conjunction(items):
            return t.CONJUNCTION, joined(items, " & ", t.UNLESS)
        case Unless(item, exception):
            left = _pattern(item, variables, t.UNLESS)
            return t.UNLESS, f"{left} \\ {_pattern(exception, variables, t.NEGATION)}"
        case Negation(item):
            return t.NEGATION, f"!{_pattern(item, variables, t.NEGATION)}"
        case Absence(item, _, duration):
            return t.NEGATION, f"!{_pattern(item, variables, t.POSTFIX)} FOR {duration}"
        case Delay(item, duration):
            return t.POSTFIX, f"{_pattern(item, variables, t.POSTFIX)} @ {duration}"
        case Closure():
            return t.LEAF, _closure(pattern, variables)
        case _:
            assert_never(pattern)


def leaf_text(variable: Variable, quantifier: str = "") -> str:
    """A class as a pattern names it: `A a`, `B+ b`, `ANY(A, B) x`, or the type or alias alone."""
    match variable.types:
        case ():
            return quoted(variable.name) + quantifier
        case (only,) if only == variable.name:
            return quoted(only) + quantifier
        case (only,):
            return f"{quoted(only)}{quantifier} {quoted(variable.name)}"
        case several:
            return f"ANY({', '.join(map(quoted, several))}){quantifier} {quoted(variable.name)}"


def _closure(closure: Closure, variables: Mapping[str, Variable]) -> str:
    quantifier = quantifier_text(closure.quantifier)
    if isinstance(closure.item, Leaf):
        text = leaf_text(variables[closure.item.variable], quantifier)
    else:
        text = f"({pattern_text(closure.item, variables)}){quantifier}"
    text += f" {closure.mode.value}" if closure.mode is not Mode.MAXIMAL else ""
    text += " STRICT" if closure.strict else ""
    text += f" UNTIL ({expression_text(closure.until)})" if closure.until is not None else ""
    return text


def query_text(query: BoundQuery) -> str:
    """The clauses that decide what matches, one a line; the key stands first in WHERE."""
    return "\n".join(_clauses(query))


def _clauses(query: BoundQuery) -> Iterator[str]:
    yield f"PATTERN {pattern_text(query.pattern, query.variables)}"
    if query.key or query.where:
        key = (key_text(part) for part in query.key)
        yield f"WHERE {' AND '.join((*key, *map(conjunct_text, query.where)))}"
    if query.having:
        yield f"HAVING {' AND '.join(map(condition_text, query.having))}"
    if query.window is not None:
        yield f"WITHIN {window_text(query.window, query.schema)}"
    if query.answers is not None and query.answers.text:
        yield query.answers.text


def key_text(part: KeyPart) -> str:
    """`[id]`, or the equalities if the column's name isn't the same for all."""
    if part.uniform is not None:
        return f"[{quoted_attribute(part.uniform)}]"
    return " = ".join(f"{variable}.{column}" for variable, column in part.columns.items())


def conjunct_text(conjunct: Conjunct) -> str:
    return condition_text(conjunct.expression)


def condition_text(expr: Expr) -> str:
    """A condition beside others: OR in parentheses, so that AND may stand around it."""
    text = expression_text(expr)
    return f"({text})" if isinstance(expr, Call) and expr.operator == "or" else text


def window_text(window: Window, schema: Schema) -> str:
    if window.clock is Clock.EVENTS:
        return f"{window.size} EVENTS"
    ticks = schema.columns[schema.time] is Type.INTEGER
    return span_text(window.size, ticks)
