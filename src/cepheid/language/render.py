"""The canonical text of a query: infix, one clause per line, no parentheses beyond need.

Law: `parse(render(q)) == q` for every query that the parser makes, so the text may stand for
the query (in plans, in saved state, in messages).
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from enum import IntEnum
from typing import assert_never

from cepheid.language.ast import (
    AfterMatch,
    AnyOf,
    Atom,
    Attribute,
    Binary,
    Call,
    Case,
    Cast,
    Closure,
    Comparison,
    Conjunction,
    Delay,
    Disjunction,
    Duration,
    EventCount,
    Expression,
    InList,
    InRange,
    IsDistinct,
    IsNull,
    KeyTest,
    Like,
    Literal,
    Logical,
    Mode,
    Name,
    Negation,
    OccursWithin,
    Parameter,
    Pattern,
    Query,
    ReturnItem,
    Sequence,
    Star,
    Step,
    Unary,
    Unless,
)
from cepheid.language.attribute_paths import quoted_attribute
from cepheid.language.group_clause import GroupBy
from cepheid.language.names import quantifier_text, quoted, quoted_field, quoted_function


def render(query: Query) -> str:
    """
    >>> from cepheid.language.parser import parse
    >>> print(render(parse("pattern SEQ(A a, B+ b) within 10 where [id] and sum(b.x) >= 20%")))
    PATTERN A a ; B+ b
    WHERE [id] AND sum(b.x) >= 0.20
    WITHIN 10 units
    """
    return "\n".join(_clauses(query))


def _clauses(query: Query) -> Iterator[str]:
    if query.into is not None:
        yield f"INTO {quoted(query.into)}"
    yield _matched(query)
    if query.streams:
        yield f"FROM {', '.join(map(quoted, query.streams))}"
    if query.where is not None:
        yield f"WHERE {render_expression(query.where)}"
    if query.having is not None:
        yield f"HAVING {render_expression(query.having)}"
    match query.within:
        case Duration():
            yield f"WITHIN {_duration(query.within)}"
        case EventCount(count):
            yield f"WITHIN {_amount(count)} EVENTS"
    if query.using is not None:
        yield f"USING {query.using.value}"
    if query.after_match is not None:
        yield render_after_match(query.after_match)
    if query.group_by is not None:
        yield from render_group_by(query.group_by)
    if query.returns:
        yield render_returns(query)
    if query.limit is not None:
        per_key = " PER KEY" if query.limit.per_key else ""
        yield f"LIMIT {_amount(query.limit.most.count)}{per_key}"


def render_returns(query: Query) -> str:
    """RETURN with its columns; empty if there are none."""
    columns = ", ".join(map(_return_item, query.returns))
    return f"RETURN {columns}" if columns else ""


def _matched(query: Query) -> str:
    """What is looked for: a pattern, or the combinations of some streams."""
    if not query.relational:
        return f"PATTERN {render_pattern(query.pattern)}"
    parts = query.pattern.items if isinstance(query.pattern, Conjunction) else (query.pattern,)
    return f"FROM {', '.join(map(render_pattern, parts))}"


def render_group_by(group_by: GroupBy) -> Iterator[str]:
    items = [render_expression(expression) for expression in group_by.expressions]
    window = group_by.window
    if window is not None:
        lengths = (window.size,) if window.slide is None else (window.slide, window.size)
        items.append(f"{window.kind.value}({', '.join(map(_duration, lengths))})")
    yield f"GROUP BY {', '.join(items)}"
    if group_by.having is not None:
        yield f"HAVING {render_expression(group_by.having)}"


def render_after_match(after: AfterMatch) -> str:
    if after.duration is not None:
        return f"AFTER MATCH {after.skip.value} {_duration(after.duration)}"
    variable = "" if after.variable is None else f" {quoted(after.variable)}"
    return f"AFTER MATCH {after.skip.value}{variable}"


def _return_item(item: ReturnItem) -> str:
    text = render_expression(item.expression)
    return text if item.alias is None else f"{text} AS {quoted_field(item.alias)}"


# ── patterns ─────────────────────────────────────────────────────────────────


class Tightness(IntEnum):
    """How tightly a pattern's outermost operator binds."""

    SEQUENCE = 1
    DISJUNCTION = 2
    CONJUNCTION = 3
    UNLESS = 4
    NEGATION = 5
    POSTFIX = 6
    CLOSURE = 7
    LEAF = 8


