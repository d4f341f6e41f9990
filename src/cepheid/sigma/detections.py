"""A detection of Sigma becomes a condition on one event.

Sigma compares texts without case, and a field that is missing fails its comparison: with `not`, it
passes. Ours is unknown for a missing value, so `not` is brought to the comparisons, and each says
what NULL means there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sigma import types as sigma_types
from sigma.conditions import (
    ConditionAND,
    ConditionFieldEqualsValueExpression,
    ConditionNOT,
    ConditionOR,
    ConditionValueExpression,
)
from sigma.rule import SigmaRule

from cepheid.language.attribute_paths import quoted_attribute
from cepheid.sigma.field_names import Mapped
from cepheid.sigma.marked_text import MarkedValue, Wording, joined, literal

_COMPARED = {
    sigma_types.CompareOperators.LT: ("<", ">="),
    sigma_types.CompareOperators.LTE: ("<=", ">"),
    sigma_types.CompareOperators.GT: (">", "<="),
    sigma_types.CompareOperators.GTE: (">=", "<"),
    sigma_types.CompareOperators.NEQ: ("<>", "="),
}
_PARTS_OF_TIME = {
    sigma_types.TimestampPart.MINUTE: "minute",
    sigma_types.TimestampPart.HOUR: "hour",
    sigma_types.TimestampPart.DAY: "day",
    sigma_types.TimestampPart.WEEK: "weekofyear",
    sigma_types.TimestampPart.MONTH: "month",
    sigma_types.TimestampPart.YEAR: "year",
}
_FLAGS = {
    sigma_types.SigmaRegularExpressionFlag.IGNORECASE: "i",
    sigma_types.SigmaRegularExpressionFlag.MULTILINE: "m",
    sigma_types.SigmaRegularExpressionFlag.DOTALL: "s",
}


class UnsayableError(Exception):
    """A rule of Sigma that has no counterpart here; the message says why."""


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A comparison, as it is and as its opposite for values that are there; `absent` is whether
    the opposite holds without a value."""

    holds: Wording
    fails: Wording
    column: str
    absent: bool = True


def conditions(rule: SigmaRule, variable: str, mapped: Mapped) -> tuple[Wording, ...]:
    """The conditions that an event has to fulfil to fit the rule."""
    parsed = [each.parsed for each in rule.detection.parsed_condition]
    if not parsed or any(tree is None for tree in parsed):
        raise UnsayableError("the detection is empty")
    writer = _ConditionWriter(variable, mapped)
    if len(parsed) > 1:  # one of them must hold
        either = [writer.condition(tree, negated=False, inside=" OR ") for tree in parsed]
        return (("(", *joined(" OR ", either), ")"),)
    return tuple(
        writer.condition(tree, negated, " AND ") for tree, negated in _conjuncts(parsed[0])
    )


def _conjuncts(tree: Any, negated: bool = False) -> Iterator[tuple[Any, bool]]:
    """The parts of a condition all of which must hold, each with whether it is negated."""
    match tree:
        case ConditionNOT(args=[argument]):
            yield from _conjuncts(argument, not negated)
        case ConditionAND(args=arguments) if not negated:
            yield from (part for argument in arguments for part in _conjuncts(argument))
        case ConditionOR(args=arguments) if negated:
            if _values_of_one_field(tree) is None:
                yield from (part for each in arguments for part in _conjuncts(each, negated))
            else:
                yield tree, negated
        case _:
            yield tree, negated


