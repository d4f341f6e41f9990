"""From Lark's tree to the AST: expressions, durations, numbers."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal

from lark import Token

from cepheid.language.ast import (
    Attribute,
    Binary,
    Call,
    Case,
    Cast,
    Comparison,
    Duration,
    Expression,
    InList,
    InRange,
    IsDistinct,
    IsNull,
    KeyTest,
    Like,
    Literal,
    Logical,
    Name,
    OccursWithin,
    Span,
    Star,
    Step,
    Unary,
    Unit,
)
from cepheid.language.attribute_paths import Element, Field, PathStep, attribute_name
from cepheid.language.lark_tree import (
    Mistake,
    Node,
    as_token,
    as_tree,
    child,
    extent,
    has,
    name_of,
    only_name,
    parameter,
    slots,
    span_of,
    tokens,
    trees,
    unquoted,
)

UNIT_WORDS: dict[str, Unit] = {
    **dict.fromkeys(("unit", "units"), Unit.UNITS),
    **dict.fromkeys(("us", "usec", "usecs", "microsecond", "microseconds"), Unit.MICROSECONDS),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), Unit.MILLISECONDS),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Unit.SECONDS),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), Unit.MINUTES),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Unit.HOURS),
    **dict.fromkeys(("day", "days"), Unit.DAYS),
    **dict.fromkeys(("week", "weeks"), Unit.WEEKS),
}

_COMPARISONS = {"==": "=", "!=": "<>"}
_LIKE = {**{word: word for word in ("LIKE", "ILIKE", "RLIKE", "CONTAINS")}, "TILDE": "RLIKE"}
LONGEST_NUMBER = 100
LONGEST_INDEX = 9
"""Digits: no array has more elements."""
_LONGEST_EXPONENT = 30


def build_expression(tree: Node) -> Expression:
    span = span_of(tree)
    match tree.data:
        case "number" | "percent":
            return Literal(build_number(tokens(tree)[0]), span)
        case "string":
            return Literal(unquoted(tokens(tree)[0].value), span)
        case "true" | "false":
            return Literal(tree.data == "true", span)
        case "null":
            return Literal(None, span)
        case "parameter":
            return parameter(tokens(tree)[0])
        case "duration":
            return build_duration(tree)
        case "name_alone":
            return Name(only_name(tree), span)
        case "attribute":
            return Attribute(only_name(tree), _path(child(tree)), span)
        case "star":
            return Star(next(map(name_of, tokens(tree)), None), span)
        case "unary":
            operator = tokens(tree)[0].upper()
            return Unary(operator, build_expression(child(tree)), span)
        case "chain":
            return _chain(tree)
        case "case":
            return _case(tree)
        case "call":
            function = name_of(tokens(tree)[0]).lower()
            return Call(function, _expressions(tree), has(tree, "DISTINCT"), span)
        case "call_over":
            return _call_over(tree)
        case "interval":
            return _interval(tree)
        case "moment":
            return _moment(tree)
        case "step":
            return Step(only_name(tree), build_expression(child(tree)), span)
        case "cast":
            return _cast(tree)
        case "extract":
            return _extract(tree)
        case "key_test":
            return _key_test(tree)
        case "key_tests":
            keys = tuple(KeyTest(_path(t), None, span_of(t)) for t in trees(tree))
            return Logical("AND", keys, span)
        case _:
            return _predicate(tree)


def _key_test(tree: Node) -> KeyTest:
    attribute, *values = trees(tree)
    for operator in tokens(tree):
        if operator.value not in ("=", "=="):
            message = f"unexpected `{operator.value}`"
            raise Mistake("CEP103", message, span_of(operator), "expected `]`, `,` or `=`")
    value = build_expression(values[0]) if values else None
    return KeyTest(_path(attribute), value, span_of(tree))


def _path(tree: Node) -> str:
    """The name of an attribute, which may be a path into it."""
    return attribute_name(only_name(tree), list(map(_path_step, trees(tree))))


def _path_step(tree: Node) -> PathStep:
    (token,) = tokens(tree)
    match tree.data:
        case "field":
            return Field(name_of(token))
        case "key":
            return Element(unquoted(token.value))
    if not token.value.isdigit() or len(token.value) > LONGEST_INDEX:
        message = "an index is a whole number, from 0 on"
        raise Mistake("CEP125", message, span_of(token), "the first element is `[0]`")
    return Element(int(token.value))


def _predicate(tree: Node) -> Expression:
    span = span_of(tree)
    match tree.data:
        case "comparison":
            operators = tuple(_COMPARISONS.get(t.value, t.value) for t in tokens(tree))
            return Comparison(_expressions(tree), operators, span)
        case "in_range":
            operand, low, high = _expressions(tree)
            return InRange(operand, low, high, has(tree, "NOT"), span)
        case "in_list":
            operand, *options = _expressions(tree)
            return InList(operand, tuple(options), has(tree, "NOT"), span)
        case "like":
            operand, pattern = _expressions(tree)
            operator = next(word for kind, word in _LIKE.items() if has(tree, kind))
            return Like(operand, pattern, operator, has(tree, "NOT"), span)
        case "in_parameter":
            listed = parameter(tokens(tree)[-1])
            return InList(build_expression(child(tree)), (listed,), has(tree, "NOT"), span)
        case "is_null":
            return IsNull(build_expression(child(tree)), has(tree, "NOT"), span)
        case "is_distinct":
            left, right = _expressions(tree)
            return IsDistinct(left, right, has(tree, "NOT"), span)
        case "occurs_within":
            variables, duration = trees(tree)
            return OccursWithin(
                tuple(map(_variable, trees(variables))),
                positive(build_duration(duration), "window"),
                span,
            )
    raise AssertionError(tree.data)


def _chain(tree: Node) -> Expression:
    """`p AND q AND r` is one node; `a + b - c` is folded to the left."""
    joint = as_token(slots(tree)[1])
    if joint.type in ("AND", "OR"):
        return Logical(joint.upper(), _expressions(tree), span_of(tree))
    first, *rest = slots(tree)
    result = build_expression(as_tree(first))
    start = extent(as_tree(first)).start
    for operator, operand in zip(rest[::2], rest[1::2], strict=True):
        right = as_tree(operand)
        span = Span(start, extent(right).end)
        result = Binary(as_token(operator).upper(), result, build_expression(right), span)
    return result


def _case(tree: Node) -> Case:
    operand, *parts = slots(tree)
    branches: list[tuple[Expression, Expression]] = []
    default: Expression | None = None
    for part in parts:
        if part is None:
            continue
        if as_tree(part).data == "when":
            condition, value = _expressions(as_tree(part))
            branches.append((condition, value))
        else:
            default = build_expression(child(as_tree(part)))
    subject = None if operand is None else build_expression(as_tree(operand))
    return Case(subject, tuple(branches), default, span_of(tree))


def _cast(tree: Node) -> Cast:
    function, type_ = tokens(tree)
    if name_of(function).lower() not in ("cast", "try_cast"):
        raise Mistake("CEP119", "`AS` names a type only in CAST", span_of(type_))
    return Cast(build_expression(child(tree)), name_of(type_).lower(), span_of(tree))


def _call_over(tree: Node) -> Call:
    """`FINAL sum(A.x)` is `final(sum(A.x))`: a function that only MATCH_RECOGNIZE has."""
    extent_word, function = tokens(tree)[:2]
    arguments = _expressions(tree)
    inner = Call(name_of(function).lower(), arguments, has(tree, "DISTINCT"), span_of(tree))
    return Call(extent_word.lower(), (inner,), span=span_of(tree))


def _interval(tree: Node) -> Duration:
    """`INTERVAL '5' MINUTES` is `5 minutes`."""
    _, amount, unit = tokens(tree)
    text = unquoted(amount.value) if amount.type == "STRING" else amount.value
    if not re.fullmatch(r"\d{1,18}(\.\d{1,18})?", text.strip()):
        raise Mistake("CEP115", "an interval needs a number", span_of(amount), "as in `'5'`")
    number = Decimal(text.strip())
    whole = int(number) if number == number.to_integral_value() else number
    return Duration(whole, UNIT_WORDS[unit.lower()], span_of(tree))


def _moment(tree: Node) -> Cast:
    """`DATE '2024-05-01'` is `CAST('2024-05-01' AS date)`; a text that is no date is a mistake."""
    word, text = tokens(tree)
    written = unquoted(text.value)
    try:
        datetime.fromisoformat(written.strip())
    except ValueError:
        message = f"`{text}` is not a date or timestamp"
        hint = "write it as '2024-05-01 12:30:00'"
        raise Mistake("CEP214", message, span_of(text), hint) from None
    return Cast(Literal(written, span_of(text)), word.lower(), span_of(tree))


def _extract(tree: Node) -> Call:
    """`EXTRACT(hour FROM a.ts)` is `date_part('hour', a.ts)`."""
    function, part = tokens(tree)
    if name_of(function).lower() != "extract":
        raise Mistake("CEP119", "`FROM` stands only in EXTRACT", span_of(part))
    named = Literal(name_of(part).lower(), span_of(part))
    return Call("date_part", (named, build_expression(child(tree))), span=span_of(tree))


def _variable(tree: Node) -> str:
    expression = build_expression(tree)
    if not isinstance(expression, Name):
        raise Mistake(
            "CEP114",
            "OCCURS WITHIN is about variables",
            span_of(tree),
            "write their names, as in `(a, b) OCCURS WITHIN 5 minutes`",
        )
    return expression.name


def _expressions(tree: Node) -> tuple[Expression, ...]:
    return tuple(map(build_expression, trees(tree)))


# ── durations and numbers ───────────────────────────────────────────────────────


def build_duration(tree: Node) -> Duration:
    number, *unit_word = tokens(tree)
    unit = UNIT_WORDS[unit_word[0].lower()] if unit_word else Unit.UNITS
    if number.type == "PARAMETER":
        return Duration(parameter(number), unit, span_of(tree))
    amount = build_number(number)
    exact = Decimal(number.value) if isinstance(amount, float) else amount
    if isinstance(exact, Decimal) and abs(exact.adjusted()) > _LONGEST_EXPONENT:
        raise Mistake("CEP115", "this number is out of range", span_of(number))
    return Duration(exact, unit, span_of(tree))


def positive(duration: Duration, what: str) -> Duration:
    if duration.amount == 0:
        raise Mistake(
            "CEP110",
            f"a {what} of zero holds no match",
            duration.span,
            "the first and the last event must be less than this apart",
        )
    return duration


def build_number(token: Token) -> int | Decimal | float:
    text = token.value
    number = float(text) if "e" in text.lower() else None
    if len(text) > LONGEST_NUMBER or number == float("inf"):
        raise Mistake("CEP115", "this number is out of range", span_of(token))
    if number is not None:
        return number
    if text.endswith("%"):
        digits = Decimal(text[:-1]).as_tuple()
        assert isinstance(digits.exponent, int)
        return Decimal((0, digits.digits, digits.exponent - 2))
    return Decimal(text) if "." in text else int(text)