def render_pattern(pattern: Pattern) -> str:
    return _pattern(pattern, Tightness.SEQUENCE)


def _pattern(pattern: Pattern, least: Tightness) -> str:
    """The text of a pattern where only operators as tight as `least` may stand bare."""
    tightness, text = _pattern_text(pattern)
    return text if tightness >= least else f"({text})"


def _pattern_text(pattern: Pattern) -> tuple[Tightness, str]:
    t = Tightness
    match pattern:
        case Atom(name, alias):
            return t.LEAF, _aliased(quoted(name), alias)
        case AnyOf(types, alias):
            return t.LEAF, _aliased(_any_of(types), alias)
        case Sequence(items, operators):
            text = _pattern(items[0], t.DISJUNCTION)
            for operator, item in zip(operators, items[1:], strict=True):
                text += f" {operator.value} {_pattern(item, t.DISJUNCTION)}"
            return t.SEQUENCE, text
        case Disjunction(items):
            return t.DISJUNCTION, " | ".join(_pattern(i, t.CONJUNCTION) for i in items)
        case Conjunction(items):
            return t.CONJUNCTION, " & ".join(_pattern(i, t.UNLESS) for i in items)
        case Unless(item, exception):
            return t.UNLESS, f"{_pattern(item, t.UNLESS)} \\ {_pattern(exception, t.NEGATION)}"
        case Negation(item, duration):
            if duration is None:
                return t.NEGATION, f"!{_pattern(item, t.NEGATION)}"
            return t.NEGATION, f"!{_pattern(item, t.POSTFIX)} FOR {_duration(duration)}"
        case Delay(item, duration):
            return t.POSTFIX, f"{_pattern(item, t.POSTFIX)} @ {_duration(duration)}"
        case Closure():
            return t.CLOSURE, _closure(pattern)
        case _:
            assert_never(pattern)


def _aliased(text: str, alias: str | None) -> str:
    return text if alias is None else f"{text} {quoted(alias)}"


def _any_of(types: tuple[str, ...]) -> str:
    return f"ANY({', '.join(map(quoted, types))})"


def _closure(closure: Closure) -> str:
    quantifier = quantifier_text(closure.quantifier)
    match closure.item:
        case Atom(name, alias):
            text = _aliased(quoted(name) + quantifier, alias)
        case AnyOf(types, alias):
            text = _aliased(_any_of(types) + quantifier, alias)
        case _:
            text = f"({render_pattern(closure.item)}){quantifier}"
    if closure.mode is not Mode.MAXIMAL:
        text += f" {closure.mode.value}"
    if closure.strict:
        text += " STRICT"
    if closure.until is not None:
        text += f" UNTIL ({render_expression(closure.until)})"
    return text


# ── expressions ──────────────────────────────────────────────────────────────


class _Level(IntEnum):
    """How tightly an expression's outermost operator binds."""

    OR = 1
    AND = 2
    NOT = 3
    PREDICATE = 4
    SUM = 5
    PRODUCT = 6
    SIGN = 7
    PRIMARY = 8


_BINARY_LEVELS = {
    "OR": _Level.OR,
    "AND": _Level.AND,
    "+": _Level.SUM,
    "-": _Level.SUM,
    "||": _Level.SUM,
    "*": _Level.PRODUCT,
    "/": _Level.PRODUCT,
    "%": _Level.PRODUCT,
}


def render_expression(expression: Expression) -> str:
    return _expression(expression, _Level.OR)


def _expression(expression: Expression, least: _Level) -> str:
    """The text of an expression where only operators as tight as `least` may stand bare."""
    level, text = _expression_text(expression)
    return text if level >= least else f"({text})"