@dataclass(frozen=True, slots=True)
class _ConditionWriter:
    variable: str
    mapped: Mapped

    def condition(self, tree: Any, negated: bool, inside: str = "") -> Wording:
        """`inside` is the operator around the condition: another one needs parentheses."""
        match tree:
            case ConditionNOT(args=[argument]):
                return self.condition(argument, not negated, inside)
            case ConditionAND(args=arguments) | ConditionOR(args=arguments):
                listed = self._listed(tree, negated)
                if listed is not None:
                    return listed
                both = isinstance(tree, ConditionAND) != negated
                operator = " AND " if both else " OR "
                parts = [self.condition(part, negated, operator) for part in arguments]
                return _in_parentheses(joined(operator, parts), operator, inside)
            case ConditionFieldEqualsValueExpression(field=name, value=value):
                column = f"{self.variable}.{quoted_attribute(self.mapped.column(name))}"
                return self._compared(self._comparison(column, name, value), negated, inside)
            case ConditionValueExpression(value=value):
                return self._compared(self._keyword(value), negated, inside)
            case _:
                raise UnsayableError(f"a condition of pySigma's kind {type(tree).__name__}")

    def _compared(self, comparison: _Comparison, negated: bool, inside: str) -> Wording:
        if not negated:
            return comparison.holds
        if not comparison.absent:
            return comparison.fails
        absent = (f"{comparison.column} IS NULL OR ", *comparison.fails)
        return _in_parentheses(absent, " OR ", inside)

    def _listed(self, tree: Any, negated: bool) -> Wording | None:
        """Alternatives of one field that are plain values, as a list."""
        alternatives = _values_of_one_field(tree)
        if alternatives is None:
            return None
        name, values = alternatives
        column = f"{self.variable}.{quoted_attribute(self.mapped.column(name))}"
        compared = f"lower({column})" if isinstance(values[0], str) else column
        items = ", ".join(map(literal, values))
        if negated:
            return (f"({column} IS NULL OR {compared} NOT IN ({items}))",)
        return (f"{compared} IN ({items})",)

    def _comparison(self, column: str, name: str, value: sigma_types.SigmaType) -> _Comparison:
        match value:
            case sigma_types.SigmaString():
                return _of_text(column, name, value)
            case sigma_types.SigmaTimestampPart():
                part = f"{_PARTS_OF_TIME[value.timestamp_part]}({column})"
                return _with_operator(part, name, "=", "<>", value.number, column)
            case sigma_types.SigmaNumber():
                return _with_operator(column, name, "=", "<>", value.number, column)
            case sigma_types.SigmaBool():
                truth = literal(value.boolean)
                return _Comparison((f"{column} = {truth}",), (f"{column} <> {truth}",), column)
            case sigma_types.SigmaNull():
                return _Comparison(
                    (f"{column} IS NULL",), (f"{column} IS NOT NULL",), column, False
                )
            case sigma_types.SigmaExists():
                texts = (f"{column} IS NOT NULL",), (f"{column} IS NULL",)
                holds, fails = texts if value.exists else texts[::-1]
                return _Comparison(holds, fails, column, absent=False)
            case sigma_types.SigmaCompareExpression():
                holds_with, fails_with = _COMPARED[value.op]
                number = value.number
                compared = column
                if isinstance(number, sigma_types.SigmaTimestampPart):
                    compared = f"{_PARTS_OF_TIME[number.timestamp_part]}({column})"
                return _with_operator(compared, name, holds_with, fails_with, number.number, column)
            case sigma_types.SigmaRegularExpression():
                return _of_expression(column, value)
            case sigma_types.SigmaCIDRExpression():
                call = f"cidr_contains({literal(str(value.cidr))}, {column})"
                return _Comparison((call,), (f"NOT {call}",), column)
            case sigma_types.SigmaFieldReference():
                other = f"{self.variable}.{quoted_attribute(self.mapped.column(value.field))}"
                return _of_field(column, other, value)
            case sigma_types.SigmaExpansion():
                return _any_of([self._comparison(column, name, v) for v in value.values], column)
            case _:
                raise UnsayableError(f"`{name}` is compared with a {type(value).__name__}")

    def _keyword(self, value: sigma_types.SigmaType) -> _Comparison:
        """A value that any part of the event may have."""
        if self.mapped.keywords is None:
            raise UnsayableError(
                "keywords are looked for in whole events: name the column that has the event's "
                "text in the file of --fields, as `keywords: message`"
            )
        column = f"{self.variable}.{quoted_attribute(self.mapped.keywords)}"
        match value:
            case sigma_types.SigmaString():
                word = "LIKE" if isinstance(value, sigma_types.SigmaCasedString) else "ILIKE"
                return _like_comparison(column, "keyword", word, f"%{_like(value)}%")
            case sigma_types.SigmaNumber():
                return _like_comparison(column, "keyword", "LIKE", f"%{value.number}%")
            case sigma_types.SigmaRegularExpression():
                return _of_expression(column, value)
            case _:
                raise UnsayableError(f"a keyword is a {type(value).__name__}")


