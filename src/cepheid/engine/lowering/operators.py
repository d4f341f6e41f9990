"""Operators and functions over values that are already lowered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.expressions import Aggregate, Call, Expr, walk
from cepheid.algebra.types import Type
from cepheid.engine.lowering.terms import (
    CHECKED,
    DOUBLES,
    NotLowered,
    Term,
    all_valid,
    both,
    compare,
    zero,
)

if TYPE_CHECKING:
    from cepheid.engine.lowering.expressions import KernelLowering

DAY = 86_400_000_000
BEYOND = float(1 << 63)
"""The first double that is no 64-bit integer."""


def operate(low: KernelLowering, expr: Call, terms: list[Term]) -> Term:
    """The call, given its arguments; what is not defined is NULL."""
    terms = [Term(low.let(t.value) if " " in t.value else t.value, t.valid) for t in terms]
    valid = all_valid(t.valid for t in terms)
    values = [t.value for t in terms]
    operand = expr.arguments[0].type
    match expr.operator:
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            ordered = expr.operator not in ("=", "<>")
            text = operand in (Type.STRING, Type.BINARY)
            if text and ordered and not low.inputs.objects:
                raise NotLowered(expr)
            return Term(compare(expr.operator, terms[0], terms[1], operand), valid)
        case "+" | "-" | "*":
            if expr.type not in DOUBLES:
                return _checked(low, expr.operator, values[0], values[1], valid)
            return Term(f"({values[0]} {expr.operator} {values[1]})", valid)
        case "/":
            divided = f"({values[0]} / {values[1]} if {values[1]} != 0 else 0.0)"
            return Term(divided, all_valid([valid, f"({values[1]} != 0)"]))
        case "%":
            if expr.type is Type.FLOAT:
                return _defined(
                    low, f"remainder({values[0]}, {values[1]})", f"({values[1]} != 0)", valid
                )
            return _modulo(low, values[0], values[1], valid)
        case "neg" if expr.type not in DOUBLES:
            return _checked(low, "-", "0", values[0], valid)
        case "neg":
            return Term(f"(-{values[0]})", valid)
        case "greatest" | "least":
            return _extreme(low, expr.operator, terms, expr.type)
        case _:
            return _function(low, expr, values, valid)


def _function(low: KernelLowering, expr: Call, values: list[str], valid: str | None) -> Term:
    """A function of numbers; others are called as Python, where objects are allowed."""
    operand = expr.arguments[0].type
    match expr.operator:
        case "abs" if expr.type not in DOUBLES:
            opposite = _checked(low, "-", "0", values[0], None)
            size = f"({opposite.value} if {values[0]} < 0 else {values[0]})"
            return Term(size, all_valid([valid, opposite.valid]))
        case "abs":
            return Term(f"abs({values[0]})", valid)
        case "sign":
            # Of NaN, which equals nothing here, it is NULL.
            known = f"({values[0]} == {values[0]})" if operand is Type.FLOAT else None
            step = f"(1 if {values[0]} > 0 else (-1 if {values[0]} < 0 else 0))"
            return Term(step, all_valid([valid, known]))
        case "to_float":
            return Term(f"float({values[0]})", valid)
        case "to_timestamp":
            return _checked(low, "*", values[0], str(DAY), valid)
        case "sqrt":
            return _defined(low, f"math.sqrt({values[0]})", f"({values[0]} >= 0)", valid)
        case "ln" | "log10":
            name = {"ln": "log", "log10": "log10"}[expr.operator]
            return _defined(low, f"math.{name}({values[0]})", f"({values[0]} > 0)", valid)
        case "exp":
            return Term(f"exponential({values[0]})", valid)
        case "ceil" | "floor" if operand is not Type.INTEGER:
            # Also of what is too large for an integer, and of NaN and infinity, it is NULL.
            fits = f"(-{BEYOND} <= {values[0]} < {BEYOND})"
            return _defined(low, f"math.{expr.operator}({values[0]})", fits, valid, "0")
        case "ceil" | "floor":
            return Term(values[0], valid)
        case _ if low.inputs.objects:
            function = low.inputs.param(expr)
            found = low.let(f"{function}({', '.join(values)}) if {valid or 'True'} else None")
            known = low.let(f"{found} is not None")
            return Term(low.let(f"{found} if {known} else {zero(expr.type, True)}"), known)
        case _:
            raise NotLowered(expr)


TEXTS = (Type.STRING, Type.BINARY)
_ORDER = ("<", "<=", ">", ">=")
_PARTS = {
    **{"like": "text_like", "contains": "text_contains"},
    **{"starts_with": "text_starts", "ends_with": "text_ends"},
}
"""Functions of kernels."""


def in_bytes(expr: Call) -> bool:
    """Whether it is decided by the bytes of its texts. Equal texts have equal places, so that is
    true of equality, too, where a text is chosen by its order."""
    known = expr.operator in _ORDER or expr.operator in _PARTS
    known = known or (expr.operator in ("=", "<>") and any(map(_chosen, walk(expr))))
    return known and all(argument.type in TEXTS for argument in expr.arguments)


def _chosen(expr: Expr) -> bool:
    match expr:
        case Call("greatest" | "least"):
            return expr.type in TEXTS
        case Aggregate(function=name, argument=argument) if argument is not None:
            return AGGREGATES[name].chooses and argument.type in TEXTS
        case _:
            return False


def operate_on_texts(expr: Call, terms: list[Term], heap: str) -> Term:
    """The call, given the places of its texts."""
    x, y = (term.value for term in terms)
    valid = all_valid(term.valid for term in terms)
    if expr.operator in _ORDER:
        return Term(f"(text_order({heap}, {x}, {y}) {expr.operator} 0)", valid)
    if expr.operator in ("=", "<>"):
        return Term(compare(expr.operator, Term(x), Term(y), Type.STRING), valid)
    return Term(f"{_PARTS[expr.operator]}({heap}, {x}, {y})", valid)


def _defined(
    low: KernelLowering, source: str, test: str, valid: str | None, zero: str = "0.0"
) -> Term:
    """A function that is NULL where the test fails."""
    value = low.let(f"{source} if {test} else {zero}")
    return Term(value, all_valid([valid, test]))


def _extreme(low: KernelLowering, operator: str, terms: list[Term], type_: Type) -> Term:
    """The greatest or least of those that are not NULL."""
    best, known = low.let(terms[0].value), low.let(terms[0].valid or "True")
    for term in terms[1:]:
        better = low.precedes(">" if operator == "greatest" else "<", term, Term(best), type_)
        test = both(f"(not {known} or {better})", term.valid)
        with low.block(f"if {test}:"):
            low.line(f"{best} = {term.value}")
            low.line(f"{known} = True")
    return Term(best, known)


def _checked(low: KernelLowering, operator: str, x: str, y: str, valid: str | None) -> Term:
    """Integers that overflow give NULL."""
    value, fits = low.name(), low.name()
    low.line(f"{value}, {fits} = {CHECKED[operator]}({x}, {y})")
    return Term(value, all_valid([valid, fits]))


def _modulo(low: KernelLowering, x: str, y: str, valid: str | None) -> Term:
    """The remainder has the sign of the dividend, as in SQL. By -1, which overflows a division,
    it is that by 1."""
    safe = low.let(f"{y} if {y} != 0 and {y} != -1 else 1")
    rest = low.let(f"{x} % {safe}")
    signed = f"({rest} - {safe} if {rest} != 0 and ({rest} < 0) != ({x} < 0) else {rest})"
    return Term(signed, all_valid([valid, f"({y} != 0)"]))