def _expression_text(expression: Expression) -> tuple[_Level, str]:
    lv = _Level
    match expression:
        case Literal():
            return lv.PRIMARY, _literal(expression)
        case Parameter(name):
            return lv.PRIMARY, f":{name}"
        case Name(name):
            return lv.PRIMARY, quoted(name)
        case Attribute(variable, name):
            return lv.PRIMARY, f"{quoted(variable)}.{quoted_attribute(name)}"
        case Star(variable):
            return lv.PRIMARY, "*" if variable is None else f"{quoted(variable)}.*"
        case Duration():
            return lv.PRIMARY, _duration(expression)
        case Call(name, arguments, distinct):
            inside = ", ".join(map(render_expression, arguments))
            before = "DISTINCT " if distinct else ""
            return lv.PRIMARY, f"{quoted_function(name)}({before}{inside})"
        case Step(name, body):
            return lv.OR, f"{quoted(name)} -> {render_expression(body)}"
        case Cast(operand, type_):
            return lv.PRIMARY, f"CAST({render_expression(operand)} AS {quoted_field(type_)})"
        case Case():
            return lv.PRIMARY, _case(expression)
        case KeyTest(attribute, None):
            return lv.PRIMARY, f"[{quoted_attribute(attribute)}]"
        case KeyTest(attribute, value):
            assert value is not None
            return lv.PRIMARY, f"[{quoted_attribute(attribute)} = {_expression(value, lv.SUM)}]"
        case Unary("NOT", operand):
            return lv.NOT, f"NOT {_expression(operand, lv.NOT)}"
        case Unary(operator, operand):
            text = _expression(operand, lv.SIGN)
            # `--` would start a comment.
            return lv.SIGN, f"{operator} {text}" if text.startswith("-") else f"{operator}{text}"
        case Logical(operator, operands):
            level = _BINARY_LEVELS[operator]
            tighter = lv(level + 1)
            return level, f" {operator} ".join(_expression(o, tighter) for o in operands)
        case Binary(operator, left, right):
            level = _BINARY_LEVELS[operator]
            tighter = lv(level + 1)
            return level, f"{_expression(left, level)} {operator} {_expression(right, tighter)}"
        case (
            Comparison() | InRange() | InList() | Like() | IsNull() | IsDistinct() | OccursWithin()
        ):
            return lv.PREDICATE, _predicate(expression)
        case _:
            assert_never(expression)


def _predicate(
    predicate: Comparison | InRange | InList | Like | IsNull | IsDistinct | OccursWithin,
) -> str:
    def operand(expression: Expression) -> str:
        return _expression(expression, _Level.SUM)

    match predicate:
        case Comparison(operands, operators):
            text = operand(operands[0])
            for operator, right in zip(operators, operands[1:], strict=True):
                text += f" {operator} {operand(right)}"
            return text
        case InRange(value, low, high, negated):
            return f"{operand(value)}{_not(negated)} BETWEEN {operand(low)} AND {operand(high)}"
        case InList(value, options, negated):
            inside = ", ".join(map(render_expression, options))
            return f"{operand(value)}{_not(negated)} IN ({inside})"
        case Like(value, pattern, word, negated):
            return f"{operand(value)}{_not(negated)} {word} {operand(pattern)}"
        case IsNull(value, negated):
            return f"{operand(value)} IS{_not(negated)} NULL"
        case IsDistinct(left, right, negated):
            return f"{operand(left)} IS{_not(negated)} DISTINCT FROM {operand(right)}"
        case OccursWithin(variables, duration):
            names = ", ".join(map(quoted, variables))
            return f"({names}) OCCURS WITHIN {_duration(duration)}"
        case _:
            assert_never(predicate)


def _not(negated: bool) -> str:
    return " NOT" if negated else ""


def _case(case: Case) -> str:
    parts = ["CASE"]
    if case.operand is not None:
        parts.append(render_expression(case.operand))
    for condition, value in case.branches:
        parts.append(f"WHEN {render_expression(condition)} THEN {render_expression(value)}")
    if case.default is not None:
        parts.append(f"ELSE {render_expression(case.default)}")
    return " ".join([*parts, "END"])


def _literal(literal: Literal) -> str:
    match literal.value:
        case None:
            return "NULL"
        case bool(value):
            return "TRUE" if value else "FALSE"
        case str(value):
            return "'" + value.replace("'", "''") + "'"
        case float(value):
            # With an exponent, so that it is read as a float again and not as a decimal.
            return repr(value) if "e" in repr(value) else f"{value!r}e0"
        case value:
            return _amount(value)


def _duration(duration: Duration) -> str:
    name = duration.unit.value
    return f"{_amount(duration.amount)} {name[:-1] if duration.amount == 1 else name}"


def _amount(amount: int | Decimal | Parameter) -> str:
    match amount:
        case Parameter(name):
            return f":{name}"
        case Decimal():
            text = format(amount, "f")
            return text if "." in text else f"{text}.0"
        case int():
            return str(amount)
        case _:
            assert_never(amount)