def _in_parentheses(wording: Wording, operator: str, inside: str) -> Wording:
    return wording if inside in ("", operator) else ("(", *wording, ")")


def _with_operator(
    compared: str, name: str, holds: str, fails: str, number: int | float, column: str
) -> _Comparison:
    constant = MarkedValue(number, name)
    return _Comparison(
        (f"{compared} {holds} ", constant), (f"{compared} {fails} ", constant), column
    )


def _values_of_one_field(tree: Any) -> tuple[str, Sequence[str | int | float]] | None:
    """The field and the values, if the condition is a list of plain values of one field."""
    if not isinstance(tree, ConditionOR):
        return None
    fields, values = set[str](), list[str | int | float]()
    for part in tree.args:
        if not isinstance(part, ConditionFieldEqualsValueExpression):
            return None
        value = _plain(part.value)
        if value is None:
            return None
        fields.add(part.field)
        values.append(value)
    texts = sum(isinstance(value, str) for value in values)
    return (fields.pop(), values) if len(fields) == 1 and texts in (0, len(values)) else None


def _plain(value: sigma_types.SigmaType) -> str | int | float | None:
    """The value that a list can hold; None if this one can't stand there."""
    match value:
        case sigma_types.SigmaTimestampPart() | sigma_types.SigmaCasedString():
            return None
        case sigma_types.SigmaNumber():
            return value.number
        case sigma_types.SigmaString() if all(isinstance(part, str) for part in value.s):
            return "".join(map(str, value.s)).lower()
        case _:
            return None


def _of_text(column: str, name: str, value: sigma_types.SigmaString) -> _Comparison:
    cased = isinstance(value, sigma_types.SigmaCasedString)
    if not all(isinstance(part, str) for part in value.s):
        return _like_comparison(column, name, "LIKE" if cased else "ILIKE", _like(value))
    plain = "".join(map(str, value.s))
    compared = column if cased else f"lower({column})"
    constant = MarkedValue(plain if cased else plain.lower(), name)
    return _Comparison((f"{compared} = ", constant), (f"{compared} <> ", constant), column)


def _like(value: sigma_types.SigmaString) -> str:
    """A pattern of LIKE: `*` is `%`, and `?` is `_`."""
    return "".join(map(_like_part, value.s))


def _like_part(part: sigma_types.SigmaStringPartType) -> str:
    match part:
        case sigma_types.SpecialChars.WILDCARD_MULTI:
            return "%"
        case sigma_types.SpecialChars.WILDCARD_SINGLE:
            return "_"
        case str():
            return part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        case _:
            raise UnsayableError(f"the placeholder `%{part.name}%` has no value")


def _like_comparison(column: str, name: str, word: str, pattern: str) -> _Comparison:
    constant = MarkedValue(pattern, name)
    return _Comparison((f"{column} {word} ", constant), (f"{column} NOT {word} ", constant), column)


def _of_expression(column: str, value: sigma_types.SigmaRegularExpression) -> _Comparison:
    """RLIKE's expressions are RE2's, and so are those that pySigma takes."""
    flags = "".join(sorted(_FLAGS[flag] for flag in value.flags))
    pattern = (f"(?{flags})" if flags else "") + str(value.regexp)
    quoted = literal(pattern)
    return _Comparison((f"{column} RLIKE {quoted}",), (f"{column} NOT RLIKE {quoted}",), column)


def _of_field(column: str, other: str, value: sigma_types.SigmaFieldReference) -> _Comparison:
    functions = [("starts_with", value.starts_with), ("ends_with", value.ends_with)]
    calls = [f"{name}({column}, {other})" for name, wanted in functions if wanted]
    if not calls:
        return _Comparison((f"{column} = {other}",), (f"{column} <> {other}",), column)
    both = len(calls) == 2
    text = f"contains({column}, {other})" if both else calls[0]
    return _Comparison((text,), (f"NOT {text}",), column)


def _any_of(comparisons: Sequence[_Comparison], column: str) -> _Comparison:
    def side(separator: str, of: Callable[[_Comparison], Wording]) -> Wording:
        return ("(", *joined(separator, map(of, comparisons)), ")")

    return _Comparison(
        side(" OR ", lambda each: each.holds), side(" AND ", lambda each: each.fails), column
    )
